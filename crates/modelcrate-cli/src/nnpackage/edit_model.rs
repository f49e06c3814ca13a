use std::{fs, io::Write as _, path::PathBuf, str::FromStr};

use anyhow::{anyhow, bail, ensure};
use clap::ValueEnum;
use modelcrate::{
    circle_format::{
        BufferPlacement, Error, Reader, WriteOptions,
        model::{Model, Signature, SignatureTensor, Subgraph},
    },
    nnpackage::Content,
    tensor_core::{Extent, Source, output::LockedFile},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Force, InPlace, Input, is_stdio},
    outcome::Outcome,
    output,
    write::{Kept, Writing},
};

/// Change a Circle or TFLite model: metadata, names, signatures, where constants are
///
/// The model is rewritten: tables first, then the bytes of buffers, which are copied and not
/// looked at. Files that are appended to a TFLite model stay. Without an output the input is
/// replaced, once the new model is complete. Changes are made in the order of the options below.
/// Errors that were not in the model before are not written without --force.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage edit-model model.circle --rename serving_default_x:0=x --signature serve
  modelcrate nnpackage edit-model large.circle onert.circle --buffers inline
  modelcrate nnpackage edit-model model.circle --set license=MIT --set labels=@labels.txt")]
pub(crate) struct EditModel {
    /// The model to read; - is standard input
    input: Input,
    /// The model to write; - is standard output
    output: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
    #[command(flatten)]
    in_place: InPlace,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// Set the description; an empty one removes it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Set metadata to a text, or to the bytes of a file; may be given several times
    #[arg(long, value_name = "NAME=TEXT|NAME=@FILE")]
    set: Vec<Entry>,
    /// Remove metadata; may be given several times
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
    /// Give tensors of a name another one, in all graphs; may be given several times
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<Rename>,
    /// Make a signature of the inputs and outputs of a graph, the first one unless another is
    /// given, under the names of their tensors; may be given several times
    #[arg(long, value_name = "KEY[:GRAPH]")]
    signature: Vec<Named>,
    /// Remove a signature; may be given several times
    #[arg(long, value_name = "KEY")]
    remove_signature: Vec<String>,
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

#[derive(Serialize)]
struct Edited {
    path: String,
    dry_run: bool,
    schema: &'static str,
    bytes_before: u64,
    #[serde(flatten)]
    kept: Kept,
}

impl EditModel {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let path = self.output.as_deref().unwrap_or(&self.input);
        let is_stdin = self.output.is_none() && is_stdio(&self.input);
        ensure!(!is_stdin, "standard input cannot be replaced: say where the model goes");
        let replaced = (self.output.is_none() && !self.write.dry_run)
            .then(|| LockedFile::open_within(&self.input, self.in_place.wait()).about(&self.input))
            .transpose()?;
        let source = match &replaced {
            Some(file) => file.source().map_err(anyhow::Error::from),
            None if self.output.is_none() => {
                self.in_place.output().check(&self.input).map_err(anyhow::Error::from)
            }
            None => output::source(&self.input),
        };
        let reader = source.and_then(|source: Source| {
            let start = source.read(Extent::first(source.len().min(8)), "model")?;
            let is_package = Content::of(&start) == Content::Zip;
            ensure!(!is_package, "is a ZIP archive, expected the model by itself");
            Ok(Reader::from_source(source)?)
        });
        let reader = reader.about(&self.input)?;
        let model = self.changes.apply(reader.model()).about(&self.input)?;
        let sink = self.write.create_or_replace(&self.input, self.output.as_deref()).about(path)?;
        let options = WriteOptions::default().placement(self.changes.placement());
        let written = options.write_to(sink, &model).origin(&reader).finish();
        let is_write = matches!(written, Err(Error::Output { .. }));
        let mut sink = written.about(if is_write { path } else { &self.input })?;
        sink.flush().about(path)?;
        if let Some(file) = &replaced {
            file.check_in_place().about(path)?;
        }
        let lint = |source| Ok(Reader::from_source(source)?.lint());
        let kept = sink.keep(path, &reader.lint(), self.force, lint)?;
        let (bytes_before, outcome) = (reader.source().len(), kept.checked.outcome());
        let (dry_run, schema) = (self.write.dry_run, model.schema.name());
        let (path_text, would_be) = (path.display().to_string(), self.write.would_be());
        let sizes = [bytes_before, kept.bytes_after.unwrap_or_default()].map(output::size);
        let (shown, sizes) = (escape(&path_text), sizes.join(" → "));
        let done = format!("{shown}: {would_be}written in {schema}, {sizes}\n");
        let text = kept.checked.text(&shown, &done);
        let result = Edited { path: path_text.clone(), dry_run, schema, bytes_before, kept };
        self.write.report(path, &result, &text)?;
        Ok(outcome)
    }
}

impl Changes {
    fn apply(&self, model: &Model) -> anyhow::Result<Model> {
        let mut model = model.clone();
        if let Some(description) = &self.description {
            model.description = Some(description.clone()).filter(|text| !text.is_empty());
        }
        for Entry { name, value } in &self.set {
            model.set_metadata(name, value.read()?);
        }
        for name in &self.unset {
            ensure!(model.remove_metadata(name), "has no metadata {name:?}");
        }
        for (at, Rename(old, _)) in self.rename.iter().enumerate() {
            let mut before = self.rename.iter().take(at);
            ensure!(before.all(|Rename(other, _)| other != old), "{old:?} is renamed twice");
            let mut tensors = model.subgraphs.iter().flat_map(|graph| &graph.tensors);
            let is_there = tensors.any(|tensor| tensor.name.as_ref() == Some(old));
            ensure!(is_there, "has no tensor {old:?}");
        }
        model.rename_tensors(self.rename.iter().map(|Rename(old, new)| (&**old, &**new)));
        for named in &self.signature {
            let signature = named.signature(&model)?;
            model.set_signature(signature);
        }
        for key in &self.remove_signature {
            ensure!(model.remove_signature(key), "has no signature {key:?}");
        }
        if self.drop_unused {
            model.drop_unused_buffers();
        }
        Ok(model)
    }

    fn placement(&self) -> BufferPlacement {
        match self.buffers {
            None => BufferPlacement::Keep,
            Some(Buffers::Inline) => BufferPlacement::Inline,
            Some(Buffers::Outside) => BufferPlacement::Outside,
        }
    }
}

/// `NAME=TEXT` or `NAME=@FILE`.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    value: Value,
}

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    File(PathBuf),
}

impl Value {
    fn read(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::File(path) => fs::read(path).about(path),
        }
    }
}

impl FromStr for Entry {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            bail!("{text:?} is neither NAME=TEXT nor NAME=@FILE");
        };
        let value = match value.strip_prefix('@') {
            Some(path) => Value::File(path.into()),
            None => Value::Text(value.to_owned()),
        };
        Ok(Self { name: name.to_owned(), value })
    }
}

/// `OLD=NEW`. Names may have `=` in them before the last one.
#[derive(Clone, Debug)]
struct Rename(String, String);

impl FromStr for Rename {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.rsplit_once('=') {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => {
                Ok(Self(old.to_owned(), new.to_owned()))
            }
            _ => bail!("{text:?} is not OLD=NEW"),
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
