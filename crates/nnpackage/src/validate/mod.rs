//! What opening does not prove, with what onert does about it.
//!
//! An error breaks the format's text, lies, or is unsafe to read. A warning is what some readers put
//! up with. Whether onert loads a package at all is another question, which each diagnosis answers
//! for itself: much of what the format allows it cannot run.

mod config;
mod constants;
mod files;
mod graph;
mod kernels;
mod model;
mod models;
mod operators;
mod quantization;
mod wiring;

use std::{borrow::Cow, collections::BTreeMap};

use crate::{Diagnosis, ModelReader, Reader};

/// Checks a package: everything but the archive that it may be in.
pub(crate) fn package(reader: &Reader) -> Vec<Diagnosis> {
    let mut findings = Findings::default();
    for diagnosis in &reader.parsed().diagnoses {
        findings.push(diagnosis.clone());
    }
    models::check(reader, &mut findings);
    wiring::check(reader, &mut findings);
    config::check(reader, &mut findings);
    kernels::check(reader, &mut findings);
    files::check(reader, &mut findings);
    findings.finish()
}

/// Checks a model by itself.
pub(crate) fn model(reader: &ModelReader) -> Vec<Diagnosis> {
    let mut findings = Findings::default();
    model::check(reader, &mut findings);
    model::bare(reader, &mut findings);
    findings.finish()
}

/// Diagnoses in order, of which a rule lists so many and counts the others: a hostile file can have
/// millions of faults.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    diagnoses: Vec<Diagnosis>,
    counts: BTreeMap<(Cow<'static, str>, Option<String>), usize>,
    /// The file of the package that everything is about.
    entry: Option<String>,
}

impl Findings {
    pub(crate) fn push(&mut self, mut diagnosis: Diagnosis) {
        if diagnosis.at.entry.is_none() {
            diagnosis.at.entry.clone_from(&self.entry);
        }
        let key = (diagnosis.rule.clone(), diagnosis.at.entry.clone());
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(1);
        if *count <= LISTED {
            self.diagnoses.push(diagnosis);
        }
    }

    /// Says which file everything from now on is about.
    pub(crate) fn enter(&mut self, entry: Option<String>) {
        self.entry = entry;
    }

    fn finish(mut self) -> Vec<Diagnosis> {
        for ((rule, entry), count) in self.counts {
            let more = count.saturating_sub(LISTED);
            if more > 0 {
                let mut diagnosis = Diagnosis::note(rule, format!("{more} more are not listed"));
                diagnosis.at.entry = entry;
                self.diagnoses.push(diagnosis);
            }
        }
        self.diagnoses
    }
}

/// Diagnoses of one rule about one file that are listed.
const LISTED: usize = 64;
