//! What all commands share that change a file: where the result goes, that it is locked meanwhile and
//! checked before, and what is said of it.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    AnyReader, Fitted, Note,
    tensor_core::{
        self, Extent, Finding, Report, Source,
        output::{Edited, LockedFile, Output},
    },
};
use serde::Serialize;

use crate::{
    address,
    checked::Checked,
    escape::escape,
    failure::About,
    options::{Force, InPlace, is_stdio},
    outcome::Outcome,
    output,
    write::{Kept, Sink, Writing},
};

/// How a file is changed.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Editing {
    /// Write the result here and leave the input as it is; - is standard output
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) write: Writing,
    #[command(flatten)]
    pub(crate) in_place: InPlace,
}

/// A file that is to be changed.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) source: Source,
    /// None of standard input, and in a dry run.
    lock: Option<LockedFile>,
}

/// What has become of a file.
#[derive(Default, Serialize)]
pub(crate) struct Changed {
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<u64>,
    /// None of what is refused, and of folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_after: Option<u64>,
    #[serde(flatten)]
    checked: Checked,
}

/// What a command has done.
pub(crate) struct Done<T> {
    /// In one word, or a few.
    pub(crate) what: String,
    /// For programs.
    pub(crate) changes: T,
    /// For people, beside the rest.
    pub(crate) lines: Vec<String>,
    pub(crate) changed: Changed,
}

#[derive(Serialize)]
struct Printed<'d, T> {
    path: &'d str,
    dry_run: bool,
    #[serde(flatten)]
    changes: &'d T,
    #[serde(flatten)]
    changed: &'d Changed,
}

impl Editing {
    pub(crate) const fn is_in_place(&self) -> bool {
        self.output.is_none()
    }

    /// Returns where the result goes.
    pub(crate) fn path<'p>(&'p self, file: &'p Path) -> &'p Path {
        self.output.as_deref().unwrap_or(file)
    }

    /// Returns how an edit in place is made.
    pub(crate) fn in_place(&self) -> Output {
        self.in_place.output()
    }

    /// Refuses what cannot be edited in place.
    pub(crate) fn check_input(&self, file: &Path) -> anyhow::Result<()> {
        let has_place = !self.is_in_place() || !is_stdio(file);
        ensure!(has_place, "standard input cannot be edited in place: say with -o where it goes");
        if self.is_in_place() {
            address::refuse(
                file,
                "which cannot be edited in place: say with -o where the result goes",
            )
            .about(file)?;
        }
        Ok(())
    }

    /// Opens the file and keeps other editors out of it; a dry run only finds out that there is none.
    pub(crate) fn open(&self, file: &Path) -> anyhow::Result<Opened> {
        self.check_input(file)?;
        if is_stdio(file) {
            return Ok(Opened { source: output::stdin_model()?, lock: None });
        }
        if let Some(source) = address::source(file)? {
            return Ok(Opened { source, lock: None });
        }
        let lock = match self.output {
            None if self.write.dry_run => {
                return Ok(Opened { source: self.in_place().check(file)?, lock: None });
            }
            None => LockedFile::open_within(file, self.in_place.wait())?,
            Some(_) => LockedFile::shared(file, self.in_place.wait())?,
        };
        Ok(Opened { source: lock.source()?, lock: Some(lock).filter(|_| !self.write.dry_run) })
    }

    /// Writes the file that goes to the output, or takes the place of the input, unless it would be
    /// worse than that was.
    pub(crate) fn rewrite(
        &self,
        file: &Path,
        opened: &Opened,
        before: &Report,
        write: impl FnOnce(Sink) -> anyhow::Result<Sink>,
    ) -> anyhow::Result<Changed> {
        let path = self.path(file);
        let sink = self.write.create_or_replace(file, self.output.as_deref()).about(path)?;
        let sink = sink.shown(file, opened.source.len());
        let failed = sink.failed();
        let sink = write(sink).about(if failed.get() { path } else { file })?;
        self.check_lock(file, opened).about(file)?;
        let lint = |source| Ok(AnyReader::from_source(source)?.lint());
        let Kept { bytes_after, checked } = sink.keep(path, before, self.force, lint)?;
        let bytes_before = Some(opened.source.len());
        Ok(Changed { changed: bytes_after.is_some(), bytes_before, bytes_after, checked })
    }

    /// Proves that nobody else has changed the file that is to be replaced.
    pub(crate) fn check_lock(&self, file: &Path, opened: &Opened) -> anyhow::Result<()> {
        let Some(lock) = opened.lock.as_ref().filter(|_| self.is_in_place()) else { return Ok(()) };
        lock.check_in_place()?;
        let is_as_long = lock.byte_len().is_ok_and(|now| now == opened.source.len());
        ensure!(is_as_long, tensor_core::Error::Replaced { path: file.to_owned() });
        Ok(())
    }

    /// Makes an edit in place take effect, unless the file would be worse than it was.
    pub(crate) fn commit(
        &self,
        len: Option<u64>,
        before: &Report,
        after: &Report,
        commit: impl FnOnce() -> anyhow::Result<Edited>,
    ) -> anyhow::Result<Changed> {
        let checked = Checked::of(after, before, self.force);
        if checked.is_refused() {
            return Ok(Changed { bytes_before: len, checked, ..Changed::default() });
        }
        let edited = commit()?;
        let bytes_after = match edited {
            Edited::Appended { after, .. }
            | Edited::Replaced { after, .. }
            | Edited::Truncated { after, .. } => Some(after),
            Edited::Unchanged => len,
            _ => None,
        };
        Ok(Changed { changed: edited.has_changed(), bytes_before: len, bytes_after, checked })
    }

    /// Says what was done.
    pub(crate) fn report<T: Serialize>(
        &self,
        file: &Path,
        done: &Done<T>,
    ) -> anyhow::Result<Outcome> {
        let Done { what, changes, lines, changed } = done;
        let (path, write) = (self.path(file), self.write);
        let name = output::path_text(path);
        let (shown, would_be) = (escape(&name), write.would_be());
        let mut text = String::new();
        for line in lines.iter().filter(|_| changed.changed) {
            let _ = writeln!(text, "{shown}: {would_be}{}", escape(line));
        }
        let sizes = changed.bytes_before.zip(changed.bytes_after);
        let sizes = sizes.map(|(a, b)| format!(", {} → {}", output::size(a), output::size(b)));
        let _ = match changed.changed {
            true => writeln!(text, "{shown}: {would_be}{what}{}", sizes.unwrap_or_default()),
            false => writeln!(text, "{shown}: nothing to change"),
        };
        let text = changed.checked.text(&shown, &text);
        let result = Printed { path: &name, dry_run: write.dry_run, changes, changed };
        write.report(path, &result, &text)?;
        Ok(changed.checked.outcome())
    }
}

impl Opened {
    /// Writes all of a file, as it is or changed.
    pub(crate) fn copy(source: &Source, mut sink: Sink) -> anyhow::Result<Sink> {
        let mut bytes = source.stream(Extent::first(source.len()), "file")?;
        std::io::copy(&mut bytes, &mut sink)?;
        Ok(sink)
    }
}

impl Changed {
    /// Says that nothing was asked for that is not there already.
    pub(crate) fn nothing(len: Option<u64>) -> Self {
        Self { bytes_before: len, bytes_after: len, ..Self::default() }
    }

    /// Adds what was found in what goes into the file.
    pub(crate) fn found(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.checked.found(findings);
        self
    }
}

/// What an edit does to the parts of a file, by their names.
#[derive(Default, Serialize)]
pub(crate) struct Changes {
    pub(crate) added: Vec<String>,
    pub(crate) replaced: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) renamed: Vec<(String, String)>,
    pub(crate) set: Vec<String>,
    pub(crate) unset: Vec<String>,
    /// Operators that have another form for a runtime, and tensors whose shape is known now; which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) mended: Vec<(String, String)>,
    /// What becomes of tensors that are not put as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<Note>,
}

impl Changes {
    /// Says that something was put in.
    pub(crate) fn put(&mut self, name: &str, is_new: bool) {
        let names = if is_new { &mut self.added } else { &mut self.replaced };
        names.push(name.to_owned());
    }

    /// Says that tensors that are there take other elements.
    pub(crate) fn replace<P: Ord>(&mut self, fitted: &Fitted<'_, '_, P>) {
        self.replaced.extend(fitted.names().map(str::to_owned));
        self.notes.extend_from_slice(fitted.notes());
    }

    pub(crate) fn done(self, changed: Changed) -> Done<Self> {
        Done { what: "edited".to_owned(), lines: self.lines(), changes: self, changed }
    }

    /// Says what was done to each part.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (what, names) in [("removed", &self.removed), ("added", &self.added)] {
            lines.extend(names.iter().map(|name| format!("{what} {name}")));
        }
        lines.extend(self.renamed.iter().map(|(old, new)| format!("renamed {old} → {new}")));
        for (what, names) in
            [("replaced", &self.replaced), ("unset", &self.unset), ("set", &self.set)]
        {
            lines.extend(names.iter().map(|name| format!("{what} {name}")));
        }
        let mended = self.mended.iter();
        lines.extend(mended.map(|(path, change)| format!("mended {path}: {change}")));
        let notes = self.notes.iter();
        lines.extend(notes.map(|note| format!("converted {}: {}", note.tensor, note.effect)));
        lines
    }
}
