//! Edits of PyTorch Live models: their extra files.

use std::path::Path;

use bytes::Bytes;
use modelcrate::ptl_spec::{Editor, File, SPEC, WriteOptions};

use super::Job;
use crate::{
    editing::{Changes, Editing, Opened},
    failure::About,
    outcome::Outcome,
};

pub(super) fn edit(job: &Job) -> anyhow::Result<Outcome> {
    let Job { file, opened, changes, editing } = job;
    change(editing, file, opened.as_ref(), |editor| {
        let mut done = Changes::default();
        for name in &changes.remove {
            editor.remove(entry(name))?;
            done.removed.push(entry(name).to_owned());
        }
        for file in changes.contents(entry)? {
            let (name, content) = file?;
            put(editor, name, content, &mut done)?;
        }
        Ok(done)
    })
}

/// Returns the name of an extra file, also of what stands in the archive as that.
fn entry(name: &str) -> &str {
    name.strip_prefix("extra/").unwrap_or(name)
}

/// Changes a model, and says so.
pub(crate) fn change(
    editing: &Editing,
    file: &Path,
    opened: Option<&Opened>,
    change: impl FnOnce(&mut Editor) -> anyhow::Result<Changes>,
) -> anyhow::Result<Outcome> {
    // What is wrong with the result is looked at here.
    let options = WriteOptions::default().output(editing.in_place()).allow_invalid();
    let editor = match opened {
        Some(opened) => Editor::from_source(opened.source.clone()),
        None if editing.write.dry_run => Editor::dry_run(file, options),
        None => Editor::open_with(file, options),
    };
    let mut editor = editor.about(file)?;
    let changes = change(&mut editor).about(file)?;
    let preview = editor.preview().about(file)?;
    let (len, before) = (Some(editor.reader().source().len()), editor.reader().lint());
    let changed = match opened {
        Some(opened) => {
            editing.rewrite(file, opened, &before, |sink| Opened::copy(preview.source(), sink))?
        }
        None => {
            editing.commit(len, &before, &preview.lint(), || Ok(editor.commit()?)).about(file)?
        }
    };
    editing.report(file, &changes.done(changed))
}

/// Puts in an extra file, unless it is there as it is to be.
pub(crate) fn put(
    editor: &mut Editor,
    name: &str,
    content: Bytes,
    changes: &mut Changes,
) -> anyhow::Result<()> {
    let old = editor.reader().extra_file(name).map(File::bytes).transpose()?;
    // An empty spec counts as none.
    let old = old.filter(|old| name != SPEC || !old.is_empty());
    if old.as_ref() == Some(&content) {
        return Ok(());
    }
    changes.put(name, old.is_none());
    Ok(editor.set(name, content)?)
}
