//! The folder of fetched content, which the reference implementation can use as well.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use carton_format::{Sha256, fetch::FetchError};
use serde::{Deserialize, Serialize};
use tensor_core::{
    Extent, Source,
    digest::{Algorithm, Digest, digest},
    output::{Durability, Existing, Output},
};

use super::partial::Part;

/// A folder of fetched content, keyed by digest.
///
/// ```text
/// files/<sha256>/file        the content
/// files/<sha256>/info.json   its URL; the length and the time of the file that was hashed
/// files/.tmp-<sha256>/       the same, while it is made
/// partial/<sha256>           the start of a body; .json says of which; .lock is held by its writer
/// ```
///
/// `files` is laid out as the reference implementation has it, and either finds what the other
/// fetched. Digests are 64 lower-case hex digits.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Stands on a folder, which is made when something is fetched.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Stands on the folder that the reference implementation uses as well.
    ///
    /// # Errors
    ///
    /// As for [`default_folder`](Self::default_folder).
    pub fn open_default() -> Result<Self, FetchError> {
        Self::default_folder().map(Self::new)
    }

    /// Returns the folder that the environment names (`CARTON_CACHE_DIR`), or else the key
    /// `cache_dir` of the configuration (`CARTON_CONFIG_PATH`, or else `~/.carton/config.toml`), or
    /// else `~/.carton/cache`.
    ///
    /// # Errors
    ///
    /// [`FetchError::Setting`] where the configuration is broken or there is no home folder;
    /// [`FetchError::Cache`] where it cannot be read.
    pub fn default_folder() -> Result<PathBuf, FetchError> {
        default_folder(|name| env::var_os(name), env::home_dir())
    }

    /// Returns content that is there. Its digest is compared unless the file has the length and the
    /// time that it had when that was done before; content with another digest is not returned.
    ///
    /// # Errors
    ///
    /// [`FetchError::Cache`] and [`FetchError::Core`] where it is there but cannot be read.
    pub fn get(&self, sha256: Sha256) -> Result<Option<Source>, FetchError> {
        let home = self.home(sha256);
        let path = home.join(FILE);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&path, "opening", error));
            }
            _ => return Ok(None),
        }
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| failed(&path, "opening", error))?,
        };
        let metadata = file.metadata().map_err(|error| failed(&path, "opening", error))?;
        let record = Record::new(&metadata);
        let source = Source::from_file(file)?;
        let mut info = Info::read(&home);
        if record.is_some() && info.record == record {
            return Ok(Some(source));
        }
        let found = digest(&source, Extent::first(source.len()), Algorithm::Sha256, "cached file")?;
        if found != Digest::Sha256(sha256.0) {
            return Ok(None);
        }
        info.record = record;
        // Where the record cannot be written, the content is hashed again the next time.
        let _ = info.replace(&home);
        Ok(Some(source))
    }

    /// Removes what stands in the place of content and is not it. The caller holds the lock.
    pub(super) fn evict(&self, sha256: Sha256) -> Result<(), FetchError> {
        let (home, aside) = (self.home(sha256), self.staging(sha256));
        remove_folder(&aside)?;
        // Renamed first: the reference takes a folder for complete content.
        match fs::rename(&home, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(&home, "removing", error)),
            Ok(()) => remove_folder(&aside),
        }
    }

    /// Opens the partial body of a content, once no other process has it.
    pub(super) fn part(&self, sha256: Sha256) -> Result<Part, FetchError> {
        let folder = self.folder.join("partial");
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, "creation", error))?;
        Part::open(&folder.join(sha256.to_string()))
    }

    /// Starts the place of a content. The caller holds the lock.
    pub(super) fn stage(&self, sha256: Sha256) -> Result<Staged<'_>, FetchError> {
        let folder = self.staging(sha256);
        // What a process left that ended too early.
        remove_folder(&folder)?;
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, "creation", error))?;
        Ok(Staged { cache: self, sha256, folder })
    }

    fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    fn home(&self, sha256: Sha256) -> PathBuf {
        self.files().join(sha256.to_string())
    }

    fn staging(&self, sha256: Sha256) -> PathBuf {
        self.files().join(format!(".tmp-{sha256}"))
    }
}

/// A content on its way into the cache; removed when dropped before [`commit`](Self::commit).
pub(super) struct Staged<'c> {
    cache: &'c Cache,
    sha256: Sha256,
    folder: PathBuf,
}

impl Staged<'_> {
    /// Returns where the content is to be written.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Puts the content, whose digest was compared, in its place, durably.
    pub(super) fn commit(self, url: String) -> Result<Source, FetchError> {
        let path = self.path();
        let file = File::options().append(true).open(&path);
        let file = file.map_err(|error| failed(&path, "opening", error))?;
        file.sync_all().map_err(|error| failed(&path, "synchronising", error))?;
        let metadata = file.metadata().map_err(|error| failed(&path, "opening", error))?;
        let mut info = Info { record: Record::new(&metadata), ..Info::default() };
        info.other.insert("url".to_owned(), url.into());
        info.replace(&self.folder)?;
        sync_folder(&self.folder)?;
        let home = self.cache.home(self.sha256);
        if let Err(error) = fs::rename(&self.folder, &home) {
            // The reference may have fetched it meanwhile; it does not know our lock.
            if let Some(source) = self.cache.get(self.sha256)? {
                return Ok(source);
            }
            return Err(failed(&home, "renaming", error));
        }
        sync_folder(&self.cache.files())?;
        let moved = home.join(FILE);
        let file = File::open(&moved).map_err(|error| failed(&moved, "opening", error))?;
        Ok(Source::from_file(file)?)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The file `info.json` beside a content. The reference writes the URL and ignores other keys.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Info {
    #[serde(flatten)]
    record: Option<Record>,
    #[serde(flatten)]
    other: serde_json::Map<String, serde_json::Value>,
}

/// Which file had the right digest.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// Length in bytes.
    checked_bytes: u64,
    /// When it was changed last, in nanoseconds since 1970.
    checked_modified: u64,
}

impl Info {
    /// Reads what stands in a folder; nothing where that cannot be read.
    fn read(home: &Path) -> Self {
        let text = fs::read(home.join(INFO)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn replace(&self, home: &Path) -> Result<(), FetchError> {
        let path = home.join(INFO);
        let mut file =
            Output { durability: Durability::Cached, ..Output::default() }.create(&path)?;
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let written = text.and_then(|text| file.write_all(&text));
        written.map_err(|error| failed(&path, "writing", error))?;
        Ok(file.commit(Existing::Replace)?)
    }
}

impl Record {
    fn new(metadata: &fs::Metadata) -> Option<Self> {
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let checked_modified = u64::try_from(modified.as_nanos()).ok()?;
        Some(Self { checked_bytes: metadata.len(), checked_modified })
    }
}

fn default_folder(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Result<PathBuf, FetchError> {
    let home = home.filter(|home| !home.as_os_str().is_empty());
    let home = || {
        home.clone().ok_or(FetchError::Setting {
            what: "home folder",
            found: "unknown".into(),
            expected: "one, or CARTON_CACHE_DIR",
        })
    };
    let expand = |path: PathBuf| match path.strip_prefix("~") {
        Ok(rest) => Ok(home()?.join(rest)),
        Err(_) => Ok(path),
    };
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = named("CARTON_CACHE_DIR") {
        return expand(folder);
    }
    let configuration = match named("CARTON_CONFIG_PATH") {
        Some(path) => Configuration::read(&expand(path)?)?,
        None => {
            let path = home()?.join(".carton/config.toml");
            // Only one that was asked for has to be there.
            if path.exists() { Configuration::read(&path)? } else { Configuration::default() }
        }
    };
    match configuration.cache_dir {
        Some(folder) => expand(folder),
        None => Ok(home()?.join(".carton/cache")),
    }
}

#[derive(Default, Deserialize)]
struct Configuration {
    cache_dir: Option<PathBuf>,
}

impl Configuration {
    fn read(path: &Path) -> Result<Self, FetchError> {
        let text = fs::read_to_string(path).map_err(|error| failed(path, "reading", error))?;
        toml::from_str(&text).map_err(|error| FetchError::Setting {
            what: "configuration of carton",
            found: error.message().to_owned().into(),
            expected: "TOML with a path as cache_dir",
        })
    }
}

fn remove_folder(folder: &Path) -> Result<(), FetchError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed(folder, "removing", error))
        }
        _ => Ok(()),
    }
}

/// Makes the entries of a folder durable.
fn sync_folder(folder: &Path) -> Result<(), FetchError> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| failed(folder, "synchronising", error))
}

pub(super) fn failed(path: &Path, what: &'static str, source: io::Error) -> FetchError {
    FetchError::Cache { path: path.to_owned(), what, source }
}

const FILE: &str = "file";
const INFO: &str = "info.json";

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(variables: &[(&str, &str)], home: Option<&Path>) -> Result<PathBuf, String> {
        let find = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        default_folder(find, home.map(Path::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn variable_comes_before_configuration_before_default() {
        let home = tempfile::tempdir().unwrap();
        let of = |variables: &[(&str, &str)]| folder(variables, Some(home.path())).unwrap();
        assert_eq!(of(&[]), home.path().join(".carton/cache"));
        fs::create_dir(home.path().join(".carton")).unwrap();
        fs::write(home.path().join(".carton/config.toml"), "cache_dir = \"/here\"\nx = 1").unwrap();
        assert_eq!(of(&[]), Path::new("/here"));
        let other = home.path().join("other.toml");
        fs::write(&other, "cache_dir = \"~/there\"").unwrap();
        let other = ("CARTON_CONFIG_PATH", other.to_str().unwrap());
        assert_eq!(of(&[other]), home.path().join("there"));
        assert_eq!(of(&[other, ("CARTON_CACHE_DIR", "/anywhere")]), Path::new("/anywhere"));
        assert_eq!(of(&[("CARTON_CACHE_DIR", "~/x")]), home.path().join("x"));
    }

    #[test]
    fn broken_configurations_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("config.toml");
        let variables = [("CARTON_CONFIG_PATH", config.to_str().unwrap())];
        assert!(folder(&variables, None).unwrap_err().ends_with("reading failed"));
        fs::write(&config, "cache_dir = 3").unwrap();
        let error = folder(&variables, None).unwrap_err();
        assert!(error.ends_with("expected TOML with a path as cache_dir"), "{error}");
        let error = folder(&[], None).unwrap_err();
        assert_eq!(error, "home folder is unknown, expected one, or CARTON_CACHE_DIR");
    }
}
