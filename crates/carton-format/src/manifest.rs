//! `MANIFEST`: the digest of every file of a carton. Format text: "MANIFEST".

use std::ops::Range;

use model_archive::name;
use tensor_core::{Finding, Limit, Limits, Report};

use crate::{
    Error, ManifestFault, Result, Sha256,
    paths::{LINKS, MANIFEST, MANIFEST_BYTES},
};

/// The files of a carton and their digests: one line each, `path=sha256`.
#[derive(Clone, Debug)]
pub struct Manifest {
    text: String,
    /// Sorted by path.
    lines: Vec<Line>,
    model_hash: Sha256,
    flaws: Vec<(u64, ManifestFault)>,
}

#[derive(Clone, Debug)]
struct Line {
    path: Range<usize>,
    sha256: Sha256,
    /// Counted from 1.
    number: u64,
}

impl Manifest {
    /// Reads the bytes of a `MANIFEST`.
    ///
    /// # Errors
    ///
    /// [`Error::Manifest`] with the first line that is not a path and a digest, or names a path that is
    /// unsafe, stands twice, or is never listed; [`Error::Core`] where it is over
    /// [`Limits::manifest_bytes`].
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        limits.check(Limit::ManifestBytes, MANIFEST_BYTES, bytes.len() as u64)?;
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let line = good.iter().filter(|&&byte| byte == b'\n').count() as u64;
                return Err(fault(line.saturating_add(1), ManifestFault::NotUtf8));
            }
        };
        let mut manifest =
            Self { text, lines: Vec::new(), model_hash: Sha256::digest(bytes), flaws: Vec::new() };
        manifest.read_lines(limits)?;
        manifest.sort()?;
        manifest.check_folders()?;
        Ok(manifest)
    }

    /// Makes the canonical form of a list of files: sorted by path, one line each.
    ///
    /// # Errors
    ///
    /// [`Error::Manifest`] where a path is unsafe, stands twice, or is never listed; its line is
    /// the one that it would have.
    pub fn from_files(
        files: impl IntoIterator<Item = (String, Sha256)>,
        limits: &Limits,
    ) -> Result<Self> {
        let mut files: Vec<(String, Sha256)> = files.into_iter().collect();
        files.sort();
        let text: String =
            files.iter().map(|(path, sha256)| format!("{path}={sha256}\n")).collect();
        Self::parse(text.as_bytes(), limits)
    }

    /// Returns the digest of the whole text, which identifies the model whatever its archive.
    #[must_use]
    pub const fn model_hash(&self) -> Sha256 {
        self.model_hash
    }

    /// Returns the text as it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the number of files.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.lines.len()
    }

    /// Tells whether there is no file.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns paths and digests, sorted by path.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, Sha256)> {
        self.lines.iter().map(|line| (self.path(line), line.sha256))
    }

    /// Returns the digest of a file; `None` where it is not listed.
    #[must_use]
    pub fn sha256(&self, path: &str) -> Option<Sha256> {
        self.lines.get(self.position(path)?).map(|line| line.sha256)
    }

    /// Adds what readers tolerate to a report.
    pub(crate) fn report_to(&self, report: &mut Report) {
        for (line, fault) in &self.flaws {
            let finding = Finding::warning(fault.rule(), fault.to_string());
            report.add(finding.entry(MANIFEST).line(*line));
        }
    }

    pub(crate) fn position(&self, path: &str) -> Option<usize> {
        self.lines.binary_search_by(|line| self.path(line).cmp(path)).ok()
    }

    pub(crate) fn path_at(&self, index: usize) -> &str {
        self.lines.get(index).map_or("", |line| self.path(line))
    }

    pub(crate) fn sha256_at(&self, index: usize) -> Option<Sha256> {
        self.lines.get(index).map(|line| line.sha256)
    }

    fn path(&self, line: &Line) -> &str {
        self.text.get(line.path.clone()).unwrap_or_default()
    }

    fn read_lines(&mut self, limits: &Limits) -> Result<()> {
        let (mut start, mut number, mut has_return) = (0, 0_u64, false);
        while let Some(rest) = self.text.get(start..).filter(|rest| !rest.is_empty()) {
            number = number.saturating_add(1);
            let fault = |kind| fault(number, kind);
            let end = rest.find('\n');
            let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let next = start.saturating_add(line.len()).saturating_add(1);
            if end.is_none() {
                self.flaws.push((number, ManifestFault::NoNewline));
            }
            let line = match line.strip_suffix('\r') {
                Some(line) => {
                    // Where one line ends so, the others do too.
                    if !has_return {
                        self.flaws.push((number, ManifestFault::CarriageReturn));
                    }
                    has_return = true;
                    line
                }
                None => line,
            };
            // A path may hold the sign too.
            let Some((path, digest)) = line.rsplit_once('=') else {
                return Err(fault(ManifestFault::NoDigest { found: line.to_owned() }));
            };
            let Ok(sha256) = digest.parse() else {
                let found = digest.to_owned();
                return Err(fault(ManifestFault::Digest { found }));
            };
            if digest.contains(|digit: char| digit.is_ascii_uppercase()) {
                self.flaws.push((number, ManifestFault::UpperCase { path: path.to_owned() }));
            }
            check_path(path, limits).map_err(fault)?;
            let path = start..start.saturating_add(path.len());
            self.lines.push(Line { path, sha256, number });
            start = next;
        }
        Ok(())
    }

    /// Sorts the lines, and refuses a path that stands twice.
    fn sort(&mut self) -> Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        let unsorted = lines.windows(2).find_map(|pair| match pair {
            [a, b] if self.path(a) >= self.path(b) => Some(b),
            _ => None,
        });
        if let Some(line) = unsorted {
            let fault = ManifestFault::Unsorted { path: self.path(line).to_owned() };
            self.flaws.push((line.number, fault));
            lines.sort_by(|a, b| self.path(a).cmp(self.path(b)));
        }
        for pair in lines.windows(2) {
            if let [a, b] = pair
                && self.path(a) == self.path(b)
            {
                let path = self.path(b).to_owned();
                return Err(fault(b.number, ManifestFault::Duplicate { path }));
            }
        }
        self.lines = lines;
        Ok(())
    }

    /// Refuses a path that lies in another, as if that were a folder.
    fn check_folders(&self) -> Result<()> {
        for pair in self.lines.windows(2) {
            let [file, next] = pair else { continue };
            // Most paths are followed by one that does not start with them.
            if !self.path(next).starts_with(self.path(file)) {
                continue;
            }
            // What lies in it need not come right behind it: "a" is followed by "a b" and "a/b".
            let inside = format!("{}/", self.path(file));
            let first = self.lines.partition_point(|line| self.path(line) < &*inside);
            if let Some(inner) = self.lines.get(first)
                && self.path(inner).starts_with(&inside)
            {
                let (path, file) = (self.path(inner).to_owned(), self.path(file).to_owned());
                return Err(fault(inner.number, ManifestFault::FileAndFolder { path, file }));
            }
        }
        Ok(())
    }
}

/// Checks a path of a file of a carton: safe, and none that is never listed.
pub(crate) fn check_path(path: &str, limits: &Limits) -> Result<(), ManifestFault> {
    let owned = || path.to_owned();
    if [MANIFEST, LINKS].contains(&path) {
        return Err(ManifestFault::Itself { path: owned() });
    }
    name::check(path, limits).map_err(|fault| ManifestFault::Path { path: owned(), fault })?;
    if path.ends_with('/') {
        return Err(ManifestFault::Folder { path: owned() });
    }
    Ok(())
}

fn fault(line: u64, fault: ManifestFault) -> Error {
    Error::Manifest { line, fault }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "90ab90ab90ab90ab90ab90ab90ab90ab90ab90ab90ab90ab90ab90ab90ab90ab";

    fn parse(text: &str) -> Result<Manifest> {
        Manifest::parse(text.as_bytes(), &Limits::default())
    }

    #[track_caller]
    fn rejects(text: &str, message: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }

    #[track_caller]
    fn warns(text: &str, messages: &[&str]) {
        let mut report = Report::default();
        parse(text).unwrap().report_to(&mut report);
        let found: Vec<&str> = report.findings().iter().map(|finding| &*finding.message).collect();
        assert_eq!(found, messages);
    }

    #[test]
    fn canonical_form_has_no_flaws() {
        let files = ["model/b", "model/a=1", "carton.toml", "model/ünï"];
        let files = files.map(|path| (path.to_owned(), Sha256::digest(path.as_bytes())));
        let manifest = Manifest::from_files(files, &Limits::default()).unwrap();
        warns(manifest.as_str(), &[]);
        let paths: Vec<&str> = manifest.files().map(|(path, _)| path).collect();
        assert_eq!(paths, ["carton.toml", "model/a=1", "model/b", "model/ünï"]);
        assert_eq!(manifest.sha256("model/a=1"), Some(Sha256::digest(b"model/a=1")));
        assert_eq!(manifest.sha256("model/a"), None);
        assert_eq!(manifest.model_hash(), Sha256::digest(manifest.as_str().as_bytes()));
    }

    proptest! {
        #[test]
        fn any_manifest_reads_back(
            files in proptest::collection::btree_map("[a-z= é.]{1,3}(/[a-z=]{1,2}){0,2}", any::<[u8; 32]>(), 0..9)
        ) {
            let list = files.iter().map(|(path, digest)| (path.clone(), Sha256(*digest)));
            // Some paths have dots alone, or lie in others.
            let Ok(manifest) = Manifest::from_files(list.clone(), &Limits::default()) else {
                return Ok(());
            };
            let again = parse(manifest.as_str()).unwrap();
            prop_assert_eq!(again.model_hash(), manifest.model_hash());
            prop_assert!(again.flaws.is_empty());
            let read = again.files().map(|(path, sha256)| (path.to_owned(), sha256));
            prop_assert!(read.eq(list.clone()));
            // In any order, the same files are found.
            let shuffled: Vec<&str> = manifest.as_str().lines().rev().collect();
            let shuffled: String = shuffled.iter().map(|line| format!("{line}\n")).collect();
            let shuffled = parse(&shuffled).unwrap();
            for (path, sha256) in list {
                prop_assert_eq!(shuffled.sha256(&path), Some(sha256));
            }
        }
    }

    #[test]
    fn nothing_listed() {
        let manifest = parse("").unwrap();
        assert!(manifest.is_empty() && manifest.position("a").is_none());
    }

    #[test]
    fn files_that_others_lie_in() {
        let message =
            |line| format!(r#"MANIFEST line {line}: path "m/a/b" lies in "m/a", which is a file"#);
        let line = |path| format!("{path}={DIGEST}\n");
        rejects(&["m/a", "m/a b", "m/a.c", "m/a/b"].map(line).concat(), &message(4));
        rejects(&["m/a/b", "m/a"].map(line).concat(), &message(1));
        rejects(&["z", "m/a", "m/a-", "m/a/b"].map(line).concat(), &message(4));
        parse(&["m/a", "m/a b", "m/a0/b", "m/aa/b"].map(line).concat()).unwrap();
    }

    #[test]
    fn over_the_limit() {
        let limits = Limits::default().with_manifest_bytes(3);
        let error = Manifest::parse(b"abcd", &limits).unwrap_err();
        assert_eq!(
            error.to_string(),
            "MANIFEST in bytes is 4, over the limit of 3 (Limits::manifest_bytes)"
        );
    }
}
