use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{anyhow, bail, ensure};
use modelcrate::{
    AnyReader,
    rten_format::{
        Constant, ConstantDataType, Dim, Edited, Editor, Metadata, Model, NodeKind, Reader,
        Rewrite, Version,
    },
    tensor_core::{self, DType, Extent},
};
use serde::Serialize;

use crate::{
    Outcome, args::Print, escape::escape, failure::About, output, tensor_file::TensorFile,
    write::Sink,
};

/// Change metadata, names, dimensions, outputs and weights of a model
///
/// Without other weights a file of version 2 is edited in place, whatever its size: the new model
/// data is put behind the weights, and the old one stays in the file, unused, until it is written
/// anew, as by to-v2. Any other file is replaced once the new one is complete. Names are those of
/// the main graph. Changes are made in the order of the options below.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten edit model.rten --set license=MIT --unset run_url
  modelcrate rten edit model.rten --rename input.1=image --dim image:0=batch
  modelcrate rten edit model.rten --outputs logits,hidden
  modelcrate rten edit model.rten --from fine-tuned.zt --raw bias=f32:128:bias.bin")]
pub(crate) struct Edit {
    /// The model to change
    file: PathBuf,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// Set a field of the metadata, such as `license=MIT`; may be given several times
    #[arg(long, value_name = "FIELD=TEXT")]
    set: Vec<Field>,
    /// Remove a field of the metadata; may be given several times
    #[arg(long, value_name = "FIELD")]
    unset: Vec<String>,
    /// Set a dimension of a value, counted from 0, to a number or a symbol; may be given several
    /// times
    #[arg(long, value_name = "NAME:AXIS=DIM")]
    dim: Vec<Axis>,
    /// Make these values the outputs of the model
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    outputs: Vec<String>,
    /// Take the elements of all constants that it has from a file of any format
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Take the elements of a constant from a file of its elements, little-endian, row-major:
    /// NAME=DTYPE:SHAPE:PATH, with the dimensions separated by commas, none for a scalar
    #[arg(long, value_name = "SPEC")]
    raw: Vec<TensorFile<DType>>,
    /// Give a value or constant another name, subgraphs included; may be given several times
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<Rename>,
}

/// How a file is edited.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct How {
    /// Check everything, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Done<'a> {
    path: &'a Path,
    dry_run: bool,
    changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<String>,
    bytes_before: u64,
    bytes_after: u64,
    /// Bytes that nothing refers to any more.
    unused: u64,
}

impl Edit {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let weights = self.changes.from.is_some() || !self.changes.raw.is_empty();
        if weights { self.rewrite() } else { self.how.edit(&self.file, |m| self.change(m)) }
    }

    fn change(&self, model: &mut Model) -> anyhow::Result<()> {
        let Changes { set, unset, dim, outputs, rename, .. } = &self.changes;
        if !set.is_empty() || !unset.is_empty() {
            let metadata = model.metadata.get_or_insert_default();
            for name in unset {
                *field(metadata, name)? = None;
            }
            for Field(name, text) in set {
                *field(metadata, name)? = Some(text.clone());
            }
        }
        for Axis(name, axis, dim) in dim {
            let id = super::find(model, name)?;
            model.set_dim(id, *axis, dim.clone())?;
        }
        if !outputs.is_empty() {
            let outputs = super::find_all(model, outputs)?;
            model.set_outputs(&outputs)?;
        }
        for Rename(old, new) in rename {
            let id = super::find(model, old)?;
            model.rename(0, id, new)?;
        }
        Ok(())
    }

    /// Writes the file anew, with other weights.
    fn rewrite(&self) -> anyhow::Result<Outcome> {
        let Self { file, how, .. } = self;
        let reader = Reader::open(file).about(file)?;
        let mut model = reader.model().clone();
        let replaced = self.replace_weights(&reader, &mut model)?;
        self.change(&mut model).about(file)?;
        let sink = Sink::in_place_of(file, how.dry_run).about(file)?;
        let rewrite = Rewrite::of(&reader).model(model);
        let written = match reader.version() {
            Version::V1 => rewrite.write_v1(sink),
            Version::V2 => rewrite.write_v2(sink),
        };
        let bytes_after = written.about(file)?.commit(file)?;
        how.report(&Done {
            path: file,
            dry_run: how.dry_run,
            changed: true,
            replaced,
            bytes_before: reader.source().len(),
            bytes_after,
            unused: 0,
        })
    }

    /// Replaces the elements of constants; returns their names.
    fn replace_weights(&self, reader: &Reader, model: &mut Model) -> anyhow::Result<Vec<String>> {
        let mut replaced = Vec::new();
        if let Some(from) = &self.changes.from {
            let weights = AnyReader::open(from).about(from)?;
            for tensor in reader.tensors() {
                let Some(name) = tensor.name().filter(|name| !name.is_empty()) else { continue };
                let Some(new) = weights.tensor(name).about(from)? else { continue };
                put(model, (tensor.scope(), tensor.node()), &new).about(from)?;
                replaced.push(name.to_owned());
            }
            ensure!(
                !replaced.is_empty(),
                "{}: has no tensor that is called as a constant of the model",
                from.display()
            );
        }
        for raw in &self.changes.raw {
            let source = raw.open(raw.dtype).about(&raw.path)?;
            let bytes = source.read(Extent::first(source.len()), "elements").about(&raw.path)?;
            let new = tensor_core::Tensor::new(raw.dtype, raw.shape.clone(), bytes)?;
            let id = super::find(model, &raw.name).about(&self.file)?;
            put(model, (0, id), &new).about(&self.file)?;
            replaced.push(raw.name.clone());
        }
        Ok(replaced)
    }
}

/// Gives a constant other elements of the same type and shape.
fn put(
    model: &mut Model,
    (scope, id): (usize, u32),
    new: &tensor_core::Tensor,
) -> anyhow::Result<()> {
    let graph = model.graph_mut(scope);
    let node = graph.and_then(|graph| graph.nodes.get_mut(usize::try_from(id).ok()?));
    let Some((name, NodeKind::Constant(old))) = node.map(|node| (&node.name, &mut node.kind))
    else {
        bail!("node {id} is no constant");
    };
    let name = name.as_deref().unwrap_or_default();
    let new = Constant::from_tensor(new).map_err(|error| anyhow!("{name:?}: {error}"))?;
    let dtype = |constant: &Constant| match &constant.data {
        Some(data) if constant.data_offset.is_none() => data.dtype(),
        _ => constant.dtype.and_then(ConstantDataType::dtype),
    };
    ensure!(
        new.shape == old.shape && dtype(&new) == dtype(old),
        "{name:?} is {} {:?} there, expected {} {:?}",
        dtype(&new).map_or("?".to_owned(), |dtype| dtype.to_string()),
        new.shape,
        dtype(old).map_or("?".to_owned(), |dtype| dtype.to_string()),
        old.shape
    );
    *old = new;
    Ok(())
}

impl How {
    /// Changes a file in place, where its version lets that be.
    pub(super) fn edit(
        self,
        file: &Path,
        change: impl FnOnce(&mut Model) -> anyhow::Result<()>,
    ) -> anyhow::Result<Outcome> {
        let editor = if self.dry_run { Editor::rehearse(file) } else { Editor::open(file) };
        let mut editor = editor.about(file)?;
        change(editor.model_mut()).about(file)?;
        let bytes_before = editor.reader().source().len();
        let (bytes_after, unused) = match editor.commit().about(file)? {
            Edited::Unchanged => (None, 0),
            Edited::Appended { model_data, unused } => (Some(model_data.end()), unused),
            Edited::Replaced { len } => (Some(len), 0),
            _ => (None, 0),
        };
        self.report(&Done {
            path: file,
            dry_run: self.dry_run,
            changed: bytes_after.is_some(),
            replaced: Vec::new(),
            bytes_before,
            bytes_after: bytes_after.unwrap_or(bytes_before),
            unused,
        })
    }

    fn report(self, result: &Done<'_>) -> anyhow::Result<Outcome> {
        let path = result.path.display().to_string();
        let (path, would) = (escape(&path), if self.dry_run { "would be " } else { "" });
        let mut text = String::new();
        for name in &result.replaced {
            let _ = writeln!(text, "{path}: {would}replaced {}", escape(name));
        }
        if result.changed {
            let sizes = [result.bytes_before, result.bytes_after].map(output::size);
            let _ = write!(text, "{path}: {would}edited, {}", sizes.join(" → "));
            if result.unused > 0 {
                let _ = write!(text, ", {} unused", output::size(result.unused));
            }
            text.push('\n');
        } else {
            let _ = writeln!(text, "{path}: nothing to change");
        }
        output::print_result(self.print, &result, &text)?;
        Ok(Outcome::Fine)
    }
}

/// Returns a field of the metadata by its name.
fn field<'a>(metadata: &'a mut Metadata, name: &str) -> anyhow::Result<&'a mut Option<String>> {
    Ok(match name {
        "onnx_hash" => &mut metadata.onnx_hash,
        "description" => &mut metadata.description,
        "license" => &mut metadata.license,
        "commit" => &mut metadata.commit,
        "code_repository" => &mut metadata.code_repository,
        "model_repository" => &mut metadata.model_repository,
        "run_id" => &mut metadata.run_id,
        "run_url" => &mut metadata.run_url,
        _ => {
            let known = Metadata::default().fields().map(|(name, _)| name).join(", ");
            bail!("metadata has no field {name:?}, expected one of {known}")
        }
    })
}

/// `FIELD=TEXT`.
#[derive(Clone, Debug)]
struct Field(String, String);

impl FromStr for Field {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((name, value)) = text.split_once('=') else {
            bail!("{text:?} is not FIELD=TEXT, such as license=MIT");
        };
        field(&mut Metadata::default(), name)?;
        Ok(Self(name.to_owned(), value.to_owned()))
    }
}

/// `OLD=NEW`.
#[derive(Clone, Debug)]
struct Rename(String, String);

impl FromStr for Rename {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (old, new) = super::split_pair(text, "OLD=NEW")?;
        Ok(Self(old.to_owned(), new.to_owned()))
    }
}

/// `NAME:AXIS=DIM`.
#[derive(Clone, Debug)]
pub(super) struct Axis(pub(super) String, pub(super) usize, pub(super) Dim);

impl FromStr for Axis {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let form = "NAME:AXIS=DIM, such as image:0=batch";
        let (place, dim) = super::split_pair(text, form)?;
        let place = place.rsplit_once(':');
        let place = place.and_then(|(name, axis)| Some((name, axis.parse().ok()?)));
        let Some((name, axis)) = place else { bail!("{text:?} is not {form}") };
        let dim = dim.parse().map_or_else(|_| Dim::from(dim), Dim::Fixed);
        Ok(Self(name.to_owned(), axis, dim))
    }
}
