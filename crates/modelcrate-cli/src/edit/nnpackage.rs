//! Edits of nnpackages.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, ensure};
use modelcrate::{
    nnpackage::{
        ConfigChange, ConfigKey, Connected, Edit as Edits, Edited, Editor, IoRef, PackageVersion,
        Reader, WriteOptions,
    },
    tensor_core::Source,
};

use super::{Changes, Job, unknown};
use crate::{
    editing::{Changes as Parts, Done, Editing, Opened},
    failure::About,
    nnpackage::{
        given::{
            Edge, ForModel, Named, TypeOf, begin_archive, begin_folder, file_name, open, partition,
            read_text, reference,
        },
        package,
    },
    options::is_stdio,
    outcome::Outcome,
    output::count,
    paths::{is_inside, same_file},
    write::check_folder,
};

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// Write a folder, which must not be there, or be empty
    #[arg(long, requires = "output")]
    folder: bool,
    /// Put another model in the place of one; its path stays; may be given several times
    #[arg(long, value_name = "INDEX=MODEL")]
    replace_model: Vec<ForModel>,
    /// Add a model behind the others; may be given several times
    #[arg(long, value_name = "[NAME=]MODEL")]
    add_model: Vec<Named>,
    /// Set the type of a model: circle, tflite, bin or tvn; of one that is put in, this is what it is
    /// taken for
    #[arg(long, value_name = "INDEX=TYPE")]
    model_type: Vec<TypeOf>,
    /// Put in information about a model, a file of JSON; may be given several times
    #[arg(long, value_name = "INDEX=FILE")]
    model_info: Vec<ForModel>,
    /// Cut a connection; may be given several times
    #[arg(long, value_name = "FROM=TO")]
    disconnect: Vec<Edge>,
    /// Lead an output of a model into an input of another; may be given several times
    #[arg(long, value_name = "FROM=TO")]
    connect: Vec<Edge>,
    /// Make these the inputs of the package
    #[arg(long, value_name = "MODEL:SUBGRAPH:POSITION", value_delimiter = ',', value_parser = reference)]
    pkg_inputs: Vec<IoRef>,
    /// Make these the outputs of the package
    #[arg(long, value_name = "MODEL:SUBGRAPH:POSITION", value_delimiter = ',', value_parser = reference)]
    pkg_outputs: Vec<IoRef>,
    /// Take inputs, outputs and connections from a file of circle-partitioner
    #[arg(long, value_name = "FILE.conn.json", conflicts_with_all = ["connect", "disconnect", "pkg_inputs", "pkg_outputs"])]
    from_conn: Option<PathBuf>,
    /// Take away a model and what only it needs; may be given several times
    #[arg(long, value_name = "INDEX")]
    remove_model: Vec<usize>,
    /// Take away connections of models that are removed, too
    #[arg(long, requires = "remove_model")]
    drop_connections: bool,
    /// Put this file in the place of the configuration
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    config: Option<PathBuf>,
    /// Take away the configuration
    #[arg(long)]
    no_config: bool,
    /// Set the version of the format
    #[arg(long, value_name = "VERSION", value_parser = version)]
    package_version: Option<PackageVersion>,
    /// List the SHA-256 of every file in metadata/SHA256SUMS
    #[arg(long, conflicts_with = "no_digests")]
    digests: bool,
    /// Take away that list
    #[arg(long)]
    no_digests: bool,
}

/// Changes a package. Of the manifest and the configuration only what changes is touched; files that do
/// not change keep their stored bytes.
pub(super) fn edit(job: Job) -> anyhow::Result<Outcome> {
    let Job { file, opened, changes, editing } = job;
    let mut options = WriteOptions::default();
    if let Some(alignment) = changes.store.alignment {
        options = options.alignment(alignment);
    }
    if let Some(level) = changes.store.level {
        options = options.level(level);
    }
    let (mut done, edit) = match &editing.output {
        None => in_place(&file, &changes, &editing, options)?,
        Some(output) => elsewhere(&file, opened.as_ref(), output, &changes, &editing, options)?,
    };
    done.what = format!("edited, {edit}");
    editing.report(&file, &done)
}

fn in_place(
    package: &Path,
    changes: &Changes,
    editing: &Editing,
    options: WriteOptions,
) -> anyhow::Result<(Done<Parts>, String)> {
    let options = options.output(editing.in_place()).unchecked();
    let editor = match editing.write.dry_run {
        true => Editor::dry_run(package, options),
        false => Editor::open_with(package, options),
    };
    let mut editor = editor.about(package)?;
    let parts = changes.apply_to_package(editor.edit_mut(), editing).about(package)?;
    let (edit, len) = (editor.edit(), editor.reader().source().map(Source::len));
    let (before, after) = (edit.reader().lint(), edit.preview().about(package)?.lint());
    let mut line = version_line(edit);
    let changed = editing.commit(len, &before, &after, || {
        let edited = editor.commit()?;
        if let Edited::Updated { written, removed } = edited {
            let written = count(written, "file");
            let _ = write!(line, ", {written} written, {removed} removed");
        }
        Ok(edited)
    });
    Ok((parts.done(changed.about(package)?), line))
}

fn elsewhere(
    package: &Path,
    opened: Option<&Opened>,
    output: &Path,
    changes: &Changes,
    editing: &Editing,
    options: WriteOptions,
) -> anyhow::Result<(Done<Parts>, String)> {
    let is_folder = changes.nnpackage.folder;
    let check = || {
        let is_input = !is_stdio(output) && same_file(package, output);
        ensure!(!is_input, "is the input, which is changed where no output is given");
        let is_inside = !is_stdio(output) && is_inside(output, package);
        ensure!(!is_inside, "is in the folder that is read");
        if is_folder { check_folder(output) } else { Ok(()) }
    };
    check().about(output)?;
    let reader = match opened {
        Some(opened) => Reader::from_source(opened.source.clone()).about(package)?,
        None => self::package(package)?,
    };
    let mut edit = Edits::new(&reader);
    let parts = changes.apply_to_package(&mut edit, editing).about(package)?;
    let len = reader.source().map(Source::len);
    let (before, after) = (reader.lint(), edit.preview().about(package)?.lint());
    let changed = editing.commit(len, &before, &after, || {
        let begin = if is_folder { begin_folder } else { begin_archive };
        let begun = begin(output, editing.write, &|| package.to_path_buf(), options, &edit)?;
        let after = begun.commit(output)?;
        Ok(match len.zip(after) {
            Some((before, after)) => Edited::Replaced { before, after },
            None => Edited::Updated { written: 1, removed: 0 },
        })
    })?;
    Ok((parts.done(changed), version_line(&edit)))
}

fn version_line(edit: &Edits) -> String {
    let manifest = edit.manifest();
    format!("version {}, {}", manifest.version, count(manifest.models.len(), "model"))
}

impl Changes {
    fn apply_to_package(&self, edit: &mut Edits, editing: &Editing) -> anyhow::Result<Parts> {
        let (mut parts, options) = (Parts::default(), &self.nnpackage);
        options.models(edit)?;
        options.wires(edit)?;
        options.removals(edit)?;
        options.texts(edit)?;
        self.keys(edit, editing, &mut parts)?;
        for name in &self.remove {
            edit.remove(name)?;
            parts.removed.push(name.clone());
        }
        for spec in &self.put {
            let Named { name, path } = spec.parse()?;
            let is_new = edit.reader().file(&name).is_none();
            edit.put(&name, open(&path).about(&path)?)?;
            parts.put(&name, is_new);
        }
        options.rest(edit);
        Ok(parts)
    }

    /// Changes keys of the configuration.
    fn keys(&self, edit: &mut Edits, editing: &Editing, parts: &mut Parts) -> anyhow::Result<()> {
        if self.rename.is_empty() && self.unset.is_empty() && self.set.is_empty() {
            return Ok(());
        }
        let config = edit.preview()?.config()?.unwrap_or_default();
        let renames = self.renames(|key| config.get(key).is_some())?;
        let new = self.pairs()?;
        let named = renames.iter().map(|(_, new)| *new).chain(new.iter().map(|(key, _)| *key));
        let mut named = named.filter(|key| !editing.force.force && ConfigKey::find(key).is_none());
        if let Some(key) = named.next() {
            return Err(unknown("key", key, ConfigKey::all().iter().map(|known| known.name)));
        }
        let mut changes: Vec<_> =
            renames.iter().map(|(old, new)| ConfigChange::rename(*old, *new)).collect();
        changes.extend(self.unset.iter().map(ConfigChange::unset));
        changes.extend(new.iter().map(|(key, value)| ConfigChange::set(*key, *value)));
        if !changes.is_empty() {
            edit.change_config(&changes)?;
        }
        let owned = |(old, new): (&str, &str)| (old.to_owned(), new.to_owned());
        parts.renamed.extend(renames.into_iter().map(owned));
        parts.unset.clone_from(&self.unset);
        parts.set.extend(new.into_iter().map(|(key, _)| key.to_owned()));
        Ok(())
    }
}

impl Options {
    fn rest(&self, edit: &mut Edits) {
        if let Some(version) = &self.package_version {
            edit.manifest_mut().version.clone_from(version);
        }
        if self.digests || self.no_digests {
            edit.digests(self.digests);
        }
    }

    fn models(&self, edit: &mut Edits) -> anyhow::Result<()> {
        let mut typed = Vec::new();
        for ForModel { index, path } in &self.replace_model {
            let put = match TypeOf::find(&self.model_type, *index) {
                Some(kind) => edit.replace_model_as(*index, open(path).about(path)?, kind),
                None if is_stdio(path) => edit.replace_model(*index, open(path).about(path)?),
                None => edit.replace_model_from(*index, path),
            };
            put.about(path)?;
            typed.push(*index);
        }
        for Named { name, path } in &self.add_model {
            let next = edit.manifest().models.len();
            let put = match TypeOf::find(&self.model_type, next) {
                Some(kind) => edit.add_model_as(name, open(path).about(path)?, kind),
                None if is_stdio(path) => edit.add_model(name, open(path).about(path)?),
                None => edit.add_model_from(name, path),
            };
            typed.push(put.about(path)?);
        }
        for given in self.model_type.iter().filter(|given| !typed.contains(&given.index)) {
            edit.set_model_type(given.index, given.model_type())?;
        }
        for ForModel { index, path } in &self.model_info {
            let name = file_name(path).about(path)?;
            edit.set_model_info(*index, name, read_text(path)?)?;
        }
        Ok(())
    }

    fn wires(&self, edit: &mut Edits) -> anyhow::Result<()> {
        for edge in &self.disconnect {
            edit.disconnect(edge.from, edge.to)?;
        }
        self.connect.iter().for_each(|edge| edit.connect(edge.from, edge.to));
        let manifest = edit.manifest_mut();
        if !self.pkg_inputs.is_empty() {
            manifest.pkg_inputs.clone_from(&self.pkg_inputs);
        }
        if !self.pkg_outputs.is_empty() {
            manifest.pkg_outputs.clone_from(&self.pkg_outputs);
        }
        if let Some(file) = &self.from_conn {
            let wiring = partition(file, &manifest.models)?;
            manifest.pkg_inputs = wiring.pkg_inputs;
            manifest.pkg_outputs = wiring.pkg_outputs;
            manifest.connections = wiring.connections;
        }
        Ok(())
    }

    fn removals(&self, edit: &mut Edits) -> anyhow::Result<()> {
        let connected = if self.drop_connections { Connected::Drop } else { Connected::Refuse };
        let mut indices = self.remove_model.clone();
        indices.sort_unstable();
        indices.dedup();
        // From the last one on, so that the others keep their numbers.
        for index in indices.into_iter().rev() {
            edit.remove_model(index, connected)?;
        }
        Ok(())
    }

    fn texts(&self, edit: &mut Edits) -> anyhow::Result<()> {
        if let Some(path) = &self.config {
            edit.set_config(file_name(path).about(path)?, read_text(path)?)?;
        }
        if self.no_config {
            edit.remove_config()?;
        }
        Ok(())
    }
}

/// Reads a version of three numbers.
fn version(text: &str) -> anyhow::Result<PackageVersion> {
    let numbers = text
        .split('.')
        .map(|part| part.parse().ok().filter(|number: &u64| number.to_string() == part));
    match numbers.collect::<Option<Vec<_>>>().as_deref() {
        Some([major, minor, patch]) => Ok(PackageVersion::new(*major, *minor, *patch)),
        _ => Err(anyhow!("{text:?} is not a version, such as 1.3.0")),
    }
}
