//! The start of a body that is still to be completed, in this process or a later one.

use std::{
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use carton_format::fetch::FetchError;
use serde::{Deserialize, Serialize};
use tensor_core::{
    Extent, Source,
    digest::{Algorithm, Digest, Hasher, digest},
    output::{Durability, Existing, Output, leads_to},
};

use super::{cache::failed, coding::Coding};

/// The bytes of a body as they came, not decoded. Whoever has one has the lock of its content.
pub(crate) struct Part {
    path: PathBuf,
    file: File,
    len: u64,
    head: Option<Head>,
    /// Has seen all bytes; gone where they are of an earlier process.
    hasher: Option<Hasher>,
    is_joined: bool,
    _lock: Lock,
}

/// What the bytes of a part are the start of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// SHA-256 of the URL, which may hold a secret.
    pub(crate) url: String,
    pub(crate) coding: Coding,
    /// What the rest is asked for with; without it the body cannot be completed.
    pub(crate) validator: Option<Validator>,
    /// Length of the whole body in bytes.
    pub(crate) total: Option<u64>,
}

/// What tells one version of a body from the next. RFC 9110, section 8.8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Validator {
    /// A strong entity tag.
    Etag(String),
    /// A time.
    Modified(String),
}

impl Part {
    /// Opens what there is at a path, or starts it, once its lock is free.
    pub(super) fn open(path: &Path) -> Result<Self, FetchError> {
        let lock = Lock::acquire(&path.with_extension("lock"))?;
        let file = open(path)?;
        let len = file.metadata().map_err(|error| failed(path, "opening", error))?.len();
        let text = fs::read(path.with_extension("json")).unwrap_or_default();
        let head = serde_json::from_slice::<Head>(&text).ok();
        let head = head.filter(|head| len > 0 && head.total.is_none_or(|total| len <= total));
        let path = path.to_owned();
        Ok(Self { path, file, len, head, hasher: None, is_joined: false, _lock: lock })
    }

    /// Returns how many bytes there are.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Returns what the bytes are the start of, where they are of the URL with this digest and can
    /// be completed.
    pub(crate) fn head(&self, url: &str) -> Option<&Head> {
        let head = self.head.as_ref().filter(|head| head.url == url && self.len > 0);
        head.filter(|head| head.validator.is_some())
    }

    /// Returns how the bytes are encoded.
    pub(crate) fn coding(&self) -> Coding {
        self.head.as_ref().map_or(Coding::Identity, |head| head.coding)
    }

    /// Tells whether bytes of several answers are put together here.
    pub(crate) const fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Forgets what there is and starts a body.
    pub(crate) fn start(&mut self, head: Head) -> Result<(), FetchError> {
        self.discard()?;
        if head.validator.is_some() {
            let path = self.path.with_extension("json");
            let mut file =
                Output { durability: Durability::Cached, ..Output::default() }.create(&path)?;
            let text = serde_json::to_vec(&head).map_err(io::Error::from);
            let written = text.and_then(|text| file.write_all(&text));
            written.map_err(|error| failed(&path, "writing", error))?;
            file.commit(Existing::Replace)?;
        }
        self.head = Some(head);
        self.hasher = Some(Hasher::new(Algorithm::Sha256));
        self.is_joined = false;
        Ok(())
    }

    /// Goes on behind what there is.
    pub(crate) fn join(&mut self) {
        self.is_joined = true;
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        let written = self.file.seek(SeekFrom::Start(self.len));
        let written = written.and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| failed(&self.path, "writing", error))?;
        self.len = self.len.saturating_add(bytes.len() as u64);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        Ok(())
    }

    /// Forgets what there is.
    pub(crate) fn discard(&mut self) -> Result<(), FetchError> {
        // The description first: without it the bytes are nothing.
        let _ = fs::remove_file(self.path.with_extension("json"));
        // Removed, not cut: the open file may be content that was moved on.
        let _ = fs::remove_file(&self.path);
        self.file = open(&self.path)?;
        (self.len, self.head, self.hasher, self.is_joined) = (0, None, None, false);
        Ok(())
    }

    /// Returns the digest of all bytes.
    pub(crate) fn digest(&mut self) -> Result<Digest, FetchError> {
        if let Some(hasher) = &self.hasher {
            return Ok(hasher.clone().finish());
        }
        let file = self.file.try_clone().map_err(|error| failed(&self.path, "opening", error))?;
        let source = Source::from_file(file)?;
        Ok(digest(&source, Extent::first(self.len), Algorithm::Sha256, "partial file")?)
    }

    /// Moves the bytes to another path of the same file system.
    pub(crate) fn rename(&mut self, path: &Path) -> Result<(), FetchError> {
        fs::rename(&self.path, path).map_err(|error| failed(&self.path, "renaming", error))?;
        let _ = fs::remove_file(self.path.with_extension("json"));
        self.head = None;
        Ok(())
    }

    pub(crate) const fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let head = self.head.as_ref().filter(|head| head.validator.is_some());
        if head.is_none() || self.len == 0 {
            let _ = fs::remove_file(self.path.with_extension("json"));
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> Result<File, FetchError> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| failed(path, "opening", error))
}

/// A file that one process at a time has, for as long as it lives; it is removed at the end.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn acquire(path: &Path) -> Result<Self, FetchError> {
        let error = |error| failed(path, "locking", error);
        loop {
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(false).open(path);
            let file = file.map_err(error)?;
            file.lock().map_err(error)?;
            // Who had the lock before may have removed it.
            if leads_to(path, &file).map_err(error)? {
                return Ok(Self { path: path.to_owned(), _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Elsewhere an open file cannot be removed, or not be told from the one in its place.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
