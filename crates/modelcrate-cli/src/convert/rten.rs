use std::collections::HashSet;

use anyhow::{Context as _, anyhow, ensure};
use modelcrate::{AnyReader, Product, Request, rten_format::Graph, tensor_core::DType};

use super::Convert;
use crate::{options::Size, output};

/// How RTen models are converted.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "RTen models")]
pub(super) struct Options {
    /// To onnx: put constants of so many bytes or more into a file of their own, such as 4096 or 1MiB
    #[arg(long, value_name = "SIZE")]
    pub(super) external_data: Option<Size>,
    /// To onnx: what an input of integers is: bool, i32 or i64, which the file does not tell apart;
    /// i64, or what all that reads it takes, where nothing is said; of a folder those models that have
    /// the input; may be given several times
    #[arg(long, value_name = "NAME=TYPE", value_parser = input_type)]
    pub(super) input_type: Vec<(String, DType)>,
    /// To rten2: put a header before the model data of version 1, which keeps its bytes
    #[arg(long)]
    wrap: bool,
    /// To rten2: how many elements a constant may have to stay in the model data [default: 16]
    #[arg(long, value_name = "N", conflicts_with = "wrap")]
    inline_elements: Option<u64>,
    /// To rten2: what every tensor starts at a multiple of, a power of two up to 65536 [default: 64]
    #[arg(long, value_name = "BYTES", conflicts_with = "wrap")]
    alignment: Option<u32>,
}

impl Options {
    /// Refuses options of other formats than the output is of.
    pub(super) fn check(&self, to: Product) -> anyhow::Result<()> {
        for (is_given, name, of) in [
            (self.external_data.is_some(), "--external-data", Product::Onnx),
            (!self.input_type.is_empty(), "--input-type", Product::Onnx),
            (self.wrap, "--wrap", Product::Rten(Some(2))),
            (self.inline_elements.is_some(), "--inline-elements", Product::Rten(Some(2))),
            (self.alignment.is_some(), "--alignment", Product::Rten(Some(2))),
        ] {
            ensure!(!is_given || to == of, "{name} is an option of what becomes {of}, not {to}");
        }
        Ok(())
    }

    /// Adds what is said of version 2.
    pub(super) fn ask(&self, request: &mut Request) {
        if let Some(elements) = self.inline_elements {
            request.rten = request.rten.inline_elements(elements);
        }
        if let Some(alignment) = self.alignment {
            request.rten = request.rten.alignment(alignment);
        }
        request.wrap = self.wrap;
    }
}

/// Leaves each model of a folder the types of inputs that it has; one that no model has is refused.
pub(super) fn choose_input_types(jobs: &mut [Convert]) -> anyhow::Result<()> {
    let Some(first) = jobs.first() else { return Ok(()) };
    let asked = first.rten.input_type.clone();
    if asked.is_empty() {
        return Ok(());
    }
    let (mut found, mut all_open) = (HashSet::new(), true);
    for job in jobs {
        // What cannot be opened is said when it is converted, and may be what has the input.
        let reader = output::open(&job.input, AnyReader::options());
        all_open &= reader.is_ok();
        if let Ok(AnyReader::Rten(model)) = reader {
            let inputs: HashSet<_> = input_names(&model.model().graph).collect();
            job.rten.input_type.retain(|(name, _)| inputs.contains(name.as_str()));
            found.extend(job.rten.input_type.iter().map(|(name, _)| name.clone()));
        }
    }
    let missing = asked.iter().find(|(name, _)| all_open && !found.contains(name));
    missing.map_or(Ok(()), |(name, _)| Err(anyhow!("no model has an input {name:?}")))
}

fn input_names(graph: &Graph) -> impl Iterator<Item = &str> {
    let node = |id: &u32| graph.nodes.get(usize::try_from(*id).ok()?);
    graph.inputs.iter().filter_map(node).filter_map(|node| node.name.as_deref())
}

/// Reads the name of an input, which may hold `=`, and its element type.
fn input_type(text: &str) -> anyhow::Result<(String, DType)> {
    let (name, dtype) = text.rsplit_once('=').context("expected NAME=TYPE")?;
    Ok((name.to_owned(), dtype.parse()?))
}
