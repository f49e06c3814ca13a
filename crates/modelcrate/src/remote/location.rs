//! Where a file is: a path, or an address of a bucket, a web server or a hub.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use url::{Host, Url};

use super::{Error, Result};
use crate::address::{is_query, split_address, without_secrets};

/// Where a file or a folder is.
///
/// | text | is |
/// |---|---|
/// | `s3://bucket/key`, `gs://bucket/key`, `az://container/key` | an object of a bucket; a folder where it ends in a slash, many where a part has `*`, `?` or `[`, which stand for themselves as `[*]`, `[?]` and `[[]` |
/// | `https://host/path?query`, `http://…` | a file of a web server |
/// | `hf://owner/name[@revision]/path` | a file of a repository of a model hub |
/// | `file:///path` and everything else | a path of this machine |
///
/// Shown without the query, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location(pub(super) Place);

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Path(PathBuf),
    Bucket { scheme: Scheme, bucket: String, key: Key },
    Web(Url),
    Hub { repository: String, revision: String, path: Key },
}

/// What is in a bucket or a repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// As somebody wrote it: with a slash at its end, or wildcards, it stands for several.
    Written(String),
    /// As it is, whatever is in it.
    Exact(String),
}

impl Key {
    /// Reads a key in which nothing but `[*]`, `[?]` and `[[]` stands for other characters as it is.
    fn written(text: &str) -> Self {
        let (mut key, mut rest) = (String::new(), text);
        while let Some((start, wild)) = rest.find(WILD).and_then(|at| rest.split_at_checked(at)) {
            let one = wild.strip_prefix('[').and_then(|wild| {
                let c = wild.chars().next().filter(|c| WILD.contains(c))?;
                Some((c, wild.get(1..)?.strip_prefix(']')?))
            });
            let Some((c, behind)) = one else { return Self::Written(text.to_owned()) };
            key.push_str(start);
            key.push(c);
            rest = behind;
        }
        match is_folder(text) {
            true => Self::Written(text.to_owned()),
            false => Self::Exact(key + rest),
        }
    }

    pub(super) fn text(&self) -> &str {
        let (Self::Written(text) | Self::Exact(text)) = self;
        text
    }

    fn is_many(&self) -> bool {
        matches!(self, Self::Written(text) if is_folder(text) || text.contains(WILD))
    }
}

// As it would be written.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Exact(key) = self else { return f.write_str(self.text()) };
        key.split_inclusive(WILD).try_for_each(|part| {
            let plain = part.strip_suffix(WILD).unwrap_or(part);
            let wild = part.get(plain.len()..).filter(|wild| !wild.is_empty());
            f.write_str(plain)?;
            wild.map_or(Ok(()), |wild| write!(f, "[{wild}]"))
        })
    }
}

/// What serves a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scheme {
    S3,
    Gs,
    Az,
}

impl Location {
    /// Reads an address, or a path: whatever has no scheme.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] where a scheme is none of these, or an address has a user or a password or
    /// is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        let Some((scheme, rest)) = split_address(text) else {
            return Ok(Self::from_path(text));
        };
        let place = match &*scheme.to_ascii_lowercase() {
            "s3" => bucket(Scheme::S3, text, rest)?,
            "gs" => bucket(Scheme::Gs, text, rest)?,
            "az" => bucket(Scheme::Az, text, rest)?,
            "http" | "https" => Place::Web(web(text)?),
            "hf" => hub(text, rest)?,
            "file" => Place::Path(file(text)?),
            _ => {
                let reason = format!("scheme is {scheme:?}, expected one of {SCHEMES}");
                return Err(Error::address(text, reason));
            }
        };
        Ok(Self(place))
    }

    /// Stands for a path, whatever is in it.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        Self(Place::Path(path.into()))
    }

    /// Returns the path, where it is one.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match &self.0 {
            Place::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Tells whether it stands for several files: a folder of a bucket, which ends in a slash or has
    /// no key, or a pattern with `*`, `?` or `[`.
    #[must_use]
    pub fn is_many(&self) -> bool {
        match &self.0 {
            Place::Bucket { key, .. } | Place::Hub { path: key, .. } => key.is_many(),
            Place::Path(_) | Place::Web(_) => false,
        }
    }

    /// Tells whether it has a query, which is not shown.
    pub(crate) fn has_query(&self) -> bool {
        matches!(&self.0, Place::Web(url) if url.query().is_some())
    }

    /// Returns the last part of it: the name of a file.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        let path = match &self.0 {
            Place::Path(path) => return path.file_name()?.to_str(),
            Place::Bucket { key, .. } | Place::Hub { path: key, .. } => key.text(),
            Place::Web(url) => url.path(),
        };
        path.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// Returns where another file of the same folder is; `None` where the name is not that of one.
    #[must_use]
    pub fn beside(&self, name: &str) -> Option<Self> {
        if name.is_empty() || name.contains(['/', '\\', '\0']) || matches!(name, "." | "..") {
            return None;
        }
        let renamed = |key: &Key| match key.text().rsplit_once('/') {
            Some((folder, _)) => Key::Exact(format!("{folder}/{name}")),
            None => Key::Exact(name.to_owned()),
        };
        let mut place = self.0.clone();
        match &mut place {
            Place::Path(path) => path.set_file_name(name),
            Place::Bucket { key, .. } | Place::Hub { path: key, .. } => *key = renamed(key),
            Place::Web(url) => {
                url.path_segments_mut().ok()?.pop().push(name);
            }
        }
        Some(Self(place))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Bucket { scheme, bucket, key } => {
                write!(f, "{scheme}://{bucket}/{key}")
            }
            Self::Web(url) => f.write_str(&shown(url)),
            Self::Hub { repository, revision, path } if revision == MAIN => {
                write!(f, "hf://{repository}/{path}")
            }
            Self::Hub { repository, revision, path } => {
                write!(f, "hf://{repository}@{revision}/{path}")
            }
        }
    }
}

// A query may be a secret: what is shown for debugging has none either.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Az => "az",
        })
    }
}

/// Returns a URL without what may be a secret.
pub(super) fn shown(url: &Url) -> String {
    without_secrets(url.as_str())
}

/// Tells whether a host is this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn bucket(scheme: Scheme, text: &str, rest: &str) -> Result<Place> {
    check_query(text, rest)?;
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.contains('@') {
        return Err(Error::address(text, CREDENTIALS));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if bucket.is_empty() || !bucket.bytes().all(is_name) {
        return Err(Error::address(text, format!("{bucket:?} is not the name of a bucket")));
    }
    check_parts(text, key)?;
    Ok(Place::Bucket { scheme, bucket: bucket.to_owned(), key: Key::written(key) })
}

fn hub(text: &str, rest: &str) -> Result<Place> {
    check_query(text, rest)?;
    let mut parts = rest.splitn(3, '/');
    let owner = parts.next().unwrap_or_default();
    let (name, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (name, revision) = name.split_once('@').unwrap_or((name, MAIN));
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if owner.contains('@') {
        return Err(Error::address(text, CREDENTIALS));
    }
    for part in [owner, name] {
        if part.trim_matches('.').is_empty() || !part.bytes().all(is_part) {
            let reason = "is not hf://owner/name[@revision]/path".to_owned();
            return Err(Error::address(text, reason));
        }
    }
    if revision.is_empty() {
        return Err(Error::address(text, "revision is empty"));
    }
    check_parts(text, path)?;
    Ok(Place::Hub {
        repository: format!("{owner}/{name}"),
        revision: revision.to_owned(),
        path: Key::written(path),
    })
}

/// Refuses what was meant for a web server.
fn check_query(text: &str, rest: &str) -> Result<()> {
    let query = rest.find('?').and_then(|at| rest.get(at..));
    match is_query(query) {
        true => Err(Error::address(text, "has a query, expected none ([?] is the sign itself)")),
        false => Ok(()),
    }
}

/// Refuses keys that a store would take for other ones.
fn check_parts(text: &str, path: &str) -> Result<()> {
    odd_part(path).map_or(Ok(()), |reason| Err(Error::address(text, reason)))
}

/// Says what keeps a key, or the path of a file of a hub, from being asked for.
pub(super) fn odd_part(path: &str) -> Option<&'static str> {
    let mut parts = path.strip_suffix('/').unwrap_or(path).split('/');
    if !path.is_empty() && parts.any(|part| matches!(part, "" | "." | "..")) {
        return Some("has a part that is empty, \".\" or \"..\"");
    }
    path.chars().any(char::is_control).then_some("has a control character")
}

fn web(text: &str) -> Result<Url> {
    let mut url = parsed(text)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::address(text, CREDENTIALS));
    }
    url.set_fragment(None);
    Ok(url)
}

fn file(text: &str) -> Result<PathBuf> {
    let wrong = |_| Error::address(text, "is not the address of a file of this machine");
    parsed(text)?.to_file_path().map_err(wrong)
}

fn parsed(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| Error::address(text, error.to_string()))
}

fn is_folder(key: &str) -> bool {
    key.is_empty() || key.ends_with('/')
}

/// Returns what a pattern starts with up to its last slash before a wildcard.
pub(super) fn fixed(pattern: &str) -> &str {
    let wild = pattern.find(WILD).unwrap_or(pattern.len());
    let end = pattern.get(..wild).and_then(|start| start.rfind('/'));
    end.and_then(|end| pattern.get(..=end)).unwrap_or_default()
}

const WILD: [char; 3] = ['*', '?', '['];

/// The revision where none is named.
pub(super) const MAIN: &str = "main";

const SCHEMES: &str = "s3, gs, az, https, http, hf and file";

const CREDENTIALS: &str = "has a user or a password, which are refused";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Location {
        Location::parse(text).unwrap()
    }

    #[test]
    fn what_has_no_scheme_is_a_path() {
        for text in ["model.zt", "C:\\models\\a.zt", "./s3://b/k"] {
            assert_eq!(parse(text).as_path(), Some(Path::new(text)));
        }
        assert_eq!(parse("file:///tmp/a%20b").as_path(), Some(Path::new("/tmp/a b")));
    }

    #[test]
    fn addresses_are_shown_without_secrets() {
        for (text, shown) in [
            ("s3://bucket/a/b.zt", "s3://bucket/a/b.zt"),
            ("gs://bucket", "gs://bucket/"),
            ("https://h.example/a.zt?X-Amz-Signature=s3cret#x", "https://h.example/a.zt"),
            ("hf://owner/name/a.safetensors", "hf://owner/name/a.safetensors"),
            ("hf://owner/name@v1/a/b.zt", "hf://owner/name@v1/a/b.zt"),
        ] {
            let location = parse(text);
            assert_eq!(location.to_string(), shown);
            assert!(!format!("{location:?}").contains("s3cret"));
            assert!(Location::parse(shown).is_ok());
        }
    }

    #[track_caller]
    fn rejects(text: &str, message: &str) {
        assert_eq!(Location::parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn addresses_that_are_refused() {
        let schemes = "expected one of s3, gs, az, https, http, hf and file";
        rejects("ftp://h/x", &format!("\"ftp://h/x\": scheme is \"ftp\", {schemes}"));
        rejects(
            "https://user:s3cret@h.example/x?y",
            "\"https://h.example/x\": has a user or a password, which are refused",
        );
        rejects("s3://k:s3cret@b/x", "\"s3://b/x\": has a user or a password, which are refused");
        rejects(
            "s3://b/x?X-Amz-Signature=s3cret",
            "\"s3://b/x\": has a query, expected none ([?] is the sign itself)",
        );
        let query = "has a query, expected none ([?] is the sign itself)";
        rejects("s3://b?sig=s3cret", &format!("\"s3://b\": {query}"));
        rejects("hf://o/n@v1?sig=s3cret/x", &format!("\"hf://o/n@v1\": {query}"));
        rejects("s3:///x", "\"s3:///x\": \"\" is not the name of a bucket");
        rejects("s3://b/a//c", "\"s3://b/a//c\": has a part that is empty, \".\" or \"..\"");
        rejects("gs://b/../c", "\"gs://b/../c\": has a part that is empty, \".\" or \"..\"");
        rejects("https://?s3cret", "\"https://\": empty host");
        rejects("hf://owner", "\"hf://owner\": is not hf://owner/name[@revision]/path");
        rejects("hf://owner/n@/x", "\"hf://owner/n@/x\": revision is empty");
        rejects("file://host/x", "\"file://host/x\": is not the address of a file of this machine");
    }

    #[test]
    fn folders_and_patterns_are_many() {
        for (text, many) in [
            ("s3://b", true),
            ("s3://b/folder/", true),
            ("s3://b/folder/*.zt", true),
            ("s3://b/a.zt", false),
            ("hf://o/n", true),
            ("hf://o/n/a.zt", false),
            ("https://h/", false),
            ("folder/", false),
        ] {
            assert_eq!(parse(text).is_many(), many, "{text}");
        }
        for (pattern, start) in
            [("a/b*/c.zt", "a/"), ("*.zt", ""), ("a/b/*.zt", "a/b/"), ("a/b", "a/")]
        {
            assert_eq!(fixed(pattern), start);
        }
    }

    #[test]
    fn wildcards_stand_for_themselves_in_brackets() {
        for (text, key) in [
            ("a[?].zt", "a?.zt"),
            ("m/[[]x].zt", "m/[x].zt"),
            ("[*][?]", "*?"),
            ("a[?]k=v", "a?k=v"),
        ] {
            let location = parse(&format!("s3://b/{text}"));
            assert!(!location.is_many(), "{text}");
            assert!(matches!(&location.0, Place::Bucket { key: found, .. } if found.text() == key));
            assert_eq!(location.to_string(), format!("s3://b/{text}"));
        }
        for text in ["a[?]*", "[!?]", "[?*]", "[?", "[]]x", "[?]/"] {
            assert!(parse(&format!("hf://o/n/{text}")).is_many(), "{text}");
        }
    }

    #[test]
    fn files_beside_are_in_the_same_folder() {
        for (text, name, expected) in [
            ("s3://b/m/index.json", "1.st", Some("s3://b/m/1.st")),
            ("s3://b/index.json", "1.st", Some("s3://b/1.st")),
            ("https://h/m/index.json?k=1", "1.st", Some("https://h/m/1.st")),
            ("hf://o/n/index.json", "1.st", Some("hf://o/n/1.st")),
            ("m/index.json", "1.st", Some("m/1.st")),
            ("s3://b/m/index.json", "../1.st", None),
            ("s3://b/m/index.json", "", None),
        ] {
            let beside = parse(text).beside(name).map(|location| location.to_string());
            assert_eq!(beside.as_deref(), expected, "{text}");
        }
        assert_eq!(parse("https://h/m/a.zt?q").file_name(), Some("a.zt"));
        assert_eq!(parse("s3://b/m/").file_name(), None);
    }
}
