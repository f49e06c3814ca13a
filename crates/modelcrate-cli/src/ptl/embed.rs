use std::path::PathBuf;

use anyhow::ensure;
use bytes::Bytes;
use modelcrate::{
    ptl_spec::{Editor, File, SPEC},
    tensor_core::Extent,
};

use super::{
    edit::{Changes, How},
    given::{Found, Vocabularies},
};
use crate::{failure::About, options::Input, outcome::Outcome, output};

/// Put a spec into a model, or any other file beside it
///
/// All else keeps its bytes: what is new comes behind the end of a ZIP file, up to 64 KiB in place,
/// and anything else makes another file, which takes the place of the model when it is complete.
/// Readers find the old model or the new one at any time. What verify would say of the new model is
/// said before, and errors that the old one does not have are refused, such as a spec that does not
/// fit the method forward. The text of a spec is written one member a line.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl embed model.ptl live.spec.json
  modelcrate ptl embed model.ptl live.spec.json --vocab bert=vocab.txt --replace
  modelcrate ptl embed model.ptl labels.txt --name labels.txt")]
pub(crate) struct Embed {
    /// The model to change
    model: PathBuf,
    /// The spec, or another file; - is standard input
    file: Input,
    /// Put the file in as it is, under this name
    #[arg(long, value_name = "NAME", conflicts_with = "vocab")]
    name: Option<String>,
    /// Replace what has the name already
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    vocabularies: Vocabularies,
    #[command(flatten)]
    how: How,
}

impl Embed {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (name, content) = match &self.name {
            Some(name) => (name.as_str(), self.content().about(&self.file)?),
            None => {
                let json = self.vocabularies.json(&Found::spec(&self.file)?)?;
                (SPEC, json.to_pretty().into())
            }
        };
        self.how.edit(&self.model, |editor| self.put(editor, name, content))
    }

    fn content(&self) -> anyhow::Result<Bytes> {
        let file = output::source(&self.file)?;
        ensure!(file.len() <= LIMIT, "is 2 GiB or more long");
        Ok(file.read(Extent::first(file.len()), "file")?)
    }

    fn put(&self, editor: &mut Editor, name: &str, content: Bytes) -> anyhow::Result<Changes> {
        let mut changes = Changes::default();
        let there = editor.reader().extra_file(name);
        let old = there.map(File::bytes).transpose()?;
        // An empty spec counts as none.
        match old.filter(|old| name != SPEC || !old.is_empty()) {
            Some(old) if old == content => return Ok(changes),
            Some(_) => {
                ensure!(self.replace, "has a {name:?} already (--replace replaces it)");
                changes.replaced.push(name.to_owned());
            }
            None => changes.added.push(name.to_owned()),
        }
        editor.set(name, content)?;
        Ok(changes)
    }
}

/// What an extra file may have, in bytes.
const LIMIT: u64 = i32::MAX as u64;
