use std::path::PathBuf;

use anyhow::ensure;
use modelcrate::ptl_spec::SPEC;

use super::given::{Found, Vocabularies};
use crate::{
    edit::{
        content,
        ptl::{change, put},
    },
    editing::{Changes, Editing},
    failure::About,
    options::Input,
    outcome::Outcome,
};

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
    editing: Editing,
}

impl Embed {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (name, content) = match &self.name {
            Some(name) => (name.as_str(), content(&self.file).about(&self.file)?),
            None => {
                let json = self.vocabularies.json(&Found::spec(&self.file)?)?;
                (SPEC, json.to_pretty().into())
            }
        };
        let Self { model, editing, .. } = &self;
        editing.check_input(model).about(model)?;
        let is_read = !editing.is_in_place();
        let opened = is_read.then(|| editing.open(model).about(model)).transpose()?;
        change(editing, model, opened.as_ref(), |editor| {
            let mut changes = Changes::default();
            put(editor, name, content, &mut changes)?;
            let is_free = self.replace || changes.replaced.is_empty();
            ensure!(is_free, "has a {name:?} already (--replace replaces it)");
            Ok(changes)
        })
    }
}
