use std::path::PathBuf;

use anyhow::ensure;
use bytes::Bytes;
use modelcrate::{
    ptl_spec::{Bytecode, Editor, File, Reader, SPEC, Spec},
    tensor_core::{Extent, Report, Severity},
};
use serde::Serialize;

use super::{
    edit::{Changes, How, refuse_stdin},
    given::{Found, Meaning, source},
};
use crate::{escape::escape, failure::About, options::Input, outcome::Outcome, output};

/// Put a spec into a model, or any other file beside it
///
/// The model is edited in place, whatever its size: what is new is put behind its end, and all else
/// keeps its bytes. A spec is checked first, and compared with the types of the model's method
/// forward; its text is written one member a line.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl embed model.ptl live.spec.json
  modelcrate ptl embed model.ptl live.spec.json --vocab bert=vocab.txt --force
  modelcrate ptl embed model.ptl labels.txt --name labels.txt")]
pub(crate) struct Embed {
    /// The model to change
    model: PathBuf,
    /// The spec, or another file; - is standard input
    file: Input,
    /// Put the file in as it is, under this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["profile", "vocab"])]
    name: Option<String>,
    /// Replace what has the name already
    #[arg(long)]
    force: bool,
    /// Refuse a spec that does not fit the model's method forward, instead of a warning
    #[arg(long, conflicts_with = "name")]
    strict: bool,
    #[command(flatten)]
    meaning: Meaning,
    #[command(flatten)]
    how: How,
}

#[derive(Serialize)]
struct Refused {
    path: String,
    findings: Report,
}

impl Embed {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        if let Some(name) = &self.name {
            let file = source(&self.file).about(&self.file)?;
            ensure!(file.len() <= LIMIT, "{}: is 2 GiB or more long", self.file.display());
            let content = file.read(Extent::first(file.len()), "file").about(&self.file)?;
            return self.how.edit(&self.model, |editor| self.put(editor, name, content));
        }
        let found = Found::spec(&self.file)?;
        let json = self.meaning.json(&found)?;
        let findings = self.meaning.options().lint(json.to_string());
        if !findings.is_valid() {
            return self.refuse(findings);
        }
        let spec: Spec = self.meaning.options().from_json(json).about(&self.file)?;
        let misfits = self.misfits(&spec).about(&self.model)?;
        if self.strict && !misfits.is_empty() {
            return self.refuse(misfits);
        }
        self.how.edit(&self.model, |editor| {
            let mut changes = self.put(editor, SPEC, spec.to_text().into())?;
            changes.findings = findings;
            for mut misfit in misfits {
                misfit.severity = Severity::Warning;
                changes.findings.add(misfit);
            }
            Ok(changes)
        })
    }

    /// Returns where a spec does not fit the model; nothing where the model does not say.
    fn misfits(&self, spec: &Spec) -> anyhow::Result<Report> {
        refuse_stdin(&self.model)?;
        let reader = Reader::open(&self.model)?;
        // What cannot be read is for verify to say.
        let forward = reader.bytecode().ok().and_then(Bytecode::forward);
        Ok(forward.map(|forward| spec.lint_for(forward)).unwrap_or_default())
    }

    fn put(&self, editor: &mut Editor, name: &str, content: Bytes) -> anyhow::Result<Changes> {
        let mut changes = Changes::default();
        let there = editor.reader().extra_file(name);
        let old = there.map(File::bytes).transpose()?;
        // An empty spec counts as none.
        match old.filter(|old| name != SPEC || !old.is_empty()) {
            Some(old) if old == content => return Ok(changes),
            Some(_) => {
                ensure!(self.force, "has a {name:?} already (--force replaces it)");
                changes.replaced.push(name.to_owned());
            }
            None => changes.added.push(name.to_owned()),
        }
        editor.set(name, content)?;
        Ok(changes)
    }

    fn refuse(&self, findings: Report) -> anyhow::Result<Outcome> {
        let refused = Refused { path: self.file.display().to_string(), findings };
        let mut text = format!("{}: invalid\n", escape(&refused.path));
        for finding in refused.findings.findings() {
            text.push_str(&output::finding_text(finding));
        }
        output::print_result(self.how.print, &refused, &text)?;
        Ok(Outcome::Invalid)
    }
}

/// What an extra file may have, in bytes.
const LIMIT: u64 = i32::MAX as u64;
