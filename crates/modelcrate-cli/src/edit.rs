//! `modelcrate edit`.

#[cfg(feature = "carton")]
mod carton;
#[cfg(feature = "circle")]
mod circle;
#[cfg(feature = "nnpackage")]
mod nnpackage;
#[cfg(feature = "ptl")]
pub(crate) mod ptl;
#[cfg(feature = "rten")]
pub(crate) mod rten;
mod store;
#[cfg(feature = "ztensor")]
mod ztensor;

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use bytes::Bytes;
use modelcrate::{Format, tensor_core::Extent};

use crate::{
    address,
    editing::{Editing, Opened},
    failure::About,
    fit::{self, Fit},
    glob::Glob,
    only::{Only, format_of},
    options::{Input, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
    progress::busy,
    put::{self, Put},
};

/// Change a file: metadata, names, tensors and files in it
///
/// The file is changed in place, whole or not at all, unless -o says where the result goes. What an
/// option means depends on the format, which is found by content: metadata are the attributes of a
/// zTensor file, or with NAME. before the key those of a tensor, the fields of an RTen model, values of
/// carton.toml, keys of the configuration of an nnpackage, entries of a Circle or TFLite model. Names
/// are those of tensors, of an nnpackage those of keys. What is put in and removed are tensors of a
/// zTensor file, constants of Circle, TFLite and RTen models, which keep their element types and
/// shapes, and files of all others; what is put in twice under one name is refused. Errors that were not there before are not written without
/// --force.
///
/// Changes are made in the order of the options below, but tensors are renamed last. A zTensor file and an RTen model of version 2
/// are appended to, as long as no constant changes, and a PyTorch Live model by up to 64 KiB: what
/// nothing refers to any more stays in them until they are compacted. A zTensor file is the old one or
/// the new one at every moment, with one exception: while a copy of a manifest of more than 4096 bytes
/// is written, once or a few times in an edit and for microseconds per MiB, its end is missing; a
/// process killed just then leaves what `recover` cuts back to the old file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate edit model.zt --from adapter.safetensors --tensor 'lora.*' --set license=MIT
  modelcrate edit model.zt --remove optimizer.step --rename w=weight --set w.unit=mV
  modelcrate edit model.rten --put bias=bias.npy --dim image:0=batch -o new.rten
  modelcrate edit model.carton --set license=MIT --set input[0].description='An image'
  modelcrate edit model.zip --set NUM_THREADS=4 --replace-model 0=better.circle --dry-run
  modelcrate edit model.circle --rename serving_default_x:0=x --signature serve
  modelcrate edit model.ptl --put extra/labels.txt=labels.txt")]
pub(crate) struct Edit {
    /// The file to change, or the folder of an nnpackage, or with -o of a carton; - is standard input
    file: Input,
    #[command(flatten)]
    changes: Only<Changes>,
    #[command(flatten)]
    editing: Editing,
}

#[derive(Clone, Debug, clap::Args)]
struct Changes {
    /// Remove a tensor or file; may be given several times
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// Give tensors, or keys of an nnpackage, another name, all at once; may be given several times
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// Take the tensors of another file of any format: all into a zTensor file, into a carton or a
    /// model those that are called as one there, which keeps its element type and shape; checksums in it
    /// are compared unless --force is given; may be given several times
    #[arg(long, value_name = "FILE")]
    from: Vec<Input>,
    /// Take only these of them: names, or patterns with * and ?; may be given several times
    #[arg(long, value_name = "GLOB", requires = "from")]
    tensor: Vec<Glob>,
    /// Put in a tensor or file, or in the place of one: NAME=FILE, of tensors also NAME=FILE:TENSOR
    /// and NAME=DTYPE:SHAPE:FILE for elements alone, with commas between the dimensions; what is behind
    /// the last = is the file, unless only a longer text is one; may be given several times
    #[arg(long, value_name = "SPEC")]
    put: Vec<String>,
    /// Remove metadata; may be given several times
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Set metadata; may be given several times. A VALUE for a carton that is not TOML is a string;
    /// @FILE for a Circle or TFLite model is the bytes of a file
    #[arg(long, value_name = "KEY=VALUE", value_parser = address::text)]
    set: Vec<String>,
    #[command(flatten, next_help_heading = "How what is new is stored")]
    fit: Fit,
    #[command(flatten)]
    store: store::Store,
    #[cfg(feature = "carton")]
    #[command(flatten, next_help_heading = "Cartons")]
    carton: carton::Options,
    #[cfg(feature = "nnpackage")]
    #[command(flatten, next_help_heading = "nnpackages")]
    nnpackage: nnpackage::Options,
    #[cfg(feature = "circle")]
    #[command(flatten, next_help_heading = "Circle and TFLite models")]
    circle: circle::Options,
    #[cfg(feature = "rten")]
    #[command(flatten, next_help_heading = "RTen models")]
    rten: rten::Options,
}

/// What is to be changed, and how.
struct Job {
    file: PathBuf,
    /// None where an editor opens the file itself, and of a folder.
    opened: Option<Opened>,
    changes: Changes,
    editing: Editing,
}

impl Edit {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let Self { file, changes, editing } = self;
        ensure!(
            !changes.given().is_empty(),
            "nothing is to be changed: say what, such as --set KEY=VALUE"
        );
        editing.check_input(&file)?;
        changes.options.check_stdin(&file)?;
        let is_read = !editing.is_in_place() && !file.is_dir();
        let opened = is_read.then(|| editing.open(&file).about(&file)).transpose()?;
        let source = opened.as_ref().map(|opened| &opened.source);
        let format = format_of(&file, source).about(&file)?;
        let Some(takes) = takes(format) else {
            bail!(
                "{}: is {}, which cannot be edited: create makes another",
                file.display(),
                format.title()
            );
        };
        changes.check(format, takes).about(&file)?;
        let job = Job { file, opened, changes: changes.options, editing };
        busy(&job.file);
        fit::said(match format {
            #[cfg(feature = "carton")]
            Format::Carton => carton::edit(job),
            #[cfg(feature = "circle")]
            Format::Circle | Format::TfLite => circle::edit(job),
            #[cfg(feature = "nnpackage")]
            Format::NnPackage => nnpackage::edit(job),
            #[cfg(feature = "ptl")]
            Format::Ptl => ptl::edit(&job),
            #[cfg(feature = "rten")]
            Format::Rten => rten::edit(&job),
            #[cfg(feature = "ztensor")]
            Format::ZTensor => ztensor::edit(&job),
            _ => bail!("{}: cannot be edited by this build", job.file.display()),
        })
    }
}

/// Returns the options that a format has; `None` where it cannot be edited.
const fn takes(format: Format) -> Option<&'static [&'static str]> {
    Some(match format {
        Format::Carton => &[
            "remove",
            "from",
            "tensor",
            "put",
            "unset",
            "set",
            "densify",
            "dequantize",
            "lossy",
            "toml",
        ],
        Format::Circle | Format::TfLite => &[
            "rename",
            "from",
            "tensor",
            "put",
            "unset",
            "set",
            "densify",
            "dequantize",
            "lossy",
            "description",
            "signature",
            "remove-signature",
            "mend-for",
            "fix-shapes",
            "drop-unused",
            "buffers",
        ],
        Format::NnPackage => &[
            "remove",
            "rename",
            "put",
            "unset",
            "set",
            "level",
            "alignment",
            "folder",
            "replace-model",
            "add-model",
            "model-type",
            "model-info",
            "disconnect",
            "connect",
            "pkg-inputs",
            "pkg-outputs",
            "from-conn",
            "remove-model",
            "drop-connections",
            "config",
            "no-config",
            "package-version",
            "digests",
            "no-digests",
        ],
        Format::Ptl => &["remove", "put"],
        Format::Rten => &[
            "rename",
            "from",
            "tensor",
            "put",
            "unset",
            "set",
            "densify",
            "dequantize",
            "lossy",
            "dim",
            "attribute",
            "outputs",
        ],
        Format::ZTensor => &[
            "remove",
            "rename",
            "from",
            "tensor",
            "put",
            "unset",
            "set",
            "densify",
            "dequantize",
            "lossy",
            "compression",
            "level",
            "digest",
        ],
        _ => return None,
    })
}

impl Changes {
    /// Refuses standard input where it would be several files.
    fn check_stdin(&self, file: &Path) -> anyhow::Result<()> {
        let from = self.from.iter().filter(|path| is_stdio(path)).count();
        let put = self.put.iter().filter(|spec| spec.ends_with("=-") || spec.ends_with(":-"));
        let times = from.saturating_add(put.count()).saturating_add(is_stdio(file).into());
        ensure!(times < 2, "standard input is one file, but is given {times} times");
        Ok(())
    }

    /// Returns names and contents of files that are to be put in; `entry` says what a name means.
    fn contents(
        &self,
        entry: impl Fn(&str) -> &str,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<(&str, Bytes)>>> {
        let pair = |spec| put::split_path(spec).ok_or_else(|| anyhow!("{spec:?} is not NAME=FILE"));
        let pairs = self.put.iter().map(|spec| {
            let (name, path) = pair(spec)?;
            Ok((entry(name), Path::new(path)))
        });
        let pairs = pairs.collect::<anyhow::Result<Vec<_>>>()?;
        put::check_once("file", pairs.iter().map(|(name, _)| *name))?;
        Ok(pairs.into_iter().map(|(name, path)| Ok((name, content(path).about(path)?))))
    }

    /// Returns the files whose tensors go into another; `put` are those of `--put` that name tensors.
    fn given(&self, file: &Path, put: &[String]) -> anyhow::Result<put::NewTensors> {
        let put: Vec<Put> = put.iter().map(|spec| spec.parse()).collect::<Result<_, _>>()?;
        for from in self.from.iter().filter(|from| !is_stdio(from)) {
            ensure!(!same_file(from, file), "{}: is the file that is edited", from.display());
        }
        Ok(put::NewTensors { put, from: self.from.clone(), tensor: self.tensor.clone() })
    }

    /// Returns old and new names, which may hold more than one `=`: the first at which an old name
    /// ends counts.
    fn renames(&self, is_there: impl Fn(&str) -> bool) -> anyhow::Result<Vec<(&str, &str)>> {
        let split =
            |text| split_name(text, &is_there).ok_or_else(|| anyhow!("{text:?} is not OLD=NEW"));
        let names: Vec<_> = self.rename.iter().map(|text| split(text)).collect::<Result<_, _>>()?;
        for (at, (old, _)) in names.iter().enumerate() {
            let is_first = names.iter().take(at).all(|(other, _)| other != old);
            ensure!(is_first, "{old:?} is renamed twice");
        }
        Ok(names)
    }

    /// Returns keys and values that are to be set.
    fn pairs(&self) -> anyhow::Result<Vec<(&str, &str)>> {
        self.set.iter().map(|text| pair(text)).collect()
    }
}

fn split_name(text: &str, is_there: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let mut pairs = put::splits(text);
    pairs.clone().find(|(old, _)| is_there(old)).or_else(|| pairs.next())
}

/// Splits `KEY=VALUE` at the first `=`.
fn pair(text: &str) -> anyhow::Result<(&str, &str)> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    pair.ok_or_else(|| anyhow!("{text:?} has no \"=\" with a key before it"))
}

/// Refuses what is not there, and says what is.
fn unknown<'k>(what: &str, name: &str, known: impl Iterator<Item = &'k str>) -> anyhow::Error {
    match known.collect::<Vec<_>>().as_slice() {
        [] => anyhow!("has no {what} {name:?}, and no other"),
        known => anyhow!("has no {what} {name:?}, expected one of {}", known.join(", ")),
    }
}

/// Reads a file that goes into a carton or model.
pub(crate) fn content(path: &Path) -> anyhow::Result<Bytes> {
    let file = output::file(path)?;
    ensure!(file.len() <= LIMIT, "is 2 GiB or more long");
    Ok(file.read(Extent::first(file.len()), "file")?)
}

/// What a file may have that is put into another as a whole, in bytes.
const LIMIT: u64 = i32::MAX as u64;

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;

    #[test]
    fn every_option_is_for_some_format() {
        let command = Changes::augment_args(Command::new(""));
        let options: Vec<_> = command.get_arguments().filter_map(|one| one.get_long()).collect();
        let taken: Vec<&str> =
            Format::ALL.into_iter().filter_map(takes).flatten().copied().collect();
        for option in &options {
            assert!(taken.contains(option), "--{option}");
        }
        for option in taken {
            assert!(options.contains(&option), "--{option}");
        }
    }

    #[test]
    fn old_names_that_are_there_count() {
        let is_there = |name: &str| name == "a" || name == "a=b";
        assert_eq!(split_name("a=b=c", is_there), Some(("a", "b=c")));
        assert_eq!(split_name("x=y=z", is_there), Some(("x", "y=z")));
        assert_eq!(split_name("a=b=c", |name| name == "a=b"), Some(("a=b", "c")));
        assert_eq!((split_name("a", is_there), split_name("=a", is_there)), (None, None));
    }
}
