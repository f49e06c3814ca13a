//! Packages that are read, checked, built and changed.

mod common;
mod corpus;
mod edit;
mod findings;
mod folder;
mod fuzz_corpus;
mod golden;
mod hostile;
mod lazy;
mod read;
mod reject;
mod weights;
mod wiring;
mod write;

#[path = "../../../../fuzz/src/nnpackage_edit.rs"]
mod nnpackage_edit;
#[path = "../../../../fuzz/src/nnpackage_read.rs"]
mod nnpackage_read;
