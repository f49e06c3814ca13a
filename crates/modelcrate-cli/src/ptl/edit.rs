//! Edits of extra files in place.

use std::{fmt::Write as _, path::Path};

use anyhow::ensure;
use modelcrate::{
    ptl_spec::{Editor, WriteOptions},
    tensor_core::{Report, output::Edited},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Print, is_stdio},
    outcome::Outcome,
    output,
};

/// How a file is edited.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct How {
    /// Check everything, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

/// What an edit does to extra files.
#[derive(Default, Serialize)]
pub(super) struct Changes {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) added: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) replaced: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) removed: Vec<String>,
    /// What there is to say of the spec that is put in.
    #[serde(skip_serializing_if = "Report::is_empty")]
    pub(super) findings: Report,
}

#[derive(Serialize)]
struct Done {
    path: String,
    dry_run: bool,
    changed: bool,
    #[serde(flatten)]
    changes: Changes,
    bytes_before: u64,
    bytes_after: u64,
}

impl How {
    /// Changes a file, and says so.
    pub(super) fn edit(
        self,
        file: &Path,
        change: impl FnOnce(&mut Editor) -> anyhow::Result<Changes>,
    ) -> anyhow::Result<Outcome> {
        let done = self.done(file, change).about(file)?;
        let text = self.text(&done);
        output::print_result(self.print, &done, &text)?;
        Ok(Outcome::Fine)
    }

    fn done(
        self,
        file: &Path,
        change: impl FnOnce(&mut Editor) -> anyhow::Result<Changes>,
    ) -> anyhow::Result<Done> {
        refuse_stdin(file)?;
        let mut editor = match self.dry_run {
            true => Editor::dry_run(file, WriteOptions::default())?,
            false => Editor::open(file)?,
        };
        let changes = change(&mut editor)?;
        let len = editor.reader().source().len();
        let (bytes_before, bytes_after) = match editor.commit()? {
            Edited::Appended { before, after } => (before, after),
            _ => (len, len),
        };
        let Changes { added, replaced, removed, .. } = &changes;
        Ok(Done {
            path: file.display().to_string(),
            dry_run: self.dry_run,
            changed: [added, replaced, removed].iter().any(|names| !names.is_empty()),
            changes,
            bytes_before,
            bytes_after,
        })
    }

    fn text(self, done: &Done) -> String {
        let (path, would) = (escape(&done.path), if self.dry_run { "would be " } else { "" });
        if !done.changed {
            return format!("{path}: nothing to change\n");
        }
        let Changes { added, replaced, removed, .. } = &done.changes;
        let mut text = String::new();
        for (what, names) in [("added", added), ("replaced", replaced), ("removed", removed)] {
            for name in names {
                let _ = writeln!(text, "{path}: {would}{what} {}", escape(name));
            }
        }
        for finding in done.changes.findings.findings() {
            text.push_str(&output::finding_text(finding));
        }
        let sizes = [done.bytes_before, done.bytes_after].map(output::size);
        let _ = writeln!(text, "{path}: {would}edited, {}", sizes.join(" → "));
        text
    }
}

/// Refuses what cannot be edited in place.
pub(super) fn refuse_stdin(file: &Path) -> anyhow::Result<()> {
    ensure!(!is_stdio(file), "standard input cannot be edited: say which file");
    Ok(())
}
