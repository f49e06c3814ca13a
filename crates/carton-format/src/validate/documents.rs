//! Documents of a carton, whether it is there or being written, against each other and its files.

use std::collections::HashSet;

use tensor_core::{Finding, Report, Severity, text::Quoted};

use super::calls::{Call, Path, Specs, Tensors};
use crate::{
    Description, Manifest, ParsedDescription, Reference, Result, markdown_links,
    paths::{CARTON_TOML, INDEX, MISC, MODEL, TENSOR_DATA},
    tensor::index::{Content, Index, IndexEntry},
    text::{report_toml_1_1, report_unknown},
};

/// What the documents of a carton are held against.
pub(crate) struct Documents<'a> {
    manifest: &'a Manifest,
    /// Returns how long the file of a line of the manifest is; `None` where it is not here.
    len: &'a dyn Fn(usize) -> Result<Option<u64>>,
}

impl<'a> Documents<'a> {
    pub(crate) fn new(
        manifest: &'a Manifest,
        len: &'a dyn Fn(usize) -> Result<Option<u64>>,
    ) -> Self {
        Self { manifest, len }
    }

    fn has(&self, path: &str) -> bool {
        self.manifest.position(path).is_some()
    }

    /// Finds what is wrong with where files stand. Format text: "Carton format".
    pub(crate) fn lint_places(&self, report: &mut Report) {
        let mut note = |severity, rule, path: &str, message: String| {
            report.add(Finding::new(severity, rule, message).entry(path));
        };
        if !self.has(CARTON_TOML) {
            let message = format!("MANIFEST lists no {CARTON_TOML}");
            note(Severity::Error, "carton/missing-document", CARTON_TOML, message);
        }
        let paths = || self.manifest.files().map(|(path, _)| path);
        if !paths().any(|path| path.starts_with(MODEL)) {
            let message = "MANIFEST lists no file in the folder model".to_owned();
            note(Severity::Warning, "carton/no-model", MODEL, message);
        }
        match paths().find(|path| path.starts_with(TENSOR_DATA)) {
            Some(path) if !self.has(INDEX) => {
                let message = format!("MANIFEST lists {path:?}, but no {INDEX}");
                note(Severity::Error, "carton/missing-document", INDEX, message);
            }
            None => {
                let message = format!(
                    "MANIFEST lists no {INDEX}, which the format's own library needs although it \
                     is optional"
                );
                note(Severity::Note, "carton/no-index", INDEX, message);
            }
            Some(_) => {}
        }
        for path in paths() {
            let is_known = path == CARTON_TOML
                || [MODEL, MISC, TENSOR_DATA].iter().any(|folder| path.starts_with(folder));
            if !is_known {
                let message = "is in no folder that the format knows".to_owned();
                note(Severity::Note, "carton/unknown-place", path, message);
            }
        }
    }

    /// Finds what is wrong with a description, and with what it refers to; `index` is that of the
    /// tensors, where it could be read.
    pub(crate) fn lint_description(
        &self,
        parsed: &ParsedDescription,
        index: Option<&Index>,
        report: &mut Report,
    ) {
        report.append(parsed.lint());
        self.references(parsed, index, report);
        self.description_links(parsed, report);
    }

    /// Finds what is wrong with tensors, as far as that takes none of their content.
    pub(crate) fn lint_index(&self, index: &Index, report: &mut Report) {
        report_unknown(&index.unknown, INDEX, report);
        report_toml_1_1(index.needs_toml_1_1, INDEX, report);
        let mut used: HashSet<usize> = self.manifest.position(INDEX).into_iter().collect();
        let mut without_inner = None;
        for entry in index.entries() {
            used.extend(entry.listed);
            if !entry.has_inner && without_inner.is_none() {
                without_inner = Some(entry);
            }
            if let Err(error) = self.tensor(entry) {
                report.add(error.finding().at(entry.at()));
            }
            if matches!(&entry.content, Content::Nested { inner } if inner.is_empty()) {
                let finding = Finding::note("carton/empty-nested", "is nested and holds no tensor");
                report.add(finding.at(entry.at()));
            }
        }
        if let Some(entry) = without_inner {
            let message = "has no key \"inner\", which the format's own library needs although it \
                           is optional";
            report.add(Finding::note("carton/no-inner", message).at(entry.at()));
        }
        for (line, (path, _)) in self.manifest.files().enumerate() {
            if path.starts_with(TENSOR_DATA) && !used.contains(&line) {
                let message = format!("belongs to no tensor of {INDEX}");
                report.add(Finding::warning("carton/unused-tensor-file", message).entry(path));
            }
        }
    }

    /// Checks what can be checked of a tensor without its content.
    fn tensor(&self, entry: &IndexEntry) -> Result<()> {
        let Some((line, expected)) = entry.line_of_file()?.zip(entry.byte_len()?) else {
            return Ok(());
        };
        match (self.len)(line)? {
            Some(found) => entry.check_len(found, expected),
            None => Ok(()),
        }
    }

    /// Self tests and examples: what they refer to is there and is as declared.
    fn references(&self, parsed: &ParsedDescription, index: Option<&Index>, report: &mut Report) {
        let specs = Specs::new(&parsed.description);
        let tensors = Tensors::new(index);
        for (list, number, arguments) in parsed.description.calls() {
            // Examples need not be runnable.
            let severity = if list == "example" { Severity::Note } else { Severity::Error };
            let mut call = Call::new(self.manifest, parsed, &tensors, severity, report);
            for (side, name, reference) in arguments {
                let path = Path::new(list, number, side, name);
                let specs = if side == "inputs" { &specs.inputs } else { &specs.outputs };
                match reference {
                    Reference::Tensor(tensor) => call.tensor(&path, &tensor, specs.get(name)),
                    Reference::Misc(file) => call.misc(&path, &file),
                }
            }
        }
    }

    /// Links of the description to files of the carton.
    fn description_links(&self, parsed: &ParsedDescription, report: &mut Report) {
        let key = "model_description";
        let Some(text) = &parsed.description.model_description else { return };
        for link in markdown_links(text) {
            // No path at all is a finding of the description alone.
            let Some(path) = link.misc_path().filter(|path| !path.is_empty()) else { continue };
            if !self.has(&format!("{MISC}{path}")) {
                let message = format!(
                    "line {} of the text refers to {}, which is not in the carton",
                    link.line,
                    Quoted(&link.target)
                );
                let finding = Finding::error("carton/unknown-misc", message);
                let finding = finding.entry(Description::PATH).path(key);
                report.add(finding.line(parsed.line_of(key)));
            }
        }
    }
}
