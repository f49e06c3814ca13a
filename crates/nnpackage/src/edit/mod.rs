//! Changing packages: models, configuration and files, with everything else as it was.

pub(crate) mod build;
pub(crate) mod config;
pub(crate) mod editor;
pub(crate) mod fault;
pub(crate) mod manifest;
pub(crate) mod models;
pub(crate) mod needs;
pub(crate) mod paths;
pub(crate) mod renumber;
pub(crate) mod split;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use bytes::Bytes;
use model_archive::Archive;
use tensor_core::{Extent, Limit, Source};

use crate::{
    BuildFault, Config, ConfigChange, Connection, EditFault, Error, File, IoRef, Manifest,
    ModelType, Reader, Result, Sums,
    edit::{
        models::{check_count, check_type, needed_from, open_model},
        needs::needs,
        paths::Paths,
    },
    layout::{self, CONFIG, MANIFEST},
    read::{body::Body, storage::outside},
    write::{NewEntry, Plan, Use, check_document, sealed::Plans},
};

/// Changes of a package, to be written elsewhere; an [`Editor`](crate::Editor) makes them in place.
///
/// Nothing is written before a [`Writer`](crate::Writer) is finished. Of the manifest and the
/// configuration only what changes is touched: comments, order and indents stay. Files that do not
/// change are copied as they are stored, those of an archive in its order, with the folder that the
/// package is in and whatever is beside it. Where a package has a list of digests it is kept up.
///
/// Where something is used that the version does not have, and it had all before, the version
/// becomes the lowest that has it.
///
/// # Examples
///
/// ```no_run
/// use nnpackage::{ConfigChange, Edit, Reader, Writer};
///
/// let reader = Reader::open("old.zip")?;
/// let mut edit = Edit::new(&reader);
/// edit.change_config(&[ConfigChange::set("NUM_THREADS", "4")])?;
/// Writer::create("new.zip", &edit)?.finish()?;
/// # Ok::<(), nnpackage::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "an edit takes effect when it is written"]
pub struct Edit {
    reader: Reader,
    manifest: Manifest,
    /// New content by path; `None` for a file that goes away.
    changes: BTreeMap<String, Option<(Body, Use)>>,
    /// Models that were put in.
    opened: BTreeMap<String, circle_format::Reader>,
    digests: Option<bool>,
}

/// What happens to connections of a model that goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connected {
    /// A model that is connected stays: it is an error to take it away.
    #[default]
    Refuse,
    /// Connections, inputs and outputs of the package that refer to it go away too.
    Drop,
}

impl Edit {
    /// Starts with a package as it is.
    pub fn new(reader: &Reader) -> Self {
        let (reader, manifest) = (reader.clone(), reader.manifest().clone());
        let (changes, opened) = (BTreeMap::new(), BTreeMap::new());
        Self { reader, manifest, changes, opened, digests: None }
    }

    /// Returns the package as it was.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the manifest as it is going to be.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let old = self.reader.manifest();
        let mut manifest = self.manifest.clone();
        let lowest = manifest.lowest_version();
        let had_all = old.version.numbers() >= old.lowest_version().numbers();
        if manifest.version == old.version
            && had_all
            && manifest.version.numbers().is_some_and(|found| Some(found) < lowest.numbers())
        {
            manifest.version = lowest;
        }
        manifest
    }

    /// Returns the manifest to be changed. Files are not moved by that.
    pub const fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Adds a Circle or TFLite model behind the others, as
    /// [`Builder::model`](crate::Builder::model) does. Returns its position.
    ///
    /// # Errors
    ///
    /// As for [`Builder::model`](crate::Builder::model).
    pub fn add_model(&mut self, path: &str, source: Source) -> Result<usize> {
        let (opened, kind) = open_model(path, &source)?;
        let index = self.insert_model(path, Body::Source(source), &kind)?;
        self.opened.insert(path.to_owned(), opened);
        Ok(index)
    }

    /// Adds a model from a file of the system with every file that it needs, as
    /// [`Builder::model_from`](crate::Builder::model_from) does.
    ///
    /// # Errors
    ///
    /// As for [`Builder::model_from`](crate::Builder::model_from).
    pub fn add_model_from(&mut self, path: &str, from: impl AsRef<Path>) -> Result<usize> {
        let from = from.as_ref();
        // What fails half-way leaves nothing behind.
        let mut next = self.clone();
        let index = next.add_model(path, Source::open(from)?)?;
        next.add_needed(path, from, &BTreeSet::new())?;
        *self = next;
        Ok(index)
    }

    /// Adds a model of a type that is given, as [`Builder::model_as`](crate::Builder::model_as)
    /// does.
    ///
    /// # Errors
    ///
    /// As for [`Builder::model_as`](crate::Builder::model_as).
    pub fn add_model_as(
        &mut self,
        path: &str,
        source: Source,
        model_type: ModelType<'_>,
    ) -> Result<usize> {
        check_type(path, &source, model_type)?;
        match model_type {
            ModelType::Bin | ModelType::Tvn => {
                self.insert_model(path, Body::Source(source), model_type.name())
            }
            _ => self.add_model(path, source),
        }
    }

    /// Puts another Circle or TFLite model in the place of one; its path stays. Files that only the
    /// old one needed go away.
    ///
    /// # Errors
    ///
    /// [`EditFault::NoModel`]; as for [`add_model`](Self::add_model).
    pub fn replace_model(&mut self, index: usize, source: Source) -> Result<()> {
        let path = self.replaced(index)?;
        let (opened, kind) = open_model(&path, &source)?;
        self.exchange(path, source, &kind, Some(opened));
        Ok(())
    }

    /// Like [`replace_model`](Self::replace_model), but with a file of the system and every file
    /// that it needs.
    ///
    /// # Errors
    ///
    /// As for [`replace_model`](Self::replace_model), and where a file that it needs is not there.
    pub fn replace_model_from(&mut self, index: usize, from: impl AsRef<Path>) -> Result<()> {
        let from = from.as_ref();
        let mut next = self.clone();
        let path = next.model_path(index)?;
        let own = next.needed_by_none_else(&path);
        next.replace_model(index, Source::open(from)?)?;
        next.add_needed(&path, from, &own)?;
        *self = next;
        Ok(())
    }

    /// Like [`replace_model`](Self::replace_model), but with a type that is given.
    ///
    /// # Errors
    ///
    /// As for [`replace_model`](Self::replace_model), and where it has the identifier of another
    /// type.
    pub fn replace_model_as(
        &mut self,
        index: usize,
        source: Source,
        model_type: ModelType<'_>,
    ) -> Result<()> {
        let path = self.replaced(index)?;
        check_type(&path, &source, model_type)?;
        match model_type {
            ModelType::Bin | ModelType::Tvn => {
                self.exchange(path, source, model_type.name(), None);
                Ok(())
            }
            _ => self.replace_model(index, source),
        }
    }

    /// Sets the declared type of a model, whatever the file is.
    ///
    /// # Errors
    ///
    /// [`EditFault::NoModel`].
    pub fn set_model_type(&mut self, index: usize, model_type: ModelType<'_>) -> Result<()> {
        self.model_path(index)?;
        self.manifest.set_type(index, model_type.name());
        Ok(())
    }

    /// Takes away a model, the information about it, and the files that only it needs. Models behind
    /// it move up, in connections too.
    ///
    /// # Errors
    ///
    /// [`EditFault::NoModel`]; [`EditFault::NoModels`] for the only one; [`EditFault::Connected`].
    pub fn remove_model(&mut self, index: usize, connected: Connected) -> Result<()> {
        let path = self.model_path(index)?;
        check_count(self.manifest.models.len().saturating_sub(1))?;
        if connected == Connected::Refuse
            && let Some(by) = self.manifest.reference_to(index)
        {
            return Err(EditFault::Connected { index, by }.into());
        }
        let mut before = self.needed([path.as_str()]);
        let info = self.manifest.model_infos.get(index).filter(|name| !name.is_empty());
        before.extend(info.map(|name| layout::document(name)));
        self.manifest.without_model(index);
        self.drop_unneeded(before);
        Ok(())
    }

    /// Leads an output of a model into an input of another.
    pub fn connect(&mut self, from: IoRef, to: IoRef) {
        self.manifest.connect(from, to);
    }

    /// Cuts a connection.
    ///
    /// # Errors
    ///
    /// [`EditFault::NotConnected`].
    pub fn disconnect(&mut self, from: IoRef, to: IoRef) -> Result<()> {
        let connections = &mut self.manifest.connections;
        let is_it =
            |connection: &Connection| connection.from == from && connection.to.contains(&to);
        if !connections.iter().any(is_it) {
            return Err(EditFault::NotConnected { from, to }.into());
        }
        for connection in connections.iter_mut().filter(|connection| connection.from == from) {
            connection.to.retain(|found| *found != to);
        }
        connections.retain(|connection| !connection.to.is_empty());
        Ok(())
    }

    /// Sets the configuration, by its name in the folder `metadata`; the old one goes away.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where the path is taken by something else.
    pub fn set_config(&mut self, name: &str, content: impl Into<Bytes>) -> Result<()> {
        let (path, content) = (layout::document(name), content.into());
        check_document("configuration file in bytes", &content)?;
        let old = self.manifest.config().map(str::to_owned);
        if old.as_deref() != Some(name) || !self.has(&path) {
            self.admit(&path)?;
        }
        match self.manifest.configs.first_mut() {
            Some(first) => name.clone_into(first),
            None => self.manifest.configs.push(name.to_owned()),
        }
        self.drop_configs(old);
        self.write(&path, content);
        Ok(())
    }

    /// Changes the configuration; makes `config.cfg` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`Config::edit`] and [`set_config`](Self::set_config).
    pub fn change_config(&mut self, changes: &[ConfigChange]) -> Result<()> {
        let name = self.manifest.config().unwrap_or(CONFIG).to_owned();
        let old = match self.manifest.config() {
            Some(_) => self.body(&layout::document(&name)),
            None => None,
        };
        let text = match &old {
            Some(body) => self.document(body)?,
            None => Bytes::new(),
        };
        self.set_config(&name, Config::edit(&text, changes)?)
    }

    /// Takes away the configuration, and further ones that the manifest names.
    ///
    /// # Errors
    ///
    /// [`EditFault::NoConfig`].
    pub fn remove_config(&mut self) -> Result<()> {
        if self.manifest.config().is_none() {
            return Err(EditFault::NoConfig.into());
        }
        let old = std::mem::take(&mut self.manifest.configs);
        self.drop_configs(old);
        Ok(())
    }

    /// Sets the information about a model, by its name in the folder `metadata`.
    ///
    /// # Errors
    ///
    /// [`EditFault::NoModel`]; as for [`put`](Self::put).
    pub fn set_model_info(
        &mut self,
        index: usize,
        name: &str,
        content: impl Into<Bytes>,
    ) -> Result<()> {
        let content = content.into();
        check_document("model information in bytes", &content)?;
        self.model_path(index)?;
        let path = layout::document(name);
        if let Some(by) = self.named(&path).filter(|by| !by.starts_with("model-infos")) {
            return Err(Error::Build { path, fault: BuildFault::Named { by } });
        }
        self.put(&path, Source::from_bytes(content))?;
        self.manifest.name_info(index, name);
        Ok(())
    }

    /// Puts in any other file, such as a kernel in `custom_op` or golden data in `metadata/tc`, or
    /// other content in the place of its old one.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where the path is not one that every system can have, is one file with another,
    /// or is that of a model.
    pub fn put(&mut self, path: &str, source: Source) -> Result<()> {
        let model = self.manifest.models.iter().position(|model| model == path);
        if let Some(model) = model {
            let by = format!("models[{model}]");
            return Err(Error::Build { path: path.to_owned(), fault: BuildFault::Named { by } });
        }
        if !self.has(path) || is_made(path) {
            self.admit(path)?;
        }
        self.opened.remove(path);
        self.set(path, Body::Source(source), Use::Whole);
        Ok(())
    }

    /// Takes away a file that neither the manifest nor a model names.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where it is not there, or is named; the latter of models is found out when
    /// the package is written.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        let refuse = |fault| Err(Error::Build { path: path.to_owned(), fault });
        if is_made(path) {
            return refuse(BuildFault::Reserved);
        }
        if !self.has(path) {
            return refuse(BuildFault::Missing);
        }
        if let Some(by) = self.named(path).or_else(|| self.leads_to(path)) {
            return refuse(BuildFault::Named { by });
        }
        self.take(path);
        Ok(())
    }

    /// Sets whether there is a list of the digests of all files; by default there is where there was
    /// one. Digests of files that do not change stay as they were listed. Files that were not listed,
    /// or are listed and missing, stay so by default; where a list is asked for it has all files.
    pub const fn digests(&mut self, digests: bool) {
        self.digests = Some(digests);
    }

    /// Returns the package as it is going to be, to be checked before it is written.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`](crate::Writer::finish).
    pub fn preview(&self) -> Result<Reader> {
        self.plan()?.preview(*self.reader.read_options())
    }

    /// Works out what is to be written.
    pub(crate) fn planned(&self) -> Result<Planned> {
        check_count(self.manifest.models.len())?;
        self.reader.archive().map(Archive::check_total).transpose()?;
        self.check_needs()?;
        let old = File::new(&self.reader, MANIFEST).document("MANIFEST in bytes")?;
        let text = self.manifest().edit(&old, self.reader.limits())?;
        if text != old {
            check_document("MANIFEST in bytes", &text)?;
        }
        let mut planned = Planned {
            has_manifest: text != old,
            whole: Plan { root: self.reader.root().to_owned(), ..Plan::default() },
            changed: BTreeSet::new(),
            removed: Vec::new(),
            has_list: false,
        };
        let has_list = self.reader.file(Sums::PATH).is_some();
        planned.whole.sums = self.sums(has_list)?;
        // One that is asked for is rewritten, whatever the old one lacks.
        let is_asked_for = self.digests == Some(true);
        planned.has_list = is_asked_for || planned.whole.sums.is_some() != has_list;
        if has_list && planned.whole.sums.is_none() {
            planned.removed.push(Sums::PATH.to_owned());
        }
        self.files(&mut planned, &Body::from_bytes(text))?;
        self.around(&mut planned.whole);
        self.list(&mut planned);
        Ok(planned)
    }

    /// Takes out of the list what changes. Of what stays, files that are missing or not listed are so
    /// still, unless the list was asked for: an edit must not hide them.
    fn list(&self, planned: &mut Planned) {
        let Planned { whole, has_manifest, changed, removed, .. } = planned;
        let Some(sums) = &mut whole.sums else { return };
        if self.digests.is_none() {
            let stays = whole.files.iter().map(|file| &file.path);
            let is_changed =
                |path: &str| changed.contains(path) || (*has_manifest && path == MANIFEST);
            let stays = stays.filter(|path| !is_changed(path));
            whole.unlisted = stays.filter(|path| sums.get(path).is_none()).cloned().collect();
        } else {
            let files: BTreeSet<&str> = whole.files.iter().map(|file| file.path.as_str()).collect();
            sums.retain(|path| files.contains(path));
        }
        let manifest = has_manifest.then_some(MANIFEST);
        for path in changed.iter().chain(&*removed).map(String::as_str).chain(manifest) {
            sums.remove(path);
        }
    }

    /// Lists all files in order: those of an archive as they were, then new ones.
    fn files(&self, planned: &mut Planned, manifest: &Body) -> Result<()> {
        let in_place = match self.reader.archive() {
            // What stays is stored as it was.
            Some(_) => BTreeSet::new(),
            None => {
                let mut paths = needs::of_package(&self.reader);
                paths.extend(self.manifest.models.iter().cloned());
                paths
            }
        };
        let mut left = self.changes.clone();
        for path in self.order()? {
            let (body, used) = match left.remove(&path) {
                _ if path == Sums::PATH => continue,
                _ if path == MANIFEST && planned.has_manifest => (manifest.clone(), Use::Whole),
                Some(None) => {
                    planned.removed.push(path);
                    continue;
                }
                Some(Some(new)) => {
                    planned.changed.insert(path.clone());
                    new
                }
                None => {
                    let used = match self.reader.archive() {
                        Some(_) => Use::Kept,
                        None if in_place.contains(&path) => Use::InPlace,
                        None => Use::Whole,
                    };
                    (Body::of(self.reader.storage(), &path), used)
                }
            };
            planned.whole.files.push(NewEntry { path, body, used });
        }
        for (path, change) in left {
            if let Some((body, used)) = change {
                planned.changed.insert(path.clone());
                planned.whole.files.push(NewEntry { path, body, used });
            }
        }
        Ok(())
    }

    /// Returns the paths of the files that were there in the order that an archive has them in.
    fn order(&self) -> Result<Vec<String>> {
        let Some(archive) = self.reader.archive() else {
            let paths = self.reader.paths()?.iter().filter(|path| *path != MANIFEST);
            return Ok(std::iter::once(MANIFEST.to_owned()).chain(paths.cloned()).collect());
        };
        let known: BTreeSet<&str> = self.reader.paths()?.iter().map(String::as_str).collect();
        let paths =
            archive.entries().filter_map(|entry| entry.name().strip_prefix(self.reader.root()));
        Ok(paths.filter(|path| known.contains(path)).map(str::to_owned).collect())
    }

    /// Keeps what an archive has beside the files of the package.
    fn around(&self, plan: &mut Plan) {
        let storage = self.reader.storage();
        plan.folders = storage.folders().into_iter().map(str::to_owned).collect();
        let Some(archive) = self.reader.archive() else { return };
        plan.outside = outside(storage)
            .into_iter()
            .map(|name| {
                let (path, archive) = (name.to_owned(), archive.clone());
                let body = Body::Entry { archive, name: path.clone() };
                NewEntry { path, body, used: Use::Kept }
            })
            .collect();
    }

    /// Returns the digests that stay; `None` without a list.
    fn sums(&self, has_list: bool) -> Result<Option<Sums>> {
        match self.digests {
            Some(false) => Ok(None),
            // One that cannot be read is rewritten.
            Some(true) => Ok(Some(self.reader.sums().ok().flatten().cloned().unwrap_or_default())),
            None if has_list => Ok(self.reader.sums()?.cloned()),
            None => Ok(None),
        }
    }

    /// Refuses models without the files that they need, where that comes from this edit.
    fn check_needs(&self) -> Result<()> {
        let has_removed = self.changes.values().any(Option::is_none);
        let mut seen = BTreeSet::new();
        for (index, path) in self.manifest.models.iter().enumerate() {
            if !seen.insert(path) {
                continue;
            }
            let reader = match self.opened.get(path) {
                Some(reader) => reader.clone(),
                None if has_removed => match self.open(path) {
                    Some(reader) => reader,
                    None => continue,
                },
                None => continue,
            };
            let is_new = self.opened.contains_key(path);
            let needed = match needs(path, &reader) {
                Ok(needed) => needed,
                Err(error) if is_new => return Err(error),
                Err(_) => continue,
            };
            for (location, needed) in needed {
                let is_removed = matches!(self.changes.get(&needed), Some(None));
                if is_removed {
                    let by = format!("{location:?} by models[{index}]");
                    return Err(Error::Build { path: needed, fault: BuildFault::Named { by } });
                }
                if is_new && !self.has(&needed) {
                    let place = "the package";
                    let fault = BuildFault::NeedsFile { location, place };
                    return Err(Error::Build { path: path.clone(), fault });
                }
            }
        }
        Ok(())
    }

    /// Returns the paths of files that a model needs, itself included, and no other model does.
    fn needed_by_none_else(&self, path: &str) -> BTreeSet<String> {
        let models = self.manifest.models.iter().map(String::as_str);
        let others = self.needed(models.filter(|other| *other != path));
        self.needed([path]).difference(&others).cloned().collect()
    }

    /// Takes away those of some files that nothing needs or names any more.
    fn drop_unneeded(&mut self, mut paths: BTreeSet<String>) {
        paths.retain(|path| self.has(path) && self.named(path).is_none());
        // Models are only opened where it matters.
        if !paths.is_empty() {
            let still = self.needed(self.manifest.models.iter().map(String::as_str));
            paths.difference(&still).for_each(|path| self.take(path));
        }
    }

    /// Returns the paths of files and of all that they need.
    fn needed<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut open: Vec<String> = paths.into_iter().map(str::to_owned).collect();
        while let Some(path) = open.pop() {
            if !found.insert(path.clone()) {
                continue;
            }
            let Some(reader) = self.open(&path) else { continue };
            for name in reader.model().files() {
                open.extend(model_archive::name::resolve(&path, name).ok());
            }
        }
        found
    }

    /// Opens a file as it is going to be, where it is a model.
    fn open(&self, path: &str) -> Option<circle_format::Reader> {
        if let Some(reader) = self.opened.get(path) {
            return Some(reader.clone());
        }
        let body = self.body(path)?;
        body.content().ok()?.schema()?;
        let source = body.source().ok()?;
        circle_format::Reader::options().limits(*self.reader.limits()).from_source(source).ok()
    }

    /// Returns what a path is going to hold; `None` where there is no file.
    fn body(&self, path: &str) -> Option<Body> {
        match self.changes.get(path) {
            Some(change) => change.as_ref().map(|(body, _)| body.clone()),
            None => {
                let is_there = self.reader.file(path).is_some();
                is_there.then(|| Body::of(self.reader.storage(), path))
            }
        }
    }

    fn document(&self, body: &Body) -> Result<Bytes> {
        let source = body.source()?;
        let what = "configuration file in bytes";
        self.reader.limits().check(Limit::DocumentBytes, what, source.len())?;
        Ok(source.read(Extent::first(source.len()), what)?)
    }

    fn has(&self, path: &str) -> bool {
        match self.changes.get(path) {
            Some(change) => change.is_some(),
            None => self.reader.file(path).is_some(),
        }
    }

    /// Returns what in the manifest names a path.
    fn named(&self, path: &str) -> Option<String> {
        let manifest = &self.manifest;
        let at = |list: &[String], name: &str| list.iter().position(|item| item == name);
        if let Some(index) = at(&manifest.models, path) {
            return Some(format!("models[{index}]"));
        }
        let name = path.strip_prefix("metadata/")?;
        if let Some(index) = at(&manifest.configs, name) {
            return Some(format!("configs[{index}]"));
        }
        if manifest.connection_file.as_deref() == Some(name) {
            return Some("connection".to_owned());
        }
        at(&manifest.model_infos, name).map(|index| format!("model-infos[{index}]"))
    }

    /// Returns the model that is a symbolic link to a file of a folder.
    fn leads_to(&self, path: &str) -> Option<String> {
        let on_disk = |path: &str| self.reader.file(path)?.disk_path().ok()?;
        let target = on_disk(path)?;
        let mut models = self.manifest.models.iter();
        let index = models.position(|model| on_disk(model).as_ref() == Some(&target))?;
        Some(format!("models[{index}]"))
    }

    /// Proves that a new file can have a path.
    fn admit(&self, path: &str) -> Result<()> {
        let old = self.reader.paths()?.iter().map(String::as_str);
        let new = self.changes.iter().filter(|(_, change)| change.is_some());
        let is_around =
            |old: &str| path.strip_prefix(old).is_some_and(|rest| rest.starts_with('/'));
        // A symbolic link to a folder is listed as a file.
        let is_folder = |old: &str| is_around(old) && self.reader.storage().is_folder(old);
        let stays =
            |path: &&str| !matches!(self.changes.get(*path), Some(None)) && !is_folder(path);
        let paths = old.filter(stays).chain(new.map(|(path, _)| path.as_str()));
        Paths::of(paths.filter(|path| !is_made(path))).insert(path)
    }

    fn insert_model(&mut self, path: &str, body: Body, kind: &str) -> Result<usize> {
        let index = self.manifest.models.len();
        check_count(index.saturating_add(1))?;
        let is_named = self.manifest.models.iter().any(|model| model == path);
        match self.body(path) {
            // Another model needs it.
            Some(known) if !is_named && known.is_same(&body)? => {}
            _ => self.admit(path)?,
        }
        self.manifest.add_type(path, kind);
        self.manifest.is_main_model = false;
        self.manifest.models.push(path.to_owned());
        self.set(path, body, Use::InPlace);
        Ok(index)
    }

    /// Returns the path of a model whose content is replaced.
    fn replaced(&self, index: usize) -> Result<String> {
        let path = self.model_path(index)?;
        if !self.has(&path) {
            self.admit(&path)?;
        }
        Ok(path)
    }

    /// Puts other content and another type in the place of a model's.
    fn exchange(
        &mut self,
        path: String,
        source: Source,
        kind: &str,
        opened: Option<circle_format::Reader>,
    ) {
        let own = self.needed_by_none_else(&path);
        for index in 0..self.manifest.models.len() {
            if self.manifest.models.get(index) == Some(&path) {
                self.manifest.set_type(index, kind);
            }
        }
        self.opened.remove(&path);
        self.set(&path, Body::Source(source), Use::InPlace);
        self.opened.extend(opened.map(|opened| (path, opened)));
        self.drop_unneeded(own);
    }

    /// Adds the files that a model needs; those that were its own may be replaced.
    fn add_needed(&mut self, path: &str, from: &Path, own: &BTreeSet<String>) -> Result<()> {
        let Some(reader) = self.opened.get(path).cloned() else { return Ok(()) };
        for file in needed_from(path, from, &reader)? {
            let body = Body::Disk(file.from);
            match self.body(&file.path) {
                Some(known) if known.is_same(&body)? => {}
                Some(_) if own.contains(&file.path) => self.set(&file.path, body, Use::InPlace),
                _ => {
                    self.admit(&file.path)?;
                    self.set(&file.path, body, Use::InPlace);
                }
            }
            if let Some(reader) = file.reader {
                self.opened.insert(file.path, reader);
            }
        }
        Ok(())
    }

    /// Takes away configurations that the manifest does not name any more.
    fn drop_configs(&mut self, names: impl IntoIterator<Item = String>) {
        self.drop_unneeded(names.into_iter().map(|name| layout::document(&name)).collect());
    }

    /// Makes a document have a text; where it has it already nothing changes.
    fn write(&mut self, path: &str, text: Bytes) {
        let old = self.body(path);
        let is_same = old.is_some_and(|body| self.document(&body).is_ok_and(|old| old == text));
        if !is_same {
            self.set(path, Body::from_bytes(text), Use::Whole);
        }
    }

    fn set(&mut self, path: &str, body: Body, used: Use) {
        self.changes.insert(path.to_owned(), Some((body, used)));
    }

    fn take(&mut self, path: &str) {
        self.opened.remove(path);
        if self.reader.file(path).is_some() {
            self.changes.insert(path.to_owned(), None);
        } else {
            self.changes.remove(path);
        }
    }

    fn model_path(&self, index: usize) -> Result<String, EditFault> {
        let count = self.manifest.models.len();
        let path = self.manifest.models.get(index).cloned();
        path.ok_or(EditFault::NoModel { index, count })
    }
}

impl Plans for Edit {
    fn plan(&self) -> Result<Plan> {
        Ok(self.planned()?.whole)
    }
}

/// What an edit writes.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The whole package.
    pub(crate) whole: Plan,
    /// Whether the manifest changes.
    pub(crate) has_manifest: bool,
    /// Files with other content, and new ones.
    pub(crate) changed: BTreeSet<String>,
    /// Files that go away.
    pub(crate) removed: Vec<String>,
    /// Whether a list of digests comes, goes, or is asked for.
    pub(crate) has_list: bool,
}

impl Planned {
    /// Tells whether a file is written, or the manifest.
    pub(crate) fn is_changed(&self, path: &str) -> bool {
        self.changed.contains(path) || (self.has_manifest && path == MANIFEST)
    }

    pub(crate) fn is_nothing(&self) -> bool {
        !self.has_manifest && self.changed.is_empty() && self.removed.is_empty() && !self.has_list
    }
}

/// Tells whether a file is one that is not put in, but made.
fn is_made(path: &str) -> bool {
    path == MANIFEST || path == Sums::PATH
}
