//! A model as data, for JSON and the like.

mod document;
mod quantization;
mod training;
mod values;

use serde::Serialize;

use crate::Reader;
use document::Document;

impl Reader {
    /// Returns every table of the model as data: for JSON and the like. Of buffers it has where they
    /// are, and of custom options what is in them.
    #[must_use]
    pub fn dump(&self) -> impl Serialize + '_ {
        Document::of(self)
    }
}
