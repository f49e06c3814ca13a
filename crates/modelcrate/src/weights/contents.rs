//! What headers say.

use std::collections::BTreeMap;

use serde_json::Value;
use tensor_core::{Extent, Report, Shape};

use super::ElementType;

/// What the header of a file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) version: String,
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) entries: Vec<Entry>,
    /// What was noticed that no reader stumbles over.
    pub(super) findings: Report,
}

/// A tensor, as the header of a file describes it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) element_type: ElementType,
    pub(super) shape: Shape,
    /// In which of the sources it is.
    pub(super) source: usize,
    pub(super) extent: Extent,
}
