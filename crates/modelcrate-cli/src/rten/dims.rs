use std::path::PathBuf;

use modelcrate::rten_format::{Dim, Model};

use super::edit::{Axis, How};
use crate::Outcome;

/// Turn dimensions of 0 of a model's inputs into symbols
///
/// RTen's converter up to 0.22.0 writes 0 where it knows nothing, and RTen from 0.25.0 on then
/// refuses every other size. The symbols are called after input and axis, unless they are given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten fix-dims model.rten
  modelcrate rten fix-dims model.rten --symbol state:1=batch --dry-run")]
pub(crate) struct FixDims {
    /// The model to change
    file: PathBuf,
    /// What a dimension becomes; may be given several times
    #[arg(long, value_name = "NAME:AXIS=SYMBOL")]
    symbol: Vec<Axis>,
    #[command(flatten)]
    how: How,
}

impl FixDims {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        self.how.edit(&self.file, |model| self.fix(model))
    }

    fn fix(&self, model: &mut Model) -> anyhow::Result<()> {
        for Axis(name, axis, dim) in &self.symbol {
            let id = super::find(model, name)?;
            model.set_dim(id, *axis, dim.clone())?;
        }
        for (id, axis) in model.zero_dims() {
            let node = usize::try_from(id).ok().and_then(|id| model.graph.nodes.get(id));
            let name = node.and_then(|node| node.name.as_deref()).unwrap_or_default();
            let symbol = format!("{name}_{axis}");
            model.set_dim(id, axis, Dim::Symbol(symbol))?;
        }
        Ok(())
    }
}
