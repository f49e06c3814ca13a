//! Files of one format as those of another: what the command `convert` does with a file.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use modelcrate::{
    AnyReader, Becoming, Conversion, ConvertOptions, Error, Note, Product, Request, Target,
    TensorSet,
    rten_format::onnx::{self, Export},
    tensor_core::{
        Error as Core, Report, Source, Verify,
        output::{Existing, LockedFile, NewFile, Output},
    },
};
use pyo3::prelude::*;
use serde::Serialize;

use crate::{
    fault::{Fault, Result},
    reader::{self, json},
};

/// What was written.
#[derive(Default, Serialize)]
pub(crate) struct Done {
    to: &'static str,
    /// The length of the file in bytes.
    nbytes: u64,
    /// What became of tensors that are not as they were.
    notes: Vec<Note>,
    /// Keys of metadata that the format cannot hold.
    left_out: Vec<String>,
    /// What else there is to say.
    findings: Report,
}

/// Converts a file.
#[pyfunction]
#[pyo3(signature = (input, output, *, to, lossy, densify, dequantize, overwrite))]
#[expect(clippy::too_many_arguments, reason = "they are those of the function that users call")]
#[expect(clippy::fn_params_excessive_bools, reason = "as above")]
pub(crate) fn convert(
    py: Python<'_>,
    input: PathBuf,
    output: PathBuf,
    to: Option<&str>,
    lossy: bool,
    densify: bool,
    dequantize: bool,
    overwrite: bool,
) -> PyResult<String> {
    let existing = if overwrite { Existing::Replace } else { Existing::Keep };
    let how = Output { existing, ..Output::default() };
    Ok(py.detach(|| {
        let mut request = Request::new(product(to, &output)?);
        if lossy || densify || dequantize {
            let options = ConvertOptions::default().lossy(lossy).densify(densify);
            request.tensors = Some(options.dequantize(dequantize));
        }
        if same_file(&input, &output) {
            return Err(Fault::usage("the output is the input, expected another file"));
        }
        let reader = reader::open(&input, AnyReader::options().verify(Verify::Once))?;
        let becoming = reader.convert(&request).map_err(|error| match error {
            Error::Impossible { .. } => Fault::usage(format!("{input:?} {error}")),
            error => error.into(),
        })?;
        json(&match becoming {
            Becoming::Tensors(set, target, options) => {
                write_tensors(&set, target, &output, &options, how)?
            }
            Becoming::Onnx(export) => export_onnx(export, &output, existing)?,
            Becoming::Model(model) => {
                let write = |sink: &mut NewFile| Ok(model.write(sink)?);
                let check = |written| Ok(model.check(written)?);
                write_file(&output, how, model.to().name(), write, check)?
            }
        })
    })?)
}

/// Returns what is asked for, or what a name ends in.
pub(crate) fn product(to: Option<&str>, output: &Path) -> Result<Product> {
    if let Some(to) = to {
        return to.parse().map_err(|error| Fault::usage(format!("to: {error}")));
    }
    Product::from_path(output).ok_or_else(|| {
        let known = Product::ENDS.join(", .");
        let message =
            format!("{output:?} says no format by its end, expected one of .{known}, or to=");
        Fault::usage(message)
    })
}

fn same_file(input: &Path, output: &Path) -> bool {
    input.canonicalize().ok().is_some_and(|input| output.canonicalize().ok() == Some(input))
}

/// Writes a set of tensors as a file.
pub(crate) fn write_tensors(
    set: &TensorSet<'_>,
    target: Target,
    output: &Path,
    options: &ConvertOptions,
    how: Output,
) -> Result<Done> {
    let conversion = conversion(set, target, options)?;
    let write = |sink: &mut NewFile| {
        for file in conversion.files() {
            file.write(&mut *sink, |_| ())?;
        }
        Ok(Report::default())
    };
    let check = |written| Ok(AnyReader::from_source(written)?.lint());
    let done = write_file(output, how, target.name(), write, check)?;
    let (notes, left_out) = (conversion.notes().to_vec(), conversion.left_out().to_vec());
    Ok(Done { notes, left_out, ..done })
}

/// Finds out whether a file can hold tensors.
pub(crate) fn conversion<'s, 'a>(
    set: &'s TensorSet<'a>,
    target: Target,
    options: &ConvertOptions,
) -> Result<Conversion<'s, 'a>> {
    set.convert_to(target, options).map_err(|refused| {
        let count = refused.len();
        let first = refused.first().map(ToString::to_string).unwrap_or_default();
        let more = if count > 1 { format!(", and {} more", count - 1) } else { String::new() };
        Fault::refused(format!("{target} cannot hold it: {first}{more}"), refused)
    })
}

fn export_onnx(export: Export<'_>, output: &Path, existing: Existing) -> Result<Done> {
    let exported = export.existing(existing).write(output).map_err(|error| match error {
        onnx::Error::Exists { path } => Fault::exists(&path),
        error => Fault::of(&error),
    })?;
    let nbytes = output.metadata().map(|file| file.len()).unwrap_or_default();
    Ok(Done { to: "onnx", nbytes, findings: exported.report, ..Done::default() })
}

/// Writes a file that appears whole and without errors, or not at all.
fn write_file(
    output: &Path,
    how: Output,
    to: &'static str,
    write: impl FnOnce(&mut NewFile) -> Result<Report>,
    check: impl FnOnce(Source) -> Result<Report>,
) -> Result<Done> {
    let is_there = output.symlink_metadata().is_ok();
    if is_there && how.existing == Existing::Keep {
        return Err(Fault::exists(output));
    }
    // Keeps editors out of a file that is replaced.
    let lock = output.exists().then(|| LockedFile::open(output)).transpose()?;
    let mut file = how.create(output)?;
    let findings = write(&mut file)?;
    let failed = |source| Core::File { path: output.to_owned(), what: "writing", source };
    file.flush().map_err(failed)?;
    if let Some(finding) = check(file.source()?)?.new_error_since(&Report::default()) {
        return Err(finding.into());
    }
    file.commit(how.existing)?;
    drop(lock);
    Ok(Done { to, nbytes: file.written(), findings, ..Done::default() })
}
