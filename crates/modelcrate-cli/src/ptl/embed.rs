use std::path::PathBuf;

use anyhow::ensure;
use bytes::Bytes;
use modelcrate::{
    ptl_spec::{Editor, ExtraFile, SPEC, Spec},
    tensor_core::{Extent, Report},
};
use serde::Serialize;

use super::{
    edit::{Changes, How},
    given::{Found, Meaning, source},
};
use crate::{Outcome, args::Input, escape::escape, failure::About, output};

/// Put a spec into a model, or any other file beside it
///
/// The model is edited in place, whatever its size: what is new is put behind its end, and all else
/// keeps its bytes. A spec is checked first; its text is written one member a line.
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
            return self.embed(name, content, Report::default());
        }
        let found = Found::spec(&self.file)?;
        let json = self.meaning.json(&found)?;
        let findings = self.meaning.options().check(json.to_string());
        if !findings.is_valid() {
            return self.refuse(findings);
        }
        let spec: Spec = self.meaning.options().from_json(json).about(&self.file)?;
        self.embed(SPEC, spec.to_text().into(), findings)
    }

    fn embed(&self, name: &str, content: Bytes, findings: Report) -> anyhow::Result<Outcome> {
        self.how.edit(&self.model, |editor| {
            let mut changes = self.put(editor, name, content)?;
            changes.findings = findings;
            Ok(changes)
        })
    }

    fn put(&self, editor: &mut Editor, name: &str, content: Bytes) -> anyhow::Result<Changes> {
        let mut changes = Changes::default();
        let there = editor.reader().extra_file(name);
        let old = there.map(ExtraFile::bytes).transpose()?;
        // An empty spec is none.
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
