use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, ensure};
use modelcrate::nnpackage::{
    ConfigChange, Connected, Edit as Edits, Edited, Editor, IoRef, PackageVersion,
};
use serde::Serialize;

use super::given::{
    Edge, ForModel, Named, Store, TypeOf, begin_archive, begin_folder, file_name, open, partition,
    read_text, reference,
};
use crate::{
    checked::Checked,
    escape::escape,
    failure::About,
    options::{Force, InPlace, Input, is_stdio},
    outcome::Outcome,
    output,
    paths::{is_inside, same_file},
    write::{Writing, check_folder},
};

/// Change a package: its models, connections, configuration and other files
///
/// Of the manifest and the configuration only what changes is touched; comments, order and indents
/// stay. Files that do not change keep their stored bytes. The new package takes the place of the
/// old one at once, when it is complete. Changes are made in the order of the options below; models
/// count from 0 and keep their numbers until all is done. A list of digests is kept up. Errors that
/// were not in the package before are not written without --force.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage edit model.zip --set USE_MMAPED_DATA=1
  modelcrate nnpackage edit model.zip new.zip --replace-model 0=better.circle
  modelcrate nnpackage edit models.zip --remove-model 1 --drop-connections --dry-run
  modelcrate nnpackage edit package/ --put metadata/tc/input.h5=input.h5 --digests")]
pub(crate) struct Edit {
    /// The package, as an archive or a folder; - is standard input
    package: Input,
    /// The package to write; - is standard output. Without it the package is changed in place
    output: Option<PathBuf>,
    /// Write a folder, which must not be there, or be empty
    #[arg(long, requires = "output")]
    folder: bool,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    store: Store,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
    #[command(flatten)]
    in_place: InPlace,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Changes {
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
    /// Give a key of the configuration another name; may be given several times
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    rename: Vec<(String, String)>,
    /// Take a key out of the configuration; may be given several times
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Set a key of the configuration; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Take away a file that nothing names; may be given several times
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// Put in a file, or in the place of one; may be given several times
    #[arg(long, value_name = "[NAME=]PATH")]
    put: Vec<Named>,
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

#[derive(Serialize)]
struct Done {
    path: String,
    dry_run: bool,
    changed: bool,
    version: String,
    models: Vec<String>,
    /// Of an archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Of a folder in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<usize>,
    #[serde(flatten)]
    checked: Checked,
}

impl Edit {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let done = match &self.output {
            Some(output) => self.elsewhere(output)?,
            None => self.in_place()?,
        };
        let path = self.output.as_deref().unwrap_or(&self.package);
        self.write.report(path, &done, &done.text())?;
        Ok(done.checked.outcome())
    }

    fn in_place(&self) -> anyhow::Result<Done> {
        let package = &self.package;
        ensure!(
            !is_stdio(package),
            "standard input cannot be replaced: say where the package goes"
        );
        let options = self.store.options().output(self.in_place.output()).unchecked();
        let editor = if self.write.dry_run {
            Editor::dry_run(package, options)
        } else {
            Editor::open_with(package, options)
        };
        let mut editor = editor.about(package)?;
        self.changes.apply(editor.edit_mut()).about(package)?;
        let done = self.done(package, editor.edit()).about(package)?;
        if done.checked.is_refused() {
            return Ok(done);
        }
        Ok(match editor.commit().about(package)? {
            Edited::Replaced { after, .. } => Done { bytes: Some(after), ..done },
            Edited::Updated { written, removed } => {
                Done { written: Some(written), removed: Some(removed), ..done }
            }
            _ => Done { changed: false, ..done },
        })
    }

    fn elsewhere(&self, output: &Path) -> anyhow::Result<Done> {
        let package = &self.package;
        let check = || {
            let is_input = !is_stdio(output) && same_file(package, output);
            ensure!(!is_input, "is the input, which is changed where no output is given");
            ensure!(
                is_stdio(output) || !is_inside(output, package),
                "is in the folder that is read"
            );
            if self.folder { check_folder(output) } else { Ok(()) }
        };
        check().about(output)?;
        let mut edit = Edits::new(&super::package(package)?);
        self.changes.apply(&mut edit).about(package)?;
        let (options, done) = (self.store.options(), self.done(output, &edit).about(package)?);
        if done.checked.is_refused() {
            return Ok(done);
        }
        let begin = if self.folder { begin_folder } else { begin_archive };
        let begun = begin(output, self.write, &|| package.to_path_buf(), options, &edit)?;
        Ok(Done { bytes: begun.commit(output)?, ..done })
    }

    fn done(&self, path: &Path, edit: &Edits) -> anyhow::Result<Done> {
        let manifest = edit.manifest();
        let checked = Checked::of(&edit.preview()?.lint(), &edit.reader().lint(), self.force);
        Ok(Done {
            path: path.display().to_string(),
            dry_run: self.write.dry_run,
            changed: !checked.is_refused(),
            version: manifest.version.to_string(),
            models: manifest.models,
            bytes: None,
            written: None,
            removed: None,
            checked,
        })
    }
}

impl Changes {
    fn apply(&self, edit: &mut Edits) -> anyhow::Result<()> {
        self.models(edit)?;
        self.wires(edit)?;
        self.removals(edit)?;
        self.texts(edit)?;
        for name in &self.remove {
            edit.remove(name)?;
        }
        for Named { name, path } in &self.put {
            edit.put(name, open(path).about(path)?)?;
        }
        if let Some(version) = &self.package_version {
            edit.manifest_mut().version.clone_from(version);
        }
        if self.digests || self.no_digests {
            edit.digests(self.digests);
        }
        Ok(())
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
        let renames = self.rename.iter().map(|(old, new)| ConfigChange::rename(old, new));
        let changes = renames.chain(self.unset.iter().map(ConfigChange::unset));
        let changes =
            changes.chain(self.set.iter().map(|(key, value)| ConfigChange::set(key, value)));
        let changes: Vec<ConfigChange> = changes.collect();
        if !changes.is_empty() {
            edit.change_config(&changes)?;
        }
        Ok(())
    }
}

impl Done {
    fn text(&self) -> String {
        let (path, would_be) = (escape(&self.path), if self.dry_run { "would be " } else { "" });
        if !self.changed {
            return self.checked.text(&path, &format!("{path}: nothing to change\n"));
        }
        let models = output::count(self.models.len(), "model");
        let mut text = format!("{path}: {would_be}edited, version {}, {models}", self.version);
        if let Some(bytes) = self.bytes {
            let _ = write!(text, ", {}", output::size(bytes));
        }
        if let (Some(written), Some(removed)) = (self.written, self.removed) {
            let _ = write!(text, ", {} written", output::count(written, "file"));
            if removed > 0 {
                let _ = write!(text, ", {removed} removed");
            }
        }
        text.push('\n');
        self.checked.text(&path, &text)
    }
}

/// Splits `KEY=VALUE` at the first `=`.
fn pair(text: &str) -> anyhow::Result<(String, String)> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or_else(|| anyhow!("{text:?} has no \"=\" with a key before it"))?;
    Ok((key.to_owned(), value.to_owned()))
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
