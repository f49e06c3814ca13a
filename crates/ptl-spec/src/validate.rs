//! What opening a file does not prove.

use std::io::{BufRead as _, BufReader, Read as _};

use tensor_core::{Extent, Finding, Report, parallel, text::short};

use crate::{
    Bytecode, Error, File, Reader, SPEC, Spec, Tensor,
    file::FileReader,
    pickle::foreign,
    zip::{BYTECODE, CONSTANTS, DATA},
};

impl Reader {
    /// Reports every fault that opening does not prove to be absent, and what someone should mend:
    /// the container, code and tensors, the spec, and whether the spec fits the method `forward`.
    ///
    /// Every byte that is listed is read once, to compare the checksums of records and to prove that
    /// a FlatBuffer can be read; pickles that are no part of the model are read again, and name what
    /// Python would look up.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many stored bytes were done each
    /// time a part is finished.
    #[must_use]
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        report(self, Some(&progress))
    }

    /// Reports what [`validate`](Self::validate) can say without reading what tensors hold.
    #[must_use]
    pub fn lint(&self) -> Report {
        report(self, None)
    }

    /// Reports on the text of a spec, and whether it fits the method that it is for.
    pub(crate) fn lint_spec(&self, text: &[u8]) -> Report {
        let mut report = Report::default();
        if text.starts_with("\u{feff}".as_bytes()) {
            let message = "the spec starts with a byte order mark, which strict JSON does not have";
            report.add(Finding::warning("ptl/spec-byte-order-mark", message).entry(SPEC));
        }
        report.append(Spec::options().lint(text).in_entry(SPEC));
        let forward = self.bytecode().ok().and_then(Bytecode::forward);
        if let (Ok(spec), Some(forward)) = (Spec::parse(text), forward) {
            report.append(spec.lint_against(forward));
        }
        report
    }
}

/// Told how many bytes were read since it was told last.
type Progress<'p> = &'p (dyn Fn(u64) + Sync);

fn report(reader: &Reader, progress: Option<Progress<'_>>) -> Report {
    let mut report = Report::default();
    reader.body().lint(reader.limits(), &mut report);
    if let Some(progress) = progress {
        read_all(reader, progress, &mut report);
        pickles(reader, &mut report);
    }
    code(reader, &mut report);
    tensors(reader, progress.is_some(), &mut report);
    spec(reader, progress.is_some(), &mut report);
    report
}

/// Reads every record and compares its checksum; without records, all of the file.
fn read_all(reader: &Reader, progress: Progress<'_>, report: &mut Report) {
    let records: Vec<File<'_>> = reader.records().collect();
    // Threads are not worth their start for a small file.
    let is_small = reader.source().len() < SMALL;
    let threads = if is_small { std::num::NonZeroUsize::MIN } else { reader.threads() };
    let verified = parallel::map(&records, threads, |record| {
        let verified = record.verify();
        progress(record.stored_len());
        verified
    });
    for (record, verified) in records.iter().zip(verified) {
        if let Err(error) = verified {
            let mut finding = error.finding().entry(record.path());
            if let Error::Archive(error) = &error {
                finding.rule = error.rule().into();
            }
            report.add(finding);
        }
    }
    if records.is_empty()
        && let Err(error) = read_through(reader, progress)
    {
        report.add(error.finding());
    }
}

fn read_through(reader: &Reader, progress: Progress<'_>) -> Result<(), Error> {
    let source = reader.source();
    let mut stream = source.stream(Extent::first(source.len()), "FlatBuffer")?;
    let mut buffer = vec![0; PIECE];
    loop {
        match stream.read(&mut buffer).map_err(FileReader::error)? {
            0 => return Ok(()),
            read => progress(read as u64),
        }
    }
}

/// Looks at pickles that are no part of the model: who reads them with Python may call what they name.
fn pickles(reader: &Reader, report: &mut Report) {
    let is_storage =
        |name: &str| ["data/", "constants/"].iter().any(|folder| name.starts_with(folder));
    let is_read = |name: &str| [BYTECODE, CONSTANTS, DATA].contains(&name);
    // That they cannot be listed was said by the container.
    let files = reader.files().into_iter().flatten();
    for file in files.filter(|file| !is_read(file.path()) && !is_storage(file.path())) {
        // What cannot be read was reported with all that is.
        let Ok(stream) = file.reader() else { continue };
        let mut stream = BufReader::new(stream);
        let is_pickle = file.path().ends_with("pkl")
            || stream.fill_buf().is_ok_and(|start| matches!(start, [0x80, 0..=5, ..]));
        if let (true, Ok(Some(name))) = (is_pickle, foreign(stream)) {
            let message =
                format!("is a pickle that names {:?}, which no model needs", short(&name));
            report.add(Finding::warning("ptl/foreign-pickle", message).entry(file.path()));
        }
    }
}

fn code(reader: &Reader, report: &mut Report) {
    let bytecode = match reader.bytecode() {
        Ok(bytecode) => bytecode,
        Err(error) => return report.add(error.finding().entry(BYTECODE)),
    };
    let version = bytecode.version;
    match bytecode.readers() {
        Some(readers) => {
            let message = format!("bytecode version {version} is read by {readers}");
            report.add(Finding::note("ptl/bytecode-version", message));
        }
        None => {
            let message = format!("bytecode version is {version}, expected 4 to 9");
            report.add(Finding::error("ptl/bytecode-version", message));
        }
    }
    if bytecode.forward().is_none() {
        let message = "there is no method forward, which calls go to";
        report.add(Finding::warning("ptl/no-forward", message));
    }
}

fn tensors(reader: &Reader, reads_data: bool, report: &mut Report) {
    let listing = match reader.listing() {
        Ok(listing) => listing,
        Err(error) => return report.add(error.finding()),
    };
    for tensor in listing.tensors.iter().map(|stored| Tensor::new(reader, stored)) {
        for part in [Some(tensor), tensor.scales(), tensor.zero_points()].into_iter().flatten() {
            if let Err(error) = part.check() {
                report.add(error.finding().tensor(part.name()));
            }
        }
    }
    for stored in listing.repeated() {
        let message = format!("tensor {:?} has the name of another", short(&stored.name));
        report.add(Finding::warning("ptl/duplicate-tensor", message).tensor(&stored.name));
    }
    for sparse in reader.sparse_tensors().into_iter().flatten() {
        // PyTorch stores them as they are: what is longer than the file is a bomb, or next to it.
        let is_long = sparse.index_len() > reader.source().len();
        let checked = if is_long || !reads_data { sparse.check() } else { sparse.check_indices() };
        match checked {
            // What is wrong with a part alone was reported with the others.
            Err(ref error @ Error::Tensor { ref name, .. }) if *name == sparse.name() => {
                report.add(error.finding());
            }
            _ if is_long => {
                let name = sparse.name();
                let message =
                    format!("indices of {name:?} are longer than the file: not looked at");
                report.add(Finding::warning("ptl/long-indices", message).tensor(name));
            }
            _ => {}
        }
    }
}

fn spec(reader: &Reader, reads_data: bool, report: &mut Report) {
    let missing = |message: &str, report: &mut Report| {
        report.add(Finding::warning("ptl/no-spec", message).entry(SPEC));
    };
    let text = match reader.spec_text() {
        Ok(Some(text)) => text,
        Ok(None) if reader.extra_file(SPEC).is_some() => {
            return missing("the spec is empty, which runtimes take for none", report);
        }
        Ok(None) => {
            let elsewhere =
                reader.records().find(|record| record.path().ends_with("live.spec.json"));
            return match elsewhere {
                Some(record) => missing(
                    &format!("the spec is {:?}, expected \"extra/{SPEC}\"", record.path()),
                    report,
                ),
                None => missing("there is no spec in the file", report),
            };
        }
        // Its checksum was reported with the other records.
        Err(Error::Archive(_)) if reads_data => return,
        Err(error) => return report.add(error.finding().entry(SPEC)),
    };
    report.append(reader.lint_spec(&text));
}

/// A file of fewer bytes is read by one thread.
const SMALL: u64 = 4 << 20;
/// What is read at once of a FlatBuffer, in bytes.
const PIECE: usize = 1 << 20;
