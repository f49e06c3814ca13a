//! The digests of a package's files: a list in `metadata` that onert does not look at, in the form
//! of `sha256sum`.

use std::{collections::BTreeMap, fmt::Write as _, io::BufRead as _};

use model_archive::{StoredReader, name};
use tensor_core::{
    Limits,
    digest::{Algorithm, Digest, Hasher, from_hex},
};

use crate::{Error, Position, Result, layout};

/// The digests of the files of a package, by path from its root, as `metadata/SHA256SUMS` lists them.
///
/// The list holds every file but itself, one a line, sorted by path: 64 hex digits, two blanks, the
/// path. `sha256sum --check metadata/SHA256SUMS` in the unpacked package does the same as
/// [`Reader::validate`](crate::Reader::validate). The format of packages knows no digests; onert takes no notice of the file.
///
/// # Examples
///
/// ```
/// use nnpackage::Sums;
///
/// let text = format!("{}  a.circle\n", "0".repeat(64));
/// let sums = Sums::parse(text.as_bytes())?;
/// assert_eq!(sums.get("a.circle"), Some(&[0; 32]));
/// assert_eq!(sums.to_bytes(), text.as_bytes());
/// # Ok::<(), nnpackage::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums(BTreeMap<String, [u8; 32]>);

impl Sums {
    /// The path of the list from the root of a package.
    pub const PATH: &str = layout::SUMS;

    /// Reads a list. Lines may be in any order, and may have a star in front of the path.
    ///
    /// # Errors
    ///
    /// [`Error::Document`] that names the line: one that is not a digest and path, a path that leads
    /// out of the package, or one that stands twice.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut sums = BTreeMap::new();
        let lines = bytes.split(|byte| *byte == b'\n');
        for (line, text) in (1_u64..).zip(lines).filter(|(_, text)| !text.is_empty()) {
            let text = String::from_utf8_lossy(text);
            let fail = |column, path: String, found: &str, expected| {
                let (at, found) =
                    (Position { line, column }, format!("{:?}", tensor_core::text::short(found)));
                Error::Document { what: "SHA256SUMS", at, path, found, expected }
            };
            let pair = text.split_at_checked(64).and_then(|(digits, rest)| {
                let path = rest.strip_prefix("  ").or_else(|| rest.strip_prefix(" *"))?;
                Some((from_hex::<32>(digits)?, path))
            });
            let Some((digest, path)) = pair else {
                let expected = "64 hex digits, two blanks and a path";
                return Err(fail(1, "line".to_owned(), &text, expected));
            };
            if name::check(path, &Limits::default()).is_err() || path.ends_with('/') {
                return Err(fail(67, "path".to_owned(), path, "the path of a file of the package"));
            }
            if sums.insert(path.to_owned(), digest).is_some() {
                return Err(fail(67, "path".to_owned(), path, "each path once"));
            }
        }
        Ok(Self(sums))
    }

    /// Returns the text of the list.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = String::new();
        for (path, digest) in &self.0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}  {path}", Hex(digest));
        }
        text.into_bytes()
    }

    /// Returns the SHA-256 of the file of a path; `None` where it is not listed.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&[u8; 32]> {
        self.0.get(path)
    }

    /// Returns paths and digests, sorted by path.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u8; 32])> {
        self.0.iter().map(|(path, digest)| (path.as_str(), digest))
    }

    /// Keeps the lines of some paths.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|path, _| keep(path));
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.0.remove(path);
    }

    pub(crate) fn insert(&mut self, path: &str, digest: [u8; 32]) {
        self.0.insert(path.to_owned(), digest);
    }
}

/// Reads a file to its end, hands over what is read, and returns its digest where that is wanted.
pub(crate) fn read(
    mut content: StoredReader,
    wants_digest: bool,
    mut with: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Option<[u8; 32]>> {
    let mut hasher = wants_digest.then(|| Hasher::new(Algorithm::Sha256));
    loop {
        let ready = content.fill_buf().map_err(StoredReader::fault)?;
        let len = ready.len();
        if len == 0 {
            return Ok(hasher.map(|hasher| sha256(hasher.finish())));
        }
        if let Some(hasher) = &mut hasher {
            hasher.update(ready);
        }
        with(ready)?;
        content.consume(len);
    }
}

/// Returns the digest of a file.
pub(crate) fn digest(content: StoredReader) -> Result<[u8; 32]> {
    Ok(read(content, true, |_| Ok(()))?.unwrap_or_default())
}

/// Returns the bytes of a digest that is known to be a SHA-256.
pub(crate) fn sha256(digest: Digest) -> [u8; 32] {
    match digest {
        Digest::Sha256(bytes) => bytes,
        Digest::Crc32c(_) | Digest::Xxh3(_) => [0; 32],
    }
}

pub(crate) struct Hex<'a>(pub(crate) &'a [u8; 32]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, message: &str) {
        assert_eq!(Sums::parse(text.as_bytes()).unwrap_err().to_string(), message);
    }

    #[test]
    fn lists_are_sorted_when_written() {
        let (a, b) = ("aB".repeat(32), "0f".repeat(32));
        let sums = Sums::parse(format!("{a} *b c\n\n{b}  a/x").as_bytes()).unwrap();
        let expected = format!("{b}  a/x\n{}  b c\n", a.to_lowercase());
        assert_eq!(sums.to_bytes(), expected.as_bytes());
        assert_eq!(Sums::parse(&sums.to_bytes()).unwrap(), sums);
        assert_eq!(sums.iter().len(), 2);
    }

    #[test]
    fn lines_that_are_none() {
        let hex = "0".repeat(64);
        let short = "SHA256SUMS line 2 column 1: line is \"abc  x\", expected 64 hex digits, two \
                     blanks and a path";
        refuses(&format!("{hex}  a\nabc  x\n"), short);
        refuses(
            &format!("{hex}  ../a\n"),
            "SHA256SUMS line 1 column 67: path is \"../a\", expected the path of a file of the \
             package",
        );
        refuses(
            &format!("{hex}  a\n{hex}  a\n"),
            "SHA256SUMS line 2 column 67: path is \"a\", expected each path once",
        );
        refuses(
            &format!("{hex}  a\r\n"),
            "SHA256SUMS line 1 column 67: path is \"a\\r\", expected the path of a file of the \
             package",
        );
    }
}
