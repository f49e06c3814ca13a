use modelcrate::{
    Target,
    tensor_core::Report,
    ztensor::{self, Error, Reader, Version, WriteOptions},
};
use serde::Serialize;

use super::Convert;
use crate::{escape::escape, failure::About, outcome::Outcome, output, write::Kept};

#[derive(Serialize)]
struct Migrated {
    path: String,
    dry_run: bool,
    to: &'static str,
    /// The generation of the input.
    from: String,
    tensors: usize,
    /// What could not be carried over as it was.
    changes: Report,
    #[serde(flatten)]
    kept: Kept,
}

impl Convert {
    /// Brings a zTensor file of any generation to 1.1, with all layouts and stored bytes as they are, or
    /// to 2.
    pub(super) fn migrate(&self, reader: &Reader, target: Target) -> anyhow::Result<Outcome> {
        let version = match target {
            Target::ZTensor2 => Version::V2,
            _ => Version::V1_1,
        };
        let (changes, kept) = self.migrated(reader, version)?;
        let result = Migrated {
            path: self.output().display().to_string(),
            dry_run: self.write.dry_run,
            to: target.name(),
            from: reader.generation().to_string(),
            tensors: reader.manifest().len(),
            changes,
            kept,
        };
        let (path, would_be) = (escape(&result.path), self.write.would_be());
        let Migrated { from, tensors, .. } = &result;
        let to = if version == Version::V2 { "2" } else { "1.1" };
        let mut text =
            format!("{path}: {would_be}migrated from {from} to {to}, {tensors} tensors\n");
        text.extend(result.changes.findings().iter().map(output::finding_text));
        let text = result.kept.checked.text(&path, &text);
        self.write.report(self.output(), &result, &text)?;
        Ok(result.kept.checked.outcome())
    }

    fn migrated(&self, reader: &Reader, version: Version) -> anyhow::Result<(Report, Kept)> {
        let out = self.write.create(self.output()).about(self.output())?;
        let options = WriteOptions::default().version(version).verify(self.force.verify());
        let mut writer = options.write_to(out)?;
        let migrated = ztensor::migrate(reader, &mut writer);
        let fault = matches!(
            migrated,
            Err(Error::DuplicateObject { .. } | Error::Unfinished { .. } | Error::Write { .. })
        );
        let changes = migrated.about(if fault { self.output() } else { &self.input })?;
        let out = writer.finish().about(self.output())?;
        let before = reader.lint();
        let kept = out.keep(self.output(), &before, self.force, |new| {
            let mut after = Reader::from_source(new)?.lint();
            if self.force.force {
                // Nothing was compared on the way.
                after.extend(reader.validate().new_since(&before));
            }
            Ok(after)
        })?;
        Ok((changes, kept))
    }
}
