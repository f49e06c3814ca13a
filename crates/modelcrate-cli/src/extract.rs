use std::{
    io::Write as _,
    mem,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Error, bail, ensure};
use clap::ValueEnum;
use modelcrate::{
    AnyFile, AnyReader, Content, NamedTensor, QuantizationSummary, TensorSet,
    model_archive::NewFolder,
    tensor_core::{Chain, DType, Limits, Shape, TensorBuf, Verify},
    weights::{self, ElementType, npy},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::{About, chain, is_invalid},
    glob::{Glob, check_meant, is_meant},
    options::{Input, Print},
    outcome::{Outcome, print_error},
    output,
    paths::is_inside,
    progress::Progress,
    safe_name::{Folders, SafeNames},
    write::check_folder,
};

/// Write tensors and files of a model into a folder, each into a file of its own
///
/// All of them, unless some are chosen. Tensors are in `tensors/`, as npy where `NumPy` has their elements,
/// else as their bytes (.bin); files are in `files/`. Bytes of a name that file systems disagree about are
/// written as %XX, and names that differ in case alone end in ~2; `index.json` says what became of each,
/// and how the numbers of quantized tensors stand for real ones.
/// Sparse tensors come with their zeros. Checksums and digests are compared: what is damaged is reported
/// and left out, with exit status 1. The folder appears once all is in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate extract model.carton -o folder/
  modelcrate extract model.zt -o weights/ --tensor 'layer.0.*' --to raw
  modelcrate extract model.ptl -o code/ --file 'code/*'")]
pub(crate) struct Extract {
    /// The file to read; - is standard input
    input: Input,
    /// The folder to make, which must not be there, or be empty
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Take only these tensors: names, or patterns with * and ?; may be given several times
    #[arg(long, value_name = "GLOB")]
    tensor: Vec<Glob>,
    /// Take only these files inside: names, or patterns with * and ?; may be given several times
    #[arg(long, value_name = "GLOB")]
    file: Vec<Glob>,
    /// How tensors are written
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<As>,
    /// Write nothing, and read neither tensors nor files: damage in them is not found
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    print: Print,
}

/// How a tensor is written by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum As {
    /// As numpy.save does
    Npy,
    /// Its elements alone, little-endian and row-major, or its blocks
    Raw,
}

/// What becomes of a tensor: `index.json` has a list of them.
#[derive(Serialize)]
struct TensorEntry<'s> {
    name: &'s str,
    file: String,
    dtype: String,
    shape: Shape,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization: Option<QuantizationSummary>,
    #[serde(skip)]
    how: As,
    #[serde(skip)]
    tensor: &'s NamedTensor<'s>,
}

#[derive(Serialize)]
struct FileEntry<'s> {
    name: &'s str,
    file: String,
    #[serde(skip)]
    content: AnyFile<'s>,
}

/// What is extracted, as `index.json` has it.
#[derive(Serialize)]
struct Index<'s> {
    schema: u32,
    tensors: Vec<TensorEntry<'s>>,
    files: Vec<FileEntry<'s>>,
}

#[derive(Serialize)]
struct Done<'s> {
    path: String,
    dry_run: bool,
    tensors: &'s [TensorEntry<'s>],
    files: &'s [FileEntry<'s>],
    left_out: &'s [LeftOut<'s>],
    /// Those that could not be read.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    failed: &'s [LeftOut<'s>],
}

/// What cannot be extracted, where it was not asked for by name.
#[derive(Serialize)]
struct LeftOut<'s> {
    name: &'s str,
    reason: String,
}

impl Extract {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        self.check_folder().about(&self.output)?;
        let reader = output::open(&self.input, AnyReader::options().verify(Verify::Once));
        let reader = reader.about(&self.input)?;
        let set = reader.tensor_set().about(&self.input)?;
        let (mut index, left_out) = self.plan(&reader, &set).about(&self.input)?;
        let mut failed = Failed { input: &self.input, outcome: Outcome::Fine, names: Vec::new() };
        if !self.dry_run {
            self.write(&mut index, &mut failed)?;
        }
        let (path, dry_run) = (self.output.display().to_string(), self.dry_run);
        let Index { tensors, files, .. } = &index;
        let (left_out, failed_names) = (&*left_out, &*failed.names);
        let done = Done { path, dry_run, tensors, files, left_out, failed: failed_names };
        output::print_done(self.print, &self.output, dry_run, &done, &done.text())?;
        Ok(failed.outcome)
    }

    fn check_folder(&self) -> anyhow::Result<()> {
        ensure!(!is_inside(&self.output, &self.input), "is in the folder that is read");
        check_folder(&self.output)
    }

    /// Finds a place for all that is meant, and what is left out.
    fn plan<'s>(
        &self,
        reader: &'s AnyReader,
        set: &'s TensorSet<'s>,
    ) -> anyhow::Result<(Index<'s>, Vec<LeftOut<'s>>)> {
        check_meant(&self.tensor, "tensor", set.tensors().iter().map(NamedTensor::name))?;
        let files = reader.files()?;
        check_meant(&self.file, "file", files.iter().map(|file| file.path()))?;
        let mut names = SafeNames::default();
        let mut index = Index { schema: 1, tensors: Vec::new(), files: Vec::new() };
        let mut left_out = Vec::new();
        for tensor in set.tensors() {
            if is_meant(&self.tensor, tensor.name())
                && (self.file.is_empty() || !self.tensor.is_empty())
            {
                match self.tensor(tensor, &mut names) {
                    Ok(entry) => index.tensors.push(entry),
                    Err(error) if self.tensor.is_empty() && self.to.is_none() => {
                        left_out.push(LeftOut { name: tensor.name(), reason: chain(&error) });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        for content in files {
            let name = content.path();
            if !is_meant(&self.file, name) || (self.file.is_empty() && !self.tensor.is_empty()) {
                continue;
            }
            if content.is_elsewhere() {
                left_out.push(LeftOut { name, reason: "is only linked".to_owned() });
                continue;
            }
            content.byte_len()?;
            let file = names.path("files", name, "", Folders::Keep);
            index.files.push(FileEntry { name, file, content });
        }
        let is_empty = index.tensors.is_empty() && index.files.is_empty();
        ensure!(!is_empty, "has neither tensors nor files to extract");
        Ok((index, left_out))
    }

    /// Says how a tensor is written.
    fn tensor<'s>(
        &self,
        tensor: &'s NamedTensor<'s>,
        names: &mut SafeNames,
    ) -> anyhow::Result<TensorEntry<'s>> {
        let name = tensor.name();
        let (element_type, shape) = match (tensor.elements(), tensor.content()) {
            (Ok((ElementType::Plain(dtype), _)), _) if dtype.bits().is_none() => {
                bail!("tensor {name:?} is of {dtype}, which has no bytes of its own");
            }
            (Ok((element_type, shape)), _) => (element_type, shape.clone()),
            // Sparse tensors are read with their zeros.
            (Err(_), Ok((Content::Elements(element_type), shape))) => (element_type, shape),
            (Err(error), _) => bail!("tensor {name:?}: {}", Chain(error)),
        };
        // What can be told without reading is told now.
        if let Ok((ElementType::Plain(_), _)) = tensor.elements() {
            tensor.tensor().extent().with_context(|| format!("tensor {name:?}"))?;
        }
        let has_npy = matches!(element_type, ElementType::Plain(dtype) if npy::has(dtype));
        let how = self.to.unwrap_or(if has_npy { As::Npy } else { As::Raw });
        ensure!(
            how == As::Raw || has_npy,
            "tensor {name:?} is of {element_type}, which npy has not (--to raw takes its bytes)"
        );
        let end = if how == As::Npy { ".npy" } else { ".bin" };
        let file = names.path("tensors", name, end, Folders::Escape);
        let dtype = element_type.to_string();
        Ok(TensorEntry { name, file, dtype, shape, quantization: None, how, tensor })
    }

    /// Writes what can be read, which is all that is listed afterwards; no folder where nothing can.
    fn write<'s>(&self, index: &mut Index<'s>, failed: &mut Failed<'s>) -> anyhow::Result<()> {
        let folder = NewFolder::create(&self.output).about(&self.output)?;
        let bar = Progress::new(&self.input, index.byte_len());
        let memory = QuantizationSummary::memory(&Limits::default());
        for mut entry in mem::take(&mut index.tensors) {
            let tensor = entry.tensor.tensor();
            match tensor.quantization(&memory) {
                Ok(found) => entry.quantization = found,
                // What the numbers stand for is missing, not the numbers.
                Err(error) => {
                    let error = Error::from(error).context(format!("tensor {:?}", entry.name));
                    bar.suspend(|| failed.say(&error));
                }
            }
            let bytes = match tensor_bytes(entry.tensor, entry.how) {
                Ok(bytes) => bytes,
                Err(error) => {
                    bar.suspend(|| failed.add(entry.name, &error));
                    continue;
                }
            };
            let mut file = folder.file(&entry.file).about(&self.output)?;
            let written = file.write_all(&bytes);
            written.map_err(|error| folder.failed(&entry.file, error)).about(&self.output)?;
            bar.inc(bytes.len() as u64);
            index.tensors.push(entry);
        }
        for entry in mem::take(&mut index.files) {
            let mut file = folder.file(&entry.file).about(&self.output)?;
            match entry.content.copy_to(&mut file) {
                Ok(bytes) => {
                    bar.inc(bytes);
                    index.files.push(entry);
                }
                Err(error @ modelcrate::Error::Weights(weights::Error::Write(_))) => {
                    return Err(error).about(&self.output);
                }
                Err(error) => {
                    drop(file);
                    folder.remove(&entry.file).about(&self.output)?;
                    let error = Error::from(error).context(format!("file {:?}", entry.name));
                    bar.suspend(|| failed.add(entry.name, &error));
                }
            }
        }
        bar.finish();
        if index.tensors.is_empty() && index.files.is_empty() {
            return Ok(());
        }
        let mut file = folder.file(INDEX).about(&self.output)?;
        let mut text = serde_json::to_vec_pretty(index)?;
        text.push(b'\n');
        file.write_all(&text).map_err(|error| folder.failed(INDEX, error)).about(&self.output)?;
        folder.commit().about(&self.output)
    }
}

/// What could not be read, and what becomes of the command for it.
struct Failed<'s> {
    input: &'s Path,
    outcome: Outcome,
    names: Vec<LeftOut<'s>>,
}

impl<'s> Failed<'s> {
    fn add(&mut self, name: &'s str, error: &Error) {
        self.say(error);
        self.names.push(LeftOut { name, reason: chain(error) });
    }

    fn say(&mut self, error: &Error) {
        print_error(&format!("{}: {}", self.input.display(), chain(error)));
        let outcome = if is_invalid(error) { Outcome::Invalid } else { Outcome::Failed };
        self.outcome = self.outcome.and(outcome);
    }
}

/// Returns a tensor as a file of its own.
pub(crate) fn tensor_bytes(tensor: &NamedTensor<'_>, how: As) -> anyhow::Result<bytes::Bytes> {
    let name = tensor.name();
    let bytes = tensor.bytes().with_context(|| format!("tensor {name:?}"))?;
    if how == As::Raw {
        return Ok(bytes);
    }
    let info = tensor.tensor().info()?;
    let mut file = Vec::new();
    npy::write(&TensorBuf::new(info.dtype, info.shape, bytes)?, &mut file)?;
    Ok(file.into())
}

impl Index<'_> {
    fn byte_len(&self) -> u64 {
        let of_tensor = |entry: &TensorEntry<'_>| {
            let dtype = entry.dtype.parse::<DType>().ok()?;
            entry.shape.byte_len(dtype).ok()
        };
        let tensors = self.tensors.iter().filter_map(of_tensor);
        let files = self.files.iter().filter_map(|entry| entry.content.byte_len().ok());
        tensors.chain(files).fold(0, u64::saturating_add)
    }
}

impl Done<'_> {
    fn text(&self) -> String {
        let (path, would_be) = (escape(&self.path), if self.dry_run { "would be " } else { "" });
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let left_out = self.left_out.iter().map(|LeftOut { name, reason }| {
            format!("{path}: {would_be}left without {:?}: {}\n", escape(name), escape(reason))
        });
        let mut text: String = left_out.collect();
        if self.tensors.is_empty() && self.files.is_empty() {
            return text + &format!("{path}: nothing is extracted\n");
        }
        let (tensors, files) =
            (count(self.tensors.len(), "tensor"), count(self.files.len(), "file"));
        text.push_str(&format!("{path}: {would_be}extracted, {tensors}, {files}\n"));
        text
    }
}

/// What says what became of each name.
const INDEX: &str = "index.json";
