//! Edits of zTensor files.

use std::{
    io::{self, BufRead as _, Write},
    path::Path,
};

use modelcrate::{
    AnyReader, AnyTensor, NamedTensor,
    tensor_core::{Budget, Finding, Report, Severity, Source, TensorInfo},
    ztensor::{Editor, Error, Format as Layout, Reader, Result, Role, Tensor, WriteOptions},
};

use super::{Job, check_from, unknown};
use crate::{
    editing::Changes,
    failure::About,
    glob::{check_meant, is_meant},
    outcome::Outcome,
};

pub(super) fn edit(job: &Job) -> anyhow::Result<Outcome> {
    let Job { file, opened, changes, editing } = job;
    let options = WriteOptions::default().storage(changes.store.ztensor()?);
    let options = options.output(editing.in_place()).verify(editing.force.verify());
    let (changed, done) = if let Some(opened) = opened {
        let reader = Reader::from_source(opened.source.clone()).about(file)?;
        let mut done = Work::default();
        let changed = editing.rewrite(file, opened, &reader.lint(), |sink| {
            let mut editor = Editor::copy_to(sink, &reader, options)?;
            done = job.change(&mut editor)?;
            Ok(editor.finish()?)
        })?;
        (changed, done)
    } else {
        let editor = match editing.write.dry_run {
            true => Editor::dry_run(file, options),
            false => Editor::open_with(file, options),
        };
        let mut editor = editor.about(file)?;
        let done = job.change(&mut editor)?;
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

impl Job {
    fn change<W: Write>(&self, editor: &mut Editor<W>) -> anyhow::Result<Work> {
        let mut work = Work::default();
        for name in &self.changes.remove {
            editor.remove(name).about(&self.file)?;
            work.changes.removed.push(name.clone());
        }
        for from in &self.changes.from {
            let reader = AnyReader::open(from).about(from)?;
            check_from(from, &self.file).about(from)?;
            self.take(editor, &reader, from, &mut work)?;
        }
        for put in self.changes.tensors()? {
            let reader = put.open()?;
            let tensor = put.tensor(&reader).about(&put.path)?;
            if let (AnyTensor::ZTensor(stored), AnyReader::ZTensor(reader)) = (tensor, &reader) {
                self.copy(editor, &put.name, stored, &reader.budget(), &put.path, &mut work)?;
                continue;
            }
            let info = tensor.info().about(&put.path)?;
            work.make_room(editor, &put.name, Some(info)).about(&self.file)?;
            self.add(editor, &put.name, tensor, reader.source(), &put.path)?;
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

    /// Takes tensors of another file; stored bytes of a zTensor file are copied as they are.
    fn take<W: Write>(
        &self,
        editor: &mut Editor<W>,
        reader: &AnyReader,
        from: &Path,
        work: &mut Work,
    ) -> anyhow::Result<()> {
        let set = reader.tensor_set().about(from)?;
        let budget = match reader {
            AnyReader::ZTensor(reader) => Some(reader.budget()),
            _ => None,
        };
        let globs = &self.changes.tensor;
        check_meant(globs, "tensor", set.tensors().iter().map(NamedTensor::name)).about(from)?;
        for named in set.tensors().iter().filter(|tensor| is_meant(globs, tensor.name())) {
            let (name, tensor) = (named.name(), named.tensor());
            let (AnyTensor::ZTensor(stored), Some(budget)) = (tensor, &budget) else {
                let info = tensor.info().about(from)?;
                work.make_room(editor, name, Some(info)).about(&self.file)?;
                self.add(editor, name, tensor, reader.source(), from)?;
                continue;
            };
            self.copy(editor, name, stored, budget, from, work)?;
        }
        Ok(())
    }

    /// Takes a tensor of a zTensor file as it is stored, with its attributes.
    fn copy<W: Write>(
        &self,
        editor: &mut Editor<W>,
        name: &str,
        stored: Tensor<'_>,
        budget: &Budget,
        from: &Path,
        work: &mut Work,
    ) -> anyhow::Result<()> {
        let found = stored.validate_within(budget);
        work.findings.extend(self.accepted(found).about(from)?);
        work.make_room(editor, name, stored.info().ok()).about(&self.file)?;
        let copied = editor.writer().copy_under(name, stored);
        let is_write = copied.as_ref().is_err_and(is_write);
        copied.about(if is_write { &self.file } else { from })
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

    /// Writes a tensor, in memory that does not grow with its size where its elements stand in a file
    /// as they are.
    fn add<W: Write>(
        &self,
        editor: &mut Editor<W>,
        name: &str,
        tensor: AnyTensor<'_>,
        source: Option<&Source>,
        from: &Path,
    ) -> anyhow::Result<()> {
        let place = tensor.extent().about(from)?.zip(source);
        let Some((extent, source)) = place else {
            let tensor = tensor.read().about(from)?;
            return editor.writer().add(name, &tensor).about(&self.file);
        };
        let TensorInfo { dtype, shape } = tensor.info().about(from)?;
        let mut object = editor.writer().object(name).about(&self.file)?;
        let mut component = object.component(Role::Data, dtype).about(&self.file)?;
        let mut elements = source.stream(extent, "elements").about(from)?;
        loop {
            let ready = elements.fill_buf().about(from)?;
            if ready.is_empty() {
                break;
            }
            let written = component.write_all(ready);
            // Elements that no tensor can have are the fault of their file.
            let is_theirs = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
            let is_theirs = written.as_ref().is_err_and(is_theirs);
            written.about(if is_theirs { from } else { &self.file })?;
            let taken = ready.len();
            elements.consume(taken);
        }
        component.finish().about(&self.file)?;
        object.finish(Layout::Dense, shape).about(&self.file)
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
                (None, key) => editor.set_attribute(key, value)?,
            }
            work.changes.set.push(text.to_owned());
        }
        Ok(())
    }
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
