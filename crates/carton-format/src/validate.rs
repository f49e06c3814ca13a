//! Every rule of the format over every byte of a carton.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    io::BufRead as _,
};

use model_archive::{Fault, Kind};
use tensor_core::{At, Report, Severity, parallel, symbolic::Bindings};

use crate::{
    Description, Error, File, FileReader, Named, Place, Reader, Result, Tensor, TensorKind,
    TensorSpec,
    description::ParsedDescription,
    error::report_unknown,
    index::{Content, Index},
    paths::{CARTON_TOML, INDEX, LINKS, MANIFEST, MISC, MODEL, TENSOR_DATA},
    reference::Reference,
    tensor::count_strings,
};

pub(crate) fn validate(reader: &Reader, progress: &(impl Fn(u64) + Sync)) -> Report {
    let mut report = Report::default();
    let mut budget = Ok(());
    if let Some(archive) = reader.archive() {
        report.append(archive.check_as(reader.read_options().graded));
        budget = archive.check_total();
    }
    reader.manifest().report_to(&mut report);
    if let Some(links) = reader.links() {
        links.report_to(&mut report);
    }
    let scan = Scan { reader };
    scan.agreement(&mut report);
    match budget {
        Ok(()) => {
            scan.documents(&mut report);
            scan.contents(progress, &mut report);
        }
        // What it would decode to is more than anyone should wait for.
        Err(error) => Error::from(error).report_to(Severity::Error, &mut report),
    }
    report
}

struct Scan<'a> {
    reader: &'a Reader,
}

impl<'a> Scan<'a> {
    /// `MANIFEST` against what is there and what is linked.
    fn agreement(&self, report: &mut Report) {
        let reader = self.reader;
        let paths = match reader.storage().paths() {
            Ok(paths) => paths,
            Err(error) => return error.report_to(Severity::Error, report),
        };
        for path in paths {
            let is_listed = [MANIFEST, LINKS].contains(&&*path) || reader.file(&path).is_some();
            if !is_listed {
                let message = "is in the carton, but not listed in MANIFEST";
                let at = At::file().entry(path);
                report.push(Severity::Error, "carton/unlisted-file", at, message);
            }
        }
        let (mut linked, mut digests) = (0_u64, BTreeSet::new());
        for file in reader.files() {
            digests.insert(file.sha256());
            match file.place() {
                Place::Here => {}
                Place::Linked => linked = linked.saturating_add(1),
                Place::Missing => {
                    let path = file.path().to_owned();
                    Error::MissingFile { path }.report_to(Severity::Error, report);
                }
            }
        }
        if linked > 0 {
            let message = format!("{linked} files are only linked; their content is not checked");
            report.push(Severity::Note, "carton/linked", At::file().entry(LINKS), message);
        }
        for (sha256, _) in reader.links().into_iter().flat_map(crate::Links::iter) {
            if !digests.contains(&sha256) {
                let at = At::file().entry(LINKS).path(format!("urls.{sha256}"));
                let message = "is the digest of no file";
                report.push(Severity::Note, "carton/unused-link", at, message);
            }
        }
        self.folders(report);
    }

    /// What stands where. Format text: "Carton format".
    fn folders(&self, report: &mut Report) {
        let reader = self.reader;
        let mut note = |severity, rule, path: &str, message: String| {
            report.push(severity, rule, At::file().entry(path), message);
        };
        if reader.file(CARTON_TOML).is_none() {
            let message = format!("carton has no {CARTON_TOML}");
            note(Severity::Error, "carton/missing-document", CARTON_TOML, message);
        }
        let has_model = reader.model().next().is_some();
        if !has_model {
            let message = "carton has no file in the folder model".to_owned();
            note(Severity::Warning, "carton/no-model", MODEL, message);
        }
        let has_index = reader.file(INDEX).is_some();
        let data = reader.files().find(|file| file.path().starts_with(TENSOR_DATA));
        match data {
            Some(file) if !has_index => {
                let path = file.path();
                let message = format!("{path:?} is in tensor_data, but there is no {INDEX}");
                note(Severity::Error, "carton/missing-document", INDEX, message);
            }
            None => {
                let message = format!(
                    "carton has no {INDEX}, which the format's own library needs although it is \
                     optional"
                );
                note(Severity::Note, "carton/no-index", INDEX, message);
            }
            Some(_) => {}
        }
        for file in reader.files() {
            let path = file.path();
            let is_known = path == CARTON_TOML
                || [MODEL, MISC, TENSOR_DATA].iter().any(|folder| path.starts_with(folder));
            if !is_known {
                let message = "is in no folder that the format knows".to_owned();
                note(Severity::Note, "carton/unknown-place", path, message);
            }
        }
    }

    /// The documents and what they refer to.
    fn documents(&self, report: &mut Report) {
        let index = self.read(INDEX, Reader::index, report);
        if let Some(index) = index {
            self.index(index, report);
        }
        let Some(parsed) = self.read(CARTON_TOML, Reader::parsed, report) else { return };
        report.append(parsed.lint());
        self.references(parsed, index, report);
        self.description_links(&parsed.description, report);
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
                error.report_to(Severity::Error, report);
                None
            }
        }
    }

    fn index(&self, index: &'a Index, report: &mut Report) {
        report_unknown(&index.unknown, INDEX, report);
        if let Some(line) = index.needs_toml_1_1 {
            let at = At::file().entry(INDEX).line(line);
            let message = "document needs TOML 1.1, expected TOML 1.0";
            report.push(Severity::Warning, "carton/toml-1-1", at, message);
        }
        let mut used: HashSet<usize> =
            self.reader.file(INDEX).map(File::index).into_iter().collect();
        let mut without_inner = None;
        for entry in index.entries() {
            let tensor = Tensor::new(self.reader, entry);
            used.extend(entry.listed);
            if !entry.has_inner && without_inner.is_none() {
                without_inner = Some(entry);
            }
            let checked = match tensor.file() {
                Ok(Some(file)) if file.place() == Place::Here => match tensor.kind() {
                    TensorKind::Numeric => tensor.check_len(),
                    _ => Ok(()),
                },
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = checked {
                report.push(
                    Severity::Error,
                    error.rule(),
                    At::file().entry(INDEX).tensor(&*entry.name).line(entry.line),
                    tensor_core::Chain(&error).to_string(),
                );
            }
        }
        if let Some(entry) = without_inner {
            let at = At::file().entry(INDEX).tensor(&*entry.name).line(entry.line);
            let message = "has no key \"inner\", which the format's own library needs although it \
                           is optional";
            report.push(Severity::Note, "carton/no-inner", at, message);
        }
        for file in self.reader.files() {
            let path = file.path();
            if path.starts_with(TENSOR_DATA) && !used.contains(&file.index()) {
                let message = format!("belongs to no tensor of {INDEX}");
                let at = At::file().entry(path);
                report.push(Severity::Warning, "carton/unused-tensor-file", at, message);
            }
        }
    }

    /// Self tests and examples: what they refer to is there and is as declared.
    fn references(
        &self,
        parsed: &'a ParsedDescription,
        index: Option<&'a Index>,
        report: &mut Report,
    ) {
        let description = &parsed.description;
        let specs = Specs::of(description);
        for (number, test) in description.self_tests.iter().flatten().enumerate() {
            let place = format!("self_test[{number}]");
            let mut call = Call { parsed, bindings: Bindings::default(), report };
            for (name, tensor) in test.inputs.iter() {
                let path = format!("{place}.inputs.{}", crate::text::Key(name));
                call.tensor(self, index, &path, tensor, specs.inputs.get(name).copied());
            }
            for (name, tensor) in test.expected_out.iter().flat_map(Named::iter) {
                let path = format!("{place}.expected_out.{}", crate::text::Key(name));
                call.tensor(self, index, &path, tensor, specs.outputs.get(name).copied());
            }
        }
        for (number, example) in description.examples.iter().flatten().enumerate() {
            let mut call = Call { parsed, bindings: Bindings::default(), report };
            let sides = [
                ("inputs", &example.inputs, &specs.inputs),
                ("sample_out", &example.sample_out, &specs.outputs),
            ];
            for (side, named, specs) in sides {
                for (name, reference) in named.iter().flat_map(Named::iter) {
                    let path = format!("example[{number}].{side}.{}", crate::text::Key(name));
                    match reference {
                        Reference::Tensor(tensor) => {
                            call.tensor(self, index, &path, tensor, specs.get(name).copied());
                        }
                        Reference::Misc(file) => call.misc(self.reader, &path, file),
                    }
                }
            }
        }
    }

    /// Links of the description to files of the carton.
    fn description_links(&self, description: &Description, report: &mut Report) {
        let Some(text) = &description.model_description else { return };
        for link in crate::markdown_links(text) {
            let Some(path) = link.misc_path() else { continue };
            if self.reader.file(&format!("{MISC}{path}")).is_none() {
                let at = At::file().entry(CARTON_TOML).path("model_description");
                let message = format!(
                    "line {} refers to {:?}, which is not in the carton",
                    link.line, link.target
                );
                report.push(Severity::Error, "carton/unknown-misc", at, message);
            }
        }
    }

    /// Every byte of content, once.
    fn contents(&self, progress: &(impl Fn(u64) + Sync), report: &mut Report) {
        let reader = self.reader;
        let strings = self.string_files();
        let mut files: Vec<File<'a>> = reader
            .files()
            .filter(|file| file.place() == Place::Here && !self.is_link_to_listed(*file, report))
            .collect();
        // The longest first, so that no thread starts one when the others are done.
        files.sort_by_cached_key(|file| std::cmp::Reverse(file.len()));
        let threads = reader.read_options().thread_count();
        let done = parallel::map(&files, threads, |&file| {
            let mut found = Report::default();
            if let Err(error) = self.content(file, &strings, progress, &mut found) {
                error.report_to(Severity::Error, &mut found);
            }
            (file.index(), found)
        });
        let done: BTreeMap<usize, Report> = done.into_iter().collect();
        for found in done.into_values() {
            report.append(found);
        }
        self.unlisted(progress, report);
    }

    fn content(
        &self,
        file: File<'a>,
        strings: &HashMap<String, Tensor<'a>>,
        progress: &(impl Fn(u64) + Sync),
        report: &mut Report,
    ) -> Result<()> {
        if self.reader.is_compared(file.index()) {
            progress(file.len().unwrap_or_default());
            return Ok(());
        }
        if let Some(tensor) = strings.get(file.path()) {
            let limits = self.reader.limits();
            let len = file.stored()?.len();
            let (what, field) = ("file of strings in bytes", "strings_bytes");
            crate::error::check_bytes(what, len, limits.strings_bytes, field)?;
            let found = count_strings(file.path(), &file.checked_bytes()?, limits)?;
            progress(len);
            return tensor.check_count(found);
        }
        let mut stream = file.checked_reader()?;
        loop {
            let ready = stream.fill_buf().map_err(FileReader::fault)?.len();
            if ready == 0 {
                break;
            }
            stream.consume(ready);
            progress(ready as u64);
        }
        let (bytes, found) = (stream.leftover(), stream.frames());
        let mut faults = Vec::new();
        faults.extend((bytes > 0).then_some(Fault::Leftover { bytes }));
        faults.extend((found > 1).then_some(Fault::Frames { found }));
        for fault in faults {
            let severity = fault.class().severity(self.reader.read_options().graded);
            let at = At::file().entry(file.path());
            report.push(severity, fault.rule(), at, fault.to_string());
        }
        Ok(())
    }

    /// Tells whether a file is a link to another that is listed and read; the digests are compared.
    fn is_link_to_listed(&self, file: File<'a>, report: &mut Report) -> bool {
        let Some(entry) = file.entry() else { return false };
        if entry.info().kind != Kind::Symlink {
            return false;
        }
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
            report.push(Severity::Error, "carton/digest", At::file().entry(file.path()), message);
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
            if let Err(error) = entry.verify() {
                error.report_to(report, self.reader.read_options().graded, Some(name));
            }
            progress(entry.info().size);
        }
    }

    /// Returns the files that hold strings, each with a tensor that it belongs to.
    fn string_files(&self) -> HashMap<String, Tensor<'a>> {
        let Ok(index) = self.reader.index() else { return HashMap::new() };
        let tensors = index.entries().iter().map(|entry| Tensor::new(self.reader, entry));
        let strings = tensors.filter(|tensor| tensor.kind() == TensorKind::Strings);
        strings
            .filter_map(|tensor| Some((tensor.file().ok()??.path().to_owned(), tensor)))
            .collect()
    }
}

/// Declared inputs and outputs by name.
pub(crate) struct Specs<'a> {
    pub(crate) inputs: HashMap<&'a str, &'a TensorSpec>,
    pub(crate) outputs: HashMap<&'a str, &'a TensorSpec>,
}

impl<'a> Specs<'a> {
    pub(crate) fn of(description: &'a Description) -> Self {
        let by_name = |specs: &'a Option<Vec<TensorSpec>>| {
            specs.iter().flatten().map(|spec| (&*spec.name, spec)).collect()
        };
        Self { inputs: by_name(&description.inputs), outputs: by_name(&description.outputs) }
    }
}

/// The tensors of one self test or example, whose shapes have to agree.
struct Call<'r, 'a> {
    parsed: &'a ParsedDescription,
    bindings: Bindings,
    report: &'r mut Report,
}

impl Call<'_, '_> {
    fn tensor(
        &mut self,
        scan: &Scan<'_>,
        index: Option<&Index>,
        path: &str,
        name: &str,
        spec: Option<&TensorSpec>,
    ) {
        // A broken or linked index has its own finding; without one there are no tensors.
        if index.is_none() && scan.reader.file(INDEX).is_some() {
            return;
        }
        let Some(entry) = index.and_then(|index| index.entry(name)) else {
            let message = format!("refers to tensor {name:?}, which {INDEX} does not have");
            return self.push("carton/unknown-tensor", path, &message);
        };
        let (Some(spec), Content::Plain { dtype, shape, .. }) = (spec, &entry.content) else {
            return;
        };
        if *dtype != spec.dtype {
            let message = format!(
                "is tensor {name:?} of {dtype}, but {:?} is declared as {}",
                spec.name, spec.dtype
            );
            self.push("carton/dtype", path, &message);
        }
        if let Err(error) = self.bindings.bind(path, &spec.shape, shape) {
            let line = self.parsed.line_of(path);
            let at = At::file().entry(CARTON_TOML).path(path).line(line);
            self.report.push(Severity::Error, "carton/shape", at, error.to_string());
        }
    }

    fn misc(&mut self, reader: &Reader, path: &str, file: &str) {
        if reader.file(&format!("{MISC}{file}")).is_none() {
            let message = format!("refers to \"@misc/{file}\", which is not in the carton");
            self.push("carton/unknown-misc", path, &message);
        }
    }

    fn push(&mut self, rule: &'static str, path: &str, message: &str) {
        let line = self.parsed.line_of(path);
        let at = At::file().entry(CARTON_TOML).path(path).line(line);
        self.report.push(Severity::Error, rule, at, message);
    }
}
