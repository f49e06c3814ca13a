//! Sets of tensors as files.

use std::path::Path;

use modelcrate::{
    AnyReader, Conversion, ConvertOptions, Refusal, Target, TensorSet, tensor_core::Report,
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Force, Format},
    outcome::{Outcome, print_error},
    output,
    progress::Progress,
    write::{Kept, Writing},
};

/// How tensors become those of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Tensors")]
pub(crate) struct Tensors {}

impl Tensors {
    /// Tells whether nothing was asked for.
    pub(super) fn is_default(self) -> bool {
        self == Self::default()
    }
}

/// A file that is to be made of tensors.
pub(crate) struct Job<'a> {
    pub(crate) target: Target,
    pub(crate) output: &'a Path,
    pub(crate) force: Force,
    pub(crate) write: Writing,
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
    /// Writes the file; `input` is what an error of reading is about, where there is one file.
    pub(crate) fn run(&self, set: &TensorSet<'_>, input: Option<&Path>) -> anyhow::Result<Outcome> {
        let conversion = match set.convert_to(self.target, &ConvertOptions::default()) {
            Ok(conversion) => conversion,
            Err(refused) => return self.refuse(set, &refused),
        };
        let kept = self.write(&conversion, input.unwrap_or(self.output))?;
        let outcome = kept.checked.outcome();
        let result = Done {
            path: self.output.display().to_string(),
            dry_run: self.write.dry_run,
            to: self.target.name(),
            tensors: set.tensors().len(),
            left_out: conversion.left_out(),
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
        kept.checked.text(&path, &text)
    }

    fn refuse(&self, set: &TensorSet<'_>, refused: &[Refusal]) -> anyhow::Result<Outcome> {
        let (path, tensors) = (self.output.display().to_string(), set.tensors().len());
        let (to, dry_run) = (self.target.name(), self.write.dry_run);
        let result = Refused { path, dry_run, to, tensors, refused };
        if self.write.print.format == Format::Human {
            let path = &result.path;
            print_error(&format!(
                "{path}: {to} cannot hold {} of {tensors} tensors",
                refused.len()
            ));
            let lines = refused
                .iter()
                .take(SHOWN)
                .map(|refusal| format!("  {}\n", escape(&refusal.to_string())));
            output::print_problem(&lines.collect::<String>());
            if let Some(left @ 1..) = refused.len().checked_sub(SHOWN) {
                output::print_problem(&format!("  … and {left} more (--format json lists them)\n"));
            }
        } else {
            output::print_done(self.write.print, self.output, dry_run, &result, "")?;
        }
        Ok(Outcome::Failed)
    }
}

/// How many refusals people see.
const SHOWN: usize = 40;
