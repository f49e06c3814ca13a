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

use std::collections::HashSet;

use tensor_core::{Budget, Chain, Finding, Limit, Report};

use crate::{Diagnoses, Diagnosis, Error, Reaction, Reader};

pub use operators::is_builtin_custom;

impl Reader {
    /// Reports every fault that opening does not prove to be absent, and reads every byte of every
    /// constant.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many bytes were done each time some
    /// are; in all it is the length of the file.
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        let mut report = self.lint();
        let left = Budget::new("bytes of the model", self.source().len(), Limit::Expansion);
        let done = |bytes: u64| {
            let bytes = bytes.min(left.left());
            left.spend(bytes);
            progress(bytes);
        };
        self.read_constants(done, &mut report);
        progress(left.left());
        report
    }

    /// Reports what can be said without a look at the bytes of constants, as onert's reactions can.
    #[must_use]
    pub fn lint(&self) -> Report {
        self.found().into_report()
    }

    /// Reads all constants, as the format has no digests that could be compared.
    fn read_constants(&self, done: impl Fn(u64), report: &mut Report) {
        let budget = Budget::sharing("bytes of all constants", self.limits(), self.source().len());
        let mut seen = HashSet::new();
        for constant in self.tensors() {
            // What has no place in the file was reported already.
            let Ok(extent) = constant.stored_extent() else { continue };
            // Constants may share their bytes, wholly or in part.
            if !seen.insert((extent.offset(), extent.len())) {
                continue;
            }
            let is_allowed = budget.take(extent.len()).map_err(Error::from);
            if let Err(error) = is_allowed.and_then(|()| constant.touch(&done)) {
                let at = error.at().path(constant.path());
                report.add(Finding::error(error.rule(), Chain(&error).to_string()).at(at));
            }
        }
    }

    /// Returns what [`lint`](Self::lint) reports, with what onert does about each thing.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        self.found().finish()
    }

    fn found(&self) -> Diagnoses {
        let mut found = Diagnoses::default();
        self.diagnose(&mut found);
        model::bare(self, &mut found);
        found
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
