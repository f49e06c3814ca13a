//! Tensors that go into a file, and the files that they come from.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{anyhow, ensure};
use modelcrate::{
    AnyReader, AnyTensor, Fitted, Format, NamedTensor, Refusal, TensorSet, is_address,
    tensor_core::{DType, Shape, Source},
    weights,
};

use crate::{
    failure::About,
    fit::Refused,
    glob::{Glob, check_meant, is_meant},
    options::{Force, Input, is_stdio},
    output,
};

/// A tensor that goes into a file, as `NAME=FILE`, `NAME=FILE:TENSOR` or `NAME=DTYPE:SHAPE:FILE` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    pub(crate) name: String,
    pub(crate) path: Input,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The only tensor of a file of any format.
    Only,
    /// One of several.
    Tensor(String),
    /// The elements alone.
    Elements(DType, Shape),
}

impl Put {
    /// Opens the file that the tensor is in.
    pub(crate) fn open(&self, force: Force) -> anyhow::Result<AnyReader> {
        let What::Elements(dtype, shape) = &self.what else {
            return open(&self.path, force);
        };
        let source = if is_stdio(&self.path) {
            output::stdin().map(Source::from_bytes)
        } else {
            output::stored(&self.path)
        };
        let reader =
            weights::Reader::from_elements(source.about(&self.path)?, *dtype, shape.clone());
        // What was asked for does not fit the file, which has nothing to be wrong in it.
        reader.map(AnyReader::Weights).map_err(|error| anyhow!("{error}")).about(&self.path)
    }

    /// Returns type and shape of the elements, where those are all that there is.
    pub(crate) const fn elements(&self) -> Option<(DType, &Shape)> {
        match &self.what {
            What::Elements(dtype, shape) => Some((*dtype, shape)),
            What::Only | What::Tensor(_) => None,
        }
    }

    /// Finds the tensor in that file.
    pub(crate) fn tensor<'r>(&self, reader: &'r AnyReader) -> anyhow::Result<AnyTensor<'r>> {
        let set = reader.tensor_set()?;
        let tensor = match &self.what {
            What::Tensor(name) => set.tensor(name).ok_or_else(|| anyhow!("has no tensor {name:?}")),
            What::Only | What::Elements(..) => match set.tensors() {
                [tensor] => Ok(tensor),
                tensors => Err(anyhow!(
                    "has {} tensors, expected one (NAME=FILE:TENSOR takes one of several)",
                    tensors.len()
                )),
            },
        };
        tensor.map(NamedTensor::tensor)
    }
}

impl FromStr for Put {
    type Err = anyhow::Error;

    fn from_str(spec: &str) -> anyhow::Result<Self> {
        let forms = "NAME=FILE, NAME=FILE:TENSOR and NAME=DTYPE:SHAPE:FILE";
        let mut puts = splits(spec).rev().map(|(name, rest)| Self::of(name, rest));
        let last = puts.next().ok_or_else(|| anyhow!("{spec:?} is none of {forms}"))?;
        match last {
            Ok(last) if is_there(&last.path) => Ok(last),
            last => puts.flatten().find(|put| is_there(&put.path)).map_or(last, Ok),
        }
    }
}

/// Splits a text such as `NAME=FILE` at each sign that has something before and behind it: names and
/// paths may hold some.
pub(crate) fn splits(spec: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> + Clone {
    let splits = spec.match_indices('=').filter_map(|(at, _)| spec.split_at_checked(at));
    let splits = splits.filter_map(|(name, rest)| Some((name, rest.strip_prefix('=')?)));
    splits.filter(|(name, rest)| !name.is_empty() && !rest.is_empty())
}

/// Splits a text such as `NAME=FILE` at the last sign behind which a file is, or else at the last.
pub(crate) fn split_path(spec: &str) -> Option<(&str, &str)> {
    let mut pairs = splits(spec).rev();
    pairs.clone().find(|(_, path)| is_there(path)).or_else(|| pairs.next())
}

/// Like [`split_path`], but `None` where all of the text is a file, and what is behind a sign is none.
pub(crate) fn split_named(spec: &str) -> Option<(&str, &str)> {
    split_path(spec).filter(|(_, path)| is_there(path) || !is_there(spec))
}

/// Tells whether something can be read under a path.
pub(crate) fn is_there(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    is_stdio(path) || path.to_str().is_some_and(is_address) || path.exists()
}

impl Put {
    fn of(name: &str, rest: &str) -> anyhow::Result<Self> {
        let file = rest.rfind('/').filter(|_| is_address(rest)).unwrap_or_default();
        let tensor = rest.get(file..).and_then(|name| name.split_once(':'));
        let (what, path) = match rest.split_once(':') {
            _ if is_address(rest) => match tensor {
                Some((_, tensor)) => {
                    let end = rest.len().saturating_sub(tensor.len()).saturating_sub(1);
                    (What::Tensor(tensor.to_owned()), rest.get(..end).unwrap_or_default())
                }
                None => (What::Only, rest),
            },
            Some((file, tensor)) if Format::from_path(file).is_some() => {
                (What::Tensor(tensor.to_owned()), file)
            }
            Some((dtype, rest)) if let Some((shape, path)) = rest.split_once(':') => {
                (What::Elements(dtype.parse()?, parse_shape(shape)?), path)
            }
            _ => (What::Only, rest),
        };
        Ok(Self { name: name.to_owned(), path: path.into(), what })
    }
}

/// Reads dimensions with commas between them, none for a scalar.
fn parse_shape(text: &str) -> anyhow::Result<Shape> {
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    // As Python writes one of one dimension.
    let dims = text.strip_suffix(',').unwrap_or(text).split(',').filter(|_| !text.is_empty());
    let shape: Result<Shape, _> = dims.map(|dim| dim.trim().parse::<u64>()).collect();
    shape.map_err(|_| anyhow!("{text:?} is not a shape such as 2,64"))
}

/// Where the tensors of a file come from.
#[derive(Debug, clap::Args)]
pub(crate) struct NewTensors {
    /// Put a tensor into the file: the only one of a file of any format (NAME=FILE), one of several
    /// (NAME=FILE:TENSOR), or the elements alone, little-endian and row-major (NAME=DTYPE:SHAPE:FILE,
    /// with commas between the dimensions, none for a scalar); may be given several times
    #[arg(long, value_name = "SPEC")]
    pub(crate) put: Vec<Put>,
    /// Take the tensors of another file, of any format; checksums in it are compared unless --force is
    /// given; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Vec<Input>,
    /// Take only these from such files: names, or patterns with * and ?; may be given several times
    #[arg(long, value_name = "GLOB", requires = "from")]
    pub(crate) tensor: Vec<Glob>,
}

impl NewTensors {
    pub(crate) fn is_empty(&self) -> bool {
        self.put.is_empty() && self.from.is_empty()
    }

    /// Returns the name of the only file, or in words those of several, one of which is meant.
    pub(crate) fn inputs(&self) -> PathBuf {
        let paths: BTreeSet<&Input> =
            self.put.iter().map(|put| &put.path).chain(&self.from).collect();
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        match &names[..] {
            [one] => one.into(),
            names => format!("one of {}", names.join(", ")).into(),
        }
    }

    /// Opens all files, of which standard input can be one.
    pub(crate) fn open(&self, force: Force) -> anyhow::Result<Opened<'_>> {
        let paths = self.put.iter().map(|put| &put.path).chain(&self.from);
        let from_stdin = paths.filter(|path| is_stdio(path)).count();
        ensure!(from_stdin < 2, "standard input is one file, but is given {from_stdin} times");
        let put: anyhow::Result<_> =
            self.put.iter().map(|put| Ok((put, put.open(force)?))).collect();
        let from = self.from.iter().map(|path| Ok((path.as_path(), open(path, force)?)));
        Ok(Opened { put: put?, from: from.collect::<anyhow::Result<_>>()?, globs: &self.tensor })
    }
}

/// Opens a file whose checksums and digests are compared as it is read, so that damage is not carried
/// on unless that is forced.
fn open(path: &Input, force: Force) -> anyhow::Result<AnyReader> {
    output::open(path, AnyReader::options().verify(force.verify())).about(path)
}

/// Tensors of an open file, under the names that they get.
pub(crate) struct Taken<'o> {
    pub(crate) path: &'o Path,
    pub(crate) reader: &'o AnyReader,
    pub(crate) set: TensorSet<'o>,
}

/// Open files whose tensors go into another.
pub(crate) struct Opened<'g> {
    put: Vec<(&'g Put, AnyReader)>,
    pub(crate) from: Vec<(&'g Path, AnyReader)>,
    globs: &'g [Glob],
}

impl Opened<'_> {
    /// Returns the tensors of each file, those of whole files first.
    pub(crate) fn sets(&self) -> anyhow::Result<Vec<Taken<'_>>> {
        let from = self.from.iter().map(|(path, reader)| {
            Ok(Taken { path, reader, set: reader.tensor_set().about(path)? })
        });
        let mut sets = from.collect::<anyhow::Result<Vec<_>>>()?;
        if let Some(Taken { path, .. }) = sets.first() {
            let names = sets.iter().flat_map(|taken| taken.set.tensors()).map(NamedTensor::name);
            check_meant(self.globs, "tensor", names).about(path)?;
        }
        for taken in &mut sets {
            taken.set.retain(|name| is_meant(self.globs, name));
        }
        for (put, reader) in &self.put {
            let (path, mut set) = (put.path.as_path(), TensorSet::new());
            insert(&mut set, &put.name, put.tensor(reader).about(path)?)?;
            sets.push(Taken { path, reader, set });
        }
        let tensors = sets.iter().flat_map(|taken| taken.set.tensors());
        check_once("tensor", tensors.map(NamedTensor::name))?;
        Ok(sets)
    }

    /// Returns the tensors of all files.
    pub(crate) fn set(&self) -> anyhow::Result<TensorSet<'_>> {
        let mut all = TensorSet::new();
        for Taken { path, set, .. } in self.sets()? {
            for tensor in set.tensors() {
                insert(&mut all, tensor.name(), tensor.tensor()).about(path)?;
            }
        }
        Ok(all)
    }
}

/// Refuses what would be put into one place twice.
pub(crate) fn check_once<'n>(
    what: &str,
    names: impl Iterator<Item = &'n str>,
) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        ensure!(seen.insert(name), "{what} {name:?} is given twice");
    }
    Ok(())
}

fn insert<'a>(set: &mut TensorSet<'a>, name: &str, tensor: AnyTensor<'a>) -> anyhow::Result<()> {
    set.add(name, tensor).map_err(|_| anyhow!("tensor {name:?} is given twice"))
}

/// Finds the place of each tensor of these files in another.
pub(crate) fn fit<'s, 'a, P: Ord>(
    sets: &'s [Taken<'a>],
    fit: impl Fn(&'s TensorSet<'a>) -> Result<Fitted<'s, 'a, P>, Vec<Refusal>>,
) -> anyhow::Result<Fitted<'s, 'a, P>> {
    let fitted = fit_each(sets, |taken| match taken.set.tensors() {
        [] => Ok(Fitted::default()),
        _ => fit(&taken.set),
    })?;
    let all = fitted.into_iter().try_fold(Fitted::default(), Fitted::and);
    all.map_err(|twice| anyhow!("{twice}"))
}

/// Returns what becomes of each of these files, or, of all of them, what does not fit.
pub(crate) fn fit_each<'s, 'a, T>(
    sets: &'s [Taken<'a>],
    fit: impl Fn(&'s Taken<'a>) -> Result<T, Vec<Refusal>>,
) -> anyhow::Result<Vec<T>> {
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    for taken in sets {
        match fit(taken) {
            Ok(fitted) => all.push(fitted),
            Err(found) => refused.push((taken.path.to_owned(), found)),
        }
    }
    if refused.is_empty() { Ok(all) } else { Err(Refused(refused).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn put(spec: &str) -> Put {
        spec.parse().unwrap()
    }

    #[test]
    fn specs_say_where_tensors_are() {
        let only = Put { name: "w".to_owned(), path: "x.npy".into(), what: What::Only };
        assert_eq!(put("w=x.npy"), only);
        assert_eq!(put("w=-").path, Path::new("-"));
        assert_eq!(put("a=b=c.bin").name, "a=b");
        assert_eq!(put("w=C:\\x.npy").path, Path::new("C:\\x.npy"));
        let one = put("w=dir/x.npz:serving:0");
        assert_eq!(
            (one.path.to_str(), &one.what),
            (Some("dir/x.npz"), &What::Tensor("serving:0".into()))
        );
        for (spec, dtype, shape) in [
            ("w=f32:2,3:x.bin", DType::F32, &[2, 3][..]),
            ("w=Float32:[2, 3]:x.bin", DType::F32, &[2, 3]),
            ("w=int64::x.bin", DType::I64, &[]),
            ("w=bool:0:x.bin", DType::Bool, &[0]),
        ] {
            let elements = What::Elements(dtype, shape.iter().copied().collect());
            assert_eq!((put(spec).what, put(spec).path), (elements, "x.bin".into()), "{spec}");
        }
    }

    #[test]
    fn other_specs_are_refused() {
        for (spec, message) in [
            ("x.npy", "\"x.npy\" is none of NAME=FILE, NAME=FILE:TENSOR and NAME=DTYPE:SHAPE:FILE"),
            ("w=", "\"w=\" is none of NAME=FILE, NAME=FILE:TENSOR and NAME=DTYPE:SHAPE:FILE"),
            ("w=f31:6:x", "element type is \"f31\", expected a name such as \"f32\" or \"i64\""),
            ("w=f32:2x2:x", "\"2x2\" is not a shape such as 2,64"),
            ("w=f32:3,,4:x", "\"3,,4\" is not a shape such as 2,64"),
            ("w=f32:,:x", "\",\" is not a shape such as 2,64"),
        ] {
            assert_eq!(spec.parse::<Put>().unwrap_err().to_string(), message);
        }
    }
}
