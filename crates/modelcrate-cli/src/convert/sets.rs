//! Sets of tensors as files.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    path::Path,
    str::FromStr,
};

use anyhow::{bail, ensure};
use clap::ValueEnum;
use modelcrate::{
    AnyReader, Conversion, ConvertOptions, ConvertedFile, Error, Note, Refusal, Target, TensorSet,
    model_archive::NewFolder, tensor_core::Report, weights,
};
use serde::Serialize;

use crate::{
    checked::Checked,
    escape::escape,
    failure::About,
    fit::{self, Fit, SHOWN},
    options::{Force, Format, Size},
    outcome::Outcome,
    output,
    progress::Progress,
    write::{Kept, Writing, check_folder},
};

/// How tensors become those of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Tensors")]
pub(crate) struct Tensors {
    /// Give a tensor another name, which is what is behind the last =; may be given several times
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<Rename>,
    #[command(flatten)]
    fit: Fit,
    /// Compress tensors: with deflate in npz, with zstd in zt; not at all by default
    #[arg(long, value_enum, value_name = "METHOD")]
    compression: Option<Compression>,
    /// Write a folder of safetensors files with so many bytes of tensors each, such as 4GiB, and
    /// their index
    #[arg(long, value_name = "SIZE")]
    shard_size: Option<Size>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compression {
    None,
    Deflate,
    Zstd,
}

/// `OLD=NEW`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rename(String, String);

impl FromStr for Rename {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.rsplit_once('=') {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => {
                Ok(Self(old.to_owned(), new.to_owned()))
            }
            _ => bail!("{text:?} is not OLD=NEW"),
        }
    }
}

impl Compression {
    /// Returns the level at which a format compresses.
    fn level(self, target: Target) -> anyhow::Result<Option<i32>> {
        Ok(match (self, target.format()) {
            (Self::None, _) => None,
            (Self::Deflate, modelcrate::Format::Npz) => Some(6),
            (Self::Zstd, modelcrate::Format::ZTensor) => Some(3),
            (_, modelcrate::Format::Npz) => bail!("npz has only --compression deflate or none"),
            (_, modelcrate::Format::ZTensor) => bail!("zt has only --compression zstd or none"),
            _ => bail!("{target} has no compression"),
        })
    }
}

impl Tensors {
    /// Tells whether nothing was asked for.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Tells whether a folder is written.
    pub(crate) const fn is_folder(&self) -> bool {
        self.shard_size.is_some()
    }

    pub(crate) fn options(&self, target: Target) -> anyhow::Result<ConvertOptions> {
        let mut names = BTreeMap::new();
        for Rename(old, new) in &self.rename {
            let twice = names.insert(old.clone(), new.clone()).is_some();
            ensure!(!twice, "tensor {old:?} is renamed twice");
        }
        let mut options = self.fit.options().names(names);
        if let Some(method) = self.compression
            && let Some(level) = method.level(target)?
        {
            options = options.compression(level);
        }
        if let Some(Size(bytes)) = self.shard_size {
            options = options.shard_size(bytes);
        }
        Ok(options)
    }
}

/// A file that is to be made of tensors.
pub(crate) struct Job<'a> {
    pub(crate) target: Target,
    pub(crate) output: &'a Path,
    pub(crate) force: Force,
    pub(crate) write: Writing,
    /// Whether it is a folder of shards.
    pub(crate) is_folder: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    path: String,
    dry_run: bool,
    to: &'static str,
    tensors: usize,
    /// Keys of metadata that the format cannot hold.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [String],
    /// What becomes of tensors that are not written as they are.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [Note],
    /// Those in a folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<&'a str>,
    #[serde(flatten)]
    kept: Kept,
}

/// Why nothing was written.
#[derive(Serialize)]
struct Refused<'a> {
    path: String,
    dry_run: bool,
    to: &'static str,
    tensors: usize,
    refused: &'a [Refusal],
}

impl Job<'_> {
    /// Writes the file; `input` is what an error of reading is about.
    pub(crate) fn run(
        &self,
        set: &TensorSet<'_>,
        options: &ConvertOptions,
        input: &Path,
    ) -> anyhow::Result<Outcome> {
        let conversion = match set.convert_to(self.target, options) {
            Ok(conversion) => conversion,
            Err(refused) => return self.refuse(set, &refused),
        };
        let kept = match self.is_folder {
            true => self.write_folder(&conversion, input)?,
            false => self.write(&conversion, input)?,
        };
        let files =
            conversion.files().filter(|_| self.is_folder).map(ConvertedFile::name).collect();
        let outcome = kept.checked.outcome();
        let result = Done {
            path: self.output.display().to_string(),
            dry_run: self.write.dry_run,
            to: self.target.name(),
            tensors: set.tensors().len(),
            left_out: conversion.left_out(),
            notes: conversion.notes(),
            files,
            kept,
        };
        self.write.report(self.output, &result, &self.text(&result))?;
        Ok(outcome)
    }

    fn write(&self, conversion: &Conversion<'_, '_>, input: &Path) -> anyhow::Result<Kept> {
        let mut sink = self.write.create(self.output).about(self.output)?;
        let failed = sink.failed();
        let bar = Progress::new(input, conversion.tensor_bytes());
        let written = conversion.files().try_for_each(|file| {
            file.write(&mut sink, |bytes| bar.inc(bytes))?;
            anyhow::Ok(())
        });
        bar.finish();
        written.about(if failed.get() { self.output } else { input })?;
        sink.keep(self.output, &Report::default(), self.force, |new| {
            Ok(AnyReader::from_source(new)?.lint())
        })
    }

    /// Writes all files into a folder, which appears once they are in it and were found to be right.
    fn write_folder(&self, conversion: &Conversion<'_, '_>, input: &Path) -> anyhow::Result<Kept> {
        check_folder(self.output).about(self.output)?;
        let dry_run = self.write.dry_run;
        let folder =
            (!dry_run).then(|| NewFolder::create(self.output)).transpose().about(self.output)?;
        let bar = Progress::new(input, conversion.tensor_bytes());
        let mut bytes = 0_u64;
        for file in conversion.files() {
            bytes = bytes.saturating_add(file.byte_len().unwrap_or_default());
            let mut sink: Box<dyn io::Write> = match &folder {
                Some(folder) => {
                    Box::new(io::BufWriter::new(folder.file(file.name()).about(self.output)?))
                }
                None => Box::new(io::sink()),
            };
            let written = file.write(&mut sink, |bytes| bar.inc(bytes));
            let is_write = matches!(written, Err(Error::Weights(weights::Error::Write(_))));
            written.map(drop).about(if is_write { self.output } else { input })?;
            sink.flush().about(self.output)?;
        }
        bar.finish();
        let Some(folder) = folder else {
            return Ok(Kept { bytes_after: Some(bytes), ..Kept::default() });
        };
        let index = conversion.files().last().map_or("", ConvertedFile::name);
        let after = AnyReader::open(folder.path().join(index)).about(self.output)?.lint();
        let checked = Checked::of(&after, &Report::default(), self.force);
        if checked.is_refused() {
            return Ok(Kept { bytes_after: None, checked });
        }
        folder.commit().about(self.output)?;
        Ok(Kept { bytes_after: Some(bytes), checked })
    }

    fn text(&self, done: &Done<'_>) -> String {
        let (path, would_be) = (escape(&done.path), self.write.would_be());
        let Done { tensors, to, kept, .. } = done;
        let size = output::size(kept.bytes_after.unwrap_or_default());
        let s = if *tensors == 1 { "" } else { "s" };
        let mut text = format!("{path}: {would_be}written as {to}, {tensors} tensor{s}, {size}\n");
        if !done.left_out.is_empty() {
            let keys: Vec<_> = done.left_out.iter().map(|key| escape(key)).collect();
            text.push_str(&format!("  without metadata {}\n", keys.join(", ")));
        }
        text.extend(done.notes.iter().take(SHOWN).map(|Note { tensor, effect, .. }| {
            format!("  \"{}\": {}\n", escape(tensor), escape(effect))
        }));
        if let Some(left @ 1..) = done.notes.len().checked_sub(SHOWN) {
            text.push_str(&format!("  … and {left} more (--format json lists them)\n"));
        }
        kept.checked.text(&path, &text)
    }

    fn refuse(&self, set: &TensorSet<'_>, refused: &[Refusal]) -> anyhow::Result<Outcome> {
        let (path, tensors) = (self.output.display().to_string(), set.tensors().len());
        let (to, dry_run) = (self.target.name(), self.write.dry_run);
        let result = Refused { path, dry_run, to, tensors, refused };
        if self.write.print.format == Format::Human {
            let (path, count) = (&result.path, refused.len());
            let headline = format!("{path}: {to} cannot hold {count} of {tensors} tensors");
            fit::print(&headline, refused, " (--format json lists them)");
        } else {
            output::print_done(self.write.print, self.output, dry_run, &result, "")?;
        }
        Ok(Outcome::Failed)
    }
}
