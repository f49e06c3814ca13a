//! What opening does not prove, with what onert does about it.
//!
//! An error breaks the format's text, lies, or is unsafe to read. A warning is what some readers
//! tolerate. Whether onert loads a model at all is another question, which each diagnosis answers
//! for itself: much of what the format allows it cannot run.

mod constants;
mod graph;
mod model;
mod operators;
mod quantization;
mod training;

use tensor_core::Report;

use crate::{Diagnoses, Diagnosis, Reaction, Reader};

pub use operators::is_builtin_custom;

impl Reader {
    /// Reports every fault that opening does not prove to be absent. Bytes of constants are not
    /// read.
    #[must_use]
    pub fn validate(&self) -> Report {
        let mut report = Report::default();
        for diagnosis in self.diagnoses() {
            diagnosis.report_to(&mut report);
        }
        report
    }

    /// Returns what [`validate`](Self::validate) reports, with what onert does about each thing.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        let mut found = Diagnoses::default();
        self.diagnose(&mut found);
        model::bare(self, &mut found);
        found.finish()
    }

    /// Adds what is found in the model wherever it is, in a package or bare.
    pub fn diagnose(&self, found: &mut Diagnoses) {
        model::check(self, found);
    }

    /// Returns what stops onert 0.1.0 on the model, or makes it go wrong, as far as that follows
    /// from its structure; `None` where nothing does.
    #[must_use]
    pub fn forecast(&self) -> Option<Reaction> {
        Diagnosis::forecast(&self.diagnoses())
    }
}
