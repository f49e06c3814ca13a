use std::io::Write as _;

use modelcrate::circle_format::{Error, Reader, Schema, WriteOptions};
use serde::Serialize;

use super::Convert;
use crate::{escape::escape, failure::About, outcome::Outcome, output, write::Kept};

#[derive(Serialize)]
struct Converted {
    path: String,
    dry_run: bool,
    to: &'static str,
    bytes_before: u64,
    #[serde(flatten)]
    kept: Kept,
}

impl Convert {
    /// Writes a Circle or TFLite model in the other schema; files that are appended to it stay.
    pub(super) fn circle(&self, reader: &Reader, schema: Schema) -> anyhow::Result<Outcome> {
        let path = self.output();
        let model = reader.model().to_schema(schema).about(&self.input)?;
        let sink = self.write.create(path).about(path)?;
        let written = WriteOptions::default().write_to(sink, &model).origin(reader).finish();
        let is_write = matches!(written, Err(Error::Output { .. }));
        let mut sink = written.about(if is_write { path } else { &self.input })?;
        sink.flush().about(path)?;
        let lint = |source| Ok(Reader::from_source(source)?.lint());
        let kept = sink.keep(path, &reader.lint(), self.force, lint)?;
        let (outcome, bytes_before) = (kept.checked.outcome(), reader.source().len());
        let (dry_run, to) = (self.write.dry_run, model.schema.name());
        let result =
            Converted { path: path.display().to_string(), dry_run, to, bytes_before, kept };
        let sizes = [bytes_before, result.kept.bytes_after.unwrap_or_default()].map(output::size);
        let (shown, would_be) = (escape(&result.path), self.write.would_be());
        let text = format!("{shown}: {would_be}written as {to}, {}\n", sizes.join(" → "));
        self.write.report(path, &result, &result.kept.checked.text(&shown, &text))?;
        Ok(outcome)
    }
}
