//! What opening a file does not prove.

use tensor_core::Report;

use crate::Reader;

pub(crate) fn file(reader: &Reader) -> Report {
    let _ = reader;
    Report::default()
}
