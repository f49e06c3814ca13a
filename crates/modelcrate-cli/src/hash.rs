use std::{
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
};

#[cfg(feature = "ztensor")]
use anyhow::anyhow;
use anyhow::{Context as _, ensure};
#[cfg(feature = "ztensor")]
use modelcrate::tensor_core::digest::{Algorithm, Digest};
use modelcrate::{
    AnyReader, ContentHash, HashList, hash_line,
    tensor_core::{Profile, Verify},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::{About, chain, is_invalid},
    options::{Format, Input, Print, is_stdio, manner},
    outcome::{Outcome, print_error},
    output,
    progress::Progress,
};

/// Print a hash of the tensors of files, or compare it
///
/// The hash is over names, element types, shapes and elements: the same for every file that has the
/// same tensors, whatever its format and however they are stored. Metadata do not count. A line is
/// `tensors-v1:` and 64 hex digits, two spaces and the path, as sha256sum writes it; what is hashed
/// are the lines that --tensors prints. Checksums and digests in the file are compared.
///
/// A zTensor 2 file has an identity of its own, which the format's tool prints too (zt id): over the
/// digests that it holds, so that --id reads no tensor.
///
/// A file model.zt.hash with the line of model.zt is compared by verify too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 all is well, 1 a file has another hash, or is invalid, 2 a file or line could not be
read, or there is no line, whatever became of the others.

Examples:
  modelcrate hash *.zt > HASHES
  modelcrate hash --check HASHES
  modelcrate hash model.zt > model.zt.hash
  modelcrate hash --tensors model.zt | sha256sum
  modelcrate hash --id published.zt")]
pub(crate) struct Hash {
    #[command(flatten)]
    files: Files,
    /// Print the lines that are hashed, of one file: of each tensor the SHA-256 of its elements,
    /// element type, shape and name
    #[arg(long, conflicts_with = "check")]
    tensors: bool,
    /// Print or compare the identity of zTensor 2 files instead: a SHA-256 over names, shapes and
    /// the digests of tensors
    #[cfg(feature = "ztensor")]
    #[arg(long, conflicts_with = "tensors")]
    id: bool,
}

/// Files whose hashes are printed, or compared.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Files {
    /// Files, or lists of hashes for --check; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Input>,
    /// Read lines of a hash, two spaces and a path, and compare
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    print: Print,
}

/// A file, and which hash it should have.
type Wanted<D> = (PathBuf, Option<D>);

#[derive(Serialize)]
struct Hashed {
    path: String,
    /// None where the file could not be read.
    hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensors: Option<Vec<Tensor>>,
}

#[derive(Serialize)]
pub(crate) struct Tensor {
    name: String,
    dtype: String,
    shape: modelcrate::tensor_core::Shape,
    sha256: String,
}

impl Hash {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let count = self.files.files.len();
        ensure!(
            !self.tensors || count == 1,
            "--tensors prints the lines of one file, but {count} are given"
        );
        #[cfg(feature = "ztensor")]
        if self.id {
            return self.files.run(|path| Ok((identity(path)?, None)));
        }
        self.files.run(|path| {
            let found = hash(path)?;
            Ok((found.digest, self.tensors.then(|| tensors(found))))
        })
    }
}

/// Returns the identity of a zTensor 2 file.
#[cfg(feature = "ztensor")]
fn identity(path: &Input) -> anyhow::Result<Digest> {
    let reader = output::open(path, AnyReader::options()).about(path)?;
    let found = match &reader {
        AnyReader::ZTensor(file) => file.content_digest(Algorithm::Sha256)?,
        #[allow(unreachable_patterns, reason = "without other formats")]
        _ => None,
    };
    let missing =
        || anyhow!("has no identity, expected a zTensor 2 file with a digest for each part");
    found.ok_or_else(missing).about(path)
}

fn hash(path: &Input) -> anyhow::Result<ContentHash> {
    let options = AnyReader::options().profile(Profile::Lenient).verify(Verify::Once);
    let reader = output::open(path, options).about(path)?;
    let bar = Progress::new(path, reader.byte_len());
    let found = reader.tensor_set().about(path)?;
    let found = found.content_hash(manner().threads(), |bytes| bar.inc(bytes));
    found.about(path)
}

impl Files {
    /// Prints the hash of each file, or whether it is what a list says.
    pub(crate) fn run<D: FromStr + Display + PartialEq>(
        &self,
        hash: impl Fn(&Input) -> anyhow::Result<(D, Option<Vec<Tensor>>)>,
    ) -> anyhow::Result<Outcome> {
        let (wanted, mut outcome) = self.wanted()?;
        let (mut done, mut others) = (Vec::new(), 0_u64);
        for (path, expected) in wanted {
            let found = match self.check_path(&path).and_then(|()| hash(&path)) {
                Ok(found) => Some(found),
                Err(error) => {
                    print_error(&chain(&error));
                    let invalid = is_invalid(&error);
                    outcome = outcome.and(if invalid { Outcome::Invalid } else { Outcome::Failed });
                    if expected.is_none() {
                        continue;
                    }
                    None
                }
            };
            let (hash, tensors) = found.unzip();
            let matches = expected.as_ref().map(|expected| hash.as_ref() == Some(expected));
            if hash.is_some() && matches == Some(false) {
                outcome = outcome.and(Outcome::Invalid);
                others = others.saturating_add(1);
            }
            let [hash, expected] = [hash, expected].map(|hash| Some(hash?.to_string()));
            let (path, tensors) = (output::path_text(&path), tensors.flatten());
            let file = Hashed { path, hash, expected, matches, tensors };
            match self.print.format {
                Format::Human => output::print_text(&file.text())?,
                Format::Jsonl => output::print_line(&file)?,
                Format::Json => done.push(file),
            }
        }
        if self.print.format == Format::Json {
            output::print_document(&done)?;
        } else if others > 0 {
            let hashes = if others == 1 { "hash does" } else { "hashes do" };
            output::print_aside(&format!("{others} {hashes} not match\n"));
        }
        Ok(outcome)
    }

    /// Refuses a path that would not be found again by the line that is printed.
    fn check_path(&self, path: &Path) -> anyhow::Result<()> {
        let is_line = !self.check && self.print.format == Format::Human;
        ensure!(
            !is_line || path.to_str().is_some(),
            "{}: is no path in UTF-8, as lines of hashes have (--format json takes any)",
            output::path_text(path)
        );
        Ok(())
    }

    /// Returns the files to open, and which hash they should have.
    fn wanted<D: FromStr>(&self) -> anyhow::Result<(Vec<Wanted<D>>, Outcome)> {
        if !self.check {
            let files = self.files.iter().map(|path| (path.clone(), None));
            return Ok((files.collect(), Outcome::Fine));
        }
        let (mut wanted, mut outcome) = (Vec::new(), Outcome::Fine);
        for list in &self.files {
            let HashList { files, malformed, .. } = HashList::parse(&text(list).about(list)?);
            for line in malformed {
                let path = list.display();
                print_error(&format!(
                    "{path}: line {line} is none of a hash, two spaces and a path"
                ));
                outcome = Outcome::Failed;
            }
            wanted.extend(files.into_iter().map(|(digest, path)| (path, Some(digest))));
        }
        // To say that all is well would be a lie.
        ensure!(!wanted.is_empty(), "no hash is given, expected one at least");
        Ok((wanted, outcome))
    }
}

fn text(list: &Input) -> anyhow::Result<String> {
    let bytes = if is_stdio(list) { output::stdin()? } else { std::fs::read(list)? };
    String::from_utf8(bytes).context("is not text")
}

fn tensors(found: ContentHash) -> Vec<Tensor> {
    let tensors = found.tensors.into_iter();
    tensors
        .map(|tensor| Tensor {
            sha256: tensor.sha256(),
            name: tensor.name,
            dtype: tensor.content.to_string(),
            shape: tensor.shape,
        })
        .collect()
}

impl Hashed {
    fn text(&self) -> String {
        let path = escape(&self.path);
        match (&self.tensors, &self.hash, self.matches) {
            (Some(tensors), ..) => tensors.iter().map(Tensor::line).collect(),
            (None, _, Some(true)) => format!("{path}: OK\n"),
            (None, Some(found), Some(false)) => format!("{path}: FAILED, has {found}\n"),
            (None, None, _) => format!("{path}: FAILED, could not be read\n"),
            (None, Some(hash), None) => format!("{}\n", hash_line(hash, &self.path)),
        }
    }
}

impl Tensor {
    fn line(&self) -> String {
        let Self { name, dtype, shape, sha256 } = self;
        // Of some formats it is a text of the file.
        let dtype = escape(dtype);
        format!("{sha256} {dtype} {shape} {}\n", serde_json::json!(name))
    }
}
