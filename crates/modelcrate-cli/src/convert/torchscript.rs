use std::io::Write as _;

use modelcrate::{
    ptl_spec::{self, Error, Reader},
    tensor_core::Verify,
};
use serde::Serialize;

use super::Convert;
use crate::{escape::escape, failure::About, outcome::Outcome, output, write::Kept};

#[derive(Serialize)]
struct Converted {
    path: String,
    dry_run: bool,
    to: &'static str,
    /// The container of the input.
    from: String,
    bytes_before: u64,
    #[serde(flatten)]
    kept: Kept,
}

impl Convert {
    /// Writes a model as an archive for the full runtime.
    pub(super) fn torchscript(&self, reader: &Reader) -> anyhow::Result<Outcome> {
        if self.force.verify() != Verify::Never {
            // What is copied as it is stored is not compared on the way.
            let mut files = reader.files().about(&self.input)?;
            files.try_for_each(|file| file.verify().map(drop)).about(&self.input)?;
        }
        let path = self.output();
        let mut sink = self.write.create(path).about(path)?;
        let written = ptl_spec::torchscript(reader, &mut sink);
        let is_write = matches!(written, Err(Error::Write { .. }));
        written.about(if is_write { path } else { &self.input })?;
        sink.flush().about(path)?;
        let kept = sink.keep(path, &reader.lint(), self.force, |new| {
            // It is for the full runtime.
            let report = Reader::from_source(new)?.lint();
            Ok(report.split(|finding| finding.rule == "ptl/not-lite").1)
        })?;
        let outcome = kept.checked.outcome();
        let result = Converted {
            path: path.display().to_string(),
            dry_run: self.write.dry_run,
            to: "torchscript",
            from: reader.container().to_string(),
            bytes_before: reader.source().len(),
            kept,
        };
        let sizes = [result.bytes_before, result.kept.bytes_after.unwrap_or_default()];
        let sizes = sizes.map(output::size).join(" → ");
        let (shown, would_be) = (escape(&result.path), self.write.would_be());
        let text = format!("{shown}: {would_be}written as TorchScript, {sizes}\n");
        self.write.report(path, &result, &result.kept.checked.text(&shown, &text))?;
        Ok(outcome)
    }
}
