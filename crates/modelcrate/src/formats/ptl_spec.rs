//! PyTorch Live specs in files of their own.

use ::ptl_spec::Spec;
use tensor_core::{Extent, Report, Source};

use super::{Tensors, ptl::add_signature};
use crate::{AnyTensor, Format, Result, Summary, SummaryOptions};

/// A spec in a file of its own.
#[derive(Clone, Debug)]
pub struct SpecFile {
    source: Source,
    text: bytes::Bytes,
    spec: Spec,
}

impl SpecFile {
    pub(crate) fn open(source: Source) -> ::ptl_spec::Result<Self> {
        let (what, found, limit) = ("spec in bytes", source.len(), SPEC);
        if found > limit {
            let field = "manifest_bytes";
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        let text = source.read(Extent::first(found), "spec")?;
        Ok(Self { spec: Spec::parse(&text)?, text, source })
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
}

/// Looks for a JSON object, and only then for the two keys that every spec has.
pub(crate) fn sniff(source: &Source) -> tensor_core::Result<bool> {
    let start = source.read(Extent::first(source.len().min(LOOK)), "spec")?;
    if !object(&start).starts_with(b"{") {
        return Ok(false);
    }
    let text = source.read(Extent::first(source.len().min(SEARCHED)), "spec")?;
    let has = |key: &[u8]| text.windows(key.len()).any(|window| window == key);
    Ok(has(b"\"pack\"") && has(b"\"unpack\""))
}

/// Returns what stands behind a byte order mark and white space.
fn object(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start()
}

pub(crate) const fn format(_: &SpecFile) -> Format {
    Format::PtlSpec
}

pub(crate) const fn source(reader: &SpecFile) -> Option<&Source> {
    Some(&reader.source)
}

pub(crate) fn byte_len(reader: &SpecFile) -> u64 {
    reader.source.len()
}

pub(crate) fn validate_with(file: &SpecFile, progress: impl Fn(u64) + Sync) -> Report {
    let report = Spec::options().check(&file.text);
    progress(file.source.len());
    report
}

pub(crate) fn summary(file: &SpecFile, _: SummaryOptions) -> Summary {
    let mut summary = Summary::new(Format::PtlSpec, "1".to_owned());
    add_signature(&file.spec.signature(), &mut summary);
    summary
}

/// What a spec may have, in bytes, as inside a model.
const SPEC: u64 = 64 << 20;
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
