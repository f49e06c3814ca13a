//! Edits of RTen models.

use std::{cell::Cell, path::Path, str::FromStr};

use anyhow::bail;
use modelcrate::{
    Fitted,
    rten_format::{Dim, Editor, Error, Metadata, Model, Pending, Reader, WriteOptions},
    tensor_core::output::Edited,
};

use super::{Job, unknown};
use crate::{
    address,
    editing::{Changes, Editing, Opened},
    failure::About,
    outcome::Outcome,
    output, put,
    rten::{find, find_all, split_pair},
};

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// Set a dimension of a value, counted from 0, to a number or a symbol; may be given several
    /// times. In all options #12 means node 12, whatever its name
    #[arg(long, value_name = "NAME:AXIS=DIM")]
    dim: Vec<Axis>,
    /// Set an attribute of an operator to a number, true, false, numbers with commas between them or
    /// nothing for an empty list, the name of an enumerator, or none; may be given several times
    #[arg(long, value_name = "NODE.FIELD=VALUE")]
    attribute: Vec<Attribute>,
    /// Make these values the outputs of the model
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    outputs: Vec<String>,
}

pub(super) fn edit(job: &Job) -> anyhow::Result<Outcome> {
    let Job { file, opened, changes, editing } = job;
    let given = changes.given(file, &changes.put)?;
    let inputs = given.inputs();
    let given = given.open(editing.force)?;
    let (sets, options) = (given.sets()?, changes.fit.options());
    model(editing, file, opened.as_ref(), &inputs, |editor| {
        let fitted = put::fit(&sets, |set| set.fit_rten(editor.reader(), &options))?;
        let mut done = Changes::default();
        done.replace(&fitted);
        job.change_model(editor.model_mut(), &mut done)?;
        Ok((done, fitted))
    })
}

impl Job {
    fn change_model(&self, model: &mut Model, done: &mut Changes) -> anyhow::Result<()> {
        let changes = &self.changes;
        for name in &changes.unset {
            let known = field(&mut Metadata::default(), name).map(drop);
            model.metadata.as_mut().map_or(known, |metadata| {
                *field(metadata, name)? = None;
                Ok(())
            })?;
            done.unset.push(name.clone());
        }
        for (name, text) in changes.pairs()? {
            *field(model.metadata.get_or_insert_default(), name)? = Some(text.to_owned());
            done.set.push(name.to_owned());
        }
        for Axis(name, axis, dim) in &changes.rten.dim {
            let id = find(model, name)?;
            model.set_dim(id, *axis, dim.clone())?;
        }
        for Attribute(name, field, text) in &changes.rten.attribute {
            let (scope, id) = find_operator(model, name)?;
            model.set_attribute(scope, id, field, text)?;
            done.set.push(format!("{name}.{field}"));
        }
        if !changes.rten.outputs.is_empty() {
            let outputs = find_all(model, &changes.rten.outputs)?;
            model.set_outputs(&outputs)?;
        }
        let names = changes.renames(|name| find(model, name).is_ok())?;
        let ids = names.iter().map(|(old, _)| find(model, old));
        let ids = ids.collect::<anyhow::Result<Vec<_>>>()?;
        let new = ids.iter().zip(&names).map(|(id, (_, new))| (0, *id, *new)).collect::<Vec<_>>();
        let pairs = names.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned()));
        done.renamed.extend(pairs);
        Ok(model.rename_all(&new)?)
    }
}

/// Changes a model, and says so: one of version 2 in place, whatever its size, as long as its
/// constants stay.
pub(crate) fn change(
    editing: &Editing,
    file: &Path,
    change: impl FnOnce(&mut Model) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let is_read = !editing.is_in_place();
    editing.check_input(file).about(file)?;
    let opened = is_read.then(|| editing.open(file).about(file)).transpose()?;
    model(editing, file, opened.as_ref(), file, |editor| {
        change(editor.model_mut())?;
        Ok((Changes::default(), Fitted::default()))
    })
}

fn model<'s, 'a: 's>(
    editing: &Editing,
    file: &Path,
    opened: Option<&Opened>,
    inputs: &Path,
    change: impl FnOnce(&mut Editor) -> anyhow::Result<(Changes, Fitted<'s, 'a, (usize, u32)>)>,
) -> anyhow::Result<Outcome> {
    // What has new errors is refused here, with all of them.
    let options = WriteOptions::default().output(editing.in_place()).unchecked();
    let editor = match opened {
        Some(opened) => Reader::from_source(opened.source.clone())
            .map(|reader| Editor::from_reader(reader, options)),
        None if editing.write.dry_run => Editor::dry_run(file, options),
        None => Editor::open_with(file, options),
    };
    let mut editor = editor.about(file)?;
    let (changes, weights) = change(&mut editor).about(file)?;
    let (len, before) = (Some(editor.reader().source().len()), editor.reader().lint());
    let after = editor.preview().about(file)?.lint();
    let (mut unused, is_same) = (0, weights.names().len() == 0);
    weights.describe(editor.model_mut());
    let unread = Cell::new(None);
    let read = |pending: &Pending| {
        weights.read(pending).map_err(|error| {
            unread.set(Some(error));
            Error::NonePending
        })
    };
    let changed = match opened {
        Some(opened) => {
            editing.rewrite(file, opened, &before, |sink| Ok(editor.write(sink, read)?))
        }
        None => {
            let commit = || {
                let bytes = editor.unused_bytes();
                let edited = match is_same {
                    true => editor.commit()?,
                    false => editor.rewrite(read)?,
                };
                unused = if let Edited::Appended { .. } = edited { bytes } else { 0 };
                Ok(edited)
            };
            editing.commit(len, &before, &after, commit).about(file)
        }
    };
    // Not the model is to blame where elements cannot be read.
    let changed = match unread.take() {
        Some(error) => Err(error).about(inputs)?,
        None => changed?,
    };
    let mut done = changes.done(changed);
    if unused > 0 {
        done.lines.push(format!("left with {} that nothing refers to", output::size(unused)));
    }
    editing.report(file, &done)
}

/// Returns a field of the metadata by its name.
fn field<'a>(metadata: &'a mut Metadata, name: &str) -> anyhow::Result<&'a mut Option<String>> {
    Ok(match name {
        "onnx_hash" => &mut metadata.onnx_hash,
        "description" => &mut metadata.description,
        "license" => &mut metadata.license,
        "commit" => &mut metadata.commit,
        "code_repository" => &mut metadata.code_repository,
        "model_repository" => &mut metadata.model_repository,
        "run_id" => &mut metadata.run_id,
        "run_url" => &mut metadata.run_url,
        _ => {
            let known = Metadata::default();
            return Err(unknown("field", name, known.fields().into_iter().map(|(name, _)| name)));
        }
    })
}

/// Finds the operator of any graph that a name means, or, as `#12`, an id of the main graph.
fn find_operator(model: &Model, name: &str) -> anyhow::Result<(usize, u32)> {
    let id = name.strip_prefix('#').and_then(|id| id.parse().ok());
    match (&*model.find_operators(name), id) {
        (&[one], _) => Ok(one),
        ([], Some(id)) => Ok((0, id)),
        ([], None) => bail!("no operator is called {name:?}"),
        _ => bail!("several operators are called {name:?}: #ID means one of the main graph"),
    }
}

/// `NODE.FIELD=VALUE`.
#[derive(Clone, Debug)]
pub(crate) struct Attribute(String, String, String);

impl FromStr for Attribute {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let form = "NODE.FIELD=VALUE, such as softmax.axis=-1";
        let (place, value) = split_pair(text, form)?;
        let Some((name, field)) = place.rsplit_once('.') else { bail!("{text:?} is not {form}") };
        Ok(Self(name.to_owned(), field.to_owned(), address::text(value)?))
    }
}

/// `NAME:AXIS=DIM`.
#[derive(Clone, Debug)]
pub(crate) struct Axis(pub(crate) String, pub(crate) usize, pub(crate) Dim);

impl FromStr for Axis {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let form = "NAME:AXIS=DIM, such as image:0=batch";
        let (place, dim) = split_pair(text, form)?;
        let place = place.rsplit_once(':');
        let place = place.and_then(|(name, axis)| Some((name, axis.parse().ok()?)));
        let Some((name, axis)) = place else { bail!("{text:?} is not {form}") };
        let is_number =
            dim.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
        let dim = match dim.parse() {
            Ok(elements) if !dim.starts_with('+') => Dim::Fixed(elements),
            _ if is_number => bail!("{dim:?} is neither a symbol nor a number up to {}", u32::MAX),
            _ => Dim::from(dim),
        };
        Ok(Self(name.to_owned(), axis, dim))
    }
}
