//! Building packages: models and what belongs to them, collected in any order.

use std::{collections::BTreeMap, fmt, path::Path};

use bytes::Bytes;
use tensor_core::{Limits, Source};

use crate::{
    BuildFault, Config, ConfigChange, EditFault, Error, IoRef, Manifest, ModelType, PackageVersion,
    Reader, Result, Sums, Wiring,
    edit::{
        models::{check_count, check_type, needed_from, open_model},
        needs::needs,
        paths::Paths,
    },
    layout::{self, CONFIG, GOLDEN_EXPECTED, GOLDEN_INPUT, KERNELS, MANIFEST},
    read::body::Body,
    write::{NewEntry, Plan, Use, check_document, sealed::Plans},
};

/// A package in the making: models, configuration, connections and other files.
///
/// What is written depends on nothing but what was put in: the manifest comes first, then all other
/// files sorted by path, then the list of digests. A package in a folder has the same files with the
/// same bytes. The version is the lowest that has everything that is used.
///
/// Contents are read when the package is written; of models the tables are read before, to find out
/// what they are and which other files they need.
///
/// # Examples
///
/// ```no_run
/// use nnpackage::{Builder, Reader, Writer};
///
/// let mut builder = Builder::default();
/// builder.model_from("add.circle", "models/add.circle")?;
/// builder.mmap()?;
/// Writer::create("add.zip", &builder)?.finish()?;
/// assert!(Reader::open("add.zip")?.validate().is_valid());
/// # Ok::<(), nnpackage::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "nothing is written before a `Writer` is finished"]
pub struct Builder {
    manifest: Manifest,
    files: BTreeMap<String, (Body, Use)>,
    paths: Paths,
    /// Models that were opened, with where they are on the disk, by path.
    opened: BTreeMap<String, circle_format::Reader>,
    has_version: bool,
    digests: bool,
}

impl Builder {
    /// Adds a Circle or TFLite model; its identifier says which, whatever its name. Returns its
    /// position in the manifest.
    ///
    /// Files that it needs, such as those that its operators `RUN_MODEL` run, have to be added with
    /// [`file`](Self::file) under the paths that it has for them.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where the path is not one that every system can have, is taken, or where the
    /// file is not a model that can be opened.
    pub fn model(&mut self, path: &str, source: Source) -> Result<usize> {
        let (reader, kind) = open_model(path, &source)?;
        let index = self.add_model(path, Body::Source(source), &kind)?;
        self.opened.insert(path.to_owned(), reader);
        Ok(index)
    }

    /// Adds a model from a file of the system, with every file that it needs: these have to be in
    /// the folder of the model or below, and come to lie beside it in the package as they do there.
    ///
    /// # Errors
    ///
    /// As for [`model`](Self::model), and where a file that it needs is not there.
    pub fn model_from(&mut self, path: &str, from: impl AsRef<Path>) -> Result<usize> {
        let from = from.as_ref();
        // What fails half-way leaves nothing behind.
        let mut next = self.clone();
        let index = next.model(path, Source::open(from)?)?;
        next.needed(path, from)?;
        *self = next;
        Ok(index)
    }

    /// Adds a model of a type that is given, as it has to be for `bin` and `tvn`.
    ///
    /// # Errors
    ///
    /// As for [`model`](Self::model), and where it has the identifier of another type.
    pub fn model_as(
        &mut self,
        path: &str,
        source: Source,
        model_type: ModelType<'_>,
    ) -> Result<usize> {
        check_type(path, &source, model_type)?;
        match model_type {
            ModelType::Bin | ModelType::Tvn => {
                self.add_model(path, Body::Source(source), model_type.name())
            }
            _ => self.model(path, source),
        }
    }

    /// Sets the configuration, by its name in the folder `metadata`.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where the path is taken, as by another configuration.
    pub fn config(&mut self, name: &str, content: impl Into<Bytes>) -> Result<()> {
        let path = layout::document(name);
        if let Some(old) = self.manifest.config() {
            let by = format!("configs[0]: {old:?}");
            return Err(Error::Build { path, fault: BuildFault::Named { by } });
        }
        let content = content.into();
        check_document("configuration file in bytes", &content)?;
        self.put(&path, Body::from_bytes(content), Use::Whole)?;
        self.manifest.configs = vec![name.to_owned()];
        Ok(())
    }

    /// Changes the configuration; makes `config.cfg` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`Config::edit`] and [`config`](Self::config).
    pub fn change_config(&mut self, changes: &[ConfigChange]) -> Result<()> {
        let Some(name) = self.manifest.config() else {
            return self.config(CONFIG, Config::edit(b"", changes)?);
        };
        let path = layout::document(name);
        let Some((body, _)) = self.files.get_mut(&path) else {
            return Err(Error::Build { path, fault: BuildFault::Missing });
        };
        let edited = Config::edit(&body.bytes()?, changes)?;
        check_document("configuration file in bytes", &edited)?;
        *body = Body::from_bytes(edited);
        Ok(())
    }

    /// Makes onert map models instead of reading them: sets `USE_MMAPED_DATA` in the configuration.
    ///
    /// # Errors
    ///
    /// As for [`change_config`](Self::change_config).
    pub fn mmap(&mut self) -> Result<()> {
        self.change_config(&[ConfigChange::set("USE_MMAPED_DATA", "1")])
    }

    /// Adds an input of the package.
    pub fn input(&mut self, input: IoRef) {
        self.manifest.pkg_inputs.push(input);
    }

    /// Adds an output of the package.
    pub fn output(&mut self, output: IoRef) {
        self.manifest.pkg_outputs.push(output);
    }

    /// Leads an output of a model into an input of another.
    pub fn connect(&mut self, from: IoRef, to: IoRef) {
        self.manifest.connect(from, to);
    }

    /// Takes inputs, outputs and connections from what a partitioner wrote.
    pub fn wiring(&mut self, wiring: Wiring) {
        self.manifest.pkg_inputs = wiring.pkg_inputs;
        self.manifest.pkg_outputs = wiring.pkg_outputs;
        self.manifest.connections = wiring.connections;
    }

    /// Adds a kernel, by its name in the folder `custom_op`.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn custom_op(&mut self, name: &str, source: Source) -> Result<()> {
        self.file(&format!("{KERNELS}{name}"), source)
    }

    /// Adds the golden data that go in, a file of HDF5.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn golden_input(&mut self, source: Source) -> Result<()> {
        self.file(GOLDEN_INPUT, source)
    }

    /// Adds the golden data that have to come out, a file of HDF5.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn golden_expected(&mut self, source: Source) -> Result<()> {
        self.file(GOLDEN_EXPECTED, source)
    }

    /// Adds information about a model, by its name in the folder `metadata`.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file); [`EditFault::NoModel`] where there is no such model.
    pub fn model_info(
        &mut self,
        model: usize,
        name: &str,
        content: impl Into<Bytes>,
    ) -> Result<()> {
        let count = self.manifest.models.len();
        if model >= count {
            return Err(EditFault::NoModel { index: model, count }.into());
        }
        let content = content.into();
        check_document("model information in bytes", &content)?;
        self.put(&layout::document(name), Body::from_bytes(content), Use::Whole)?;
        self.manifest.name_info(model, name);
        Ok(())
    }

    /// Adds any other file.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where the path is not one that every system can have, or is taken.
    pub fn file(&mut self, path: &str, source: Source) -> Result<()> {
        self.put(path, Body::Source(source), Use::Whole)
    }

    /// Sets the version of the format, instead of the lowest that will do.
    pub fn version(&mut self, version: PackageVersion) {
        self.manifest.version = version;
        self.has_version = true;
    }

    /// Sets whether a list of the digests of all files is written; it is not by default.
    pub fn digests(&mut self, digests: bool) {
        self.digests = digests;
    }

    /// Returns the manifest as it is going to be.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let mut manifest = self.manifest.clone();
        if manifest.model_types.is_none() {
            manifest.model_types = Some(Vec::new());
        }
        if !self.has_version {
            manifest.version = manifest.lowest_version();
        }
        manifest
    }

    /// Returns the paths of all files but the manifest and the list of digests, sorted.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the package as it is going to be, to be checked before it is written.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`](crate::Writer::finish).
    pub fn preview(&self) -> Result<Reader> {
        self.plan()?.preview(Reader::options())
    }

    /// Adds a model whose type is known.
    pub(crate) fn add_model(&mut self, path: &str, body: Body, kind: &str) -> Result<usize> {
        let is_named =
            self.files.contains_key(path) && self.manifest.models.iter().any(|model| model == path);
        match self.files.get_mut(path) {
            // Another model needs it.
            Some((known, used)) if !is_named && known.is_same(&body)? => {
                (*known, *used) = (body, Use::InPlace);
            }
            _ => self.put(path, body, Use::InPlace)?,
        }
        Ok(self.name_model(path, kind))
    }

    pub(crate) fn put(&mut self, path: &str, body: Body, used: Use) -> Result<()> {
        self.paths.insert(path)?;
        self.files.insert(path.to_owned(), (body, used));
        Ok(())
    }

    pub(crate) fn body(&self, path: &str) -> Option<&Body> {
        self.files.get(path).map(|(body, _)| body)
    }

    pub(crate) const fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Names a model that is there once more.
    pub(crate) fn name_model(&mut self, path: &str, kind: &str) -> usize {
        let index = self.manifest.models.len();
        self.manifest.models.push(path.to_owned());
        self.manifest.model_types.get_or_insert_default().push(kind.to_owned());
        index
    }

    /// Adds the files that a model needs, and what these need.
    fn needed(&mut self, path: &str, from: &Path) -> Result<()> {
        let Some(reader) = self.opened.get(path) else { return Ok(()) };
        for file in needed_from(path, from, reader)? {
            let body = Body::Disk(file.from);
            match self.files.get(&file.path) {
                // Another model may need it too.
                Some((known, _)) if known.is_same(&body)? => {}
                _ => self.put(&file.path, body, Use::InPlace)?,
            }
            if let Some(reader) = file.reader {
                self.opened.insert(file.path, reader);
            }
        }
        Ok(())
    }
}

impl Plans for Builder {
    fn plan(&self) -> Result<Plan> {
        check_count(self.manifest.models.len())?;
        for (path, reader) in &self.opened {
            for (location, needed) in needs(path, reader)? {
                if !self.files.contains_key(&needed) {
                    let place = "the package";
                    let fault = BuildFault::NeedsFile { location, place };
                    return Err(Error::Build { path: path.clone(), fault });
                }
            }
        }
        let manifest = self.manifest();
        let text = manifest.to_bytes();
        check_document("MANIFEST in bytes", &text)?;
        manifest.check_text(&text, &Limits::default())?;
        let first =
            NewEntry { path: MANIFEST.to_owned(), body: Body::from_bytes(text), used: Use::Whole };
        let others = self.files.iter().map(|(path, (body, used))| NewEntry {
            path: path.clone(),
            body: body.clone(),
            used: *used,
        });
        let files = std::iter::once(first).chain(others).collect();
        let sums = self.digests.then(Sums::default);
        Ok(Plan { files, sums, ..Plan::default() })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("manifest", &self.manifest)
            .field("files", &self.files.keys())
            .finish_non_exhaustive()
    }
}
