use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{bail, ensure};
use modelcrate::{
    rten_format::{Dim, Editor, Metadata, Model, WriteOptions},
    tensor_core::{DType, output::Edited},
};
use serde::Serialize;

use super::weights::Weights;
use crate::{
    checked::Checked,
    escape::escape,
    failure::About,
    options::{Force, InPlace, Print, is_stdio},
    outcome::Outcome,
    output,
    tensor_file::TensorFile,
};

/// Change metadata, names, dimensions, outputs and weights of a model
///
/// Without other weights a file of version 2 is edited in place, whatever its size: the new model
/// data is put behind the weights, and the old one stays in the file, unused, until it is
/// rewritten, as by convert. Any other file is replaced once the new one is complete. Names are those
/// of the main graph; #12 means node 12, whatever its name. Changes are made in the order of the
/// options below. Errors that the model does not have yet are not written without --force.
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
    #[command(flatten)]
    force: Force,
    /// Check everything, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    in_place: InPlace,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Done {
    path: String,
    dry_run: bool,
    changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<String>,
    bytes_before: u64,
    bytes_after: u64,
    /// Bytes that nothing refers to any more.
    unused: u64,
    #[serde(flatten)]
    checked: Checked,
}

impl Edit {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let weights = self.changes.from.is_some() || !self.changes.raw.is_empty();
        if weights { self.rewrite() } else { self.how.edit(&self.file, |m| self.change(m)) }
    }

    fn change(&self, model: &mut Model) -> anyhow::Result<()> {
        let Changes { set, unset, dim, outputs, rename, .. } = &self.changes;
        for Field(name, text) in set {
            *field(model.metadata.get_or_insert_default(), name)? = Some(text.clone());
        }
        for name in unset {
            let known = field(&mut Metadata::default(), name).map(drop);
            model.metadata.as_mut().map_or(known, |metadata| {
                *field(metadata, name)? = None;
                Ok(())
            })?;
        }
        for Axis(name, axis, dim) in dim {
            let id = super::find(model, name)?;
            model.set_dim(id, *axis, dim.clone())?;
        }
        if !outputs.is_empty() {
            let outputs = super::find_all(model, outputs)?;
            model.set_outputs(&outputs)?;
        }
        let ids = rename.iter().map(|Rename(old, _)| super::find(model, old));
        let ids = ids.collect::<anyhow::Result<Vec<_>>>()?;
        let names = ids.iter().zip(rename).map(|(id, Rename(_, new))| (0, *id, new.as_str()));
        Ok(model.rename_all(&names.collect::<Vec<_>>())?)
    }

    /// Rewrites the file, with other weights.
    fn rewrite(&self) -> anyhow::Result<Outcome> {
        let Self { file, how, .. } = self;
        let mut editor = how.open(file)?;
        let mut weights = Weights::default();
        if let Some(from) = &self.changes.from {
            weights.all_of(from, editor.reader()).about(file)?;
        }
        for raw in &self.changes.raw {
            weights.raw(raw, editor.reader()).about(file)?;
        }
        self.change(editor.model_mut()).about(file)?;
        let checked = how.check(&editor).about(file)?;
        let bytes_before = editor.reader().source().len();
        if checked.is_refused() {
            return how.report(file, bytes_before, 0, Edited::Unchanged, Vec::new(), checked);
        }
        weights.describe(editor.model_mut());
        let edited = editor.rewrite(|pending| weights.read(pending)).about(file)?;
        how.report(file, bytes_before, 0, edited, weights.names, checked)
    }
}

impl How {
    /// Changes a file in place, where its version lets that be.
    pub(super) fn edit(
        self,
        file: &Path,
        change: impl FnOnce(&mut Model) -> anyhow::Result<()>,
    ) -> anyhow::Result<Outcome> {
        let mut editor = self.open(file)?;
        change(editor.model_mut()).about(file)?;
        let (bytes_before, unused) = (editor.reader().source().len(), editor.unused_bytes());
        let checked = self.check(&editor).about(file)?;
        let refused = checked.is_refused();
        let edited = if refused { Edited::Unchanged } else { editor.commit().about(file)? };
        self.report(file, bytes_before, unused, edited, Vec::new(), checked)
    }

    fn check(self, editor: &Editor) -> anyhow::Result<Checked> {
        Ok(Checked::of(&editor.preview()?.lint(), &editor.reader().lint(), self.force))
    }

    fn open(self, file: &Path) -> anyhow::Result<Editor> {
        ensure!(!is_stdio(file), "standard input cannot be edited: say which file");
        // What has new errors is refused here, with all of them.
        let options = WriteOptions::default().output(self.in_place.output()).unchecked();
        let editor = if self.dry_run {
            Editor::dry_run(file, options)
        } else {
            Editor::open_with(file, options)
        };
        editor.about(file)
    }

    fn report(
        self,
        file: &Path,
        bytes_before: u64,
        unused: u64,
        edited: Edited,
        replaced: Vec<String>,
        checked: Checked,
    ) -> anyhow::Result<Outcome> {
        let (bytes_after, unused) = match edited {
            Edited::Appended { after, .. } => (Some(after), unused),
            Edited::Replaced { after, .. } => (Some(after), 0),
            _ => (None, 0),
        };
        self.print(&Done {
            path: file.display().to_string(),
            dry_run: self.dry_run,
            changed: bytes_after.is_some(),
            replaced,
            bytes_before,
            bytes_after: bytes_after.unwrap_or(bytes_before),
            unused,
            checked,
        })
    }

    fn print(self, result: &Done) -> anyhow::Result<Outcome> {
        let (path, would) = (escape(&result.path), if self.dry_run { "would be " } else { "" });
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
        let text = result.checked.text(&path, &text);
        output::print_done(self.print, Path::new(&result.path), self.dry_run, result, &text)?;
        Ok(result.checked.outcome())
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
        match text.split_once('=') {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => {
                Ok(Self(old.to_owned(), new.to_owned()))
            }
            _ => bail!("{text:?} is not OLD=NEW"),
        }
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
        let is_number =
            dim.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
        let dim = match dim.parse() {
            Ok(elements) if !dim.starts_with('+') => Dim::Fixed(elements),
            _ if is_number => bail!("{dim:?} is neither a symbol nor a number up to {}", u32::MAX),
            _ => Dim::from(dim),
        };
        Ok(Self(name.to_owned(), axis, dim))
    }
}
