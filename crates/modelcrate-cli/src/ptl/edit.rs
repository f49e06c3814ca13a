//! Edits of extra files in place.

use std::{fmt::Write as _, path::Path};

use anyhow::ensure;
use modelcrate::{
    ptl_spec::{Editor, WriteOptions},
    tensor_core::output::Edited,
};
use serde::Serialize;

use crate::{
    checked::Checked,
    escape::escape,
    failure::About,
    options::{Force, InPlace, Print, is_stdio},
    outcome::Outcome,
    output,
};

/// How a file is edited.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct How {
    #[command(flatten)]
    force: Force,
    /// Check everything, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    in_place: InPlace,
    #[command(flatten)]
    print: Print,
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
}

#[derive(Serialize)]
struct Done {
    path: String,
    dry_run: bool,
    changed: bool,
    #[serde(flatten)]
    changes: Changes,
    #[serde(flatten)]
    checked: Checked,
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
        output::print_done(self.print, file, self.dry_run, &done, &text)?;
        Ok(done.checked.outcome())
    }

    fn done(
        self,
        file: &Path,
        change: impl FnOnce(&mut Editor) -> anyhow::Result<Changes>,
    ) -> anyhow::Result<Done> {
        refuse_stdin(file)?;
        // What is wrong with the result is looked at here.
        let options = WriteOptions::default().output(self.in_place.output()).allow_invalid();
        let mut editor = match self.dry_run {
            true => Editor::dry_run(file, options)?,
            false => Editor::open_with(file, options)?,
        };
        let changes = change(&mut editor)?;
        let len = editor.reader().source().len();
        let before = editor.reader().lint();
        let checked = Checked::of(&editor.preview()?.lint(), &before, self.force);
        let edited = if checked.is_refused() { Edited::Unchanged } else { editor.commit()? };
        let (path, dry_run) = (file.display().to_string(), self.dry_run);
        let (changed, bytes_before, bytes_after) = match edited {
            Edited::Appended { before, after } | Edited::Replaced { before, after } => {
                (true, before, after)
            }
            _ => (false, len, len),
        };
        Ok(Done { path, dry_run, changed, changes, checked, bytes_before, bytes_after })
    }

    fn text(self, done: &Done) -> String {
        let (path, would) = (escape(&done.path), if self.dry_run { "would be " } else { "" });
        let mut text = String::new();
        if done.changed {
            let Changes { added, replaced, removed } = &done.changes;
            for (what, names) in [("added", added), ("replaced", replaced), ("removed", removed)] {
                for name in names {
                    let _ = writeln!(text, "{path}: {would}{what} {}", escape(name));
                }
            }
            let sizes = [done.bytes_before, done.bytes_after].map(output::size);
            let _ = writeln!(text, "{path}: {would}edited, {}", sizes.join(" → "));
        } else {
            let _ = writeln!(text, "{path}: nothing to change");
        }
        done.checked.text(&path, &text)
    }
}

/// Refuses what cannot be edited in place.
pub(super) fn refuse_stdin(file: &Path) -> anyhow::Result<()> {
    ensure!(!is_stdio(file), "standard input cannot be edited: say which file");
    Ok(())
}
