//! The physical file: magics, the size of the manifest, and where blobs may lie. Format text:
//! Part I, and Part IV, section 1.

use tensor_core::{Cursor, CursorMut, ErrorKind, Extent, Limit, Limits, Source};

use crate::{
    Generation,
    error::{Error, Result},
    manifest::Manifest,
    v2::{self, container::Footer},
};

/// Tells whether some bytes are a zTensor file, by their first 8.
///
/// # Errors
///
/// Where the bytes cannot be read.
pub fn sniff(source: &Source) -> Result<bool> {
    let magic = source.read(Extent::first(source.len().min(8)), "magic")?;
    Ok([MAGIC, MAGIC_V0_1, v2::MAGIC].iter().any(|known| magic == known[..]))
}

/// What the fixed parts of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    /// 1.1 where it may also be 1.2: the document tells.
    pub(crate) generation: Generation,
    /// The encoded document. Before generation 2, blobs end where it starts.
    pub(crate) manifest: Extent,
    /// The footer of generation 2, and the length of the file that it ends.
    footer: Option<(Footer, u64)>,
}

impl Container {
    /// Reads the fixed parts at both ends of a file.
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let len = source.len();
        let head = source.read(Extent::first(len.min(8)), "magic")?;
        let is_v0_1 = match &head[..] {
            b if b == MAGIC => false,
            b if b == MAGIC_V0_1 => true,
            b if b == v2::MAGIC => return Self::read_v2(source, limits),
            found => {
                return Err(Error::BadMagic { found: found.to_vec() });
            }
        };
        let tail_offset = len.saturating_sub(16).max(8);
        let tail = source.read(Extent::between(tail_offset, len), "footer")?;
        if !is_v0_1 && tail.len() == 16 && tail.ends_with(MAGIC) {
            let size = Cursor::new(&tail, tail_offset).u64("manifest size")?;
            return Self::bounded(Generation::V1_1, size, tail_offset, limits);
        }
        let last = len.saturating_sub(8).max(8);
        let found = tail.get(tail.len().saturating_sub(8)..).unwrap_or_default();
        let bad_footer = || Error::BadFooter { offset: last, found: found.to_vec() };
        let size = Cursor::new(found, last).u64("manifest size").map_err(|_| bad_footer())?;
        if is_v0_1 {
            return Self::bounded(Generation::V0_1, size, last, limits);
        }
        // Either generation 1.0, which has no magic here, or a later file that was cut off: then
        // the last 8 bytes are not a plausible size, or no manifest starts where they say.
        let container = Self::bounded(Generation::V1_0, size, last, limits);
        let container = container.map_err(|_| bad_footer())?;
        let first = container.manifest.part(0, 1, "manifest").map_err(|_| bad_footer())?;
        match source.read(first, "manifest")?.first() {
            Some(0xa0..=0xbf) => Ok(container),
            _ => Err(bad_footer()),
        }
    }

    /// Reads the footer of a file of generation 2.
    pub(crate) fn read_v2(source: &Source, limits: &Limits) -> Result<Self> {
        let footer = Footer::read(source, limits)?;
        let (manifest, footer) = (footer.manifest, Some((footer, source.len())));
        Ok(Self { generation: Generation::V2, manifest, footer })
    }

    /// Checks the size of a manifest that ends at `end`, where the size itself stands.
    fn bounded(generation: Generation, size: u64, end: u64, limits: &Limits) -> Result<Self> {
        limits.check(Limit::ManifestBytes, "manifest size in bytes", size)?;
        let room = end.saturating_sub(8);
        if size > room {
            return Err(Error::ManifestSize { offset: end, found: size, room });
        }
        let manifest = Extent::between(end.saturating_sub(size), end);
        Ok(Self { generation, manifest, footer: None })
    }

    /// Reads and indexes the document.
    pub(crate) fn manifest(self, source: &Source, limits: &Limits) -> Result<Manifest> {
        let bytes = source.read(self.manifest, "manifest")?;
        if let Some((footer, len)) = self.footer {
            return Manifest::parse_v2(bytes, footer, len, limits);
        }
        Manifest::parse(self.generation, &bytes, self.manifest.offset(), limits)
    }

    /// Returns where blobs may lie: behind the header, before the manifest; in generation 2 before
    /// the footer.
    pub(crate) fn blobs(self) -> Extent {
        match self.footer {
            Some((_, len)) => v2::container::room(len),
            None => Extent::between(MAGIC.len() as u64, self.manifest.offset()),
        }
    }
}

/// Returns the length of the longest beginning of the source that is a complete file of
/// generation 1.1 or later, with its document: what an interrupted append leaves.
///
/// It looks for the footer from the end backwards, in a fixed window of memory, and walks at most
/// twice as many bytes of manifests as the source has. A footer counts only where it can be the
/// file's own and not that of a file inside a blob: see [`ends_a_file`].
pub(crate) fn last_complete(
    source: &Source,
    limits: &Limits,
) -> Result<(u64, Container, Manifest)> {
    let len = source.len();
    let nothing = || Error::NothingToRecover { len };
    let magic = source.read(Extent::first(len.min(8)), "magic")?;
    if magic == v2::MAGIC[..] {
        return last_complete_v2(source, limits);
    }
    if magic != MAGIC[..] {
        return Err(nothing());
    }
    let mut budget = len.saturating_mul(2).saturating_add(SEARCH);
    let mut end = len;
    while end >= SMALLEST {
        let start = end.saturating_sub(SEARCH);
        if source.skip_hole(start) >= end {
            end = start;
            continue;
        }
        let window = source.read(Extent::between(start, end), "search for a footer")?;
        for (footer, size) in footers(&window, start) {
            if size > footer.saturating_sub(8) {
                continue;
            }
            let container = Container::bounded(Generation::V1_1, size, footer, limits)?;
            budget = budget.checked_sub(size.saturating_add(ATTEMPT)).ok_or_else(nothing)?;
            let file_len = footer.saturating_add(16);
            let file = source.window(Extent::first(file_len), "file")?;
            match container.manifest(&file, limits) {
                Ok(manifest) if ends_a_file(&file, container, &manifest)? => {
                    return Ok((file_len, container, manifest));
                }
                // What cannot be read, or is over a limit, may be the last complete file.
                Err(error) if error.kind() != ErrorKind::Malformed => return Err(error),
                _ => {}
            }
        }
        // Windows share 15 bytes, so that a footer across their border is seen whole.
        end = if start == 0 { 0 } else { start.saturating_add(15) };
    }
    Err(nothing())
}

/// Like [`last_complete`], of generation 2: a footer says where its manifest is, and what hash that has,
/// so that one of a file inside a blob is told by its offset.
fn last_complete_v2(source: &Source, limits: &Limits) -> Result<(u64, Container, Manifest)> {
    let len = source.len();
    let nothing = || Error::NothingToRecover { len };
    let mut budget = len.saturating_mul(2).saturating_add(SEARCH);
    let mut end = len;
    while end >= v2::SMALLEST {
        let start = end.saturating_sub(SEARCH);
        if source.skip_hole(start) >= end {
            end = start;
            continue;
        }
        let window = source.read(Extent::between(start, end), "search for a footer")?;
        let tails = window.windows(16).enumerate().rev();
        for (at, _) in tails.filter(|(_, bytes)| v2::container::is_tail(bytes)) {
            let file_len = start.saturating_add(at as u64).saturating_add(16);
            let file = source.window(Extent::first(file_len), "file")?;
            let Ok(container) = Container::read_v2(&file, limits) else { continue };
            let cost = container.manifest.len();
            budget = budget.checked_sub(cost.saturating_add(ATTEMPT)).ok_or_else(nothing)?;
            match container.manifest(&file, limits) {
                Ok(manifest) if !manifest.is_absent() => {
                    return Ok((file_len, container, manifest));
                }
                Err(error) if error.kind() != ErrorKind::Malformed => return Err(error),
                _ => {}
            }
        }
        end = if start == 0 { 0 } else { start.saturating_add(15) };
    }
    Err(nothing())
}

/// Tells whether a manifest can be that of the file as it was: its blobs lie where they may, and it
/// stands right behind the last of them, as writers put it, or right behind an older footer, where
/// an edit put it that added nothing. The manifest of a file inside a blob does not: its offsets
/// count from another start.
fn ends_a_file(file: &Source, container: Container, manifest: &Manifest) -> Result<bool> {
    let (room, mut last) = (container.blobs(), container.blobs().offset());
    for index in 0..manifest.len() {
        for (_, component) in &manifest.object_at(index)?.components {
            let extent = Extent::new(component.offset, component.length);
            let Some(extent) = extent.ok().filter(|extent| {
                extent.is_aligned(ALIGNMENT) && (extent.is_empty() || room.contains(*extent))
            }) else {
                return Ok(false);
            };
            last = last.max(extent.end());
        }
    }
    let start = container.manifest.offset();
    if last == start {
        return Ok(true);
    }
    let before = Extent::between(start.saturating_sub(16), start);
    let before = file.read(before, "footer")?;
    let Some((size, magic)) = before.split_first_chunk::<8>() else { return Ok(false) };
    let size = u64::from_le_bytes(*size);
    Ok(magic == MAGIC && (1..start.saturating_sub(24)).contains(&size))
}

/// Tells whether a whole manifest and its footer stand at the start of an extent: what an edit leaves
/// of the file as it was before.
pub(crate) fn is_old_manifest(source: &Source, extent: Extent, limits: &Limits) -> Result<bool> {
    let (mut start, last) = (extent.offset(), extent.end().saturating_sub(15));
    while start < last {
        start = start.max(source.skip_hole(start).saturating_sub(15));
        let window = Extent::between(start, extent.end().min(start.saturating_add(SEARCH)));
        for (footer, size) in footers(&source.read(window, "search for a footer")?, start) {
            if footer.checked_sub(size) == Some(extent.offset())
                && let Ok(container) = Container::bounded(Generation::V1_1, size, footer, limits)
            {
                return Ok(container.manifest(source, limits).is_ok());
            }
        }
        start = window.end().saturating_sub(15);
    }
    Ok(false)
}

/// Returns where footers may start in some bytes that start at `start`, and the size that each has
/// for its manifest, last first.
fn footers(bytes: &[u8], start: u64) -> impl Iterator<Item = (u64, u64)> {
    bytes.windows(16).enumerate().rev().filter_map(move |(at, window)| {
        let (size, magic) = window.split_first_chunk::<8>()?;
        let footer = start.saturating_add(at as u64);
        (magic == MAGIC).then(|| (footer, u64::from_le_bytes(*size)))
    })
}

/// Returns what follows the manifest: its size and the magic. Format text: Part I, section 1.
pub(crate) fn footer(manifest_size: u64) -> Vec<u8> {
    let mut footer = CursorMut::default();
    footer.u64(manifest_size).bytes(MAGIC);
    footer.into_bytes()
}

/// Format text: Part I, section 1.
pub(crate) const MAGIC: &[u8; 8] = b"ZTEN1000";
const MAGIC_V0_1: &[u8; 8] = b"ZTEN0001";

/// What every blob starts at a multiple of, in bytes. Format text: Part I, section 2.
pub const ALIGNMENT: u64 = 64;

/// The shortest file: header, manifest of one byte, footer.
const SMALLEST: u64 = 25;
/// How much is searched at once.
const SEARCH: u64 = 1 << 20;
/// What a try costs beyond the bytes of the manifest: it is a read and an allocation.
const ATTEMPT: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest file: a manifest of version and no objects. Facts: 48 bytes from 1.1.1.
    fn empty() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let manifest = b"\xa2\x67version\x651.1.0\x67objects\xa0";
        bytes.extend_from_slice(manifest);
        bytes.extend_from_slice(&footer(manifest.len() as u64));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Container> {
        Container::read(&Source::from_bytes(bytes.to_vec()), &Limits::default())
    }

    #[test]
    fn the_smallest_file_is_48_bytes() {
        let container = read(&empty()).unwrap();
        assert_eq!(empty().len(), 48);
        assert_eq!(container.generation, Generation::V1_1);
        assert_eq!(container.manifest, Extent::between(8, 32));
    }

    #[test]
    fn sizes_at_the_limit() {
        let mut bytes = empty();
        for (size, message) in [
            (
                (1 << 30) + 1,
                "manifest size in bytes is 1073741825, over the limit of 1073741824 \
                 (Limits::manifest_bytes)",
            ),
            (1 << 30, "manifest size at byte 32 is 1073741824 bytes, but 24 lie before it"),
            (25, "manifest size at byte 32 is 25 bytes, but 24 lie before it"),
        ] {
            bytes[32..40].copy_from_slice(&u64::to_le_bytes(size));
            assert_eq!(read(&bytes).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = empty();
        for len in 0..bytes.len() {
            let source = Source::from_bytes(bytes[..len].to_vec());
            let limits = Limits::default();
            let error = Container::read(&source, &limits)
                .and_then(|container| container.manifest(&source, &limits))
                .unwrap_err();
            // Without its last 8 bytes the file ends as one of generation 1.0 does.
            let expected = match (len, &error) {
                (40, Error::Manifest { .. }) => true,
                (..8, Error::BadMagic { .. }) | (8.., Error::BadFooter { .. }) => len != 40,
                _ => false,
            };
            assert!(expected, "{len} bytes: {error}");
        }
    }

    #[test]
    fn other_files_are_named() {
        let error = read(b"PK\x03\x04 and so on").unwrap_err();
        let expected = "magic at byte 0 is \"PK\\x03\\x04 and\", expected \"ZTEN1000\", in \
                        generation 0.1 \"ZTEN0001\" or in 2 \"\\x89ZT2\\r\\n\\x1a\\n\"";
        assert_eq!(error.to_string(), expected);
        let error = read(b"\x89ZT2\r\n\x1a\n").unwrap_err();
        let expected = "file at byte 0 has 8 bytes, expected 48 or more";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_last_complete_file_is_found() {
        let mut bytes = empty();
        bytes.extend_from_slice(&[7; 5000]);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[9; 3]);
        let source = Source::from_bytes(bytes);
        let (len, ..) = last_complete(&source, &Limits::default()).unwrap();
        assert_eq!(len, 48);
    }
}
