//! What the commands that write packages are given.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{anyhow, bail, ensure};
use modelcrate::{
    nnpackage::{
        Error, IoRef, ModelType, Package, Partition, Wiring, WriteOptions,
        model_archive::{self, NewFolder, name},
    },
    tensor_core::{self, Extent, Limits, Source, output::Aside},
};

use crate::{
    failure::About,
    options::is_stdio,
    output,
    paths::{is_inside, same_file},
    put::{is_there, split_named},
    write::{Sink, Writing, check_folder},
};

/// How the files of an archive are stored.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Store {
    /// What models start at a multiple of in an archive, in bytes: a power of two up to 32768
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    alignment: u32,
    /// How hard everything but models is compressed: 1 to 9, or 0 for not at all
    #[arg(long, value_name = "N", default_value_t = 6)]
    level: i32,
}

impl Store {
    /// Takes what was given, and otherwise what is usual.
    pub(crate) fn new(level: Option<i32>, alignment: Option<u32>) -> Self {
        Self { alignment: alignment.unwrap_or(4096), level: level.unwrap_or(6) }
    }

    pub(crate) fn options(self) -> WriteOptions {
        WriteOptions::default().alignment(self.alignment).level(self.level)
    }
}

/// Refuses a place that is one of the inputs, or in one.
pub(crate) fn check_output<'a>(
    output: &Path,
    inputs: impl Iterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    check_place(output, inputs).about(output)
}

fn check_place<'a>(output: &Path, inputs: impl Iterator<Item = &'a Path>) -> anyhow::Result<()> {
    if is_stdio(output) {
        return Ok(());
    }
    for input in inputs.filter(|input| !is_stdio(input)) {
        ensure!(!same_file(input, output), "is an input, expected another file");
        ensure!(!is_inside(output, input), "is in a folder that is read");
    }
    Ok(())
}

/// A package that is written, but for the step that puts it in its place.
pub(crate) enum Begun {
    Archive(Sink),
    Folder(NewFolder),
    /// Of the dry run of a folder, or nothing at all.
    Nothing,
}

impl Begun {
    /// Keeps nothing of it open until it is put in its place.
    pub(super) fn set_aside(&mut self, aside: &Aside, path: &Path) -> anyhow::Result<()> {
        match self {
            Self::Archive(sink) => sink.set_aside(aside).about(path)?,
            Self::Folder(folder) => folder.set_aside(aside),
            Self::Nothing => {}
        }
        Ok(())
    }

    /// Puts it in its place; returns how many bytes an archive has.
    pub(crate) fn commit(self, path: &Path) -> anyhow::Result<Option<u64>> {
        match self {
            Self::Archive(sink) => sink.commit(path).map(Some),
            Self::Folder(folder) => folder.commit().map(|()| None).about(path),
            Self::Nothing => Ok(None),
        }
    }
}

/// Writes a folder, but for the last step; names the file that an error is about.
pub(crate) fn begin_folder(
    output: &Path,
    writing: Writing,
    input: &dyn Fn() -> PathBuf,
    options: WriteOptions,
    package: &dyn Package,
) -> anyhow::Result<Begun> {
    check_folder(output).about(output)?;
    let begun = if writing.dry_run {
        options.try_folder(output, package).map(|()| Begun::Nothing)
    } else {
        options.start_folder(output, package).map(Begun::Folder)
    };
    begun.or_else(|error| about_culprit(error, &input(), output))
}

/// Writes an archive, but for the last step; names the file that an error is about.
pub(crate) fn begin_archive(
    output: &Path,
    writing: Writing,
    input: &dyn Fn() -> PathBuf,
    options: WriteOptions,
    package: &dyn Package,
) -> anyhow::Result<Begun> {
    let sink = writing.create(output).about(output)?;
    let failed = sink.failed();
    match options.write_to(sink, package).finish() {
        Ok(sink) => Ok(Begun::Archive(sink)),
        error if failed.get() => error.map(|_| Begun::Nothing).about(output),
        Err(error) => about_culprit(error, &input(), output),
    }
}

/// Names the file that an error is about: one that cannot be made, or another.
pub(crate) fn about_culprit<T>(error: Error, input: &Path, output: &Path) -> anyhow::Result<T> {
    use tensor_core::Error as Core;
    let path = match &error {
        Error::Archive(model_archive::Error::Unpack { path, .. })
        | Error::Core(Core::DiskFull { path, .. } | Core::File { path, .. }) => path.clone(),
        Error::Write { path, .. } => output.join(path),
        Error::Archive(model_archive::Error::Write { .. }) => output.to_owned(),
        _ => input.to_owned(),
    };
    Err(error).about(&path)
}

/// A file and its path in the package, as `[NAME=]PATH` says.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl FromStr for Named {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Some((name, path)) = split_named(text) {
            return Ok(Self { name: name.to_owned(), path: path.into() });
        }
        ensure!(is_there(text) || !text.contains('='), "{text:?} is not NAME=PATH");
        ensure!(text != "-", "standard input needs a name: NAME=-");
        let path = PathBuf::from(text);
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| anyhow!("{text:?} has no name: give one as NAME=PATH"))?;
        name::check(name, &Limits::default())
            .map_err(|fault| anyhow!("{name:?} {fault}: give another name as NAME=PATH"))?;
        Ok(Self { name: name.to_owned(), path })
    }
}

/// A file for a model, as `INDEX=PATH` says.
#[derive(Clone, Debug)]
pub(crate) struct ForModel {
    pub(crate) index: usize,
    pub(crate) path: PathBuf,
}

impl FromStr for ForModel {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (index, path) = indexed(text, "INDEX=PATH")?;
        Ok(Self { index, path: path.into() })
    }
}

/// The type of a model, as `INDEX=TYPE` says.
#[derive(Clone, Debug)]
pub(crate) struct TypeOf {
    pub(crate) index: usize,
    name: String,
}

impl FromStr for TypeOf {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (index, name) = indexed(text, "INDEX=TYPE")?;
        if let ModelType::Other(name) = ModelType::from_name(name) {
            bail!("{name:?} is not a type, expected circle, tflite, bin or tvn");
        }
        Ok(Self { index, name: name.to_owned() })
    }
}

impl TypeOf {
    pub(crate) fn model_type(&self) -> ModelType<'_> {
        ModelType::from_name(&self.name)
    }

    /// Returns the type that is given for a model.
    pub(crate) fn find(types: &[Self], index: usize) -> Option<ModelType<'_>> {
        types.iter().rev().find(|given| given.index == index).map(Self::model_type)
    }
}

fn indexed<'t>(text: &'t str, form: &str) -> anyhow::Result<(usize, &'t str)> {
    let pair = text.split_once('=').filter(|(_, what)| !what.is_empty());
    let pair = pair.and_then(|(index, what)| Some((index.parse().ok()?, what)));
    pair.ok_or_else(|| anyhow!("{text:?} is not {form}, where the first model is 0"))
}

/// An edge, as `FROM=TO` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: IoRef,
    pub(crate) to: IoRef,
}

impl FromStr for Edge {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((from, to)) = text.split_once('=') else {
            bail!("{text:?} is not FROM=TO, such as 0:0:0=1:0:0");
        };
        Ok(Self { from: reference(from)?, to: reference(to)? })
    }
}

/// Reads a reference strictly, as it is written.
pub(crate) fn reference(text: &str) -> anyhow::Result<IoRef> {
    let form = "MODEL:SUBGRAPH:POSITION, such as 0:0:1";
    let found: IoRef = text.parse().map_err(|_| anyhow!("{text:?} is not {form}"))?;
    ensure!(found.to_string() == text, "{text:?} is not {form}");
    Ok(found)
}

/// Reads a file of circle-partitioner, whose parts have to be these models.
pub(crate) fn partition(file: &Path, models: &[String]) -> anyhow::Result<Wiring> {
    let read = || {
        let partition = Partition::parse(&read_all(file, MAX_CONN)?, &Limits::default())?;
        let (parts, count) = (partition.parts.len(), models.len());
        ensure!(parts == count, "has {parts} parts, but the package has {count} models");
        for (at, (part, model)) in partition.parts.iter().zip(models).enumerate() {
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let (part, model) = (name(&part.file), name(model));
            ensure!(part == model, "has {part:?} as part {at}, but model {at} is {model:?}");
        }
        let wiring = partition.wiring()?;
        if let Some(name) = wiring.missing.first() {
            bail!("nothing makes the tensor {name:?}");
        }
        anyhow::Ok(wiring)
    };
    read().about(file)
}

/// Reads a text that goes into a package.
pub(crate) fn read_text(file: &Path) -> anyhow::Result<Vec<u8>> {
    read_all(file, MAX_TEXT).about(file)
}

pub(crate) fn read_all(file: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    let source = open(file)?;
    let len = source.len();
    ensure!(len <= limit, "has {len} bytes, over the limit of {limit}");
    Ok(source.read(Extent::first(len), "file")?.into())
}

/// Opens a file, or reads standard input.
pub(crate) fn open(file: &Path) -> anyhow::Result<Source> {
    output::file(file)
}

/// Returns the last part of a path, which a file gets in a folder of the package.
pub(crate) fn file_name(path: &Path) -> anyhow::Result<&str> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| anyhow!("has no name that a package can have"))
}

/// Bytes that a file of circle-partitioner may have.
pub(crate) const MAX_CONN: u64 = 16 << 20;
/// Bytes that a configuration may have, or information about a model: what readers take.
const MAX_TEXT: u64 = 1 << 20;
