//! Edits of Circle and TFLite models.

use std::{path::Path, str::FromStr};

use anyhow::{anyhow, bail, ensure};
use clap::ValueEnum;
use modelcrate::circle_format::{
    BufferPlacement, Reader, WriteOptions,
    model::{Model, Signature, SignatureTensor, Subgraph},
};

use super::{Changes, Job, content, unknown};
use crate::{
    address,
    editing::Changes as Changed,
    failure::About,
    options::{Force, Runtime},
    outcome::Outcome,
    put,
};

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// Set the description; an empty one removes it
    #[arg(long, value_name = "TEXT", value_parser = address::text)]
    description: Option<String>,
    /// Make a signature of the inputs and outputs of a graph, the first one unless another is
    /// given, under the names of their tensors; may be given several times
    #[arg(long, value_name = "KEY[:GRAPH]")]
    signature: Vec<Named>,
    /// Remove a signature; may be given several times
    #[arg(long, value_name = "KEY")]
    remove_signature: Vec<String>,
    /// Give operators that stop a runtime another form, in which every value stays what it is: RESHAPE
    /// gets its shape as an input, constants that DEQUANTIZE widens from 16-bit floats are stored with
    /// 32 bits. What stops it then is for `nnpackage onert` to say
    #[arg(long, value_enum, value_name = "RUNTIME")]
    mend_for: Option<Runtime>,
    /// Give dimensions that are not known the size that the file has for them, mostly 1
    #[arg(long)]
    fix_shapes: bool,
    /// Take out buffers that nothing refers to
    #[arg(long)]
    drop_unused: bool,
    /// Where the bytes of constants go
    #[arg(long, value_enum)]
    buffers: Option<Buffers>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Buffers {
    /// Into the tables, which reach 2 GiB; onert 0.1.0 finds them nowhere else
    Inline,
    /// Behind the tables
    Outside,
}

/// Rewrites a model: tables first, then the bytes of buffers, which are copied and not looked at. Files
/// that are appended to a TFLite model stay.
pub(super) fn edit(job: Job) -> anyhow::Result<Outcome> {
    let Job { file, opened, changes, editing } = job;
    let opened = opened.map_or_else(|| editing.open(&file).about(&file), Ok)?;
    let reader = Reader::from_source(opened.source.clone()).about(&file)?;
    let (mut model, mut mended) = match changes.circle.mend_for {
        Some(Runtime::Onert) => reader.mended_for_onert().about(&file)?,
        None => (reader.model().clone(), Vec::new()),
    };
    if changes.circle.fix_shapes {
        mended.extend(model.fix_shapes());
    }
    let done = changes.apply_to_model(&mut model, &reader, &file, editing.force).about(&file)?;
    let mended = mended.into_iter().map(|mended| (mended.path, mended.change)).collect();
    let done = Changed { mended, ..done };
    let options = WriteOptions::default().placement(changes.circle.placement());
    let is_same = model == *reader.model() && changes.circle.buffers.is_none();
    let changed = match is_same && editing.is_in_place() {
        true => crate::editing::Changed::nothing(Some(opened.source.len())),
        false => editing.rewrite(&file, &opened, &reader.lint(), |sink| {
            Ok(options.write_to(sink, &model).origin(&reader).finish()?)
        })?,
    };
    editing.report(&file, &done.done(changed))
}

impl Changes {
    fn apply_to_model(
        &self,
        model: &mut Model,
        reader: &Reader,
        file: &Path,
        force: Force,
    ) -> anyhow::Result<Changed> {
        let mut done = Changed::default();
        let given = self.given(file, &self.put)?;
        let opened = given.open(force)?;
        let sets = opened.sets()?;
        let options = self.fit.options();
        let fitted = put::fit(&sets, |set| set.fit_circle(reader, &options))?;
        fitted.put(model).about(&given.inputs())?;
        done.replace(&fitted);
        let names = self.renames(|name| has_tensor(model, name))?;
        for (old, new) in &names {
            ensure!(has_tensor(model, old), "has no tensor {old:?}");
            done.renamed.push(((*old).to_owned(), (*new).to_owned()));
        }
        model.rename_tensors(names);
        for name in &self.unset {
            if !model.remove_metadata(name) {
                let known = model.metadata.iter().filter_map(|entry| entry.name.as_deref());
                return Err(unknown("metadata", name, known));
            }
            done.unset.push(name.clone());
        }
        for (name, value) in self.pairs()? {
            let value = match value.strip_prefix('@') {
                Some(path) => content(Path::new(path)).about(Path::new(path))?.to_vec(),
                None => value.as_bytes().to_vec(),
            };
            model.set_metadata(name, value);
            done.set.push(name.to_owned());
        }
        self.circle.apply(model)?;
        Ok(done)
    }
}

fn has_tensor(model: &Model, name: &str) -> bool {
    let mut tensors = model.subgraphs.iter().flat_map(|graph| &graph.tensors);
    tensors.any(|tensor| tensor.name.as_deref() == Some(name))
}

impl Options {
    fn apply(&self, model: &mut Model) -> anyhow::Result<()> {
        if let Some(description) = &self.description {
            model.description = Some(description.clone()).filter(|text| !text.is_empty());
        }
        for named in &self.signature {
            let signature = named.signature(model)?;
            model.set_signature(signature);
        }
        for key in &self.remove_signature {
            ensure!(model.remove_signature(key), "has no signature {key:?}");
        }
        if self.drop_unused {
            model.drop_unused_buffers();
        }
        Ok(())
    }

    const fn placement(&self) -> BufferPlacement {
        match self.buffers {
            None => BufferPlacement::Keep,
            Some(Buffers::Inline) => BufferPlacement::Inline,
            Some(Buffers::Outside) => BufferPlacement::Outside,
        }
    }
}

/// `KEY` or `KEY:GRAPH`.
#[derive(Clone, Debug)]
struct Named {
    key: String,
    graph: u32,
}

impl Named {
    /// Returns the signature of a graph under the names of its tensors.
    fn signature(&self, model: &Model) -> anyhow::Result<Signature> {
        let count = model.subgraphs.len();
        let graph = usize::try_from(self.graph).ok().and_then(|at| model.subgraphs.get(at));
        let graph = graph.ok_or_else(|| anyhow!("has {count} graphs, none at {}", self.graph))?;
        Ok(Signature {
            inputs: named(graph, &graph.inputs)?,
            outputs: named(graph, &graph.outputs)?,
            key: Some(self.key.clone()),
            subgraph_index: self.graph,
            ..Signature::default()
        })
    }
}

fn named(graph: &Subgraph, indices: &[i32]) -> anyhow::Result<Vec<SignatureTensor>> {
    let tensor = |&index: &i32| {
        let tensor = graph.tensor(index).and_then(|tensor| tensor.name.clone());
        let name = tensor.ok_or_else(|| anyhow!("has no name for tensor {index}"))?;
        Ok(SignatureTensor { name: Some(name), tensor_index: index.unsigned_abs() })
    };
    indices.iter().map(tensor).collect()
}

impl FromStr for Named {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (key, graph) = text.rsplit_once(':').unwrap_or((text, "0"));
        let Ok(graph) = graph.parse() else { bail!("{graph:?} is not the position of a graph") };
        ensure!(!key.is_empty(), "{text:?} is neither KEY nor KEY:GRAPH");
        Ok(Self { key: key.to_owned(), graph })
    }
}
