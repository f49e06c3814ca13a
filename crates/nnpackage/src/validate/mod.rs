//! What opening does not prove.
use crate::{Diagnosis, ModelReader, Reader};

pub(crate) fn package(reader: &Reader) -> Vec<Diagnosis> {
    reader.parsed().diagnoses.clone()
}

pub(crate) fn model(_: &ModelReader) -> Vec<Diagnosis> {
    Vec::new()
}
