//! Files of named tensors, described as any other.

use std::collections::BTreeMap;

use serde_json::Value;
use tensor_core::Extent;

use crate::{
    Summary, TensorSummary,
    weights::{ElementType, Reader, Tensor},
};

super::described!(Weights);

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Value> {
    reader.metadata().clone()
}

pub(crate) fn summary(reader: &Reader) -> Summary {
    let mut summary = Summary::new(reader.format(), reader.version().to_owned());
    summary.metadata.clone_from(reader.metadata());
    summary.findings = reader.lint();
    summary.tensors = reader.tensors().map(describe).collect();
    summary
}

fn describe(tensor: Tensor<'_>) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name());
    summary.shape = tensor.shape().clone();
    summary.bytes = tensor.byte_len();
    let extent = tensor.stored_extent().filter(|_| tensor.reader().source().is_some());
    summary.offset = extent.map(Extent::offset);
    summary.encoding = tensor.stored_extent().is_none().then(|| "deflate".to_owned());
    match tensor.element_type() {
        ElementType::Plain(dtype) => summary.dtype = Some(dtype),
        other => summary.logical_type = Some(other.to_string()),
    }
    summary
}
