//! Open files.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use bytes::Bytes;
use modelcrate::{
    AnyReader, AnyTensor, Coverage, DiffOptions, Format, ReadOptions, SummaryOptions, Verdict,
    page::{Page, PageOptions},
    tensor_core::{Profile, Report, Source, Verify, compare::Tolerance, parallel},
};
use pyo3::{PyTraverseError, PyVisit, prelude::*, pybacked::PyBackedBytes};
use serde::Serialize;

use crate::{
    fault::{Fault, Result},
    memory::Memory,
    object::{Calls, Object},
    tensor::memory,
};

/// An open file of any format.
#[pyclass(frozen, module = "modelcrate._native")]
pub(crate) struct Reader {
    /// Nothing once it is closed. Calls alone hold it longer, so that Python knows all that leads to an
    /// object.
    opened: RwLock<Option<Arc<Opened>>>,
    calls: Arc<Calls>,
    /// Of a file at an address, where the store has one.
    etag: Option<String>,
}

pub(crate) struct Opened {
    pub(crate) reader: AnyReader,
    path: Option<PathBuf>,
    entries: OnceLock<Vec<Entry>>,
    fault: Option<Interrupted>,
    /// What reads the file.
    object: Option<Object>,
}

/// Says what was in the way of reading a file at an address, if anything was.
type Interrupted = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// A file at an address.
pub(crate) struct Remotely {
    pub(crate) reader: AnyReader,
    pub(crate) etag: Option<String>,
    pub(crate) fault: Interrupted,
}

/// A tensor that a reader has.
pub(crate) struct Entry {
    pub(crate) name: String,
    key: Key,
}

/// How a tensor is found again.
enum Key {
    Name,
    /// By its place among all, as another tensor has its name, or it has none.
    Place(usize),
}

impl Opened {
    const fn new(reader: AnyReader) -> Self {
        Self { reader, path: None, entries: OnceLock::new(), fault: None, object: None }
    }

    /// Returns all tensors under names of which each stands once.
    pub(crate) fn entries(&self) -> Result<&[Entry]> {
        if let Some(entries) = self.entries.get() {
            return Ok(entries);
        }
        let entry = |name: &str, key| Entry { name: name.to_owned(), key };
        let entries = match &self.reader {
            // No two of these have one name.
            AnyReader::Weights(reader) => {
                reader.tensors().map(|tensor| entry(tensor.name(), Key::Name)).collect()
            }
            reader => {
                let set = reader.tensor_set()?;
                let tensors = set.tensors().iter().enumerate();
                let keyed = tensors.map(|(place, tensor)| {
                    let is_named = tensor.tensor().name() == Some(tensor.name());
                    entry(tensor.name(), if is_named { Key::Name } else { Key::Place(place) })
                });
                keyed.collect()
            }
        };
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
            Ok::<_, Fault>(Self::new(Opened { path: Some(path), ..Opened::new(reader) }))
        })?)
    }

    /// Opens a file at an address.
    #[staticmethod]
    #[pyo3(signature = (address, *, lenient, verify))]
    fn open_address(
        py: Python<'_>,
        address: &str,
        lenient: bool,
        verify: Option<&str>,
    ) -> PyResult<Self> {
        let options = options(lenient, verify)?;
        Ok(py.detach(|| {
            let Remotely { reader, etag, fault } = at_address(address, options)?;
            let opened = Opened { fault: Some(fault), ..Opened::new(reader) };
            Ok::<_, Fault>(Self { etag, ..Self::new(opened) })
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
            Ok::<_, Fault>(Self::new(Opened::new(reader)))
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
        let (options, calls) = (options(lenient, verify)?, Arc::<Calls>::default());
        let object = Object::new(object, length, Arc::clone(&calls));
        let reader = calls.run(py, || Ok(options.from_source(object.source())?))?;
        Ok(Self { calls, ..Self::new(Opened { object: Some(object), ..Opened::new(reader) }) })
    }

    /// Lets go of the file; what was read of it stays.
    fn close(&self, py: Python<'_>) {
        let opened = self.take();
        py.detach(|| drop(opened));
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(opened) = self.opened.try_read() else { return Ok(()) };
        let object = opened.as_ref().and_then(|opened| opened.object.as_ref());
        object.map_or(Ok(()), |object| object.traverse(&visit))
    }

    fn __clear__(&self) {
        drop(self.take());
    }

    #[getter]
    fn closed(&self) -> bool {
        self.get().is_err()
    }

    #[getter]
    fn format(&self) -> PyResult<&'static str> {
        Ok(self.get()?.reader.format().name())
    }

    #[getter]
    fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// The bytes of the file; None of a folder.
    #[getter]
    fn nbytes(&self) -> PyResult<Option<u64>> {
        let opened = self.get()?;
        let source = opened.reader.source();
        Ok(source.map(Source::len))
    }

    /// Returns the names of all tensors.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, |opened| {
            Ok(opened.entries()?.iter().map(|entry| entry.name.clone()).collect())
        })
    }

    /// Reads the elements of the tensor of a name; None where there is none.
    fn read(&self, py: Python<'_>, name: &str, owned: bool) -> PyResult<Option<Memory>> {
        self.call(py, |opened| {
            let read = |tensor| Ok::<_, Fault>(Some(memory(tensor, owned, false, false)?));
            if let Some(tensor) = opened.reader.tensor(name)? {
                return read(tensor);
            }
            match opened.entries()?.iter().position(|entry| entry.name == name) {
                Some(place) => read(opened.tensor(place)?),
                None => Ok(None),
            }
        })
    }

    /// Reads the elements of all tensors, several at once, each into memory of its own.
    fn read_all(&self, py: Python<'_>) -> PyResult<Vec<Memory>> {
        self.call(py, |opened| {
            let places: Vec<usize> = (0..opened.entries()?.len()).collect();
            let read = |place: &usize| memory(opened.tensor(*place)?, true, false, false);
            parallel::map(&places, parallel::available(), read).into_iter().collect::<Result<_>>()
        })
    }

    /// Describes the file as JSON.
    fn summary(&self, py: Python<'_>, digests: bool, stats: bool, values: u64) -> PyResult<String> {
        self.call(py, |opened| {
            let options = SummaryOptions::default().digests(digests).stats(stats).values(values);
            json(&opened.reader.summary(options))
        })
    }

    /// Checks every byte, or all but tensor data, and returns the report as JSON.
    fn check(&self, py: Python<'_>, data: bool) -> PyResult<String> {
        self.call(py, |opened| {
            let reader = &opened.reader;
            let mut findings = if data { reader.validate() } else { reader.lint() };
            // What a server did not send says nothing of the file.
            if let Some(fault) = opened.fault.as_ref().and_then(|fault| fault()) {
                return Err(Fault::io(fault));
            }
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
        })
    }

    /// Returns the digest of the tensors.
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |opened| {
            let set = opened.reader.tensor_set()?;
            Ok::<_, Fault>(set.content_hash(parallel::available(), |_| ())?.digest.to_string())
        })
    }

    /// Returns the content of a file inside; None where there is none of the path.
    fn file(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<u8>>> {
        self.call(py, |opened| {
            let Some(file) = opened.reader.file(path)? else { return Ok(None) };
            let mut content = Vec::new();
            file.copy_to(&mut content)?;
            Ok::<_, Fault>(Some(content))
        })
    }

    /// Returns a page about the file, as the command makes it: HTML, or Markdown.
    fn report(
        &self,
        py: Python<'_>,
        stats: bool,
        digests: bool,
        is_markdown: bool,
    ) -> PyResult<String> {
        self.call(py, |opened| {
            let name = opened.path.as_deref().unwrap_or(Path::new("")).display().to_string();
            let (reader, options) = (&opened.reader, PageOptions::default());
            let options = options.stats(stats).digests(digests);
            let mut findings = options.validate(reader, |_| ());
            if let Some(path) = opened.path.as_deref() {
                findings.append(reader.check_sidecar(path, parallel::available(), |_| ()));
            }
            let page = Page::of(&name, Some(reader), findings, options);
            if let Some(fault) = opened.fault.as_ref().and_then(|fault| fault()) {
                return Err(Fault::io(fault));
            }
            let mut text = Vec::new();
            let written = if is_markdown { page.markdown(&mut text) } else { page.html(&mut text) };
            // It goes to memory, and is made of texts.
            written.map_err(|error| Fault::io(error.to_string()))?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        })
    }

    /// Returns the graph as JSON, as the command prints it.
    fn graph(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |opened| {
            let path = opened.path.as_deref().unwrap_or(Path::new("")).display().to_string();
            let graph = modelcrate_cli::graph_json(&opened.reader, path);
            graph.map_err(|error| match error.downcast::<modelcrate::Error>() {
                Ok(error) => error.into(),
                Err(error) => Fault::unsupported(format!("{error:#}")),
            })
        })
    }
}

impl Reader {
    fn new(opened: Opened) -> Self {
        let opened = RwLock::new(Some(Arc::new(opened)));
        Self { opened, calls: Arc::default(), etag: None }
    }

    pub(crate) fn get(&self) -> Result<Arc<Opened>> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        opened.clone().ok_or_else(|| Fault::usage("the model is closed, expected an open one"))
    }

    fn take(&self) -> Option<Arc<Opened>> {
        self.opened.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Does with the file what may take long; others have the interpreter meanwhile.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Opened) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.calls.run(py, || work(&*self.get()?))
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
    let mut options = DiffOptions::default();
    options.tensors_only = tensors_only;
    options.tolerance = tolerance.map(|(rtol, atol)| Tolerance { rtol, atol, equal_nan: true });
    let call = new.calls.begin()?;
    let found = old
        .call(py, |old| json(&old.reader.diff(&new.get()?.reader, &options, |_| true, |_| ())?));
    call.end(py).and(found)
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

#[cfg(feature = "remote")]
use crate::remote::open as at_address;

#[cfg(not(feature = "remote"))]
fn at_address(address: &str, _: ReadOptions) -> Result<Remotely> {
    let message = format!("{address:?} is an address, which this build does not read");
    Err(Fault::unsupported(message))
}

/// Opens a path, which may be an address.
pub(crate) fn open(path: &Path, options: ReadOptions) -> Result<AnyReader> {
    match path.to_str().filter(|path| path.contains("://")) {
        Some(address) => Ok(at_address(address, options)?.reader),
        None => options.open(path).map_err(|error| Fault::from(error).about(path)),
    }
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Fault::unsupported(error.to_string()))
}
