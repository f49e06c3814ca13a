//! The spec of a model: among its extra files, beside it, or a file of its own.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use tensor_core::{Extent, Limit, Source};

use crate::{Reader, Result, Spec, SpecOptions};

/// Where a spec was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecSource {
    /// In the model file.
    Embedded,
    /// In a file beside it, whose name is that of the model and `.live.spec.json`.
    Sidecar(PathBuf),
}

impl Reader {
    /// Returns the text of the embedded spec; `None` where there is none, or an empty one, which
    /// runtimes take for none.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or its checksum differs.
    pub fn spec_text(&self) -> Result<Option<Bytes>> {
        let Some(file) = self.extra_file(SPEC) else { return Ok(None) };
        self.limits().check(Limit::ManifestBytes, "spec in bytes", file.size())?;
        file.bytes().map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    /// Reads the embedded spec as the format's text has it; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`spec_text`](Self::spec_text) and [`Spec::parse`].
    pub fn spec(&self) -> Result<Option<Spec>> {
        self.spec_with(&Spec::options())
    }

    /// Like [`spec`](Self::spec), but with options.
    ///
    /// # Errors
    ///
    /// As for [`spec`](Self::spec).
    pub fn spec_with(&self, options: &SpecOptions) -> Result<Option<Spec>> {
        self.spec_text()?.map(|text| options.clone().parse(text)).transpose()
    }

    /// Returns the embedded spec, or that of a file beside a model that was opened by its path, as
    /// runtimes look for them; `None` where there is neither.
    ///
    /// # Errors
    ///
    /// As for [`spec`](Self::spec).
    pub fn find_spec(&self, options: &SpecOptions) -> Result<Option<(SpecSource, Spec)>> {
        if let Some(spec) = self.spec_with(options)? {
            return Ok(Some((SpecSource::Embedded, spec)));
        }
        let side = self.path().map(sidecar).filter(|path| path.exists());
        let Some(path) = side else { return Ok(None) };
        let spec = options.clone().from_source(&Source::open(&path)?)?;
        Ok(Some((SpecSource::Sidecar(path), spec)))
    }
}

impl Spec {
    /// Tells whether some bytes look like a spec: a JSON object with the two keys that every one has.
    ///
    /// Reads 64 bytes of what is not an object, and of any other a mebibyte at most.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) where they cannot be read.
    pub fn sniff(source: &Source) -> Result<bool> {
        let start = source.read(Extent::first(source.len().min(LOOK)), "spec")?;
        let object = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii_start();
        if !object.starts_with(b"{") {
            return Ok(false);
        }
        let text = source.read(Extent::first(source.len().min(SEARCHED)), "spec")?;
        let has = |key: &[u8]| text.windows(key.len()).any(|window| window == key);
        Ok(has(b"\"pack\"") && has(b"\"unpack\""))
    }
}

impl SpecOptions {
    /// Like [`parse`](Self::parse), but reads the text first.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse); [`Error::Core`](crate::Error::Core) where it cannot be read.
    pub fn from_source(self, source: &Source) -> Result<Spec> {
        self.limits.check(Limit::ManifestBytes, "spec in bytes", source.len())?;
        self.parse(source.read(Extent::first(source.len()), "spec")?)
    }
}

/// Returns where runtimes look for the spec of a model that has none in it: its name and
/// `.live.spec.json`.
#[must_use]
pub fn sidecar(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".live.spec.json");
    name.into()
}

/// The name of the spec among the extra files. Format text: "Model Specification".
pub const SPEC: &str = "model/live.spec.json";
/// What is looked at to tell that a text is a JSON object, in bytes.
const LOOK: u64 = 64;
/// What is searched for the keys of a spec, in bytes: most are a page or two.
const SEARCHED: u64 = 1 << 20;
