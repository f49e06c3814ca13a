//! What a file holds apart from how it is stored, and the one form in which equal tensors make equal
//! files.

use std::collections::{BTreeMap, HashMap, HashSet};

use tensor_core::{At, Extent, Finding, Report, text::Quoted};
use unicode_normalization::is_nfc;

use super::{CANONICAL, FLOOR, FOOTER, MAGIC};
use crate::{
    Blob, Component, Encoding, Generation, Object, Reader, Role, Tensor,
    error::Result,
    validate::{finding, first_nonzero},
};

impl Reader {
    /// Returns the digest of what the file holds, whatever its alignment, encodings and shards: over
    /// names, shapes, layouts, attributes of objects, element types and the digests of their parts.
    ///
    /// Nothing but the manifest is read, so it is as good as these digests: see
    /// [`validate`](Self::validate). `None` where a part has none, and before generation 2, whose
    /// digests are of what is stored.
    ///
    /// # Errors
    ///
    /// None that opening has not met already.
    #[cfg(feature = "digest")]
    pub fn content_digest(
        &self,
        algorithm: tensor_core::digest::Algorithm,
    ) -> Result<Option<tensor_core::digest::Digest>> {
        if self.generation() != Generation::V2 {
            return Ok(None);
        }
        use crate::manifest::emit::Emitter;
        let mut hasher = tensor_core::digest::Hasher::new(algorithm);
        let mut bytes = Vec::new();
        Emitter::new(&mut bytes).array(2).text("zt.content/1").map(self.manifest().len());
        for tensor in self.tensors() {
            let object = tensor.object()?;
            if object.components.iter().any(|(_, part)| part.digest.is_none()) {
                return Ok(None);
            }
            let mut out = Emitter::new(&mut bytes);
            out.text(tensor.name()).map(if object.attributes.is_some() { 4 } else { 3 });
            // Parts are in the order of the file, which is that of their keys.
            out.text("parts").map(object.components.len());
            for (role, part) in &object.components {
                let logical = part.logical_type.as_deref();
                out.text(role.as_str()).map(if logical.is_some() { 3 } else { 2 });
                if let Some(logical) = logical {
                    out.text("type").text(logical);
                }
                out.text("dtype").text(part.dtype.name());
                out.text("digest").text(part.digest.as_deref().unwrap_or_default());
            }
            out.text("shape").array(object.shape.rank());
            for &dim in object.shape.dims() {
                out.unsigned(dim);
            }
            out.text("layout").text(object.format.text_v2());
            if let Some(attributes) = &object.attributes {
                out.text("attributes").raw(&attributes.bytes);
            }
            if bytes.len() >= PIECE {
                hasher.update(&bytes);
                bytes.clear();
            }
        }
        hasher.update(&bytes);
        Ok(Some(hasher.finish()))
    }

    /// Reports what keeps the file from being canonical, the form of generation 2 in which equal
    /// tensors make equal files: blobs from byte 65,536 on, in the order of names and roles, raw and
    /// with an XXH3, each once, and nothing else but zeros. An empty report is a canonical file, as far
    /// as [`validate`](Self::validate) finds it to be valid.
    ///
    /// Blobs of equal length and digest are read and compared; an empty part, which takes no place,
    /// may be said to lie at any.
    #[must_use]
    pub fn canonical(&self) -> Report {
        let mut report = Report::default();
        if let Err(error) = check(self, &mut report) {
            report.add(finding(&error));
        }
        report
    }
}

fn check(reader: &Reader, report: &mut Report) -> Result<()> {
    let mut broken = |at: At, message: String| report.add(Finding::error(RULE, message).at(at));
    let manifest = reader.manifest();
    if reader.generation() != Generation::V2 || manifest.is_absent() {
        let what = if manifest.is_absent() { "has no manifest" } else { "is not of generation 2" };
        broken(At::file(), format!("file {what}, so it has no canonical form"));
        return Ok(());
    }
    if manifest.shards().len() > 0 {
        broken(
            At::file().path("shards"),
            "there is a table of shards, expected one file".to_owned(),
        );
    }
    for (key, _) in
        manifest.attributes()?.unwrap_or_default().iter().filter(|(key, _)| !is_nfc(key))
    {
        let message = format!("key {} is not in normal form C, expected it to be", Quoted(key));
        broken(At::file().path("attributes"), message);
    }
    let mut tensors: Vec<Tensor<'_>> = reader.tensors().collect();
    tensors.sort_by_key(|tensor| tensor.name());
    let mut place = Place { next: CANONICAL, seen: HashSet::new(), equal: HashMap::new() };
    let mut blobs = BTreeMap::new();
    for tensor in tensors {
        let object = tensor.object()?;
        let at = At::file().tensor(tensor.name());
        if !is_nfc(tensor.name()) {
            broken(at.clone(), "name is not in normal form C, expected it to be".to_owned());
        }
        for (role, part) in in_order(&object) {
            let at = at.clone().path(format!("parts.{}", Quoted(role.as_str())));
            if !is_nfc(role.as_str()) {
                broken(at.clone(), "role is not in normal form C, expected it to be".to_owned());
            }
            if part.encoding != Encoding::Raw {
                broken(
                    at.clone(),
                    format!("part is encoded as {}, expected raw", Quoted(part.encoding.as_str())),
                );
            }
            match &part.digest {
                Some(digest) if digest.starts_with("xxh3:") => {}
                Some(digest) => {
                    broken(at.clone(), format!("part has digest {digest}, expected an xxh3"));
                }
                None => broken(at.clone(), "part has no digest, expected an xxh3".to_owned()),
            }
            if let Some(shard) = &part.shard {
                broken(at, format!("part lies in shard {shard:?}, expected this file"));
                continue;
            }
            let blob = tensor.unsized_blob(role, part);
            if part.length > 0 {
                blobs.insert(part.offset, part.length);
            }
            if let Some(message) = place.check(&blob)? {
                broken(at.offset(part.offset), message);
            }
        }
    }
    let (start, end) = (manifest.offset(), manifest.extent().end());
    if start != place.next {
        let message = format!("manifest is at byte {start}, expected byte {}", place.next);
        broken(At::file().offset(start), message);
    }
    if reader.source().len() != end.saturating_add(FOOTER) {
        let found = reader.source().len().saturating_sub(FOOTER);
        let message = format!("footer is at byte {found}, expected byte {end} behind the manifest");
        broken(At::file().offset(end), message);
    }
    let reserved = Extent::between(reader.source().len().saturating_sub(12), reader.source().len());
    if reader.source().read(reserved, "footer")?.first_chunk() != Some(&[0; 4]) {
        broken(
            At::file().offset(reserved.offset()),
            "reserved bytes of the footer are not 0, expected 0".to_owned(),
        );
    }
    blobs.insert(start, end.saturating_sub(start));
    let mut before = MAGIC.len() as u64;
    for (offset, length) in blobs {
        if let Some(at) = first_nonzero(reader, Extent::between(before.min(offset), offset))? {
            broken(At::file().offset(at), "bytes between blobs are not 0, expected 0".to_owned());
        }
        before = before.max(offset.saturating_add(length));
    }
    Ok(())
}

/// Returns the parts of an object in the order of their roles.
fn in_order(object: &Object) -> Vec<(&Role, &Component)> {
    let mut parts: Vec<_> = object.components.iter().map(|(role, part)| (role, part)).collect();
    parts.sort_by_key(|(role, _)| role.as_str());
    parts
}

/// Where the next blob has to be.
struct Place {
    next: u64,
    seen: HashSet<u64>,
    /// Blobs by length and digest.
    equal: HashMap<(u64, String), Vec<u64>>,
}

impl Place {
    /// Says what is wrong with the place of a blob.
    fn check(&mut self, blob: &Blob<'_>) -> Result<Option<String>> {
        let Component { offset, length, digest, .. } = blob.component();
        if *length == 0 || self.seen.contains(offset) {
            let aligned = offset.is_multiple_of(CANONICAL);
            return Ok((!aligned).then(|| {
                format!("blob starts at byte {offset}, expected a multiple of {CANONICAL}")
            }));
        }
        self.seen.insert(*offset);
        let expected = self.next;
        self.next = offset.saturating_add(*length).next_multiple_of(CANONICAL).max(FLOOR);
        let equal = self.equal.entry((*length, digest.clone().unwrap_or_default())).or_default();
        for &other in equal.iter() {
            if same_bytes(blob, other, *length)? {
                return Ok(Some(format!("blob holds the same bytes as the one at byte {other}")));
            }
        }
        equal.push(*offset);
        let message = || format!("blob starts at byte {offset}, expected byte {expected}");
        Ok((*offset != expected).then(message))
    }
}

fn same_bytes(blob: &Blob<'_>, other: u64, length: u64) -> Result<bool> {
    let (source, offset) = (blob.source()?, blob.component().offset);
    let mut done = 0_u64;
    while done < length {
        let len = length.saturating_sub(done).min(PIECE as u64);
        let piece = |start: u64| {
            let extent = Extent::new(start.saturating_add(done), len)?;
            source.read(extent, "component")
        };
        if piece(offset)? != piece(other)? {
            return Ok(false);
        }
        done = done.saturating_add(len);
    }
    Ok(true)
}

const RULE: &str = "zt2/canonical";
const PIECE: usize = 1 << 20;
