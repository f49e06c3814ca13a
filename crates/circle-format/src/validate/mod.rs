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
mod runtime;
mod strings;
mod training;

use std::{collections::HashSet, path::Path};

use tensor_core::{At, Budget, Chain, Finding, Limit, Report};

use crate::{
    Diagnoses, Diagnosis, Error, Reaction, Reader, Result, Schema, Tensor, model::TensorType,
};

pub use runtime::is_builtin_custom;

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

    /// Reports what can be said without a look at the bytes of constants. What onert does is said of
    /// Circle models, which are its own; of TFLite models by [`lint_for_onert`](Self::lint_for_onert).
    #[must_use]
    pub fn lint(&self) -> Report {
        match self.model().schema {
            Schema::Circle => self.found().into_report(),
            Schema::Tflite => {
                let found = self.diagnoses().into_iter().filter(|found| !found.is_about_onert());
                report(found.map(|found| Diagnosis { onert: None, ..found }))
            }
        }
    }

    /// Reports what [`lint`](Self::lint) leaves out: what is as it should be and stops onert alone,
    /// and a file name that does so, where there is one.
    #[must_use]
    pub fn lint_for_onert(&self, path: Option<&Path>) -> Report {
        let mut found = Diagnoses::default();
        if self.model().schema == Schema::Tflite {
            found = self.found();
        }
        path.into_iter().for_each(|path| model::named(path, &mut found));
        report(found.finish().into_iter().filter(Diagnosis::is_about_onert))
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
            let read = is_allowed.and_then(|()| {
                constant.touch(&done)?;
                strings(constant)
            });
            match read {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let finding = Finding::error("model/string-constant", message);
                    report.add(finding.at(At::file().path(constant.path())));
                }
                Err(error) => {
                    let at = error.at().path(constant.path());
                    report.add(Finding::error(error.rule(), Chain(&error).to_string()).at(at));
                }
            }
        }
    }

    /// Returns everything that is found without a look at the bytes of constants, with what onert
    /// does about each thing.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        self.found().finish()
    }

    /// Like [`diagnoses`](Self::diagnoses), but of a file of this name: onert takes the type of a
    /// model that is in no package from the extension.
    #[must_use]
    pub fn diagnoses_at(&self, path: &Path) -> Vec<Diagnosis> {
        let mut found = Diagnoses::default();
        model::named(path, &mut found);
        self.diagnose(&mut found);
        model::bare(self, &mut found);
        found.finish()
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

    /// Returns what stops onert 0.1.0 on the model, or makes it go wrong, what it was not tried with,
    /// or what it needs, as far as that follows from the structure; `None` where nothing does.
    #[must_use]
    pub fn forecast(&self) -> Option<Reaction> {
        Diagnosis::forecast(&self.diagnoses())
    }
}

/// Finds out what is wrong with a constant, where it is one of texts.
fn strings(constant: Tensor<'_>) -> Result<Option<String>> {
    let Some(tensor) = constant.tensor().filter(|tensor| tensor.tensor_type == TensorType::String)
    else {
        return Ok(None);
    };
    // A negative dimension has a finding of its own.
    let elements = tensor.shape().and_then(|shape| shape.elements().ok());
    elements.map_or(Ok(None), |elements| strings::fault(constant, elements))
}

fn report(diagnoses: impl Iterator<Item = Diagnosis>) -> Report {
    let mut report = Report::default();
    report.extend(diagnoses.map(Diagnosis::into_finding));
    report
}
