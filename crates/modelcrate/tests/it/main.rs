//! Files of all formats through one interface.

mod catalog;
mod convert;
mod detect;
mod diff;
mod fuzz_corpus;
#[cfg(feature = "svg")]
mod graph;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "page")]
mod page;
mod put;
mod read;
#[cfg(feature = "remote")]
mod remote;
#[cfg(all(
    feature = "carton",
    feature = "nnpackage",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod rules;
mod weights;
#[path = "../../../../fuzz/src/weights_read.rs"]
mod weights_read;
