use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, ensure};
use modelcrate::{
    rten_format::onnx::{Error, Export, Exported, ExternalData},
    tensor_core::{Error as Core, Report},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Input, Size, is_stdio},
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
///
/// That file takes its place before the model: a process that is killed between the two leaves it alone
/// or, with --overwrite, beside the model from before, which it does not fit. Exporting again mends it.
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
        self.check_output().about(&self.output)?;
        let to_stdout = is_stdio(&self.output);
        let external = match self.external_data {
            _ if to_stdout => ExternalData::Never,
            Some(Size(bytes)) => ExternalData::From(bytes),
            None => ExternalData::Automatic,
        };
        let existing = self.write.existing();
        let export = Export::new(&reader).external_data(external).existing(existing);
        let exported = match self.write.dry_run {
            _ if to_stdout => export.to_bytes_for(&self.output),
            true => export.check(&self.output).map(|exported| (Vec::new(), exported)),
            false => export.write(&self.output).map(|exported| (Vec::new(), exported)),
        };
        let (model, exported) = exported.or_else(|error| self.failed(error))?;
        if !self.write.dry_run {
            std::io::stdout().lock().write_all(&model).about(&self.output)?;
        }
        self.report(&exported)?;
        Ok(Outcome::Fine)
    }

    /// Refuses before all the work what would be refused after it.
    fn check_output(&self) -> anyhow::Result<()> {
        let output = &self.output;
        let to_stdout = is_stdio(output);
        ensure!(
            to_stdout || !same_file(&self.input, output),
            "is the input, expected another file"
        );
        let mut data = output.clone().into_os_string();
        data.push(".data");
        if !to_stdout && same_file(&self.input, Path::new(&data)) {
            let error = anyhow!("is the input, and where constants go: expected another output");
            return Err(error).about(Path::new(&data));
        }
        let one_file = !to_stdout || self.external_data.is_none();
        ensure!(one_file, "standard output takes one file, not two");
        self.write.check(output)
    }

    /// Names the file that an error is about: one that cannot be written, or the input.
    fn failed<T>(&self, error: Error) -> anyhow::Result<T> {
        let path = match &error {
            Error::Exists { path }
            | Error::Core(Core::File { path, .. } | Core::Locked { path }) => path.clone(),
            _ => self.input.clone(),
        };
        match error {
            Error::Exists { .. } => Err(anyhow!("is there already (--overwrite replaces it)")),
            error => Err(error.into()),
        }
        .about(&path)
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
