//! The fixed parts at both ends of a file.

use tensor_core::{Cursor, CursorMut, Extent, Limit, Limits, Source};

use super::{FLOOR, FOOTER, MAGIC, Rule, SMALLEST};
use crate::error::{Error, Result, WHOLE};

/// What a footer says, proved to be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Where the manifest is; empty, and right before the footer, where there is none.
    pub(crate) manifest: Extent,
    /// The XXH3-64 of the manifest.
    pub(crate) hash: u64,
}

impl Footer {
    /// Reads the footer of a file that starts with the magic.
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let len = source.len();
        if len < SMALLEST {
            let problem = format!("has {len} bytes, expected {SMALLEST} or more");
            return Err(broken(Rule::FileTooSmall, "file", 0, problem));
        }
        let start = len.saturating_sub(FOOTER);
        let bytes = source.read(Extent::between(start, len), "footer")?;
        let mut cursor = Cursor::new(&bytes, start);
        let offset = cursor.u64("manifest offset")?;
        let length = cursor.u64("manifest length")?;
        let hash = cursor.u64("manifest hash")?;
        let version = cursor.u32("version")?;
        if !bytes.ends_with(MAGIC) {
            let found = bytes.get(32..).unwrap_or_default().escape_ascii();
            let problem = format!("ends with \"{found}\", expected \"{}\"", MAGIC.escape_ascii());
            return Err(broken(Rule::FooterMagic, FOOTER_PATH, len.saturating_sub(8), problem));
        }
        if version != VERSION {
            let problem = format!("says version {version}, expected {VERSION}");
            return Err(broken(Rule::Version, FOOTER_PATH, start.saturating_add(24), problem));
        }
        if length == 0 {
            if offset != 0 || hash != 0 {
                let problem = format!(
                    "says that there is no manifest, but offset {offset} and hash {hash:016x}, \
                     expected 0 for both"
                );
                return Err(broken(Rule::ManifestBounds, FOOTER_PATH, start, problem));
            }
            return Ok(Self { manifest: Extent::between(start, start), hash });
        }
        if length > MAX_MANIFEST {
            let problem = format!("says {length} bytes, expected at most {MAX_MANIFEST}");
            return Err(broken(Rule::ManifestTooLarge, WHOLE, start.saturating_add(8), problem));
        }
        limits.check(Limit::ManifestBytes, "manifest size in bytes", length)?;
        if offset < FLOOR || !offset.is_multiple_of(FLOOR) {
            let problem =
                format!("is said to start at byte {offset}, expected a multiple of {FLOOR}");
            return Err(broken(Rule::BlobAlignment, WHOLE, start, problem));
        }
        match Extent::new(offset, length) {
            Ok(manifest) if manifest.end() <= start => Ok(Self { manifest, hash }),
            _ => {
                let problem = format!(
                    "is said to cover {length} bytes from byte {offset}, expected them before byte \
                     {start}"
                );
                Err(broken(Rule::ManifestBounds, WHOLE, start, problem))
            }
        }
    }

    /// Compares the manifest with its hash.
    pub(crate) fn check(self, manifest: &[u8]) -> Result<()> {
        let found = hash(manifest);
        if found == self.hash {
            return Ok(());
        }
        let problem = format!("has hash {found:016x}, expected {:016x}", self.hash);
        Err(broken(Rule::ManifestHash, WHOLE, self.manifest.offset(), problem))
    }

    /// Returns the footer of a manifest that stands at an offset.
    pub(crate) fn of(offset: u64, manifest: &[u8]) -> Self {
        let manifest_at = Extent::new(offset, manifest.len() as u64);
        Self { manifest: manifest_at.unwrap_or(Extent::first(0)), hash: hash(manifest) }
    }

    /// Writes it as [`read`](Self::read) reads it.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = CursorMut::default();
        bytes.u64(self.manifest.offset()).u64(self.manifest.len()).u64(self.hash);
        bytes.u32(VERSION).u32(0).bytes(MAGIC);
        bytes.into_bytes()
    }
}

/// Tells whether a footer may end with these 16 bytes.
pub(crate) fn is_tail(bytes: &[u8]) -> bool {
    bytes.ends_with(MAGIC) && bytes.starts_with(&VERSION.to_le_bytes())
}

/// Returns the XXH3-64 of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    twox_hash::xxhash3_64::Hasher::oneshot(bytes)
}

/// Returns the window of a file in which its blobs lie.
pub(crate) fn room(len: u64) -> Extent {
    Extent::between(FLOOR, len.saturating_sub(FOOTER).max(FLOOR))
}

fn broken(rule: Rule, path: &str, offset: u64, problem: String) -> Error {
    Error::Rejected { rule, path: path.to_owned(), offset, problem }
}

const VERSION: u32 = 2;
/// What the length of a manifest may be at most, in bytes.
const MAX_MANIFEST: u64 = 1 << 30;
const FOOTER_PATH: &str = "footer";
