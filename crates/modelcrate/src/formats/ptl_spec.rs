//! PyTorch Live specs in files of their own.

use std::collections::BTreeMap;

use ::ptl_spec::Spec;
use bytes::Bytes;
use serde_json::Value;
use tensor_core::{Extent, Limit, Limits, Report, Source};

use super::{Described, Tensors, ptl::add_signature};
use crate::{AnyTensor, Format, ReadOptions, Result, Summary};

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
        let limits = options.limits.unwrap_or_else(|| Limits::default().with_manifest_bytes(SPEC));
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

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
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

impl Described for SpecFile {
    fn summary(&self) -> Summary {
        let mut summary = Summary::new(Format::PtlSpec, "1".to_owned());
        add_signature(&self.spec.signature(), &mut summary);
        summary
    }

    fn metadata_of(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    fn any_tensors(&self) -> Result<Tensors<'_>> {
        Ok(Box::new(std::iter::empty()))
    }

    fn any_tensor(&self, _: &str) -> Result<Option<AnyTensor<'_>>> {
        Ok(None)
    }
}

/// What a spec may have, in bytes, as inside a model.
const SPEC: u64 = 64 << 20;
