use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    rten_format::onnx::{Export, Exported, ExternalData},
    tensor_core::{Report, output::Existing},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Format, Input, Size, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
    write::Writing,
};

/// Export a model to ONNX
///
/// The export computes what the model computes, in operator set 20 or, for the newest operators, a
/// later one. Integers become 64 bits wide, conditions become truth values. Constants go into a
/// file of their own, with `.data` behind the name, where the model would have 2 GiB or more.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten export-onnx model.rten model.onnx
  modelcrate rten export-onnx model.rten model.onnx --external-data 1MiB
  modelcrate rten export-onnx model.rten - | sha256sum")]
pub(crate) struct ExportOnnx {
    /// The model to read; - is standard input
    input: Input,
    /// The ONNX model to write; - is standard output
    output: PathBuf,
    /// Put constants of so many bytes or more into a file of their own, such as 4096 or 1MiB
    #[arg(long, value_name = "SIZE")]
    external_data: Option<Size>,
    #[command(flatten)]
    write: Writing,
}

#[derive(Serialize)]
struct Done<'a> {
    path: String,
    data: Option<String>,
    dry_run: bool,
    opset: i64,
    findings: &'a Report,
}

impl ExportOnnx {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = super::open(&self.input)?;
        let external = self.external_data.map(|Size(bytes)| ExternalData::From(bytes));
        let export = Export::new(&reader).external_data(external.unwrap_or_default());
        let exported = if self.write.dry_run {
            export.check().about(&self.input)?
        } else if is_stdio(&self.output) {
            self.print(export)?
        } else {
            self.check_output().about(&self.output)?;
            let existing = if self.write.force { Existing::Replace } else { Existing::Keep };
            export.existing(existing).write(&self.output).about(&self.input)?
        };
        self.report(&exported)?;
        Ok(Outcome::Fine)
    }

    fn print(&self, export: Export<'_>) -> anyhow::Result<Exported> {
        let quiet = self.write.print.format == Format::Human;
        ensure!(quiet, "standard output takes either a file or JSON, not both");
        ensure!(self.external_data.is_none(), "standard output takes one file, not two");
        let export = export.external_data(ExternalData::Never);
        let exported = export.check().about(&self.input)?;
        let model = export.to_bytes().about(&self.input)?;
        std::io::stdout().lock().write_all(&model)?;
        Ok(exported)
    }

    fn check_output(&self) -> anyhow::Result<()> {
        ensure!(!same_file(&self.input, &self.output), "is the input, expected another file");
        let there = self.output.symlink_metadata().is_ok();
        ensure!(self.write.force || !there, "is there already (--force replaces it)");
        Ok(())
    }

    fn report(&self, exported: &Exported) -> anyhow::Result<()> {
        let path = self.output.as_path();
        let result = Done {
            path: path.display().to_string(),
            data: exported.data.as_ref().map(|data| data.display().to_string()),
            dry_run: self.write.dry_run,
            opset: exported.opset,
            findings: &exported.report,
        };
        let would = self.write.would_be();
        let name = |path: &Path| escape(&path.display().to_string()).into_owned();
        let mut text =
            format!("{}: {would}exported to ONNX, operator set {}\n", name(path), exported.opset);
        if let Some(data) = &exported.data {
            let _ = writeln!(text, "{}: constants", name(data));
        }
        for finding in exported.report.findings() {
            text.push_str(&output::finding_text(finding));
        }
        self.write.report(path, &result, &text)
    }
}
