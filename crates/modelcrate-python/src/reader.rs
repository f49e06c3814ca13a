//! Open files.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use bytes::Bytes;
use modelcrate::{
    AnyReader, AnyTensor, Content, Coverage, DiffOptions, Format, ReadOptions, SummaryOptions,
    Verdict,
    tensor_core::{Profile, Report, Shape, Source, Verify, compare::Tolerance, parallel},
};
use pyo3::{prelude::*, pybacked::PyBackedBytes};
use serde::Serialize;

use crate::{
    fault::{Fault, Result},
    object::Object,
};

/// An open file of any format.
#[pyclass(frozen, module = "modelcrate._native")]
pub(crate) struct Reader {
    pub(crate) state: Arc<State>,
}

/// What a reader and its tensors share: nothing once it is closed.
pub(crate) struct State(RwLock<Option<Arc<Opened>>>);

pub(crate) struct Opened {
    pub(crate) reader: AnyReader,
    path: Option<PathBuf>,
    entries: OnceLock<Vec<Entry>>,
}

/// A tensor that a reader has.
pub(crate) struct Entry {
    pub(crate) name: String,
    key: Key,
    /// None where it cannot be told; asking again says why.
    pub(crate) content: Option<(Content, Shape)>,
}

/// How a tensor is found again.
enum Key {
    Name,
    /// By its place among all, as another tensor has its name, or it has none.
    Place(usize),
}

impl State {
    pub(crate) fn get(&self) -> Result<Arc<Opened>> {
        let opened = self.0.read().unwrap_or_else(PoisonError::into_inner);
        opened.clone().ok_or_else(|| Fault::usage("the model is closed, expected an open one"))
    }
}

impl Opened {
    /// Returns all tensors under names of which each stands once.
    pub(crate) fn entries(&self) -> Result<&[Entry]> {
        if let Some(entries) = self.entries.get() {
            return Ok(entries);
        }
        let set = self.reader.tensor_set()?;
        let mut entries = Vec::with_capacity(set.tensors().len());
        for (place, tensor) in set.tensors().iter().enumerate() {
            let is_named = tensor.tensor().name() == Some(tensor.name());
            entries.push(Entry {
                name: tensor.name().to_owned(),
                key: if is_named { Key::Name } else { Key::Place(place) },
                content: tensor.content().ok(),
            });
        }
        Ok(self.entries.get_or_init(|| entries))
    }

    /// Returns the handle of a tensor, by its place.
    pub(crate) fn tensor(&self, place: usize) -> Result<AnyTensor<'_>> {
        let entry = self.entries()?.get(place);
        let found = match entry {
            Some(Entry { name, key: Key::Name, .. }) => self.reader.tensor(name)?,
            Some(Entry { key: Key::Place(place), .. }) => self.reader.tensors()?.nth(*place),
            None => None,
        };
        found.ok_or_else(|| Fault::usage(format!("there is no tensor at place {place}")))
    }
}

/// What a check says of a file, as the command prints it.
#[derive(Serialize)]
struct Checked {
    format: Format,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_hash: Option<String>,
    verdict: Verdict,
    coverage: Coverage,
    findings: Report,
}

#[pymethods]
impl Reader {
    /// Opens a file, or the folder of a carton or an nnpackage.
    #[staticmethod]
    #[pyo3(signature = (path, *, map, lenient, verify))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        map: bool,
        lenient: bool,
        verify: Option<&str>,
    ) -> PyResult<Self> {
        let options = options(lenient, verify)?;
        Ok(py.detach(|| {
            let opened = match map && !path.is_dir() {
                true => {
                    crate::memory::map(&path).and_then(|source| Ok(options.from_source(source)?))
                }
                false => options.open(&path).map_err(Fault::from),
            };
            let reader = opened.map_err(|fault| fault.about(&path))?;
            Ok::<_, Fault>(Self::new(reader, Some(path)))
        })?)
    }

    /// Opens a file that is in memory, which is not copied.
    #[staticmethod]
    #[pyo3(signature = (data, *, lenient, verify))]
    fn from_bytes(
        py: Python<'_>,
        data: PyBackedBytes,
        lenient: bool,
        verify: Option<&str>,
    ) -> PyResult<Self> {
        let options = options(lenient, verify)?;
        Ok(py.detach(|| {
            let reader = options.from_bytes(Bytes::from_owner(data))?;
            Ok::<_, Fault>(Self::new(reader, None))
        })?)
    }

    /// Opens what an object reads.
    #[staticmethod]
    #[pyo3(signature = (object, length, *, lenient, verify))]
    fn from_object(
        py: Python<'_>,
        object: Py<PyAny>,
        length: u64,
        lenient: bool,
        verify: Option<&str>,
    ) -> PyResult<Self> {
        let options = options(lenient, verify)?;
        Ok(py.detach(|| {
            let reader = options.from_source(Source::from_read_at(Object::new(object, length)))?;
            Ok::<_, Fault>(Self::new(reader, None))
        })?)
    }

    /// Lets go of the file; what was read of it stays.
    fn close(&self, py: Python<'_>) {
        let opened = self.state.0.write().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(opened));
    }

    #[getter]
    fn closed(&self) -> bool {
        self.state.get().is_err()
    }

    #[getter]
    fn format(&self) -> PyResult<&'static str> {
        Ok(self.state.get()?.reader.format().name())
    }

    /// Returns the names of all tensors.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(py.detach(|| {
            let opened = self.state.get()?;
            Ok::<_, Fault>(opened.entries()?.iter().map(|entry| entry.name.clone()).collect())
        })?)
    }

    /// Describes the file as JSON.
    fn summary(&self, py: Python<'_>, digests: bool, stats: bool, values: u64) -> PyResult<String> {
        Ok(py.detach(|| {
            let options = SummaryOptions::default().digests(digests).stats(stats).values(values);
            json(&self.state.get()?.reader.summary(options))
        })?)
    }

    /// Checks every byte, or all but tensor data, and returns the report as JSON.
    fn check(&self, py: Python<'_>, data: bool) -> PyResult<String> {
        Ok(py.detach(|| {
            let opened = self.state.get()?;
            let reader = &opened.reader;
            let mut findings = if data { reader.validate() } else { reader.lint() };
            if let Some(path) = opened.path.as_deref().filter(|_| data) {
                findings.append(reader.check_sidecar(path, parallel::available(), |_| ()));
            }
            json(&Checked {
                format: reader.format(),
                model_hash: reader.model_hash(),
                verdict: Verdict::from(&findings),
                coverage: reader.coverage(),
                findings,
            })
        })?)
    }

    /// Returns the digest of the tensors.
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| {
            let opened = self.state.get()?;
            let set = opened.reader.tensor_set()?;
            Ok::<_, Fault>(set.content_hash(parallel::available(), |_| ())?.digest.to_string())
        })?)
    }

    /// Returns the content of a file inside; None where there is none of the path.
    fn file(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<u8>>> {
        Ok(py.detach(|| {
            let opened = self.state.get()?;
            let Some(file) = opened.reader.file(path)? else { return Ok(None) };
            let mut content = Vec::new();
            file.copy_to(&mut content)?;
            Ok::<_, Fault>(Some(content))
        })?)
    }

    /// Returns the graph as JSON, as the command prints it.
    fn graph(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| {
            let opened = self.state.get()?;
            let path = opened.path.as_deref().unwrap_or(Path::new("")).display().to_string();
            modelcrate_cli::graph_json(&opened.reader, path)
                .map_err(|error| Fault::unsupported(format!("{error:#}")))
        })?)
    }
}

impl Reader {
    fn new(reader: AnyReader, path: Option<PathBuf>) -> Self {
        let opened = Opened { reader, path, entries: OnceLock::new() };
        Self { state: Arc::new(State(RwLock::new(Some(Arc::new(opened))))) }
    }
}

/// Returns what differs between two files as JSON.
#[pyfunction]
#[pyo3(signature = (old, new, *, tolerance, tensors_only))]
pub(crate) fn diff(
    py: Python<'_>,
    old: &Reader,
    new: &Reader,
    tolerance: Option<(f64, f64)>,
    tensors_only: bool,
) -> PyResult<String> {
    Ok(py.detach(|| {
        let mut options = DiffOptions::default();
        options.tensors_only = tensors_only;
        options.tolerance = tolerance.map(|(rtol, atol)| Tolerance { rtol, atol, equal_nan: true });
        let (old, new) = (old.state.get()?, new.state.get()?);
        json(&old.reader.diff(&new.reader, &options, |_| true, |_| ())?)
    })?)
}

fn options(lenient: bool, verify: Option<&str>) -> Result<ReadOptions> {
    let mut options = AnyReader::options();
    if lenient {
        options = options.profile(Profile::Lenient);
    }
    Ok(match verify {
        None => options,
        Some("always") => options.verify(Verify::Always),
        Some("never") => options.verify(Verify::Never),
        Some("once") => options.verify(Verify::Once),
        Some(other) => {
            let message =
                format!("verify is {other:?}, expected \"always\", \"never\" or \"once\"");
            return Err(Fault::usage(message));
        }
    })
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Fault::unsupported(error.to_string()))
}
