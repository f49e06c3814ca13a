//! The crate `ztensor` 2.1.1, which the text of zTensor 2 comes with, on our files, and us on its files.

mod reads_ours;
mod reads_theirs;
mod rules;
mod same_bytes;

use std::path::Path;

use proptest::prelude::*;
use reference2::{DType as TheirType, Source, Writer as TheirWriter};
use ztensor::{ElementType, Form, Version, WriteOptions, tensor_core::DType};

/// A tensor of one part: name, shape, the dtype that stores it, its `type`, its bytes.
#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    shape: Vec<u64>,
    elements: ElementType,
    bytes: Vec<u8>,
}

/// Each element type, with what both sides call it.
const TYPES: [(ElementType, TheirType, Option<&str>); 21] = [
    (ElementType::Plain(DType::F64), TheirType::F64, None),
    (ElementType::Plain(DType::F32), TheirType::F32, None),
    (ElementType::Plain(DType::F16), TheirType::F16, None),
    (ElementType::Plain(DType::BF16), TheirType::BF16, None),
    (ElementType::Plain(DType::I64), TheirType::I64, None),
    (ElementType::Plain(DType::I32), TheirType::I32, None),
    (ElementType::Plain(DType::I16), TheirType::I16, None),
    (ElementType::Plain(DType::I8), TheirType::I8, None),
    (ElementType::Plain(DType::U64), TheirType::U64, None),
    (ElementType::Plain(DType::U32), TheirType::U32, None),
    (ElementType::Plain(DType::U16), TheirType::U16, None),
    (ElementType::Plain(DType::U8), TheirType::U8, None),
    (ElementType::Plain(DType::Bool), TheirType::U8, Some("bool")),
    (ElementType::Plain(DType::F8E4M3), TheirType::U8, Some("f8_e4m3fn")),
    (ElementType::Plain(DType::F8E5M2), TheirType::U8, Some("f8_e5m2")),
    (ElementType::Plain(DType::C64), TheirType::F32, Some("complex64")),
    (ElementType::Plain(DType::C128), TheirType::F64, Some("complex128")),
    (packed("f8_e4m3fnuz", 8), TheirType::U8, Some("f8_e4m3fnuz")),
    (packed("f8_e5m2fnuz", 8), TheirType::U8, Some("f8_e5m2fnuz")),
    (packed("f8_e8m0", 8), TheirType::U8, Some("f8_e8m0")),
    (packed("f4_e2m1", 4), TheirType::U8, Some("f4_e2m1")),
];

const fn packed(name: &'static str, bits: u32) -> ElementType {
    ElementType::Packed { name, bits }
}

/// Tensors under names in order, some of them with the same bytes, and some empty.
fn tensors() -> impl Strategy<Value = Vec<Tensor>> {
    let tensor = (0..TYPES.len(), proptest::collection::vec(0_u64..5, 0..4), 0_u8..3);
    proptest::collection::btree_map("[a-zA-Zé._]{1,20}", tensor, 0..10).prop_map(|map| {
        let made = map.into_iter().map(|(name, (which, shape, seed))| {
            let elements = TYPES[which].0;
            let len = elements.byte_len(shape.iter().product()).unwrap();
            // 0 and 1 are bools, and an odd half byte at the end has a 0 in its high half.
            let bytes = (0..len).map(|at| u8::from((at + u64::from(seed)).is_multiple_of(3)));
            Tensor { name, shape, elements, bytes: bytes.collect() }
        });
        made.collect()
    })
}

fn canonical() -> WriteOptions {
    WriteOptions::default().version(Version::V2)
}

fn free(alignment: u64) -> WriteOptions {
    canonical().form(Form::Free).alignment(alignment)
}

/// Writes tensors as we do.
fn ours(tensors: &[Tensor], options: WriteOptions) -> Vec<u8> {
    let mut writer = options.write_to(Vec::new()).unwrap();
    for Tensor { name, shape, elements, bytes } in tensors {
        let mut object = writer.object(name).unwrap();
        object.put(ztensor::Role::Data, *elements, bytes).unwrap();
        object.finish(ztensor::Format::Dense, &shape[..]).unwrap();
    }
    writer.finish().unwrap()
}

/// Writes tensors as the reference does.
fn theirs(path: &Path, tensors: &[Tensor], options: reference2::write::Options, encoding: bool) {
    let mut writer: TheirWriter = options.create(path).unwrap();
    for Tensor { name, shape, elements, bytes } in tensors {
        let (_, dtype, logical) = TYPES.iter().find(|(found, ..)| found == elements).unwrap();
        let described = writer.object(name.as_str(), |object| {
            object.shape(shape.clone()).part("data", |part| {
                let part = part.dtype(*dtype).bytes(bytes);
                let part = if let Some(logical) = logical { part.logical(*logical) } else { part };
                if encoding { part.encoding("zt.zstd-seekable/1") } else { part }
            })
        });
        described.unwrap();
    }
    writer.finish().unwrap();
}

/// Opens a file with the reference.
fn open(bytes: &[u8]) -> (tempfile::TempDir, reference2::Result<Source>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.zt");
    std::fs::write(&path, bytes).unwrap();
    let opened = Source::open(&path);
    (folder, opened)
}
