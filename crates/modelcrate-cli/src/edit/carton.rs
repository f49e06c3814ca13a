//! Edits of cartons.

use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use modelcrate::{
    carton_format::{Change, Description, Editor, Error, NewValue, Reader, WriteOptions},
    tensor_core::Limits,
};

use super::{Changes, Job, unknown};
use crate::{
    carton::{
        read,
        rewrite::{Done, Rewrite},
        split_pair,
    },
    editing::Changes as Parts,
    failure::About,
    outcome::Outcome,
    put,
};

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// Put this file in the place of carton.toml before all other changes
    #[arg(long, value_name = "FILE")]
    toml: Option<PathBuf>,
}

pub(super) fn edit(job: Job) -> anyhow::Result<Outcome> {
    let Job { file, opened, changes, editing } = job;
    let rewrite = Rewrite::new(file, editing);
    let reader = rewrite.open_as(opened, Reader::options())?;
    let mut editor = Editor::from_reader(reader.clone(), WriteOptions::default());
    let done = changes.apply_to_carton(&mut editor, &rewrite)?;
    let lines = done.lines();
    if rewrite.is_in_place() && editor.changes_nothing() {
        let done = Done { what: "unchanged".to_owned(), changes: done, lines: Vec::new() };
        return rewrite.nothing(&reader, done, false);
    }
    rewrite.run(&reader, WriteOptions::default(), |writer| {
        Ok((editor.write(writer)?, Done { what: "edited".to_owned(), changes: done, lines }))
    })
}

impl Changes {
    fn apply_to_carton(&self, editor: &mut Editor, rewrite: &Rewrite) -> anyhow::Result<Parts> {
        let (mut parts, input) = (Parts::default(), &rewrite.input);
        for path in &self.remove {
            editor.remove(path).about(input)?;
            parts.removed.push(path.clone());
        }
        let from = self.given(input, &[])?;
        let opened = from.open(rewrite.editing.force)?;
        let sets = opened.sets()?;
        let options = self.fit.options();
        let fitted = put::fit(&sets, |set| set.fit_carton(editor.reader(), &options))?;
        fitted.put(editor).about(&from.inputs())?;
        parts.replace(&fitted);
        for file in self.contents(|path| path)? {
            let (path, content) = file?;
            let is_description = path == Description::PATH && self.carton.toml.is_some();
            let is_twice = is_description || fitted.is_for(&path.to_owned());
            ensure!(!is_twice, "file {path:?} is given twice");
            let is_new = editor.reader().file(path).is_none();
            editor.put(path, content).about(input)?;
            parts.put(path, is_new);
        }
        let changes = self.values()?;
        let limits = Limits::default();
        let (old, from) = match &self.carton.toml {
            Some(path) => (read(path)?, path),
            None if changes.is_empty() => return Ok(parts),
            None => (editor.carton_toml().about(input)?.into(), input),
        };
        let text = if changes.is_empty() {
            Description::parse(&old, &limits).about(from)?;
            old
        } else {
            self.edited(&old, &changes, rewrite).about(from)?
        };
        editor.put(Description::PATH, text).about(from)?;
        parts.unset.clone_from(&self.unset);
        parts.set = self.carton_pairs()?.into_iter().map(|(path, _)| path.to_owned()).collect();
        Ok(parts)
    }

    /// Makes changes of the description.
    fn edited(&self, old: &[u8], changes: &[Change], rewrite: &Rewrite) -> anyhow::Result<Vec<u8>> {
        let limits = Limits::default();
        let before = Description::parse(old, &limits);
        let edited = Description::edit(old, changes, &limits).map_err(|error| match error {
            // The file is not to blame for what the changes made of it.
            Error::Document(error) if before.is_ok() => {
                anyhow!("would not be a description any more: {error}")
            }
            error => error.into(),
        })?;
        let known = before.map(|before| before.unknown_keys).unwrap_or_default();
        let is_known = |path: &str| known.iter().any(|key| key.path == path);
        let mut after = Description::parse(&edited, &limits)?.unknown_keys.into_iter();
        match after.find(|key| !rewrite.editing.force.force && !is_known(&key.path)) {
            Some(key) => Err(unknown("key", &key.path, KEYS.into_iter())),
            None => Ok(edited),
        }
    }

    /// Returns the changes of the description.
    fn values(&self) -> anyhow::Result<Vec<Change>> {
        let removals = self.unset.iter().map(|path| Ok(Change::remove(path)));
        let set = self.carton_pairs()?.into_iter();
        let set = set.map(|(path, value)| Ok(Change::set(path.trim(), NewValue::guess(value))));
        removals.chain(set).collect()
    }

    /// Splits `PATH=VALUE` at the first sign that is not in quotes.
    fn carton_pairs(&self) -> anyhow::Result<Vec<(&str, &str)>> {
        let form = "PATH=VALUE, such as runner.opts.num_threads=4";
        let pair = |text| split_pair(text).ok_or_else(|| anyhow!("{text:?} is not {form}"));
        self.set.iter().map(|text| pair(text)).collect()
    }
}

/// The keys of a description. Format text: "`carton.toml`".
const KEYS: [&str; 13] = [
    "spec_version",
    "model_name",
    "short_description",
    "model_description",
    "license",
    "repository",
    "homepage",
    "required_platforms",
    "input",
    "output",
    "self_test",
    "example",
    "runner",
];
