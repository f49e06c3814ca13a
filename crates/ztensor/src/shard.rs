//! Files that hold blobs of another one: generation 2.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tensor_core::{Error as Core, Extent, Finding, Source, Verified, text::Quoted};

use crate::{
    Reader, Rule, Shard,
    error::{Error, Result},
    tensor::digest::{self, DigestText},
};

impl Shard {
    /// Returns the identity of a file, with a digest of `algorithm`.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or is not of generation 2.
    #[cfg(feature = "digest")]
    pub fn of(source: &Source, algorithm: tensor_core::digest::Algorithm) -> Result<Self> {
        Reader::from_source(source.clone()).and_then(|reader| check_generation(&reader))?;
        let whole = Extent::first(source.len());
        let digest = digest::text(digest::stored(source, whole, algorithm)?);
        Ok(Self { size: source.len(), digest, other: Vec::new() })
    }

    /// Compares a file with its digest.
    fn verify(&self, source: &Source) -> Result<(Verified, Option<String>)> {
        match digest::parse_v2(&self.digest) {
            Some(DigestText::Known(algorithm, expected)) => {
                let found = digest::stored(source, Extent::first(source.len()), algorithm)?;
                Ok((Verified::Digest, (found != expected).then(|| digest::text(found))))
            }
            _ => Ok((Verified::UnknownAlgorithm, None)),
        }
    }
}

/// Finds the files of shards; also any function that does.
pub trait Shards {
    /// Returns the file of a shard; `None` where it is not there.
    ///
    /// What is found is looked at before it is used, so this need not.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn find(&self, name: &str, shard: &Shard) -> io::Result<Option<Source>>;
}

impl<F: Fn(&str, &Shard) -> io::Result<Option<Source>>> Shards for F {
    fn find(&self, name: &str, shard: &Shard) -> io::Result<Option<Source>> {
        self(name, shard)
    }
}

/// Where files of shards usually are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardFiles {
    /// Beside the file at this path: of `model.zt`, shard `1` is `model-1.zt`.
    Beside(PathBuf),
    /// In a folder with files that are named by their digest: `blobs/sha256/00ff…`.
    ByDigest(PathBuf),
    /// In a folder, under any name: of the files that are as long, the one that has the digest.
    Within(PathBuf),
}

impl Shards for ShardFiles {
    fn find(&self, name: &str, shard: &Shard) -> io::Result<Option<Source>> {
        match self {
            Self::Beside(path) => {
                let mut file = path.file_stem().unwrap_or_default().to_owned();
                file.push(format!("-{name}.zt"));
                open(&path.with_file_name(file))
            }
            // A digest of a manifest is of letters and digits.
            Self::ByDigest(folder) => match shard.digest.split_once(':') {
                Some((algorithm, digits)) => {
                    open(&folder.join("blobs").join(algorithm).join(digits))
                }
                None => Ok(None),
            },
            Self::Within(folder) => {
                for entry in fs::read_dir(folder)? {
                    let path = entry?.path();
                    if fs::metadata(&path)
                        .is_ok_and(|found| found.is_file() && found.len() == shard.size)
                        && let Some(source) = open(&path)?
                        && let Ok((Verified::Digest, None)) = shard.verify(&source)
                    {
                        return Ok(Some(source));
                    }
                }
                Ok(None)
            }
        }
    }
}

fn open(path: &Path) -> io::Result<Option<Source>> {
    match Source::open(path) {
        Ok(source) => Ok(Some(source)),
        Err(Core::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(Core::File { source, .. }) => Err(source),
        Err(error) => Err(io::Error::other(error)),
    }
}

impl Reader {
    /// Looks for the shards that the file names, and reads what lies in those that are found from
    /// then on. [`Reader::open`] has looked beside the file.
    ///
    /// Of a file that is found, length and fixed parts are checked, and its manifest, where it has
    /// one; whether it has the digest of the table is for [`validate`](Self::validate).
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] with [`Rule::ShardIdentity`] where a file that is found is another;
    /// [`Error::Core`] where one cannot be read.
    pub fn with_shards(mut self, shards: &impl Shards) -> Result<Self> {
        let mut found = BTreeMap::clone(&self.shards);
        for (name, shard) in self.manifest().shards() {
            let failed = |source| {
                let (what, offset) = ("shard", 0);
                Error::from(Core::Read { what, offset, source })
            };
            if let Some(source) = shards.find(name, shard).map_err(failed)? {
                self.check_shard(name, shard, &source)?;
                found.insert(name.to_owned(), source);
            }
        }
        self.shards = Arc::new(found);
        Ok(self)
    }

    /// Looks for the shards beside a path.
    pub(crate) fn with_shards_beside(self, path: &Path) -> Result<Self> {
        self.with_shards(&ShardFiles::Beside(path.to_owned()))
    }

    fn check_shard(&self, name: &str, shard: &Shard, source: &Source) -> Result<()> {
        if source.len() != shard.size {
            let problem = format!("is {} bytes long, expected {}", source.len(), shard.size);
            return Err(self.not_the_shard(name, problem));
        }
        let opened = self.options_of().from_source(source.clone());
        let checked = opened.and_then(|reader| check_generation(&reader));
        checked.map_err(|error| match error {
            Error::Core(error) => Error::Core(error),
            error => {
                self.not_the_shard(name, format!("is not one: {}", tensor_core::Chain(&error)))
            }
        })
    }

    fn not_the_shard(&self, name: &str, problem: String) -> Error {
        let (rule, offset) = (Rule::ShardIdentity, self.manifest().offset());
        Error::Rejected { rule, path: format!("shards.{}", Quoted(name)), offset, problem }
    }

    /// Reports shards that are not there, and such as are not the file that the table names.
    pub(crate) fn shard_findings(&self, with_digests: bool) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, shard) in self.manifest().shards() {
            let at = tensor_core::At::file().path(format!("shards.{}", Quoted(name)));
            let Some(source) = self.shard(name) else {
                let message = format!(
                    "shard {} of {} bytes was not found, so what lies in it cannot be read",
                    Quoted(name),
                    shard.size
                );
                findings.push(Finding::error("zt2/shard-missing", message).at(at));
                continue;
            };
            if !with_digests {
                continue;
            }
            let error = match shard.verify(source) {
                Ok((Verified::Digest, None)) => continue,
                Ok((_, None)) => {
                    let digest = Quoted(&shard.digest);
                    let message =
                        format!("digest {digest} is of no known algorithm, so nothing is proved");
                    findings.push(Finding::warning("zt/digest-unknown", message).at(at));
                    continue;
                }
                Ok((_, Some(found))) => self
                    .not_the_shard(name, format!("has digest {found}, expected {}", shard.digest)),
                Err(error) => error,
            };
            let message = tensor_core::Chain(&error).to_string();
            findings.push(Finding::error(error.rule(), message).at(at));
        }
        findings
    }
}

fn check_generation(reader: &Reader) -> Result<()> {
    match reader.generation() {
        crate::Generation::V2 => Ok(()),
        found => Err(Error::NotEditable { found }),
    }
}
