//! Every rule of the format over every byte of a carton.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, BufRead},
};

use model_archive::{Class, Entry, EntryReader, Fault, Kind, name};
use tensor_core::{Finding, Report, parallel};

use self::documents::Documents;
use crate::{
    Error, File, FileReader, Place, Reader, Result, Tensor, TensorKind,
    paths::{CARTON_TOML, INDEX, LINKS},
    tensor::{check_strings_len, count_strings},
};

mod calls;
pub(crate) mod documents;

impl Reader {
    /// Applies every rule to every byte that is here: the archive, digests, documents, references,
    /// tensors, links.
    ///
    /// Every stored byte is read once, on up to [`threads`](crate::ReadOptions::threads) threads, in
    /// memory that does not grow with the size of the files. What is only linked is not fetched.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many bytes of content were done
    /// each time some are.
    #[must_use]
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        let scan = Scan { reader: self };
        let (mut report, is_within) = scan.structure();
        if is_within {
            // What was found while a document was parsed is found again while it is hashed.
            report.append(scan.contents(&progress).without(&report));
        }
        report
    }

    /// Applies the rules that need neither the content of the model nor that of tensors: those of
    /// the archive, of the documents and of what they refer to.
    #[must_use]
    pub fn lint(&self) -> Report {
        Scan { reader: self }.structure().0
    }

    /// Applies to the files of string tensors, which are documents, what [`lint`](Self::lint) leaves
    /// to [`validate`](Self::validate); no other content is read.
    #[must_use]
    pub fn lint_strings(&self) -> Report {
        // What would decode to too much is not read, as there.
        if self.archive().is_some_and(|archive| archive.check_total().is_err()) {
            return Report::default();
        }
        let scan = Scan { reader: self };
        let texts = scan.texts();
        let files = texts.keys().map(|index| File::new(self, *index));
        scan.files(files.filter(|file| file.place() == Place::Here).collect(), &texts, &|_| ())
    }

    /// Returns how many bytes of content [`validate_with`](Self::validate_with) reads.
    #[must_use]
    pub fn content_len(&self) -> u64 {
        match self.archive() {
            Some(archive) => archive.total_size(),
            None => self.files().filter_map(|file| file.len().ok()).fold(0, u64::saturating_add),
        }
    }
}

struct Scan<'a> {
    reader: &'a Reader,
}

impl<'a> Scan<'a> {
    /// Everything but content, and whether that may be read.
    fn structure(&self) -> (Report, bool) {
        let (reader, mut report) = (self.reader, Report::default());
        let mut budget = Ok(());
        if let Some(archive) = reader.archive() {
            report.append(archive.lint_with(reader.read_options().profile));
            budget = archive.check_total();
        }
        reader.manifest().report_to(&mut report);
        if let Some(links) = reader.links() {
            links.report_to(&mut report);
        }
        self.agreement(&mut report);
        let len = |line| File::new(reader, line).len_here();
        let documents = Documents::new(reader.manifest(), &len);
        documents.lint_places(&mut report);
        let is_within = budget.is_ok();
        match budget {
            Ok(()) => self.documents(&documents, &mut report),
            // What it would decode to is more than anyone should wait for.
            Err(error) => report.add(Error::from(error).finding()),
        }
        (report, is_within)
    }

    /// `MANIFEST` against what is there and what is linked.
    fn agreement(&self, report: &mut Report) {
        let reader = self.reader;
        let unlisted = match reader.unlisted() {
            Ok(paths) => paths,
            Err(error) => return report.add(error.finding()),
        };
        for path in unlisted {
            let message = "is in the carton, but not listed in MANIFEST";
            report.add(Finding::error("carton/unlisted-file", message).entry(path));
        }
        let (mut linked, mut digests) = (0_u64, BTreeSet::new());
        for file in reader.files() {
            digests.insert(file.sha256());
            match file.place() {
                Place::Here => {}
                Place::Linked if self.has_url(file) => linked = linked.saturating_add(1),
                Place::Linked => {
                    let path = file.path();
                    let message =
                        format!("{path:?} is not in the carton, and LINKS has no URL for it");
                    report.add(Finding::error("carton/missing-file", message).entry(path));
                }
                Place::Missing => {
                    let path = file.path().to_owned();
                    report.add(Error::MissingFile { path }.finding());
                }
            }
        }
        if linked > 0 {
            let message = match linked {
                1 => "1 file is only linked; its content is not checked".to_owned(),
                _ => format!("{linked} files are only linked; their content is not checked"),
            };
            report.add(Finding::note("carton/linked", message).entry(LINKS));
        }
        for (sha256, _) in reader.links().into_iter().flat_map(crate::Links::iter) {
            if !digests.contains(&sha256) {
                let finding = Finding::note("carton/unused-link", "is the digest of no file");
                report.add(finding.entry(LINKS).path(format!("urls.{sha256}")));
            }
        }
        self.paths(report);
    }

    fn has_url(&self, file: File<'_>) -> bool {
        let urls = self.reader.links().and_then(|links| links.urls(file.sha256()));
        urls.is_some_and(|urls| !urls.is_empty())
    }

    /// Paths that not every system tells apart, as far as they are not names of the archive, which
    /// has findings of its own for those.
    fn paths(&self, report: &mut Report) {
        let reader = self.reader;
        let is_entry = |path: &str| reader.archive().is_some_and(|a| a.entry(path).is_some());
        if reader.files().all(|file| is_entry(file.path())) {
            return;
        }
        let mut folded: HashMap<String, &str> = HashMap::new();
        for file in reader.files() {
            let path = file.path();
            if let Err(fault) = name::check_portable(path)
                && !is_entry(path)
            {
                let severity = Class::Strict.severity(reader.read_options().profile);
                let (rule, message) = ("carton/unportable-path", format!("path {fault}"));
                report.add(Finding::new(severity, rule, message).entry(path));
            }
            if let Some(other) = folded.insert(name::fold(path), path)
                && !(is_entry(path) && is_entry(other))
            {
                let message = format!(
                    "path collides with {other:?} where case and composition of letters do not \
                     count"
                );
                report.add(Finding::warning("carton/path-case", message).entry(path));
            }
        }
    }

    /// The documents and what they refer to.
    fn documents(&self, documents: &Documents<'_>, report: &mut Report) {
        let index = self.read(INDEX, Reader::index, report);
        if let Some(index) = index {
            documents.lint_index(index, report);
        }
        if let Some(parsed) = self.read(CARTON_TOML, Reader::parsed, report) {
            documents.lint_description(parsed, index, report);
        }
    }

    /// Reads a document that is here, or is said not to be.
    fn read<T>(
        &self,
        path: &str,
        read: impl FnOnce(&'a Reader) -> Result<&'a T>,
        report: &mut Report,
    ) -> Option<&'a T> {
        // What is not here has its own finding.
        self.reader.file(path).filter(|file| file.place() == Place::Here)?;
        match read(self.reader) {
            Ok(document) => Some(document),
            Err(error) => {
                report.add(error.finding());
                None
            }
        }
    }

    /// Every byte of content, once.
    fn contents(&self, progress: &(impl Fn(u64) + Sync)) -> Report {
        let (reader, mut report) = (self.reader, Report::default());
        let texts = self.texts();
        let files = reader
            .files()
            .filter(|file| {
                file.place() == Place::Here && !self.is_link_to_listed(*file, &mut report)
            })
            .collect();
        report.append(self.files(files, &texts, progress));
        self.unlisted(progress, &mut report);
        report
    }

    /// Reads files to their ends, of which some are texts of tensors.
    fn files(
        &self,
        mut files: Vec<File<'a>>,
        texts: &HashMap<usize, Vec<Tensor<'a>>>,
        progress: &(impl Fn(u64) + Sync),
    ) -> Report {
        let mut report = Report::default();
        // The longest first, so that no thread starts one when the others are done.
        files.sort_by_cached_key(|file| std::cmp::Reverse(file.len().unwrap_or_default()));
        let threads = self.reader.read_options().thread_count();
        let done = parallel::map(&files, threads, |&file| {
            let mut found = Report::default();
            let tensors = texts.get(&file.index()).map_or(&[][..], Vec::as_slice);
            if let Err(error) = self.content(file, tensors, progress, &mut found) {
                let mut finding = error.finding();
                finding.at.entry.get_or_insert_with(|| file.path().to_owned());
                found.add(finding);
            }
            (file.index(), found)
        });
        let done: BTreeMap<usize, Report> = done.into_iter().collect();
        for found in done.into_values() {
            report.append(found);
        }
        report
    }

    /// Reads a file to its end; `tensors` are those whose texts it has.
    fn content(
        &self,
        file: File<'a>,
        tensors: &[Tensor<'a>],
        progress: &(impl Fn(u64) + Sync),
        report: &mut Report,
    ) -> Result<()> {
        let mut stream = file.checked_reader()?;
        let mut text = Vec::new();
        if !tensors.is_empty() {
            check_strings_len(file.stored()?.len(), self.reader.limits())?;
        }
        let drained = drain(&mut stream, |bytes| {
            if !tensors.is_empty() {
                text.extend_from_slice(bytes);
            }
            progress(bytes.len() as u64);
        });
        if let Err(error) = drained.map_err(FileReader::fault) {
            // A checksum is compared once everything is read: the digest tells whether it is the
            // content that is wrong.
            if error.rule() == CRC
                && let Some(digest) = stream.wrong_digest()
            {
                report.add(digest.finding());
            }
            return Err(error);
        }
        self.coding(file.path(), stream.frames(), stream.leftover(), report);
        if tensors.is_empty() {
            return Ok(());
        }
        let found = count_strings(file.path(), &text, report)?;
        for tensor in tensors {
            if let Err(error) = tensor.check_count(found) {
                report.add(error.finding().at(tensor.entry().at()));
            }
        }
        Ok(())
    }

    /// What readers may not take in the coding of an entry.
    fn coding(&self, path: &str, found: u64, bytes: u64, report: &mut Report) {
        let mut faults = Vec::new();
        faults.extend((bytes > 0).then_some(Fault::Leftover { bytes }));
        faults.extend((found > 1).then_some(Fault::Frames { found }));
        for fault in faults {
            let severity = fault.class().severity(self.reader.read_options().profile);
            report.add(Finding::new(severity, fault.rule(), fault.to_string()).entry(path));
        }
    }

    /// Tells whether a file is a link to another that is listed and read; the digests are compared.
    fn is_link_to_listed(&self, file: File<'a>, report: &mut Report) -> bool {
        let Some(entry) = file.entry().filter(|entry| entry.info().kind == Kind::Symlink) else {
            return false;
        };
        // A broken link has its own finding.
        let Ok(target) = entry.resolve() else { return true };
        let Some(expected) = self.reader.file(target.name()).map(File::sha256) else {
            return false;
        };
        let found = file.sha256();
        if found != expected {
            let message = format!(
                "is a link to {:?}, but MANIFEST has digest {found} for it and {expected} for its \
                 target",
                target.name()
            );
            report.add(Finding::error("carton/digest", message).entry(file.path()));
        }
        true
    }

    /// The content of what `MANIFEST` does not list: it belongs to the archive.
    fn unlisted(&self, progress: &(impl Fn(u64) + Sync), report: &mut Report) {
        let Some(archive) = self.reader.archive() else { return };
        for entry in archive.entries() {
            let name = entry.name();
            if self.reader.file(name).is_some() || entry.info().kind == Kind::Symlink {
                continue;
            }
            match unlisted_coding(entry) {
                Ok((frames, leftover)) => self.coding(name, frames, leftover, report),
                Err(error) => {
                    let mut finding = error.finding(self.reader.read_options().profile);
                    finding.at.entry.get_or_insert_with(|| name.to_owned());
                    report.add(finding);
                }
            }
            progress(entry.info().size);
        }
    }

    /// Returns the tensors of texts by the file whose content they have: of a link, that of its
    /// target, which is the one that is read.
    fn texts(&self) -> HashMap<usize, Vec<Tensor<'a>>> {
        let mut texts: HashMap<usize, Vec<Tensor<'a>>> = HashMap::new();
        // What is only linked is not fetched.
        let is_here = self.reader.file(INDEX).is_some_and(|file| file.place() == Place::Here);
        let Some(index) = is_here.then(|| self.reader.index().ok()).flatten() else { return texts };
        for entry in index.entries() {
            let tensor = Tensor::new(self.reader, entry);
            let is_counted = tensor.shape().is_some_and(|shape| shape.elements().is_ok());
            if tensor.kind() != TensorKind::Strings || !is_counted {
                continue;
            }
            let Ok(Some(file)) = tensor.file() else { continue };
            let target = file.entry().and_then(|entry| entry.resolve().ok());
            let target = target.and_then(|entry| self.reader.file(entry.name()));
            texts.entry(target.unwrap_or(file).index()).or_default().push(tensor);
        }
        texts
    }
}

/// Reads a stream to its end.
fn drain(stream: &mut impl BufRead, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    loop {
        let ready = stream.fill_buf()?;
        if ready.is_empty() {
            return Ok(());
        }
        each(ready);
        let taken = ready.len();
        stream.consume(taken);
    }
}

/// Reads an entry to its end; returns how many frames it has and how many bytes stand behind them.
fn unlisted_coding(entry: Entry<'_>) -> model_archive::Result<(u64, u64)> {
    if entry.info().kind == Kind::Folder {
        entry.verify()?;
        return Ok((0, 0));
    }
    let mut stream = entry.reader()?;
    drain(&mut stream, |_| ()).map_err(EntryReader::fault)?;
    Ok((stream.frames(), stream.leftover()))
}

/// The rule of a wrong checksum.
const CRC: &str = "zip/crc";
