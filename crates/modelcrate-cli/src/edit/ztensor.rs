//! Edits of zTensor files.

use std::io::{ErrorKind, Write};

use modelcrate::{
    AnyReader, AnyTensor, Fitted,
    tensor_core::{Finding, Report, Severity, TensorInfo},
    weights,
    ztensor::{Editor, Error, Generation, Reader, Result, Tensor, WriteOptions},
};

use super::{Job, unknown};
use crate::{
    editing::Changes,
    escape::escape,
    failure::About,
    outcome::Outcome,
    output,
    progress::Progress,
    put::{self, Taken},
};

pub(super) fn edit(job: &Job) -> anyhow::Result<Outcome> {
    let Job { file, opened, changes, editing } = job;
    let options = WriteOptions::default().storage(changes.store.ztensor()?);
    let options = options.output(editing.in_place()).verify(editing.force.verify());
    let given = changes.given(file, &changes.put)?;
    let given = given.open(editing.force)?;
    let sets = given.sets()?;
    let sources = job.fitted(&sets)?;
    let (changed, done) = if let Some(opened) = opened {
        let reader = Reader::from_source(opened.source.clone()).about(file)?;
        let mut done = Work::default();
        let changed = editing.rewrite(file, opened, &reader.lint(), |sink| {
            let mut editor = Editor::copy_to(sink, &reader, options)?;
            done = job.change(&mut editor, &sources, None)?;
            Ok(editor.finish()?)
        })?;
        (changed, done)
    } else {
        let editor = match editing.write.dry_run {
            true => Editor::dry_run(file, options),
            false => Editor::open_with(file, options),
        };
        let mut editor = editor.about(file)?;
        let bar = (!sources.is_empty()).then(|| progress(&sources));
        let done = job.change(&mut editor, &sources, bar.as_ref())?;
        drop(bar);
        let (len, before) = (editor.reader().source().len(), editor.reader().lint());
        let after = editor.preview().about(file)?.lint();
        let changed = editing.commit(Some(len), &before, &after, || Ok(editor.commit()?));
        (changed.about(file)?, done)
    };
    editing.report(file, &done.changes.done(changed.found(done.findings)))
}

#[derive(Default)]
struct Work {
    changes: Changes,
    /// Of tensors that go into the file.
    findings: Report,
}

/// A file whose tensors go into the one that is edited; `None` where they are copied as they are stored.
type Source<'s, 'a> = (&'s Taken<'a>, Option<Fitted<'s, 'a, usize>>);

impl Job {
    /// Finds out, before anything is written, whether all tensors can be in a zTensor file.
    fn fitted<'s, 'a>(&self, sets: &'s [Taken<'a>]) -> anyhow::Result<Vec<Source<'s, 'a>>> {
        let options = self.changes.fit.options();
        let is_copied = |taken: &_| self.changes.fit.is_default() && is_stored(taken);
        put::fit_each(sets, |taken| {
            let fitted =
                (!is_copied(taken)).then(|| taken.set.fit_ztensor(&options)).transpose()?;
            Ok((taken, fitted))
        })
    }

    fn change<W: Write>(
        &self,
        editor: &mut Editor<W>,
        sources: &[Source<'_, '_>],
        bar: Option<&Progress>,
    ) -> anyhow::Result<Work> {
        let mut work = Work::default();
        for name in &self.changes.remove {
            editor.remove(name).about(&self.file)?;
            work.changes.removed.push(name.clone());
        }
        for (taken, fitted) in sources {
            if let Some(bar) = bar {
                bar.begin(taken.path);
            }
            let done = |bytes| bar.into_iter().for_each(|bar| bar.inc(bytes));
            match fitted {
                Some(fitted) => self.put(editor, taken, fitted, done, &mut work)?,
                None => self.copy(editor, taken, done, &mut work)?,
            }
        }
        self.attributes(editor, &mut work).about(&self.file)?;
        self.rename(editor, &mut work).about(&self.file)?;
        Ok(work)
    }

    fn rename<W: Write>(&self, editor: &mut Editor<W>, work: &mut Work) -> anyhow::Result<()> {
        let names = self.changes.renames(|name| editor.contains(name))?;
        editor.rename(&names)?;
        let names = names.into_iter().map(|(old, new)| (old.to_owned(), new.to_owned()));
        work.changes.renamed.extend(names);
        Ok(())
    }

    /// Takes tensors of a zTensor file with their attributes, as they are stored or as was asked for.
    fn copy<W: Write>(
        &self,
        editor: &mut Editor<W>,
        taken: &Taken<'_>,
        done: impl Fn(u64),
        work: &mut Work,
    ) -> anyhow::Result<()> {
        let Taken { path, reader, .. } = taken;
        let AnyReader::ZTensor(reader) = reader else { return Ok(()) };
        let budget = reader.budget();
        for (name, stored) in stored(taken) {
            let found = stored.validate_within(&budget);
            work.findings.extend(self.accepted(found).about(path)?);
            let info = stored.info().ok();
            let bytes = elements_len(info.clone());
            work.make_room(editor, name, info).about(&self.file)?;
            let copied = if self.changes.store.is_default() {
                editor.writer().copy_under(name, stored)
            } else {
                let recoded = editor.writer().recode_under(name, stored);
                recoded.map(|left_out| work.findings.append(left_out))
            };
            let is_write = copied.as_ref().is_err_and(is_write);
            copied.about(if is_write { &self.file } else { path })?;
            done(bytes);
        }
        Ok(())
    }

    /// Takes tensors of a file of another format.
    fn put<W: Write>(
        &self,
        editor: &mut Editor<W>,
        taken: &Taken<'_>,
        fitted: &Fitted<'_, '_, usize>,
        done: impl Fn(u64),
        work: &mut Work,
    ) -> anyhow::Result<()> {
        for (name, info) in fitted.infos() {
            work.make_room(editor, name, info).about(&self.file)?;
        }
        work.changes.notes.extend_from_slice(fitted.notes());
        let put = fitted.put(editor, done);
        let is_write = put.as_ref().is_err_and(|error| match error {
            modelcrate::Error::ZTensor(error) => is_write(error),
            // Elements that no tensor can have are the fault of their file.
            modelcrate::Error::Weights(weights::Error::Write(error)) => {
                error.kind() != ErrorKind::InvalidInput
            }
            _ => false,
        });
        put.about(if is_write { &self.file } else { taken.path })
    }

    /// Returns what is to be said of a tensor that is taken from another file; refuses errors that
    /// are not forced.
    fn accepted(&self, found: Report) -> Result<impl Iterator<Item = Finding> + use<>> {
        let is_forced = self.editing.force.force;
        let mut all = found.findings().iter();
        match all.find(|fault| fault.severity == Severity::Error && !is_forced) {
            Some(Finding { message, .. }) => Err(Error::Faulty { message: message.clone() }),
            None => Ok(found.into_iter().filter(|found| found.severity > Severity::Note)),
        }
    }

    /// Changes attributes of the file, and of tensors where the key begins with the name of one.
    fn attributes<W: Write>(&self, editor: &mut Editor<W>, work: &mut Work) -> anyhow::Result<()> {
        for text in &self.changes.unset {
            let (tensor, key) = place(editor, text);
            let there = editor.attributes_of(tensor)?;
            let is_there = there.get(key).is_some();
            if !is_there {
                return Err(unknown("attribute", text, there.iter().map(|(key, _)| key)));
            }
            match tensor {
                Some(name) => editor.remove_tensor_attribute(name, key)?,
                None => editor.remove_attribute(key)?,
            }
            work.changes.unset.push(text.clone());
        }
        for (text, value) in self.changes.pairs()? {
            match place(editor, text) {
                (Some(name), key) => editor.set_tensor_attribute(name, key, value)?,
                (None, key) => {
                    note_name(editor, key)?;
                    editor.set_attribute(key, value)?;
                }
            }
            work.changes.set.push(text.to_owned());
        }
        Ok(())
    }
}

/// Says that a new attribute is of the file where its key could begin with the name of a tensor.
fn note_name<W: Write>(editor: &Editor<W>, key: &str) -> Result<()> {
    let Some((name, _)) = key.split_once('.') else { return Ok(()) };
    if editor.attributes_of(None)?.get(key).is_none() {
        let [key, name] = [key, name].map(escape);
        output::print_aside(&format!(
            "note: \"{key}\" is an attribute of the file: there is no tensor \"{name}\"\n"
        ));
    }
    Ok(())
}

/// Tells whether tensors can be copied with all that the file says of them.
fn is_stored(taken: &Taken<'_>) -> bool {
    match taken.reader {
        AnyReader::ZTensor(reader) => reader.generation() >= Generation::V1_1,
        _ => false,
    }
}

/// Returns the tensors of a zTensor file as they are stored.
fn stored<'t>(taken: &'t Taken<'_>) -> impl Iterator<Item = (&'t str, Tensor<'t>)> {
    taken.set.tensors().iter().filter_map(|named| match named.tensor() {
        AnyTensor::ZTensor(stored) => Some((named.name(), stored)),
        #[allow(unreachable_patterns, reason = "without other formats")]
        _ => None,
    })
}

/// Starts a bar for the elements that go in.
fn progress(sources: &[Source<'_, '_>]) -> Progress {
    let mut bytes = 0_u64;
    for (taken, fitted) in sources {
        let mut add = |info| bytes = bytes.saturating_add(elements_len(info));
        match fitted {
            Some(fitted) => fitted.infos().for_each(|(_, info)| add(info)),
            None => stored(taken).for_each(|(_, stored)| add(stored.info().ok())),
        }
    }
    Progress::of_files(sources.len() as u64, bytes)
}

fn elements_len(info: Option<TensorInfo>) -> u64 {
    info.and_then(|info| info.byte_len().ok()).unwrap_or_default()
}

/// Tells of which tensor an attribute is, if of any, and what it is called.
fn place<'k, W: Write>(editor: &Editor<W>, text: &'k str) -> (Option<&'k str>, &'k str) {
    let splits = text.rmatch_indices('.').filter_map(|(at, _)| text.split_at_checked(at));
    let mut pairs = splits.filter_map(|(name, key)| Some((name, key.strip_prefix('.')?)));
    match pairs.find(|(name, key)| !key.is_empty() && editor.contains(name)) {
        Some((name, key)) => (Some(name), key),
        None => (None, text),
    }
}

impl Work {
    /// Removes the tensor that another takes the place of, if there is one; says where that is of
    /// another kind.
    fn make_room<W: Write>(
        &mut self,
        editor: &mut Editor<W>,
        name: &str,
        new: Option<TensorInfo>,
    ) -> Result<()> {
        let is_new = !editor.contains(name);
        self.changes.put(name, is_new);
        if is_new {
            return Ok(());
        }
        editor.remove(name)?;
        let old = editor.reader().tensor(name).and_then(|tensor| tensor.info().ok());
        if let Some((old, new)) = old.zip(new).filter(|(old, new)| old != new) {
            let message = format!("{} {} became {} {}", old.dtype, old.shape, new.dtype, new.shape);
            self.findings.add(Finding::warning("zt/replaced-type", message).tensor(name));
        }
        Ok(())
    }
}

/// Tells whether a copy failed because of the file that is written, not the one that is read.
const fn is_write(error: &Error) -> bool {
    matches!(error, Error::DuplicateObject { .. } | Error::Unfinished { .. } | Error::Write { .. })
}
