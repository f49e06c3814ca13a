//! What opening does not prove, with what onert does about it.
//!
//! An error breaks the format's text, lies, or is unsafe to read. A warning is what some readers
//! put up with. Whether onert loads a package at all is another question, which each diagnosis
//! answers for itself: much of what the format allows it cannot run.

mod config;
mod files;
mod kernels;
mod models;
mod wiring;

use crate::{Diagnosis, Reader};

/// Checks a package: everything but the archive that it may be in.
pub(crate) fn package(reader: &Reader) -> Vec<Diagnosis> {
    let mut findings = reader.parsed().findings.clone();
    models::check(reader, &mut findings);
    wiring::check(reader, &mut findings);
    config::check(reader, &mut findings);
    kernels::check(reader, &mut findings);
    files::check(reader, &mut findings);
    findings.finish()
}
