use std::path::PathBuf;

use super::edit::{Changes, How};
use crate::outcome::Outcome;

/// Take extra files out of a model
///
/// Of a ZIP file only the directory is written again, at its end: the bytes of what was taken out stay
/// in it, unused, until it is rewritten, as by compact. A FlatBuffer is rewritten without them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl remove model.ptl model/live.spec.json
  modelcrate ptl remove model.ptl labels.txt notes.txt --dry-run")]
pub(crate) struct Remove {
    /// The model to change
    model: PathBuf,
    /// Names of extra files, such as `model/live.spec.json`
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    how: How,
}

impl Remove {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        self.how.edit(&self.model, |editor| {
            for name in &self.names {
                editor.remove(name)?;
            }
            Ok(Changes { removed: self.names.clone(), ..Changes::default() })
        })
    }
}
