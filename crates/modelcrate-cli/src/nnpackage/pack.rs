use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail};
use modelcrate::{
    nnpackage::{Builder, Edit, Error, File, IoRef, Manifest, Package, Reader},
    tensor_core::{Chain, Finding, Report},
};
use serde::Serialize;

use super::given::{
    Begun, Edge, ForModel, Named, Store, TypeOf, about_culprit, begin_archive, begin_folder,
    check_output, file_name, open, partition, read_text, reference,
};
use crate::{
    checked::Checked,
    escape::escape,
    failure::About,
    options::{Force, is_stdio},
    outcome::Outcome,
    output, pack,
    write::Writing,
};

/// How an nnpackage is packed.
#[derive(Debug, clap::Args)]
#[group(id = "packed_nnpackage")]
pub(crate) struct Pack {
    /// Write a folder, which must not be there, or be empty
    #[arg(long)]
    folder: bool,
    /// Take a model for this type: circle, tflite, bin or tvn; models count from 0
    #[arg(long, value_name = "INDEX=TYPE")]
    model_type: Vec<TypeOf>,
    /// The configuration of onert
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Make onert map models: set `USE_MMAPED_DATA` in the configuration, or make one
    #[arg(long)]
    mmap: bool,
    #[command(flatten)]
    wires: Wires,
    #[command(flatten)]
    beside: Beside,
    /// List the SHA-256 of every file in metadata/SHA256SUMS
    #[arg(long)]
    digests: bool,
}

/// How models are connected.
#[derive(Debug, clap::Args)]
struct Wires {
    /// Lead an output of a model into an input of another; may be given several times
    #[arg(long, value_name = "FROM=TO")]
    connect: Vec<Edge>,
    /// The inputs of the package, in order
    #[arg(long, value_name = "MODEL:SUBGRAPH:POSITION", value_delimiter = ',', value_parser = reference)]
    pkg_inputs: Vec<IoRef>,
    /// The outputs of the package, in order
    #[arg(long, value_name = "MODEL:SUBGRAPH:POSITION", value_delimiter = ',', value_parser = reference)]
    pkg_outputs: Vec<IoRef>,
    /// Take all of these from a file of circle-partitioner
    #[arg(
        long,
        value_name = "FILE.conn.json",
        conflicts_with_all = ["connect", "pkg_inputs", "pkg_outputs"]
    )]
    from_conn: Option<PathBuf>,
}

/// What comes with the models.
#[derive(Debug, clap::Args)]
#[group(id = "beside_models")]
struct Beside {
    /// A kernel of a custom operator, lib<operator>.<arch>-<os>.<build>.a; may be given several
    /// times
    #[arg(long, value_name = "FILE")]
    custom_op: Vec<PathBuf>,
    /// Golden data that go in, a file of HDF5
    #[arg(long, value_name = "FILE")]
    golden_input: Option<PathBuf>,
    /// Golden data that have to come out, a file of HDF5
    #[arg(long, value_name = "FILE")]
    golden_expected: Option<PathBuf>,
    /// Information about a model, a file of JSON; may be given several times
    #[arg(long, value_name = "INDEX=FILE")]
    model_info: Vec<ForModel>,
    /// Any other file; may be given several times
    #[arg(long, value_name = "[NAME=]PATH")]
    file: Vec<Named>,
}

#[derive(Serialize)]
pub(super) struct Built {
    pub(super) path: String,
    pub(super) dry_run: bool,
    pub(super) version: String,
    pub(super) models: Vec<String>,
    /// With the manifest and the list of digests.
    pub(super) files: usize,
    /// Of an archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    #[serde(flatten)]
    pub(super) checked: Checked,
}

impl Pack {
    /// Packs models, or a folder, to which none but a few of the `given` options are applied.
    pub(crate) fn run(
        &self,
        sources: &[PathBuf],
        to: &pack::To,
        given: &[String],
    ) -> anyhow::Result<Outcome> {
        let (output, store) = (&to.output, Store::new(to.level, to.alignment));
        let place = To { path: output, is_folder: self.folder, store, write: to.write };
        if let [folder] = sources
            && folder.is_dir()
        {
            check_output(output, [&**folder].into_iter())?;
            let no_models = ["folder", "digests"];
            if let Some(option) = given.iter().find(|option| !no_models.contains(&&***option)) {
                bail!(
                    "--{option} is for models, not for the folder of a package, which edit changes"
                );
            }
            let package = super::package(folder)?;
            let mut edit = Edit::new(&package);
            let mut sums = package.sums().about(folder)?.is_some();
            if self.digests {
                edit.digests(true);
                sums = true;
            }
            let preview = edit.preview().about(folder)?;
            let files = preview.files().about(folder)?.count().saturating_add(sums.into());
            let checked = Checked::of(&preview.lint(), &package.lint(), to.force);
            let bytes = place.begin(&edit, &checked, &[(folder, &package)])?.commit(output)?;
            let built = Built::of(edit.manifest(), output, to.write, checked);
            return Built { files, bytes, ..built }.report("packed", output, to.write);
        }
        let models =
            sources.iter().map(|source| named(source)).collect::<anyhow::Result<Vec<_>>>()?;
        check_output(output, self.inputs(&models))?;
        let builder = self.collect(&models)?;
        let files = builder.paths().len().saturating_add(1).saturating_add(self.digests.into());
        let none = Report::default();
        let checked = check(&builder, &none, Report::default(), &place, &[], to.force)?;
        let bytes = place.begin(&builder, &checked, &[])?.commit(output)?;
        let built = Built::of(builder.manifest(), output, to.write, checked);
        Built { files, bytes, ..built }.report("packed", output, to.write)
    }

    fn collect(&self, models: &[Named]) -> anyhow::Result<Builder> {
        let mut builder = Builder::default();
        for (index, model) in models.iter().enumerate() {
            let Named { name, path } = model;
            let added = match TypeOf::find(&self.model_type, index) {
                Some(kind) => builder.model_as(name, open(path).about(path)?, kind),
                None if is_stdio(path) => builder.model(name, open(path).about(path)?),
                None => builder.model_from(name, path),
            };
            added.about(path)?;
        }
        let models = models.len();
        let beyond = self.model_type.iter().find(|given| given.index >= models);
        if let Some(TypeOf { index, .. }) = beyond {
            anyhow::bail!("--model-type is for model {index}, but there are {models}, from 0");
        }
        if let Some(path) = &self.config {
            let name = file_name(path).about(path)?;
            builder.config(name, read_text(path)?).about(path)?;
        }
        if self.mmap {
            builder.mmap()?;
        }
        self.wires.add_to(&mut builder)?;
        self.beside.add_to(&mut builder)?;
        builder.digests(self.digests);
        Ok(builder)
    }

    fn inputs<'a>(&'a self, models: &'a [Named]) -> impl Iterator<Item = &'a Path> {
        let beside = &self.beside;
        let named = models.iter().chain(&beside.file).map(|file| &file.path);
        let golden = beside.golden_input.iter().chain(&beside.golden_expected);
        let infos = beside.model_info.iter().map(|info| &info.path);
        let paths = named.chain(golden).chain(infos).chain(&beside.custom_op).chain(&self.config);
        paths.map(PathBuf::as_path)
    }
}

impl Wires {
    fn add_to(&self, builder: &mut Builder) -> anyhow::Result<()> {
        if let Some(file) = &self.from_conn {
            let wiring = partition(file, &builder.manifest().models)?;
            builder.wiring(wiring);
        }
        self.pkg_inputs.iter().for_each(|input| builder.input(*input));
        self.pkg_outputs.iter().for_each(|output| builder.output(*output));
        self.connect.iter().for_each(|edge| builder.connect(edge.from, edge.to));
        Ok(())
    }
}

impl Beside {
    fn add_to(&self, builder: &mut Builder) -> anyhow::Result<()> {
        for path in &self.custom_op {
            let name = file_name(path).about(path)?;
            builder.custom_op(name, open(path).about(path)?).about(path)?;
        }
        if let Some(path) = &self.golden_input {
            builder.golden_input(open(path).about(path)?).about(path)?;
        }
        if let Some(path) = &self.golden_expected {
            builder.golden_expected(open(path).about(path)?).about(path)?;
        }
        for ForModel { index, path } in &self.model_info {
            let name = file_name(path).about(path)?;
            builder.model_info(*index, name, read_text(path)?).about(path)?;
        }
        for Named { name, path } in &self.file {
            builder.file(name, open(path).about(path)?).about(path)?;
        }
        Ok(())
    }
}

/// Reads what a model is to be called and where it is.
fn named(source: &Path) -> anyhow::Result<Named> {
    source
        .to_str()
        .ok_or_else(|| anyhow!("{source:?} is not UTF-8, expected [NAME=]MODEL"))?
        .parse()
}

/// Checks a package that is to be written against what was found before.
pub(super) fn check(
    builder: &Builder,
    before: &Report,
    damage: Report,
    to: &To<'_>,
    parts: Parts<'_>,
    force: Force,
) -> anyhow::Result<Checked> {
    let preview = builder.preview();
    let preview =
        preview.or_else(|error| about_culprit(error, &broken(parts, to.path), to.path))?;
    let mut after = preview.lint();
    after.append(damage);
    Ok(Checked::of(&after, before, force))
}

/// The packages that one is made of, and where they are.
pub(super) type Parts<'a> = &'a [(&'a Path, &'a Reader)];

/// Returns the one of which a file cannot be read, or else where the new one goes.
fn broken(parts: Parts<'_>, to: &Path) -> PathBuf {
    let is_broken = |reader: &Reader| {
        let is_broken = |file: File<'_>| {
            file.verify().is_err_and(|error| !matches!(error, Error::Digest { .. }))
        };
        reader.files().map_or(true, |mut files| files.any(is_broken))
    };
    let found = parts.iter().find(|(_, reader)| is_broken(reader));
    found.map_or(to, |(path, _)| path).to_owned()
}

/// Returns what the digests that a package lists say of its files, of which the new one makes new
/// digests.
pub(super) fn damage(path: &Path, package: &Reader) -> Report {
    let mut damage = Report::default();
    match package.sums() {
        Ok(None) => return damage,
        Ok(Some(_)) => {
            let found = package.validate();
            let of_digests = |finding: &&Finding| finding.rule.starts_with("nnp/digest");
            found.findings().iter().filter(of_digests).for_each(|found| damage.add(found.clone()));
        }
        Err(error) => {
            damage.add(Finding::error(error.rule(), Chain(&error).to_string()).at(error.at()));
        }
    }
    damage.map(|finding| finding.message.insert_str(0, &format!("{}: ", path.display())))
}

/// Where a package goes, and how.
pub(super) struct To<'a> {
    pub(super) path: &'a Path,
    pub(super) is_folder: bool,
    pub(super) store: Store,
    pub(super) write: Writing,
}

impl To<'_> {
    /// Writes a package, but for the last step, unless it is refused.
    pub(super) fn begin(
        &self,
        package: &dyn Package,
        checked: &Checked,
        parts: Parts<'_>,
    ) -> anyhow::Result<Begun> {
        if checked.is_refused() {
            return Ok(Begun::Nothing);
        }
        let begin = if self.is_folder { begin_folder } else { begin_archive };
        let culprit = || broken(parts, self.path);
        begin(self.path, self.write, &culprit, self.store.options(), package)
    }
}

impl Built {
    /// Says what is made; the numbers of files and bytes are the caller's to say.
    pub(super) fn of(manifest: Manifest, path: &Path, write: Writing, checked: Checked) -> Self {
        let (path, version) = (path.display().to_string(), manifest.version.to_string());
        let (dry_run, models) = (write.dry_run, manifest.models);
        Self { path, dry_run, version, models, files: 0, bytes: None, checked }
    }

    /// Says what was done.
    pub(super) fn report(self, what: &str, path: &Path, write: Writing) -> anyhow::Result<Outcome> {
        write.report(path, &self, &self.text(what))?;
        Ok(self.checked.outcome())
    }

    pub(super) fn text(&self, what: &str) -> String {
        let (path, would_be) = (escape(&self.path), if self.dry_run { "would be " } else { "" });
        let models = output::count(self.models.len(), "model");
        let mut text = format!("{path}: {would_be}{what}, version {}, {models}", self.version);
        let _ = write!(text, ", {}", output::count(self.files, "file"));
        if let Some(bytes) = self.bytes {
            let _ = write!(text, ", {}", output::size(bytes));
        }
        text.push('\n');
        self.checked.text(&path, &text)
    }
}
