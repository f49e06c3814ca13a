use std::{collections::HashSet, path::PathBuf};

use anyhow::ensure;
use modelcrate::rten_format::{Dim, Model, NodeKind};

use crate::{
    edit::rten::{Axis, change},
    editing::Editing,
    outcome::Outcome,
};

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
    editing: Editing,
}

impl FixDims {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        change(&self.editing, &self.file, |model| self.fix(model))
    }

    fn fix(&self, model: &mut Model) -> anyhow::Result<()> {
        for Axis(name, axis, dim) in &self.symbol {
            let id = super::find(model, name)?;
            let is_zero = model.zero_dims().contains(&(id, *axis));
            ensure!(is_zero, "dimension {axis} of {name:?} is not a 0 of an input");
            ensure!(matches!(dim, Dim::Symbol(_)), "{name}:{axis} is to be a number, not a symbol");
            model.set_dim(id, *axis, dim.clone())?;
        }
        let mut taken = symbols(model);
        for (id, axis) in model.zero_dims() {
            let node = usize::try_from(id).ok().and_then(|id| model.graph.nodes.get(id));
            let name = node.and_then(|node| node.name.as_deref()).filter(|name| !name.is_empty());
            let name = name.map_or_else(|| format!("node{id}"), str::to_owned);
            let numbered = (2_u32..).map(|number| format!("{name}_{axis}_{number}"));
            let mut symbols = [format!("{name}_{axis}")].into_iter().chain(numbered);
            let free = symbols.find(|symbol| taken.insert(symbol.clone()));
            model.set_dim(id, axis, Dim::Symbol(free.unwrap_or_default()))?;
        }
        Ok(())
    }
}

/// Returns the symbols of all dimensions of the main graph.
fn symbols(model: &Model) -> HashSet<String> {
    let values = model.graph.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Value(value) => value.shape.as_deref(),
        _ => None,
    });
    let symbols = values.flatten().filter_map(|dim| match dim {
        Dim::Symbol(symbol) => Some(symbol.clone()),
        Dim::Fixed(_) => None,
    });
    symbols.collect()
}
