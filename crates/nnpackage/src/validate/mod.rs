//! What opening does not prove, with what onert does about it.
//!
//! An error breaks the format's text, lies, or is unsafe to read. A warning is what some readers
//! tolerate. Whether onert loads a package at all is another question, which each diagnosis answers
//! for itself: much of what the format allows it cannot run.

mod config;
mod contents;
mod files;
mod golden;
mod kernels;
mod models;
mod wiring;

use circle_format::Diagnoses;
use tensor_core::Report;

use crate::{Diagnosis, Reaction, Reader};

impl Reader {
    /// Applies every rule to every byte: those of [`lint`](Self::lint), and that every file of the
    /// package, constants included, can be read and has the checksum of the archive and the digest
    /// of `metadata/SHA256SUMS`, where there is one.
    ///
    /// Every file is read once, on up to [`threads`](crate::ReadOptions::threads) threads, in memory
    /// that does not grow with its size.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many bytes of content were read
    /// each time some are. In all they are [`content_len`](Self::content_len).
    #[must_use]
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        let mut report = self.lint();
        contents::check(self, &progress, &mut report);
        report
    }

    /// Applies the rules that need no bytes of constants: those of the archive, the manifest,
    /// configurations, models, kernels and golden data, and of how they fit together.
    #[must_use]
    pub fn lint(&self) -> Report {
        let profile = self.read_options().profile;
        let mut report =
            self.archive().map(|archive| archive.lint_with(profile)).unwrap_or_default();
        report.append(self.found().into_report());
        report
    }

    /// Returns how many bytes of content [`validate_with`](Self::validate_with) reads.
    #[must_use]
    pub fn content_len(&self) -> u64 {
        if let Some(archive) = self.archive() {
            return archive.total_size();
        }
        let files = self.files().into_iter().flatten();
        files.filter_map(|file| file.len().ok()).fold(0, u64::saturating_add)
    }

    /// Finds what [`lint`](Self::lint) reports about everything but the archive, with what onert
    /// does about each thing.
    #[must_use]
    pub fn diagnoses(&self) -> Vec<Diagnosis> {
        self.found().finish()
    }

    fn found(&self) -> Diagnoses {
        let mut found = self.parsed().findings.clone();
        models::check(self, &mut found);
        wiring::check(self, &mut found);
        config::check(self, &mut found);
        kernels::check(self, &mut found);
        files::check(self, &mut found);
        found
    }

    /// Returns what stops onert 0.1.0 on the unpacked package, or makes it go wrong, as far as that
    /// follows from what is in it; `None` where nothing does. Whoever has the diagnoses already asks
    /// [`Diagnosis::forecast`].
    #[must_use]
    pub fn forecast(&self) -> Option<Reaction> {
        Diagnosis::forecast(&self.diagnoses())
    }
}
