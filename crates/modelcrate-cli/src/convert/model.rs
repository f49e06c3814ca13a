use std::io::Write as _;

use modelcrate::{AnyReader, Error, Product, Rewriting, tensor_core::Report};
use serde::Serialize;

use super::Convert;
use crate::{escape::escape, failure::About, outcome::Outcome, output, write::Kept};

#[derive(Serialize)]
struct Converted {
    path: String,
    dry_run: bool,
    #[serde(flatten)]
    what: What,
    #[serde(flatten)]
    kept: Kept,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What {
    Circle {
        to: &'static str,
        bytes_before: u64,
    },
    Rten {
        version: u8,
        bytes_before: u64,
    },
    TorchScript {
        to: &'static str,
        /// The container of the input.
        from: String,
        bytes_before: u64,
    },
    ZTensor {
        to: &'static str,
        /// The generation of the input.
        from: String,
        tensors: usize,
        /// What could not be carried over as it was.
        changes: Report,
    },
}

impl Convert {
    /// Writes a model as another.
    pub(super) fn model(
        &self,
        reader: &AnyReader,
        model: &Rewriting<'_>,
    ) -> anyhow::Result<Outcome> {
        let path = self.output();
        let mut sink = self.write.create(path).about(path)?;
        let failed = sink.failed();
        let written = model.write(&mut sink);
        let fault = failed.get() || written.as_ref().is_err_and(is_of_output);
        let changes = written.about(if fault { path } else { &self.input })?;
        sink.flush().about(path)?;
        let kept = sink.keep(path, &Report::default(), self.force, |new| Ok(model.check(new)?))?;
        let (outcome, dry_run) = (kept.checked.outcome(), self.write.dry_run);
        let what = What::of(reader, model.to(), changes);
        let result = Converted { path: path.display().to_string(), dry_run, what, kept };
        let shown = escape(&result.path);
        let bytes_after = result.kept.bytes_after.unwrap_or_default();
        let text = format!("{shown}: {}{}", self.write.would_be(), result.what.text(bytes_after));
        self.write.report(path, &result, &result.kept.checked.text(&shown, &text))?;
        Ok(outcome)
    }
}

impl What {
    fn of(reader: &AnyReader, to: Product, changes: Report) -> Self {
        let bytes_before = reader.source().map_or(0, modelcrate::tensor_core::Source::len);
        match (reader, to) {
            #[cfg(feature = "ztensor")]
            (AnyReader::ZTensor(file), _) => Self::ZTensor {
                to: to.name(),
                from: file.generation().to_string(),
                tensors: file.manifest().len(),
                changes,
            },
            #[cfg(feature = "ptl")]
            (AnyReader::Ptl(model), _) => Self::TorchScript {
                to: to.name(),
                from: model.container().to_string(),
                bytes_before,
            },
            (_, Product::Rten(Some(version))) => Self::Rten { version, bytes_before },
            _ => Self::Circle { to: to.name(), bytes_before },
        }
    }

    fn text(&self, bytes_after: u64) -> String {
        let sizes = |before| format!("{} → {}", output::size(before), output::size(bytes_after));
        match self {
            Self::Circle { to, bytes_before } => {
                format!("written as {to}, {}\n", sizes(*bytes_before))
            }
            Self::Rten { version, bytes_before } => {
                format!("written in version {version}, {}\n", sizes(*bytes_before))
            }
            Self::TorchScript { bytes_before, .. } => {
                format!("written as TorchScript, {}\n", sizes(*bytes_before))
            }
            Self::ZTensor { to, from, tensors, changes } => {
                let to = if *to == "zt2" { "2" } else { "1.1" };
                let mut text = format!("migrated from {from} to {to}, {tensors} tensors\n");
                text.extend(changes.findings().iter().map(output::finding_text));
                text
            }
        }
    }
}

/// Tells whether an error is about the file that is written though writing did not fail.
fn is_of_output(error: &Error) -> bool {
    #[cfg(feature = "ztensor")]
    if let Error::ZTensor(error) = error {
        use modelcrate::ztensor::Error;
        return matches!(error, Error::DuplicateObject { .. } | Error::Unfinished { .. });
    }
    false
}
