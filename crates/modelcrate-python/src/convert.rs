//! Files of one format as those of another: what the command `convert` does with a file.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use modelcrate::{
    AnyReader, ConvertOptions, Note, Target, TensorSet,
    circle_format::{self, Schema},
    ptl_spec,
    rten_format::{Rewrite, onnx::Export},
    tensor_core::{
        Error as Core, Report, Verify,
        output::{Existing, LockedFile, NewFile, Output},
    },
    ztensor,
};
use pyo3::prelude::*;
use serde::Serialize;

use crate::{
    fault::{Fault, Result},
    reader::json,
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
    let options = ConvertOptions::default().lossy(lossy).densify(densify).dequantize(dequantize);
    Ok(py.detach(|| {
        let to = To::of(to, &output)?;
        if same_file(&input, &output) {
            return Err(Fault::usage("the output is the input, expected another file"));
        }
        let reader = AnyReader::options().verify(Verify::Once).open(&input);
        let reader = reader.map_err(|error| Fault::from(error).about(&input))?;
        json(&to.write(&reader, &output, &options, existing)?)
    })?)
}

/// What a file can become.
#[derive(Clone, Copy)]
enum To {
    Model(Schema),
    Onnx,
    Rten(u8),
    Tensors(Target),
    TorchScript,
}

impl To {
    fn of(to: Option<&str>, output: &Path) -> Result<Self> {
        let word = word(to, output);
        Ok(match word.as_str() {
            "circle" => Self::Model(Schema::Circle),
            "tflite" => Self::Model(Schema::Tflite),
            "onnx" => Self::Onnx,
            "rten1" => Self::Rten(1),
            "rten2" => Self::Rten(2),
            "rten" => {
                let message =
                    "an RTen model may be of either version: expected to=\"rten1\" or \"rten2\"";
                return Err(Fault::usage(message));
            }
            "torchscript" | "pt" => Self::TorchScript,
            word => Self::Tensors(tensors(word)?),
        })
    }

    fn write(
        self,
        reader: &AnyReader,
        output: &Path,
        options: &ConvertOptions,
        existing: Existing,
    ) -> Result<Done> {
        match (reader, self) {
            (AnyReader::ZTensor(file), Self::Tensors(Target::ZTensor)) => {
                migrate(file, output, existing)
            }
            (reader, Self::Tensors(target)) => {
                write_tensors(&reader.tensor_set()?, target, output, options, existing)
            }
            (AnyReader::Rten(model), Self::Onnx) => onnx(model, output, existing),
            (AnyReader::Rten(model), Self::Rten(version)) => {
                let rewrite = Rewrite::new(model);
                let name = if version == 1 { "rten1" } else { "rten2" };
                write(output, existing, name, &model.lint(), |sink| {
                    let written = match version {
                        1 => rewrite.write_v1(sink).map(drop),
                        _ => rewrite.write_v2(sink).map(drop),
                    };
                    Ok(written.map_err(modelcrate::Error::from)?)
                })
            }
            (AnyReader::Circle(model), Self::Model(schema)) if model.model().schema != schema => {
                circle(model, schema, output, existing)
            }
            (AnyReader::Ptl(model), Self::TorchScript) => torchscript(model, output, existing),
            (reader, _) => {
                let title = reader.format().title();
                Err(Fault::usage(format!("the file is {title}, which does not become that")))
            }
        }
    }
}

/// Returns the target of a format of tensors.
pub(crate) fn target(to: Option<&str>, output: &Path) -> Result<Target> {
    tensors(&word(to, output))
}

/// Returns the word for a format: what is asked for, or what a name ends in.
fn word(to: Option<&str>, output: &Path) -> String {
    let end = || output.extension().and_then(|end| end.to_str()).unwrap_or_default();
    to.unwrap_or_else(end).trim_start_matches('.').to_ascii_lowercase()
}

fn tensors(word: &str) -> Result<Target> {
    word.parse().map_err(|error| Fault::usage(format!("{error}")))
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
    existing: Existing,
) -> Result<Done> {
    let conversion = set.convert_to(target, options).map_err(|refused| {
        let count = refused.len();
        let first = refused.first().map(ToString::to_string).unwrap_or_default();
        let more = if count > 1 { format!(", and {} more", count - 1) } else { String::new() };
        Fault::refused(format!("{target} cannot hold it: {first}{more}"), refused)
    })?;
    let done = write(output, existing, target.name(), &Report::default(), |sink| {
        for file in conversion.files() {
            file.write(&mut *sink, |_| ())?;
        }
        Ok(())
    })?;
    let (notes, left_out) = (conversion.notes().to_vec(), conversion.left_out().to_vec());
    Ok(Done { notes, left_out, ..done })
}

/// Exports a model to ONNX.
fn onnx(
    model: &modelcrate::rten_format::Reader,
    output: &Path,
    existing: Existing,
) -> Result<Done> {
    let exported = Export::new(model).existing(existing).write(output);
    let exported = exported.map_err(|error| match error {
        modelcrate::rten_format::onnx::Error::Exists { path } => Fault::exists(&path),
        error => Fault::of(&error),
    })?;
    let nbytes = output.metadata().map(|file| file.len()).unwrap_or_default();
    Ok(Done { to: "onnx", nbytes, findings: exported.report, ..Done::default() })
}

fn circle(
    model: &circle_format::Reader,
    schema: Schema,
    output: &Path,
    existing: Existing,
) -> Result<Done> {
    let converted = model.model().to_schema(schema).map_err(modelcrate::Error::from)?;
    write(output, existing, schema.name(), &model.lint(), |sink| {
        let options = circle_format::WriteOptions::default();
        let written = options.write_to(sink, &converted).origin(model).finish();
        Ok(written.map(drop).map_err(modelcrate::Error::from)?)
    })
}

fn torchscript(model: &ptl_spec::Reader, output: &Path, existing: Existing) -> Result<Done> {
    // What is copied as it is stored is not compared on the way.
    let mut files = model.files().map_err(modelcrate::Error::from)?;
    files.try_for_each(|file| file.verify().map(drop)).map_err(modelcrate::Error::from)?;
    // It is for the full runtime, which the check says of it.
    write(output, existing, "torchscript", &model.lint(), |sink| {
        Ok(ptl_spec::torchscript(model, sink).map_err(modelcrate::Error::from)?)
    })
}

/// Brings a zTensor file of any generation to 1.1, with all layouts and stored bytes as they are.
fn migrate(file: &ztensor::Reader, output: &Path, existing: Existing) -> Result<Done> {
    let mut changes = Report::default();
    let done = write(output, existing, "ztensor", &file.lint(), |sink| {
        let options = ztensor::WriteOptions::default().verify(Verify::Once);
        let failed = modelcrate::Error::from;
        let mut writer = options.write_to(sink).map_err(failed)?;
        changes = ztensor::migrate(file, &mut writer).map_err(failed)?;
        Ok(writer.finish().map(drop).map_err(failed)?)
    })?;
    Ok(Done { findings: changes, ..done })
}

/// Writes a file that appears whole and without new errors, or not at all.
fn write(
    output: &Path,
    existing: Existing,
    to: &'static str,
    before: &Report,
    content: impl FnOnce(&mut NewFile) -> Result<()>,
) -> Result<Done> {
    let is_there = output.symlink_metadata().is_ok();
    if is_there && existing == Existing::Keep {
        return Err(Fault::exists(output));
    }
    // Keeps editors out of a file that is replaced.
    let lock = output.exists().then(|| LockedFile::open(output)).transpose()?;
    let mut file = Output::default().create(output)?;
    content(&mut file)?;
    let failed = |source| Core::File { path: output.to_owned(), what: "writing", source };
    file.flush().map_err(failed)?;
    let after = AnyReader::from_source(file.source()?)?.lint();
    let (_, after) = after.split(|found| to == "torchscript" && found.rule == "ptl/not-lite");
    if let Some(finding) = after.new_error_since(before) {
        return Err(finding.into());
    }
    file.commit(existing)?;
    drop(lock);
    Ok(Done { to, nbytes: file.written(), ..Done::default() })
}
