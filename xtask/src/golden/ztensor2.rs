//! Files of zTensor 2: what the writer makes, and one file for each rule that a file may break, each by
//! one change of a good one. The latter are not written by our writer, which makes no such.

use anyhow::Result;
use ztensor::{
    Compression, Form, Storage, Version, WriteOptions,
    tensor_core::{
        TensorBuf,
        digest::{Algorithm, Digest},
    },
};

use super::Golden;

/// A CBOR item, encoded as it stands: keys in the order in which they are given.
#[derive(Clone)]
enum Item {
    Number(u64),
    Text(&'static str),
    Array(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Raw(Vec<u8>),
}

use Item::{Array, Map, Number, Raw, Text};

impl Item {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut head = |major: u8, argument: u64| match argument {
            0..24 => out.push(major << 5 | argument.to_le_bytes()[0]),
            24..256 => out.extend([major << 5 | 24, argument.to_le_bytes()[0]]),
            256..65536 => {
                out.push(major << 5 | 25);
                out.extend(&argument.to_be_bytes()[6..]);
            }
            _ if argument >> 32 == 0 => {
                out.push(major << 5 | 26);
                out.extend(&argument.to_be_bytes()[4..]);
            }
            _ => {
                out.push(major << 5 | 27);
                out.extend(argument.to_be_bytes());
            }
        };
        match self {
            Number(number) => head(0, *number),
            Text(text) => {
                head(3, text.len() as u64);
                out.extend(text.as_bytes());
            }
            Array(items) => {
                head(4, items.len() as u64);
                items.iter().for_each(|item| item.encode(out));
            }
            Map(pairs) => {
                head(5, pairs.len() as u64);
                pairs.iter().for_each(|(key, value)| {
                    key.encode(out);
                    value.encode(out);
                });
            }
            Raw(bytes) => out.extend(bytes),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Returns the map with another value of a key, which is added at the end where it is not there.
    fn with(mut self, key: &'static str, value: Self) -> Self {
        if let Map(pairs) = &mut self {
            match pairs.iter_mut().find(|(found, _)| matches!(found, Text(text) if *text == key)) {
                Some((_, old)) => *old = value,
                None => pairs.push((Text(key), value)),
            }
        }
        self
    }

    fn without(mut self, key: &str) -> Self {
        if let Map(pairs) = &mut self {
            pairs.retain(|(found, _)| !matches!(found, Text(text) if *text == key));
        }
        self
    }
}

fn map<const N: usize>(pairs: [(&'static str, Item); N]) -> Item {
    Map(pairs.into_iter().map(|(key, value)| (Text(key), value)).collect())
}

fn numbers<const N: usize>(numbers: [u64; N]) -> Item {
    Array(numbers.into_iter().map(Number).collect())
}

/// A part of raw bytes.
fn part(offset: u64, length: u64, dtype: &'static str) -> Item {
    map([("blob", numbers([offset, length])), ("dtype", Text(dtype))])
}

/// A part with a `type`, whose key comes before that of the dtype.
fn typed(offset: u64, length: u64, logical: &'static str, dtype: &'static str) -> Item {
    let blob = numbers([offset, length]);
    map([("blob", blob), ("type", Text(logical)), ("dtype", Text(dtype))])
}

fn object(parts: Item, shape: Item, layout: &'static str) -> Item {
    map([("parts", parts), ("shape", shape), ("layout", Text(layout))])
}

fn dense(part: Item, shape: Item) -> Item {
    object(map([("data", part)]), shape, "dense")
}

fn root(object: Item) -> Item {
    map([("objects", map([("w", object)]))])
}

/// The object of a good file: two f32 at byte 4096.
fn good() -> Item {
    dense(part(4096, 8, "f32"), numbers([2]))
}

fn good_part() -> Item {
    part(4096, 8, "f32")
}

fn shape() -> Item {
    numbers([2])
}

fn xxh3(bytes: &[u8]) -> u64 {
    match Algorithm::Xxh3.digest(bytes) {
        Digest::Xxh3(hash) => hash,
        _ => 0,
    }
}

/// What is in a file, and what its footer says.
struct File {
    blobs: Vec<(usize, Vec<u8>)>,
    manifest: Vec<u8>,
    offset: u64,
    length: u64,
    hash: u64,
    version: u32,
    end: [u8; 8],
}

impl File {
    /// A file whose manifest follows blobs of 8 bytes from byte 4096 on.
    fn new(manifest: Vec<u8>) -> Self {
        Self::with_blobs(vec![(4096, vec![0, 0, 128, 63, 0, 0, 0, 64])], manifest)
    }

    fn with_blobs(blobs: Vec<(usize, Vec<u8>)>, manifest: Vec<u8>) -> Self {
        let last = blobs.iter().map(|(offset, bytes)| offset + bytes.len()).max().unwrap_or(4096);
        let offset = (last.next_multiple_of(4096)) as u64;
        let (length, hash) = (manifest.len() as u64, xxh3(&manifest));
        Self { blobs, manifest, offset, length, hash, version: 2, end: *MAGIC }
    }

    fn made(self) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        let place = self.blobs.iter().map(|(offset, blob)| offset + blob.len()).max();
        let place = place.unwrap_or(4096).next_multiple_of(4096);
        for (offset, blob) in &self.blobs {
            bytes.resize(bytes.len().max(offset + blob.len()), 0);
            bytes[*offset..offset + blob.len()].copy_from_slice(blob);
        }
        bytes.resize(place, 0);
        bytes.extend(&self.manifest);
        for number in [self.offset, self.length, self.hash] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.version.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.end);
        Ok(bytes)
    }
}

/// A file with this manifest.
fn file(root: &Item) -> Result<Vec<u8>> {
    File::new(root.bytes()).made()
}

fn raw(manifest: &[u8]) -> Result<Vec<u8>> {
    File::new(manifest.to_vec()).made()
}

/// A file whose one object is this.
fn only(object: Item) -> Result<Vec<u8>> {
    file(&root(object))
}

/// A file whose one object is dense, of this part and with this shape.
fn only_part(part: Item) -> Result<Vec<u8>> {
    only(dense(part, shape()))
}

/// A file with an attribute of this encoding.
fn attribute(key: Item, value: Item) -> Result<Vec<u8>> {
    file(&root(good()).with("attributes", Map(vec![(key, value)])))
}

/// A file with a table of shards, which a part may be in.
fn sharded(name: &'static str, identity: Item, part: Item) -> Result<Vec<u8>> {
    let Map(objects) = root(dense(part, shape())) else { anyhow::bail!("not a map") };
    let mut fields = vec![(Text("shards"), map([(name, identity)]))];
    fields.extend(objects);
    file(&Map(fields))
}

fn identity(size: u64) -> Item {
    map([("size", Number(size)), ("digest", Text("sha256:00ff"))])
}

/// A matrix of shape `[2, 3]` with three elements, from byte 4096 on: indices, indptr and values.
fn csr(indices: [u32; 3], indptr: [u32; 3], change: impl Fn(Item) -> Item) -> Result<Vec<u8>> {
    let words =
        |words: [u32; 3]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let parts = map([
        ("indptr", part(8192, 12, "u32")),
        ("values", part(12288, 12, "f32")),
        ("indices", part(4096, 12, "u32")),
    ]);
    let root = root(change(object(parts, numbers([2, 3]), "zt.sparse_csr/1")));
    let blobs = vec![(4096, words(indices)), (8192, words(indptr)), (12288, vec![0; 12])];
    File::with_blobs(blobs, root.bytes()).made()
}

/// Like [`csr`], where only definitions are broken.
fn csr_parts(role: &'static str, part: &Item) -> Result<Vec<u8>> {
    csr([0, 2, 1], [0, 2, 3], |object| {
        let Map(fields) = &object else { return object };
        let parts = fields[0].1.clone().with(role, part.clone());
        object.with("parts", parts)
    })
}

fn coo(coords: [u32; 4]) -> Result<Vec<u8>> {
    let parts = map([("coords", part(4096, 16, "u32")), ("values", part(8192, 8, "f32"))]);
    let root = root(object(parts, numbers([2, 3]), "zt.sparse_coo/1"));
    let coords = coords.iter().flat_map(|word| word.to_le_bytes()).collect();
    File::with_blobs(vec![(4096, coords), (8192, vec![0; 8])], root.bytes()).made()
}

/// A file of one part of 2000 bytes in three frames, whose stored bytes `change` changes.
fn frames(change: impl Fn(&mut Vec<u8>)) -> Result<Vec<u8>> {
    let compression = Compression::Zstd { level: 3, frame: std::num::NonZeroU64::new(700) };
    let options = WriteOptions::default().version(Version::V2).form(Form::Free).alignment(4096);
    let mut writer =
        options.storage(Storage::default().compression(compression)).write_to(Vec::new())?;
    let tensor = TensorBuf::from_slice([2000], &[7_u8; 2000])?;
    writer.add("w", &tensor)?;
    let bytes = writer.finish()?;
    let reader = ztensor::Reader::from_bytes(bytes.clone())?;
    let data = reader.tensor("w").map(ztensor::Tensor::object).transpose()?;
    let data = data.and_then(|object| Some(object.components.first()?.1.clone()));
    let Some(data) = data else { anyhow::bail!("nothing was written") };
    let (start, len) = (usize::try_from(data.offset)?, usize::try_from(data.length)?);
    let mut stored = bytes[start..start + len].to_vec();
    change(&mut stored);
    let encoded = map([
        ("blob", numbers([4096, stored.len() as u64])),
        ("dtype", Text("u8")),
        ("encoding", Text("zt.zstd-seekable/1")),
        ("decoded_length", Number(2000)),
    ]);
    let root = root(dense(encoded, numbers([2000])));
    File::with_blobs(vec![(4096, stored)], root.bytes()).made()
}

/// Changes a little-endian number of a table of three frames, counted in words from its first entry.
fn entry(stored: &mut [u8], word: usize, value: u32) {
    let start = stored.len() - 9 - 24 + 4 * word;
    stored[start..start + 4].copy_from_slice(&value.to_le_bytes());
}

fn nested(levels: usize) -> Vec<u8> {
    [vec![0x81; levels], vec![0]].concat()
}

const MAGIC: &[u8; 8] = b"\x89ZT2\r\n\x1a\n";

macro_rules! files {
    ($($name:literal => $make:expr;)*) => {
        pub(super) fn goldens() -> Vec<Golden> {
            vec![$(Golden { path: concat!("ztensor/v2/invalid/", $name, ".zt"), make: || $make },)*]
        }
    };
}

files! {
    // The container.
    "file_too_small" => Ok([&MAGIC[..], &[0; 39]].concat());
    "footer_magic" => File { end: *b"ZTEN1000", ..File::new(root(good()).bytes()) }.made();
    "version_3" => File { version: 3, ..File::new(root(good()).bytes()) }.made();
    "no_manifest_but_offset" => File { offset: 4096, length: 0, hash: 0, ..File::new(vec![]) }.made();
    "no_manifest_but_hash" => File { offset: 0, length: 0, hash: 1, ..File::new(vec![]) }.made();
    "manifest_over_1gib" => File { length: (1 << 30) + 1, ..File::new(root(good()).bytes()) }.made();
    "manifest_misaligned" => File { offset: 8193, ..File::new(root(good()).bytes()) }.made();
    "manifest_in_header" => File { offset: 0, ..File::new(root(good()).bytes()) }.made();
    "manifest_past_end" => File { offset: 1 << 40, ..File::new(root(good()).bytes()) }.made();
    "manifest_over_footer" => {
        let file = File::new(root(good()).bytes());
        File { length: file.length + 1, ..file }.made()
    };
    "manifest_wraps" => {
        File { offset: u64::MAX - 4095, length: 8192, ..File::new(root(good()).bytes()) }.made()
    };
    "manifest_hash" => File { hash: 1, ..File::new(root(good()).bytes()) }.made();
    // Its encoding.
    "cbor_trailing" => raw(&[root(good()).bytes(), vec![0]].concat());
    "cbor_tag" => raw(&[vec![0xc1], root(good()).bytes()].concat());
    "cbor_open_map" => raw(b"\xbf\x67objects\xa0\xff");
    "cbor_open_text" => attribute(Raw(b"\x7f\x61a\xff".to_vec()), Number(0));
    "cbor_undefined" => attribute(Text("a"), Raw(vec![0xf7]));
    "cbor_simple" => attribute(Text("a"), Raw(vec![0xe0]));
    "cbor_not_utf8" => attribute(Text("a"), Raw(vec![0x61, 0xff]));
    "cbor_truncated" => raw(b"\xa1\x67objec");
    "cbor_claim" => raw(b"\xa1\x67objects\xbb\x40\x00\x00\x00\x00\x00\x00\x00");
    "cbor_reserved" => attribute(Text("a"), Raw(vec![0x1c]));
    "cbor_wide_number" => attribute(Text("a"), Raw(vec![0x18, 23]));
    "cbor_wide_length" => attribute(Raw(vec![0x78, 1, b'a']), Number(0));
    "cbor_key_order" => file(&Map(vec![
        (Text("attributes"), map([])),
        (Text("objects"), map([("w", good())])),
    ]));
    "cbor_wide_float" => attribute(Text("a"), Raw(vec![0xfa, 0x3f, 0x80, 0, 0]));
    "cbor_wide_double" => attribute(Text("a"), Raw(vec![0xfb, 0x47, 0xef, 0xff, 0xff, 0xe0, 0, 0, 0]));
    "cbor_nan" => attribute(Text("a"), Raw(vec![0xf9, 0x7e, 0x01]));
    "cbor_key_twice" => file(&Map(vec![
        (Text("objects"), map([("w", good())])),
        (Text("objects"), map([("w", good())])),
    ]));
    "cbor_object_twice" => file(&map([("objects", map([("w", good()), ("w", good())]))]));
    "cbor_depth" => attribute(Text("a"), Raw(nested(31)));
    // Its schema.
    "root_array" => file(&Array(vec![]));
    "objects_missing" => file(&map([]));
    "objects_array" => file(&map([("objects", Array(vec![]))]));
    "object_name_number" => file(&map([("objects", Map(vec![(Number(1), good())]))]));
    "object_text" => only(Text("w"));
    "shape_missing" => only(good().without("shape"));
    "layout_missing" => only(good().without("layout"));
    "layout_number" => only(good().with("layout", Number(1)));
    "parts_missing" => only(good().without("parts"));
    "parts_empty" => only(good().with("parts", map([])));
    "shape_negative" => only(good().with("shape", Array(vec![Raw(vec![0x21])])));
    "shape_text" => only(good().with("shape", Text("2")));
    "blob_missing" => only_part(good_part().without("blob"));
    "blob_of_three" => only_part(good_part().with("blob", numbers([4096, 8, 0])));
    "dtype_missing" => only_part(good_part().without("dtype"));
    "dtype_unknown" => only_part(part(4096, 8, "f33"));
    "dtype_bool" => only(dense(part(4096, 8, "bool"), numbers([8])));
    "type_of_another_dtype" => only_part(typed(4096, 8, "bool", "f32"));
    "encoding_without_length" => {
        only_part(good_part().with("encoding", Text("zt.zstd-seekable/1")))
    };
    "length_without_encoding" => only_part(good_part().with("decoded_length", Number(8)));
    "digest_upper_case" => only_part(good_part().with("digest", Text("xxh3:00FF")));
    "digest_without_colon" => only_part(good_part().with("digest", Text("00ff")));
    "attributes_array" => only(good().with("attributes", Array(vec![])));
    "attribute_key_number" => attribute(Number(1), Number(1));
    "shard_without_digest" => sharded("1", map([("size", Number(8192))]), good_part());
    "shard_of_47_bytes" => sharded("1", identity(47), good_part());
    // Names.
    "name_empty" => file(&map([("objects", map([("", good())]))]));
    "name_nul" => file(&map([("objects", map([("a\0", good())]))]));
    "name_long" => {
        let name = [&[0x79, 0x04, 0x01][..], &[b'n'; 1025]].concat();
        file(&map([("objects", Map(vec![(Raw(name), good())]))]))
    };
    "role_empty" => only(good().with("parts", map([("", good_part())])));
    "attribute_key_empty" => attribute(Text(""), Number(1));
    "shard_name_dot" => sharded(".1", identity(8192), good_part());
    "shard_name_slash" => sharded("../1", identity(8192), good_part());
    "shard_name_of_part" => {
        let place = numbers([4096, 8]);
        only_part(map([("blob", place), ("dtype", Text("f32")), ("shard", Text("a/b"))]))
    };
    // Shapes.
    "rank_65" => only(good().with("shape", Array(vec![Number(1); 65])));
    "shape_overflow" => only(good().with("shape", numbers([1 << 32, 1 << 32])));
    "shape_overflow_before_0" => only(good().with("shape", numbers([1 << 32, 1 << 32, 0])));
    // Blobs.
    "blob_misaligned" => only_part(part(4160, 8, "f32"));
    "blob_in_header" => only_part(part(0, 8, "f32"));
    "blob_empty_misaligned" => only(dense(part(4097, 0, "f32"), numbers([0])));
    "shard_unknown" => {
        let place = numbers([4096, 8]);
        only_part(map([("blob", place), ("dtype", Text("f32")), ("shard", Text("1"))]))
    };
    "blob_past_end" => only_part(part(1 << 40, 8, "f32"));
    "blob_over_footer" => only_part(part(4096, 1 << 20, "f32"));
    "blob_wraps" => only_part(part(u64::MAX - 4095, 8192, "f32"));
    "blob_past_shard" => {
        let place = numbers([4096, 8]);
        let part = map([("blob", place), ("dtype", Text("f32")), ("shard", Text("1"))]);
        sharded("1", identity(4143), part)
    };
    // Layouts.
    "dense_two_parts" => {
        only(good().with("parts", map([("data", good_part()), ("more", good_part())])))
    };
    "dense_other_role" => only(good().with("parts", map([("values", good_part())])));
    "dense_size" => only(good().with("shape", numbers([3])));
    "dense_size_half_bytes" => only(dense(typed(4096, 8, "f4_e2m1", "u8"), numbers([17])));
    "dense_size_complex" => only(dense(typed(4096, 8, "complex64", "f32"), numbers([2])));
    "csr_rank_1" => csr([0, 2, 1], [0, 2, 3], |object| object.with("shape", numbers([6])));
    "csr_part_missing" => csr([0, 2, 1], [0, 2, 3], |object| {
        object.with("parts", map([("indptr", part(8192, 12, "u32"))]))
    });
    "csr_index_type" => csr_parts("indices", &part(4096, 12, "i32"));
    "csr_indptr_type" => csr_parts("indptr", &part(8192, 12, "u64"));
    "csr_indptr_length" => csr_parts("indptr", &part(8192, 8, "u32"));
    "csr_indices_length" => csr_parts("indices", &part(4096, 11, "u32"));
    "csr_values_length" => csr_parts("values", &part(12288, 8, "f32"));
    "blobs_overlap" => {
        let objects = map([("v", good()), ("w", dense(part(4096, 4, "u8"), numbers([4])))]);
        file(&map([("objects", objects)]))
    };
    "blob_over_manifest" => only(dense(part(8192, 16, "u8"), numbers([16])));
    // What reading finds.
    "digest_xxh3_wrong" => only_part(good_part().with("digest", Text("xxh3:0123456789abcdef")));
    "digest_sha256_wrong" => only_part(good_part().with("digest", Text(
        "sha256:0000000000000000000000000000000000000000000000000000000000000000",
    )));
    "digest_short" => only_part(good_part().with("digest", Text("xxh3:00ff")));
    "bool_2" => only(dense(typed(4096, 4, "bool", "u8"), numbers([4])));
    "half_byte_left_over" => {
        let root = root(dense(typed(4096, 2, "f4_e2m1", "u8"), numbers([3])));
        File::with_blobs(vec![(4096, vec![0x21, 0x31])], root.bytes()).made()
    };
    "csr_unsorted" => csr([2, 0, 1], [0, 2, 3], |object| object);
    "csr_index_range" => csr([0, 3, 1], [0, 2, 3], |object| object);
    "csr_indptr_start" => csr([0, 2, 1], [1, 2, 3], |object| object);
    "csr_indptr_down" => csr([0, 2, 1], [0, 4, 3], |object| object);
    "coo_twice" => coo([1, 1, 2, 2]);
    "coo_range" => coo([1, 2, 0, 0]);
    "encoding_unknown" => only_part(
        good_part().with("encoding", Text("lz4")).with("decoded_length", Number(8)),
    );
    "frames_no_table" => frames(|stored| stored.truncate(20));
    "frames_magic" => frames(|stored| *stored.last_mut().unwrap_or(&mut 0) = 0);
    "frames_descriptor" => frames(|stored| {
        let at = stored.len() - 5;
        stored[at] = 1;
    });
    "frames_claim" => frames(|stored| {
        let at = stored.len() - 9;
        stored[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    });
    "frames_sum" => frames(|stored| entry(stored, 5, 599));
    "frames_stored_sum" => frames(|stored| entry(stored, 2, 1));
    "frames_over_16_mib" => frames(|stored| entry(stored, 1, (16 << 20) + 1));
    "frames_unequal" => frames(|stored| {
        entry(stored, 1, 699);
        entry(stored, 3, 701);
    });
    "frames_no_checksum" => frames(|stored| stored[4] &= !4);
    "frames_damaged" => frames(|stored| {
        // The checksum of the first frame, whose length the table says.
        let at = stored.len() - 9 - 24;
        let first = usize::from(stored[at]);
        stored[first - 1] ^= 1;
    });
}
