use std::{fmt::Write as _, path::Path};

use anyhow::{anyhow, ensure};
use modelcrate::{
    rten_format::onnx::{Error, Export, Exported, ExternalData},
    tensor_core::{Error as Core, Report},
};
use serde::Serialize;

use super::Convert;
use crate::{
    escape::escape,
    failure::About,
    options::{Size, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
};

#[derive(Serialize)]
struct Done<'a> {
    path: String,
    to: &'static str,
    data: Option<String>,
    dry_run: bool,
    opset: i64,
    findings: &'a Report,
}

impl Convert {
    /// Exports a model to ONNX.
    pub(super) fn onnx(&self, export: Export<'_>) -> anyhow::Result<Outcome> {
        self.check_data().about(self.output())?;
        let to_stdout = is_stdio(self.output());
        let external = match self.rten.external_data {
            _ if to_stdout => ExternalData::Never,
            Some(Size(bytes)) => ExternalData::From(bytes),
            None => ExternalData::Automatic,
        };
        let existing = self.write.existing();
        let export = export.external_data(external).existing(existing);
        let export = export.input_types(&self.rten.input_type);
        let exported = match self.write.dry_run {
            _ if to_stdout => return self.onnx_to_stdout(export),
            true => export.check(self.output()),
            false => export.write(self.output()),
        };
        let exported = exported.or_else(|error| self.failed(error))?;
        self.report(&exported)?;
        Ok(Outcome::Fine)
    }

    fn onnx_to_stdout(&self, export: Export<'_>) -> anyhow::Result<Outcome> {
        let (output, none) = (self.output(), Report::default());
        let mut sink = self.write.create(output).about(output)?;
        let exported = export.write_to(&mut sink, output).or_else(|error| self.failed(error))?;
        sink.keep(output, &none, self.force, |_| Ok(none.clone()))?;
        self.report(&exported)?;
        Ok(Outcome::Fine)
    }

    /// Refuses before all the work what would be refused after it.
    fn check_data(&self) -> anyhow::Result<()> {
        let output = self.output();
        let to_stdout = is_stdio(output);
        let mut data = output.to_owned().into_os_string();
        data.push(".data");
        if !to_stdout && same_file(&self.input, Path::new(&data)) {
            let error = anyhow!("is the input, and where constants go: expected another output");
            return Err(error).about(Path::new(&data));
        }
        let one_file = !to_stdout || self.rten.external_data.is_none();
        ensure!(one_file, "standard output takes one file, not two");
        Ok(())
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
        let path = self.output();
        let result = Done {
            path: path.display().to_string(),
            to: "onnx",
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
