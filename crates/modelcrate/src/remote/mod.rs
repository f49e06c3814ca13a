//! Files at addresses: of buckets, web servers and model hubs.
//!
//! Nothing is asked for but the parts that are read: opening a model costs one or two requests, however
//! large its tensors are. All calls block; what waits for servers are two threads that start when they
//! are first needed. They are of one process: a program that forks opens a [`Remote`] only in the
//! processes that read.
//!
//! # Data path
//!
//! ```text
//! 1. Location          which store, and what in it                    location.rs
//! 2. Bucket, Web       how the store is asked: credentials, headers,  bucket.rs, web.rs, hub.rs,
//!                      what an answer has to say, what a list has     list.rs, credentials.rs
//! 3. Target            attempts, pauses                               target.rs, runtime.rs
//! 4. Pace, Pin         how slow an answer may be; the version that    answer.rs
//!                      all answers have to be of
//! 5. RemoteFile        blocks that are kept, and read ahead           file.rs
//! 6. Opened, Source    what readers of all formats read from          file.rs, tensor_core::Source
//!    put               an upload, whole or not at all                 upload.rs
//! ```
//!
//! # What is not promised
//!
//! All that is read of a file is of one version where its server names versions: by an entity tag, or by
//! a time of change, which tells no two versions of one second apart. Of a server that does neither,
//! only the length is compared: a file that is replaced by one as long, while it is read, is a mixture.
//!
//! # Examples
//!
//! ```no_run
//! use modelcrate::remote::{Location, Remote, RemoteOptions};
//!
//! let remote = Remote::new(RemoteOptions::default());
//! let reader = remote.reader(&Location::parse("s3://models/new.zt")?, Default::default())?;
//! println!("{} tensors, {:?}", reader.tensors()?.count(), remote.stats());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    collections::HashMap,
    path::Path as FilePath,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use tensor_core::{Source, output::Existing};
use url::Url;

mod answer;
mod bucket;
mod credentials;
mod error;
mod file;
mod hub;
mod list;
mod location;
mod options;
mod runtime;
mod stats;
mod target;
mod upload;
mod web;

pub use error::{Error, Result};
pub use file::Opened;
pub use location::Location;
pub use options::RemoteOptions;
pub use stats::Stats;
pub use upload::abandon;

use self::{
    answer::{Pin, Version},
    bucket::Bucket,
    file::{Fault, RemoteFile},
    location::{Key, Place, Scheme, fixed},
    runtime::wait,
    stats::Counters,
    target::{Store, Target},
    web::Web,
};
use crate::{AnyReader, ReadOptions};

/// Opens, lists and writes files at addresses. Clones share connections, credentials and counts.
#[derive(Clone, Debug)]
pub struct Remote {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Arc<RemoteOptions>,
    counters: Arc<Counters>,
    buckets: Mutex<HashMap<(Scheme, String), Bucket>>,
    /// Without a token, and with that of a hub.
    webs: Mutex<[Option<Web>; 2]>,
}

/// A file that a listing found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// Where it is.
    pub location: Location,
    /// Its length in bytes.
    pub len: u64,
    /// The entity tag of its version, where the store lists them.
    pub etag: Option<String>,
    /// When it was changed last, where the store lists that.
    pub modified: Option<SystemTime>,
}

impl Remote {
    /// Asks nothing of anybody yet.
    #[must_use]
    pub fn new(options: RemoteOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options: Arc::new(options),
                counters: Arc::default(),
                buckets: Mutex::default(),
                webs: Mutex::default(),
            }),
        }
    }

    /// Returns what was asked of servers so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.counters.stats()
    }

    /// Opens a file: one request for its start, which is all of a short one. A path is opened, too.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]; [`Error::Denied`]; [`Error::NoRanges`] where a server would send all of a
    /// file that is too large for that; others as they are called.
    pub fn open(&self, location: &Location) -> Result<Opened> {
        self.open_one(location, &Fault::default()).map_err(|error| error.at(location))
    }

    /// Opens a model of any format, or an index of shards beside it.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), as [`Error`] in an error of reading, and for [`ReadOptions::open`].
    pub fn reader(&self, location: &Location, options: ReadOptions) -> crate::Result<AnyReader> {
        if let Some(path) = location.as_path() {
            return options.open(path);
        }
        self.reader_of(&self.open(location)?, location, options)
    }

    /// Like [`reader`](Self::reader), but with a file that is open already.
    ///
    /// # Errors
    ///
    /// As for [`reader`](Self::reader).
    pub fn reader_of(
        &self,
        opened: &Opened,
        location: &Location,
        options: ReadOptions,
    ) -> crate::Result<AnyReader> {
        self.reader_beside(opened, location, options, &|_, _| ())
    }

    /// Like [`reader_of`](Self::reader_of); `note` is told each file beside it that is looked for, and
    /// what is there.
    pub(crate) fn reader_beside(
        &self,
        opened: &Opened,
        location: &Location,
        options: ReadOptions,
        note: &dyn Fn(&str, Option<&Opened>),
    ) -> crate::Result<AnyReader> {
        if let Some(path) = location.as_path() {
            return options.open(path);
        }
        let own = location.file_name().unwrap_or_default();
        options.from_source_beside(own, opened.source().clone(), &|name| {
            let name = name.to_str().unwrap_or_default();
            let there = location.beside(name).ok_or(Error::NotFound { hint: "" });
            let found =
                there.and_then(|there| self.open_one(&there, &opened.fault.of_part(&there)));
            note(name, found.as_ref().ok());
            found.map(|opened| opened.source).map_err(|error| tensor_core::Error::File {
                path: location.beside(name).map_or(name.into(), |it| it.to_string().into()),
                what: "opening",
                source: error.into(),
            })
        })
    }

    /// Returns the files of a folder of a bucket or hub, or those that fit a pattern, sorted: `*`, `?` and
    /// `[…]` stand for what is in one part of a path, `**` for any parts.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for what cannot be listed; [`Error::Address`] for a malformed pattern;
    /// others as for [`open`](Self::open).
    pub fn list(&self, location: &Location) -> Result<Vec<Listed>> {
        self.list_all(location).map_err(|error| error.at(location))
    }

    /// Writes a file to a bucket: one request, or an upload in parts. Until it is whole, nothing is at the
    /// address that was not there before. Where what is there is to be kept, one more request asks for it
    /// before an upload in parts: what another process writes meanwhile is replaced. `progress` is told how many bytes are there each time some
    /// are.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`]; [`Error::Unsupported`] where nothing can be written; [`Error::Core`] where the
    /// source cannot be read; others as for [`open`](Self::open).
    pub fn put(
        &self,
        location: &Location,
        source: &Source,
        existing: Existing,
        progress: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<()> {
        self.put_one(location, source.clone(), existing, progress)
            .map_err(|error| error.at(location))
    }

    fn open_one(&self, location: &Location, fault: &Fault) -> Result<Opened> {
        if let Place::Path(path) = &location.0 {
            return open_path(path);
        }
        if location.is_many() {
            return Err(Error::Unsupported { what: "stands for several files, expected one" });
        }
        let target = self.target(location)?;
        let start = target.read(0..self.inner.options.block_size, None).map_err(|error| {
            let is_bucket = matches!(location.0, Place::Bucket { .. });
            match error {
                Error::NotFound { .. } if is_bucket => {
                    Error::NotFound { hint: " (a folder ends in a slash)" }
                }
                error => error,
            }
        })?;
        let (version, fault) = (start.version.clone(), fault.clone());
        let source = if start.bytes.len() as u64 == start.len {
            Source::from_bytes(start.bytes)
        } else {
            let pin = Pin { version: start.version, len: start.len };
            let file = RemoteFile::new(target, pin, &start.bytes, fault.clone());
            Source::from_read_at(file)
        };
        Ok(Opened { source, version, fault })
    }

    fn list_all(&self, location: &Location) -> Result<Vec<Listed>> {
        let unlisted = "cannot be listed: only buckets and hubs can";
        let (pattern, counters) = match &location.0 {
            Place::Bucket { key, .. } => (key, Arc::clone(&self.inner.counters)),
            Place::Hub { path, .. } => (path, Arc::clone(&self.inner.counters)),
            _ => return Err(Error::Unsupported { what: unlisted }),
        };
        let fits = Pattern::of(pattern.text(), location)?;
        let folder = fixed(pattern.text()).to_owned();
        let options = Arc::clone(&self.inner.options);
        let mut found: Vec<Listed> = match &location.0 {
            Place::Bucket { scheme, bucket, .. } => {
                let store = self.bucket(*scheme, bucket)?;
                let objects = wait(async move {
                    let attempts = (options.retries, options.pause);
                    runtime::retried(attempts, &counters, || store.list(&folder)).await
                })?;
                let objects = objects.into_iter().filter(|object| fits.matches(&object.key));
                let listed = objects.map(|object| Listed {
                    location: Location(Place::Bucket {
                        scheme: *scheme,
                        bucket: bucket.clone(),
                        key: Key::Exact(object.key),
                    }),
                    len: object.len,
                    etag: object.version.etag,
                    modified: object.version.modified,
                });
                listed.collect()
            }
            Place::Hub { repository, revision, .. } => {
                let (web, base) = self.hub()?;
                let at = (repository.clone(), revision.clone());
                let entries = wait(async move {
                    let attempts = (options.retries, options.pause);
                    let list = || {
                        hub::list(&web, &base, (&at.0, &at.1), &folder, &counters, &options.limits)
                    };
                    runtime::retried(attempts, &counters, list).await
                })?;
                let entries = entries.into_iter().filter(|entry| fits.matches(&entry.path));
                let listed = entries.map(|entry| Listed {
                    location: Location(Place::Hub {
                        repository: repository.clone(),
                        revision: revision.clone(),
                        path: Key::Exact(entry.path),
                    }),
                    len: entry.size,
                    etag: None,
                    modified: None,
                });
                listed.collect()
            }
            _ => return Err(Error::Unsupported { what: unlisted }),
        };
        found.sort_by_cached_key(|listed| listed.location.to_string());
        Ok(found)
    }

    fn put_one(
        &self,
        location: &Location,
        source: Source,
        existing: Existing,
        progress: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<()> {
        let target = match &location.0 {
            Place::Bucket { .. } if !location.is_many() => self.target(location)?,
            Place::Bucket { .. } => {
                return Err(Error::Unsupported {
                    what: "is a folder or a pattern, expected a file",
                });
            }
            _ => return Err(Error::Unsupported { what: "cannot be written: only buckets can" }),
        };
        wait(async move {
            let Store::Bucket(bucket, key) = &target.store else { return Ok(()) };
            upload::put(&target, (bucket, key), &source, existing, &progress).await
        })
    }

    fn target(&self, location: &Location) -> Result<Target> {
        let store = match &location.0 {
            Place::Bucket { scheme, bucket, key } => {
                Store::Bucket(self.bucket(*scheme, bucket)?, bucket::path(key.text())?)
            }
            Place::Web(url) => {
                let web = self.web(None)?;
                web.check(url)?;
                Store::Web(web, url.clone())
            }
            Place::Hub { repository, revision, path } => {
                let (web, base) = self.hub()?;
                Store::Web(web, hub::file(&base, repository, revision, path.text()))
            }
            Place::Path(_) => return Err(Error::Unsupported { what: "is a path" }),
        };
        let (options, counters) = (&self.inner.options, &self.inner.counters);
        Ok(Target { store, options: Arc::clone(options), counters: Arc::clone(counters) })
    }

    fn bucket(&self, scheme: Scheme, name: &str) -> Result<Bucket> {
        let mut buckets = self.inner.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (scheme, name.to_owned());
        if let Some(bucket) = buckets.get(&key) {
            return Ok(bucket.clone());
        }
        let bucket = Bucket::new(scheme, name, &self.inner.options, &self.inner.counters)?;
        buckets.insert(key, bucket.clone());
        Ok(bucket)
    }

    fn hub(&self) -> Result<(Web, Url)> {
        let base = hub::base(&self.inner.options)?;
        let web = self.web(credentials::hub_token().as_deref())?;
        web.check(&base)?;
        Ok((web, base))
    }

    /// Returns a client, with a token where there is one.
    fn web(&self, token: Option<&str>) -> Result<Web> {
        let mut webs = self.inner.webs.lock().unwrap_or_else(PoisonError::into_inner);
        let [without, with] = &mut *webs;
        let place = if token.is_some() { with } else { without };
        if let Some(web) = place {
            return Ok(web.clone());
        }
        Ok(place.insert(Web::new(&self.inner.options, token)?).clone())
    }
}

fn open_path(path: &FilePath) -> Result<Opened> {
    let source = Source::open(path)?;
    let modified = path.metadata().and_then(|file| file.modified()).ok();
    Ok(Opened { source, version: Version { etag: None, modified }, fault: Fault::default() })
}

/// Which of the files of a folder are meant.
enum Pattern {
    All,
    Fits(glob::Pattern),
}

impl Pattern {
    fn of(text: &str, location: &Location) -> Result<Self> {
        if text.is_empty() || text.ends_with('/') && fixed(text) == text {
            return Ok(Self::All);
        }
        let text = if text.ends_with('/') { format!("{text}**") } else { text.to_owned() };
        let wrong = |error: glob::PatternError| Error::Address {
            shown: location.to_string(),
            reason: format!("pattern is malformed: {}", error.msg),
        };
        glob::Pattern::new(&text).map(Self::Fits).map_err(wrong)
    }

    fn matches(&self, key: &str) -> bool {
        let options = glob::MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        match self {
            Self::All => true,
            Self::Fits(pattern) => pattern.matches_with(key, options),
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use test_support::{assert_bytes, noise};

    use super::*;

    /// A store whose bucket is in memory.
    fn in_memory(options: RemoteOptions) -> (Remote, Arc<InMemory>) {
        let store = Arc::new(InMemory::new());
        let shared = Arc::new(options.clone());
        let bucket = Bucket::of(Arc::clone(&store), Scheme::S3, &shared, Arc::default());
        let remote = Remote::new(options);
        let key = (Scheme::S3, "bucket".to_owned());
        remote.inner.buckets.lock().unwrap().insert(key, bucket);
        (remote, store)
    }

    fn at(key: &str) -> Location {
        Location::parse(&format!("s3://bucket/{key}")).unwrap()
    }

    fn put(remote: &Remote, key: &str, bytes: &[u8], existing: Existing) -> Result<()> {
        remote.put(&at(key), &Source::from_bytes(bytes.to_vec()), existing, |_| ())
    }

    #[test]
    fn what_was_put_is_read() {
        let options = RemoteOptions::default().block_size(4096).part_size(10_000);
        let (remote, _) = in_memory(options);
        for len in [0, 1, 9_999, 10_000, 10_001, 95_000] {
            let bytes = noise(len);
            put(&remote, "a.zt", &bytes, Existing::Replace).unwrap();
            let opened = remote.open(&at("a.zt")).unwrap();
            assert!(opened.etag().is_some() && opened.modified().is_some());
            let whole = tensor_core::Extent::first(opened.source().len());
            assert_bytes(&opened.source().read(whole, "file").unwrap(), &bytes, "a.zt");
        }
    }

    #[test]
    fn what_is_there_is_kept() {
        let (remote, _) = in_memory(RemoteOptions::default().part_size(10_000));
        for len in [10, 30_000] {
            put(&remote, "a.zt", &noise(len), Existing::Replace).unwrap();
            let error = put(&remote, "a.zt", &noise(len), Existing::Keep).unwrap_err();
            assert_eq!(error.to_string(), "\"s3://bucket/a.zt\": is there already");
        }
    }

    #[test]
    fn a_source_that_fails_leaves_nothing() {
        struct Torn;
        impl tensor_core::ReadAt for Torn {
            fn len(&self) -> u64 {
                50_000
            }
            fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
                buffer.fill(7);
                if offset < 20_000 { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
            }
        }
        let (remote, _) = in_memory(RemoteOptions::default().part_size(10_000));
        let torn = Source::from_read_at(Torn);
        let error = remote.put(&at("a.zt"), &torn, Existing::Keep, |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "result at byte 20000 could not be read");
        assert!(matches!(
            remote.open(&at("a.zt")).unwrap_err().kind(),
            tensor_core::ErrorKind::NotFound
        ));
        assert_eq!(remote.list(&at("")).unwrap().len(), 0);
        assert_eq!(abandon(), 0, "nothing is unfinished");
    }

    #[test]
    fn an_object_that_changes_is_an_error() {
        let (remote, _) = in_memory(RemoteOptions::default().block_size(4096));
        put(&remote, "a.zt", &noise(50_000), Existing::Keep).unwrap();
        let opened = remote.open(&at("a.zt")).unwrap();
        put(&remote, "a.zt", &noise(50_000), Existing::Replace).unwrap();
        let extent = tensor_core::Extent::new(30_000, 10).unwrap();
        opened.source().read(extent, "blob").unwrap_err();
        assert_eq!(opened.fault(), Some("changed while it was read"));
    }

    #[test]
    fn folders_and_patterns() {
        let (remote, _) = in_memory(RemoteOptions::default());
        for key in ["a.zt", "m/b.zt", "m/c.rten", "m/n/d.zt", "mm/e.zt", "m/[x].zt"] {
            let (scheme, bucket) = (Scheme::S3, "bucket".to_owned());
            let place = Place::Bucket { scheme, bucket, key: Key::Exact(key.to_owned()) };
            let content = Source::from_bytes(&b"x"[..]);
            remote.put(&Location(place), &content, Existing::Keep, |_| ()).unwrap();
        }
        for (pattern, expected) in [
            ("", &["a.zt", "m/[[]x].zt", "m/b.zt", "m/c.rten", "m/n/d.zt", "mm/e.zt"][..]),
            ("m/", &["m/[[]x].zt", "m/b.zt", "m/c.rten", "m/n/d.zt"]),
            ("m/*.zt", &["m/[[]x].zt", "m/b.zt"]),
            ("**/*.zt", &["a.zt", "m/[[]x].zt", "m/b.zt", "m/n/d.zt", "mm/e.zt"]),
            ("m*/?.zt", &["m/b.zt", "mm/e.zt"]),
            ("m/[[]x[]].zt", &["m/[[]x].zt"]),
            ("none/", &[]),
        ] {
            let listed = remote.list(&at(pattern)).unwrap();
            let keys: Vec<_> = listed.iter().map(|listed| listed.location.to_string()).collect();
            let expected: Vec<_> =
                expected.iter().map(|key| format!("s3://bucket/{key}")).collect();
            assert_eq!(keys, expected, "{pattern}");
            assert!(listed.iter().all(|listed| listed.len == 1 && listed.etag.is_some()));
            assert!(listed.iter().all(|listed| remote.open(&listed.location).is_ok()));
            // What is shown of an address is one.
            let again = |listed: &Listed| Location::parse(&listed.location.to_string()).unwrap();
            assert!(listed.iter().all(|listed| again(listed) == listed.location));
        }
        let error = remote.list(&at("m/[.zt")).unwrap_err().to_string();
        assert_eq!(error, "\"s3://bucket/m/[.zt\": pattern is malformed: invalid range pattern");
    }

    #[test]
    fn remotes_are_shared_between_threads() {
        fn is_shared<T: Send + Sync + Clone>() {}
        is_shared::<Remote>();
        is_shared::<Opened>();
        is_shared::<Location>();
    }
}
