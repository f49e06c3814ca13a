//! PyTorch Live specs in files of their own.

use ::ptl_spec::Spec;
use bytes::Bytes;
use tensor_core::{Extent, Limit, Limits, Report, Source};

use super::{Tensors, ptl::add_signature};
use crate::{AnyTensor, Format, ReadOptions, Result, Summary, SummaryOptions};

/// A spec in a file of its own.
#[derive(Clone, Debug)]
pub struct SpecFile {
    source: Source,
    text: Bytes,
    limits: Limits,
    spec: Spec,
}

impl SpecFile {
    pub(crate) fn open(source: Source, options: ReadOptions) -> ::ptl_spec::Result<Self> {
        let limits = options.limits;
        limits.check(Limit::ManifestBytes, "spec in bytes", source.len())?;
        let text = source.read(Extent::first(source.len()), "spec")?;
        let spec = Spec::options().limits(limits).parse(&text)?;
        Ok(Self { source, text, limits, spec })
    }

    /// Returns the spec.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns what it was read from.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Reports every fault of the text, and what someone should mend.
    #[must_use]
    pub fn lint(&self) -> Report {
        Spec::options().limits(self.limits).lint(&self.text)
    }

    /// Like [`lint`](Self::lint), as there is nothing else to read, but tells `progress` at its end
    /// how many bytes there are.
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        let report = self.lint();
        progress(self.source.len());
        report
    }
}

/// Looks for a JSON object, and only then for the two keys that every spec has.
pub(crate) fn sniff(source: &Source) -> tensor_core::Result<bool> {
    let start = source.read(Extent::first(source.len().min(LOOK)), "spec")?;
    let object = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii_start();
    if !object.starts_with(b"{") {
        return Ok(false);
    }
    let text = source.read(Extent::first(source.len().min(SEARCHED)), "spec")?;
    let has = |key: &[u8]| text.windows(key.len()).any(|window| window == key);
    Ok(has(b"\"pack\"") && has(b"\"unpack\""))
}

pub(crate) fn summary(file: &SpecFile, _: SummaryOptions) -> Summary {
    let mut summary = Summary::new(Format::PtlSpec, "1".to_owned());
    add_signature(&file.spec.signature(), &mut summary);
    summary
}

pub(crate) fn tensors(_: &SpecFile) -> Result<Tensors<'_>> {
    Ok(Box::new(std::iter::empty()))
}

pub(crate) const fn tensor<'a>(_: &'a SpecFile, _: &str) -> Result<Option<AnyTensor<'a>>> {
    Ok(None)
}

/// What is looked at to tell that a text is a JSON object, in bytes.
const LOOK: u64 = 64;
/// What is searched for the keys of a spec, in bytes: most are a page or two.
const SEARCHED: u64 = 1 << 20;
