//! Digests of what a file holds, whatever it is stored in.

use std::{
    ffi::OsString,
    fmt, io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    str::FromStr,
};

use tensor_core::{
    Chain, Finding, Report, Shape,
    digest::{Algorithm, Digest, Hasher, from_hex},
    parallel,
};

use crate::{AnyReader, Content, NamedTensor, Result, TensorSet, stream::Stream};

/// The digest of a set of tensors, and those of the tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentHash {
    /// Over all tensors.
    pub digest: ContentDigest,
    /// Of each tensor, in the order of the bytes of their names.
    pub tensors: Vec<TensorHash>,
}

/// What a tensor is, and the digest of its elements. It is shown as the line of the text that a
/// [`ContentDigest`] is of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorHash {
    /// Of its elements.
    pub digest: Digest,
    /// What it is made of.
    pub content: Content,
    /// Its dimensions, outermost first.
    pub shape: Shape,
    /// Its name.
    pub name: String,
}

impl TensorHash {
    /// Returns the digest in lower-case hex digits.
    #[must_use]
    pub fn sha256(&self) -> String {
        hex(&self.digest)
    }
}

impl fmt::Display for TensorHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content, shape, .. } = self;
        write!(f, "{} {content} {shape} {}", self.sha256(), serde_json::json!(self.name))
    }
}

/// The digest of what a file holds: `tensors-v1:` and 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentDigest([u8; 32]);

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ContentDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidDigest)?;
        from_hex(digits).map(Self).ok_or(InvalidDigest)
    }
}

impl serde::Serialize for ContentDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text is no [`ContentDigest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {PREFIX} and 64 hex digits")]
pub struct InvalidDigest;

impl TensorSet<'_> {
    /// Computes the digest of the tensors: the same for every file that has the same tensors under the
    /// same names, whatever its format, the order of the tensors and how they are stored. Metadata do
    /// not count.
    ///
    /// It is the SHA-256 of this text, a line for each tensor in the order of the bytes of their
    /// names: the SHA-256 of the elements, little-endian and row-major, in 64 hex digits; a space; the
    /// element type, such as `f32`; a space; the shape, such as `[2, 3]`; a space; the name as a JSON
    /// string; a line feed. Of a sparse tensor it is that of all elements, zeros included; of texts,
    /// of their JSON list.
    ///
    /// Of a tensor that is not one of elements, such as a `quantized_group`, the word of its layout
    /// stands for the element type, and what is hashed is a line for each part: the SHA-256 of its
    /// decoded bytes, a space, its name, a line feed. So it is of a sparse tensor that cannot be made
    /// dense, as it has an element twice.
    ///
    /// # Errors
    ///
    /// Where a tensor cannot be read.
    pub fn content_hash(
        &self,
        threads: NonZeroUsize,
        progress: impl Fn(u64) + Sync,
    ) -> Result<ContentHash> {
        let mut tensors: Vec<&NamedTensor<'_>> = self.tensors().iter().collect();
        tensors.sort_unstable_by_key(|tensor| tensor.name());
        let hashes = parallel::map(&tensors, threads, |tensor| tensor.hash(&progress));
        let tensors = hashes.into_iter().collect::<Result<Vec<TensorHash>>>()?;
        let mut whole = Hasher::new(Algorithm::Sha256);
        for tensor in &tensors {
            whole.update(format!("{tensor}\n").as_bytes());
        }
        let digest = match whole.finish() {
            Digest::Sha256(bytes) => ContentDigest(bytes),
            // That is not what was asked for.
            Digest::Crc32c(_) | Digest::Xxh3(_) => ContentDigest([0; 32]),
        };
        Ok(ContentHash { digest, tensors })
    }
}

impl NamedTensor<'_> {
    fn hash(&self, progress: &impl Fn(u64)) -> Result<TensorHash> {
        let (content, shape) = self.content()?;
        let mut parts = self.parts()?;
        let digest = match parts.as_mut_slice() {
            [(name, stream)] if name.is_empty() => digest(stream, progress)?,
            parts => {
                let mut whole = Hasher::new(Algorithm::Sha256);
                for (name, stream) in parts {
                    let digest = digest(stream, progress)?;
                    whole.update(format!("{} {name}\n", hex(&digest)).as_bytes());
                }
                whole.finish()
            }
        };
        Ok(TensorHash { digest, content, shape, name: self.name().to_owned() })
    }
}

pub(crate) fn digest(stream: &mut Stream<'_>, progress: &impl Fn(u64)) -> Result<Digest> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut piece = vec![0; PIECE];
    loop {
        let filled = stream.fill(&mut piece)?;
        hasher.update(piece.get(..filled).unwrap_or_default());
        progress(filled as u64);
        if filled < piece.len() {
            return Ok(hasher.finish());
        }
    }
}

/// Returns the digits of a digest without the name of its algorithm.
pub(crate) fn hex(digest: &Digest) -> String {
    let text = digest.to_string();
    text.rsplit_once(':').map_or_else(|| text.clone(), |(_, digits)| digits.to_owned())
}

/// Lines of digests and paths, as `sha256sum` writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HashList<D = ContentDigest> {
    /// What the lines say, in their order.
    pub files: Vec<(D, PathBuf)>,
    /// The numbers of lines that say nothing of the kind, counted from 1.
    pub malformed: Vec<u64>,
}

impl<D: FromStr> HashList<D> {
    /// Reads lines of a digest, two spaces, of which the second may be a star, and a path. Empty lines
    /// and those that start with `#` are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut list = Self { files: Vec::new(), malformed: Vec::new() };
        for (line, number) in text.lines().zip(1_u64..) {
            match parse(line) {
                Some(file) => list.files.push(file),
                None if line.is_empty() || line.starts_with('#') => {}
                None => list.malformed.push(number),
            }
        }
        list
    }
}

/// Writes a line of a list. A path with a line feed, a carriage return or a backslash is escaped,
/// and a backslash in front of the line says so.
#[must_use]
pub fn hash_line(digest: impl fmt::Display, path: &str) -> String {
    let escaped = path.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
    let mark = if escaped == path { "" } else { "\\" };
    format!("{mark}{digest}  {escaped}")
}

fn parse<D: FromStr>(line: &str) -> Option<(D, PathBuf)> {
    let bare = line.strip_prefix('\\');
    let (digest, rest) = bare.unwrap_or(line).split_once(' ')?;
    let path = rest.strip_prefix([' ', '*']).filter(|path| !path.is_empty())?;
    let path = if bare.is_some() { unescape(path)? } else { path.to_owned() };
    Some((digest.parse().ok()?, PathBuf::from(path)))
}

fn unescape(text: &str) -> Option<String> {
    let (mut out, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(found) = chars.next() {
        out.push(match found {
            '\\' => match chars.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            found => found,
        });
    }
    Some(out)
}

impl AnyReader {
    /// Compares the file with the list of hashes beside it, where there is one: `model.zt.hash` beside
    /// `model.zt`, with a line for `model.zt`. Nothing is reported where it is right.
    ///
    /// The rules are `file/hash` and `file/hash-list`.
    pub fn check_sidecar(
        &self,
        path: &Path,
        threads: NonZeroUsize,
        progress: impl Fn(u64) + Sync,
    ) -> Report {
        let mut report = Report::default();
        if let Err(finding) = self.compare_sidecar(path, threads, progress) {
            report.add(*finding);
        }
        report
    }

    fn compare_sidecar(
        &self,
        path: &Path,
        threads: NonZeroUsize,
        progress: impl Fn(u64) + Sync,
    ) -> Result<(), Box<Finding>> {
        let list = sidecar(path);
        let shown = list.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let broken = |what: String| Box::new(Finding::error("file/hash-list", what));
        let text = match read(&list) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(broken(format!("{shown:?} cannot be read: {error}"))),
        };
        let files = HashList::<ContentDigest>::parse(&text).files;
        let mut wanted = files.iter().filter(|(_, of)| of.file_name() == path.file_name());
        let Some((expected, _)) = wanted.next() else {
            return Err(broken(format!("{shown:?} has no line for this file, expected one")));
        };
        let found = self.tensor_set().and_then(|set| set.content_hash(threads, progress));
        match found {
            Ok(found) if found.digest == *expected => Ok(()),
            Ok(ContentHash { digest, .. }) => Err(Box::new(Finding::error(
                "file/hash",
                format!("content has hash {digest}, but {shown:?} has {expected}"),
            ))),
            Err(error) => Err(Box::new(
                Finding::error(error.rule(), Chain(&error).to_string()).at(error.at()),
            )),
        }
    }
}

/// Returns where the list of hashes beside a file is.
fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".hash");
    path.with_file_name(name)
}

/// Reads a short text.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut list = io::Read::take(std::fs::File::open(path)?, LIST.saturating_add(1));
    io::Read::read_to_string(&mut list, &mut text)?;
    match text.len() as u64 > LIST {
        true => Err(io::Error::other(format!("has more than {LIST} bytes"))),
        false => Ok(text),
    }
}

/// What a digest starts with: what is hashed, and how.
const PREFIX: &str = "tensors-v1:";

/// Bytes that are hashed at a time.
const PIECE: usize = 256 << 10;

/// Bytes of a list beside a file.
const LIST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &str =
        "tensors-v1:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn lines_read_back() {
        let digest: ContentDigest = NONE.parse().unwrap();
        assert_eq!(digest.to_string(), NONE);
        for path in ["a.zt", "a b/c  d.zt", "\\", "new\nline\r", " *x"] {
            let list = HashList::parse(&format!("\n{}\n", hash_line(digest, path)));
            assert_eq!(list.files, [(digest, PathBuf::from(path))], "{path:?}");
        }
        let star = HashList::parse(&format!("# made by hand\n{NONE} *a.zt\r\n"));
        assert_eq!(star.files, [(digest, PathBuf::from("a.zt"))]);
    }

    #[test]
    fn other_lines_are_malformed() {
        let digits = NONE.trim_start_matches(PREFIX);
        for line in [
            "a.zt",
            NONE,
            &format!("{NONE}  "),
            &format!("{NONE} a.zt"),
            &format!("{digits}  a.zt"),
            &format!("{}  a.zt", &NONE[..70]),
            &format!("\\{NONE}  a\\t"),
        ] {
            assert_eq!(HashList::<ContentDigest>::parse(line).malformed, [1], "{line}");
        }
    }
}
