//! Packages made from packages: one for each model, or one of several.

use std::collections::{BTreeMap, BTreeSet};

use circle_format::is_builtin_custom;
use model_archive::Archive;
use tensor_core::Report;

use crate::{
    BuildFault, Builder, CustomOp, EditFault, Error, IoRef, Manifest, ModelFile, Reader, Result,
    Sums,
    edit::{models::check_count, needs},
    layout::{self, GOLDEN_EXPECTED, GOLDEN_INPUT, MANIFEST},
    read::body::Body,
    write::Use,
};

/// Makes one package of each model, in the order of the manifest.
///
/// With a model come the configuration, the information about it, the files that it needs, and the
/// kernels of its custom operators; with any custom operator also kernels whose names do not say
/// what they are for. Golden data come where they are for that model alone: of a package of one
/// model, or where inputs and outputs of the package are exactly those of the model. Other files
/// come with none.
///
/// # Errors
///
/// [`Error::File`] where a model is not there; [`Error::Build`] where a path is not one that every
/// system can have.
///
/// # Examples
///
/// ```no_run
/// use nnpackage::{Reader, Writer, split};
///
/// let reader = Reader::open("models.zip")?;
/// for (index, builder) in split(&reader)?.into_iter().enumerate() {
///     Writer::create(format!("model{index}.zip"), &builder)?.finish()?;
/// }
/// # Ok::<(), nnpackage::Error>(())
/// ```
pub fn split(reader: &Reader) -> Result<Vec<Builder>> {
    reader.archive().map(Archive::check_total).transpose()?;
    let kernels: Vec<CustomOp<'_>> = reader.custom_ops()?.collect();
    // One model may be named very often.
    let mut known = BTreeMap::new();
    let single = |model: ModelFile<'_>| {
        let belongs = known.entry(model.path().to_owned());
        single(reader, model, belongs.or_insert_with(|| Belongs::to(reader, model)), &kernels)
    };
    reader.models().map(single).collect()
}

/// What a model has besides itself.
struct Belongs {
    /// Paths of files that it needs; none of one that cannot be opened.
    needed: BTreeSet<String>,
    /// Its custom operators that need a kernel.
    operators: BTreeSet<String>,
}

impl Belongs {
    fn to(reader: &Reader, model: ModelFile<'_>) -> Self {
        let (mut needed, mut operators) = (BTreeSet::new(), BTreeSet::new());
        if let Some(opened) = model.opened() {
            needs::follow(reader, model.path().to_owned(), opened.clone(), &mut needed);
            let codes = opened.model().operator_codes.iter().filter(|code| code.is_custom());
            let names = codes.filter_map(|code| code.custom_code.clone());
            operators.extend(names.filter(|name| !is_builtin_custom(name)));
        }
        Self { needed, operators }
    }
}

/// Makes a package of one model.
fn single(
    reader: &Reader,
    model: ModelFile<'_>,
    belongs: &Belongs,
    kernels: &[CustomOp<'_>],
) -> Result<Builder> {
    let mut builder = Builder::default();
    let body = |path: &str| Body::of(reader.storage(), path);
    let path = model.path();
    // One that is not there, or is outside, is an error.
    model.file().len()?;
    builder.add_model(path, body(path), &type_of(model))?;
    for needed in &belongs.needed {
        if needed != path && reader.file(needed).is_some() {
            builder.put(needed, body(needed), Use::InPlace)?;
        }
    }
    if let Some(name) = reader.manifest().config() {
        let path = layout::document(name);
        if reader.file(&path).is_some() {
            builder.put(&path, body(&path), Use::Whole)?;
            builder.manifest_mut().configs = vec![name.to_owned()];
        }
    }
    let info = reader.manifest().model_infos.get(model.index());
    if let Some(name) = info.filter(|name| !name.is_empty()) {
        let path = layout::document(name);
        if reader.file(&path).is_some() {
            if builder.body(&path).is_none() {
                builder.put(&path, body(&path), Use::Whole)?;
            }
            builder.manifest_mut().name_info(0, name);
        }
    }
    let used = &belongs.operators;
    for kernel in kernels {
        let path = kernel.file().path();
        let is_for = kernel.name().map_or(!used.is_empty(), |name| used.contains(name.op));
        if is_for && builder.body(path).is_none() {
            builder.put(path, body(path), Use::Whole)?;
        }
    }
    if is_whole(reader, model) {
        for path in [GOLDEN_INPUT, GOLDEN_EXPECTED] {
            if reader.file(path).is_some() {
                builder.put(path, body(path), Use::Whole)?;
            }
        }
    }
    builder.digests(reader.file(Sums::PATH).is_some());
    Ok(builder)
}

/// Returns the type of a model: as it is declared, or else by what it is.
fn type_of(model: ModelFile<'_>) -> String {
    let by_content = || Some(model.content().ok()?.schema()?.name());
    let found = model.declared_type().or_else(by_content);
    found.or_else(|| Some(model.model_type()?.name())).unwrap_or_default().to_owned()
}

/// Tells whether what goes into the package and comes out of it is what a model takes and makes.
fn is_whole(reader: &Reader, model: ModelFile<'_>) -> bool {
    if reader.models().len() == 1 {
        return true;
    }
    let manifest = reader.manifest();
    let Some([inputs, outputs]) = interface(model, model.index()) else { return false };
    manifest.pkg_inputs == inputs && manifest.pkg_outputs == outputs
}

/// Returns references to the inputs and outputs of a model that is at a position; `None` where it
/// cannot be opened.
fn interface(model: ModelFile<'_>, index: usize) -> Option<[Vec<IoRef>; 2]> {
    let index = u16::try_from(index).ok()?;
    model.content().ok()?.schema()?;
    let graph = model.open().ok()?.model().subgraphs.first()?;
    let references = |count: usize| {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        (0..count).map(|io| IoRef::new(index, 0, io)).collect()
    };
    Some([references(graph.inputs.len()), references(graph.outputs.len())])
}

/// Several packages that become one.
///
/// Models are numbered through in the order of the packages, and connections of each keep their
/// models. Where there are connections, inputs and outputs of a package of one model are those of
/// the new one, but for those that are connected here. Golden data and lists of digests are left
/// behind; the version is the lowest that will do.
///
/// # Examples
///
/// ```no_run
/// use nnpackage::{IoRef, Merge, Reader, Writer};
///
/// let [first, second] = [Reader::open("first.zip")?, Reader::open("second.zip")?];
/// let mut merge = Merge::default();
/// merge.package(&first).package_in("second", &second);
/// merge.connect(IoRef::new(0, 0, 0), IoRef::new(1, 0, 0));
/// Writer::create("both.zip", &merge.build()?)?.finish()?;
/// # Ok::<(), nnpackage::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "packages are merged by `build`"]
pub struct Merge {
    parts: Vec<Part>,
    config: Option<usize>,
    connections: Vec<(IoRef, IoRef)>,
}

#[derive(Clone, Debug)]
struct Part {
    reader: Reader,
    /// With a slash at its end, or empty.
    prefix: String,
}

impl Merge {
    /// Adds a package, whose files keep their paths.
    pub fn package(&mut self, reader: &Reader) -> &mut Self {
        self.parts.push(Part { reader: reader.clone(), prefix: String::new() });
        self
    }

    /// Adds a package, whose files come into a folder: models and others into `folder`, those of
    /// `metadata` and `custom_op` into a folder of that name there.
    pub fn package_in(&mut self, folder: &str, reader: &Reader) -> &mut Self {
        self.parts.push(Part { reader: reader.clone(), prefix: format!("{folder}/") });
        self
    }

    /// Chooses the package whose configuration is taken; without that, all that have one must have
    /// the same.
    pub fn config(&mut self, package: usize) -> &mut Self {
        self.config = Some(package);
        self
    }

    /// Leads an output of a model into an input of another, by their numbers in the new package.
    pub fn connect(&mut self, from: IoRef, to: IoRef) -> &mut Self {
        self.connections.push((from, to));
        self
    }

    /// Makes the new package.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where two packages have different files of one path;
    /// [`EditFault::Configs`], [`EditFault::NoPackage`] and [`EditFault::NoModel`];
    /// [`Error::File`] where a model is not there.
    pub fn build(&self) -> Result<Builder> {
        let mut builder = Builder::default();
        let mut first = Vec::new();
        for part in &self.parts {
            first.push(builder.manifest().models.len());
            part.add_to(&mut builder)?;
        }
        let count = builder.manifest().models.len();
        check_count(count)?;
        for (from, to) in &self.connections {
            let beyond = [from, to].map(|end| usize::from(end.model)).into_iter().max();
            if let Some(index) = beyond.filter(|index| *index >= count) {
                return Err(EditFault::NoModel { index, count }.into());
            }
        }
        self.wire(&mut builder, &first);
        self.configure(&mut builder)?;
        Ok(builder)
    }

    /// Reports what is wrong with the packages as they are, under the paths that their files get: what
    /// a merge does not bring in.
    #[must_use]
    pub fn lint(&self) -> Report {
        let mut report = Report::default();
        self.parts.iter().for_each(|part| report.append(part.lint()));
        report
    }

    /// Takes over connections, and makes those that were asked for.
    fn wire(&self, builder: &mut Builder, first: &[usize]) {
        let is_wired = |manifest: &Manifest| {
            !(manifest.pkg_inputs.is_empty()
                && manifest.pkg_outputs.is_empty()
                && manifest.connections.is_empty())
        };
        let has_wires = !self.connections.is_empty()
            || self
                .parts
                .iter()
                .any(|part| is_wired(part.reader.manifest()) && part.reader.models().len() > 1);
        if !has_wires {
            return;
        }
        let new = builder.manifest_mut();
        for (part, first) in self.parts.iter().zip(first) {
            let old = part.reader.manifest();
            let single = part.reader.model(0).filter(|_| old.models.len() == 1);
            if let Some([inputs, outputs]) = single.and_then(|model| interface(model, *first)) {
                // onert takes no notice of what a package of one model says.
                new.pkg_inputs.extend(inputs);
                new.pkg_outputs.extend(outputs);
                continue;
            }
            let moved = |reference: &IoRef| {
                let model = usize::from(reference.model).saturating_add(*first);
                // There are no more models than references have numbers for; one that leads to none
                // does so here too.
                IoRef { model: u16::try_from(model).unwrap_or(u16::MAX), ..*reference }
            };
            new.pkg_inputs.extend(old.pkg_inputs.iter().map(moved));
            new.pkg_outputs.extend(old.pkg_outputs.iter().map(moved));
            for (from, to) in old.edges() {
                new.connect(moved(&from), moved(&to));
            }
        }
        for (from, to) in &self.connections {
            new.connect(*from, *to);
            new.pkg_inputs.retain(|input| input != to);
            new.pkg_outputs.retain(|output| output != from);
        }
    }

    fn configure(&self, builder: &mut Builder) -> Result<()> {
        let count = self.parts.len();
        let config = |index: usize| -> Option<(&str, &Reader)> {
            let reader = &self.parts.get(index)?.reader;
            Some((reader.manifest().config()?, reader))
        };
        let chosen = match self.config {
            Some(index) if index >= count => {
                return Err(EditFault::NoPackage { index, count }.into());
            }
            Some(index) => config(index),
            None => {
                let mut found: Option<(usize, &str, &Reader)> = None;
                for second in 0..count {
                    let Some((name, reader)) = config(second) else { continue };
                    match found {
                        Some((first, other, before)) => {
                            let path = |name: &str| layout::document(name);
                            let same = Body::of(before.storage(), &path(other));
                            if !same.is_same(&Body::of(reader.storage(), &path(name)))? {
                                return Err(EditFault::Configs { first, second }.into());
                            }
                        }
                        None => found = Some((second, name, reader)),
                    }
                }
                found.map(|(_, name, reader)| (name, reader))
            }
        };
        if let Some((name, reader)) = chosen {
            let path = layout::document(name);
            builder.put(&path, Body::of(reader.storage(), &path), Use::Whole)?;
            builder.manifest_mut().configs = vec![name.to_owned()];
        }
        Ok(())
    }
}

impl Part {
    /// Adds everything but the configuration and what is for this package alone.
    fn add_to(&self, builder: &mut Builder) -> Result<()> {
        let reader = &self.reader;
        reader.archive().map(Archive::check_total).transpose()?;
        let manifest = reader.manifest();
        let mut models = BTreeMap::new();
        for model in reader.models() {
            model.file().len()?;
            let (path, kind) = (format!("{}{}", self.prefix, model.path()), type_of(model));
            let index = if models.contains_key(model.path()) {
                builder.name_model(&path, &kind)
            } else {
                let body = Body::of(reader.storage(), model.path());
                if builder.body(&path).is_some() {
                    let fault = BuildFault::Taken;
                    return Err(Error::Build { path, fault });
                }
                builder.add_model(&path, body, &kind)?
            };
            models.insert(model.path(), index);
            let info = manifest.model_infos.get(model.index()).filter(|name| !name.is_empty());
            if let Some(name) = info {
                let name = format!("{}{name}", self.prefix);
                builder.manifest_mut().name_info(index, &name);
            }
        }
        let needed = needs::of_package(reader);
        let paths = |names: &[String]| -> BTreeSet<String> {
            names.iter().map(|name| layout::document(name)).collect()
        };
        let (configs, infos) = (paths(&manifest.configs), paths(&manifest.model_infos));
        for file in reader.files()? {
            let path = file.path();
            let is_left = [MANIFEST, Sums::PATH, GOLDEN_INPUT, GOLDEN_EXPECTED].contains(&path)
                || configs.contains(path);
            if is_left || models.contains_key(path) {
                continue;
            }
            let body = Body::of(reader.storage(), path);
            if needed.contains(path) {
                // It stays where its model looks for it.
                self.put(builder, &format!("{}{path}", self.prefix), &body, Use::InPlace)?;
            }
            if !needed.contains(path) || infos.contains(path) {
                self.put(builder, &self.moved(path), &body, Use::Whole)?;
            }
        }
        Ok(())
    }

    /// Reports what is wrong with the package; in messages, paths are in quotes.
    fn lint(&self) -> Report {
        let (reader, prefix) = (&self.reader, &self.prefix);
        let models: BTreeSet<&str> = reader.models().map(ModelFile::path).collect();
        let configs = reader.manifest().configs.iter().map(|name| layout::document(name));
        let kept: BTreeSet<String> = configs.chain([MANIFEST.to_owned()]).collect();
        let needed = needs::of_package(reader);
        let paths: BTreeSet<&String> = reader.paths().into_iter().flatten().collect();
        let moved = |path: &str| match path.to_owned() {
            path if kept.contains(&path) => path,
            path if models.contains(&*path) || needed.contains(&path) => format!("{prefix}{path}"),
            path if paths.contains(&path) => self.moved(&path),
            path => path,
        };
        reader.lint().map(|finding| {
            finding.at.entry = finding.at.entry.as_deref().map(moved);
            finding.message = finding.message.split('"').map(moved).collect::<Vec<_>>().join("\"");
        })
    }

    fn put(&self, builder: &mut Builder, path: &str, body: &Body, used: Use) -> Result<()> {
        match builder.body(path) {
            // The same kernel, say.
            Some(known) if known.is_same(body)? => Ok(()),
            _ => builder.put(path, body.clone(), used),
        }
    }

    /// Returns where a file comes to be that is neither a model nor needed by one.
    fn moved(&self, path: &str) -> String {
        let prefix = &self.prefix;
        for folder in ["metadata/", "custom_op/"] {
            if let Some(rest) = path.strip_prefix(folder) {
                return format!("{folder}{prefix}{rest}");
            }
        }
        format!("{prefix}{path}")
    }
}
