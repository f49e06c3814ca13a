//! zTensor files that cover what the writer can do, each as small as it shows that.

use std::num::{NonZeroU64, NonZeroUsize};

use anyhow::Result;
use ztensor::{
    Attributes, Compression, Coo, Csr, Format, Role, Storage, Value, Version, WriteOptions, Writer,
    tensor_core::{DType, TensorBuf, digest::Algorithm},
};

use super::Golden;

pub(super) fn goldens() -> Vec<Golden> {
    let golden = |path, make| Golden { path, make };
    vec![
        golden("ztensor/golden/empty.zt", || Ok(Writer::new(Vec::new()).finish()?)),
        golden("ztensor/golden/dense_every_dtype.zt", || dense(WriteOptions::default())),
        golden("ztensor/golden/dense_1_2.zt", || {
            dense(WriteOptions::default().version(Version::V1_2).storage(zstd(None)))
        }),
        golden("ztensor/golden/dense_sha256.zt", || {
            dense(WriteOptions::default().storage(Storage::default().digest(Algorithm::Sha256)))
        }),
        golden("ztensor/golden/dense_zstd_crc32c.zt", || {
            dense(WriteOptions::default().storage(zstd(None).digest(Algorithm::Crc32c)))
        }),
        golden("ztensor/golden/zstd_frames.zt", || {
            let threads = NonZeroUsize::MIN.saturating_add(2);
            let options = WriteOptions::default().storage(zstd(NonZeroU64::new(256)));
            dense(options.threads(threads))
        }),
        golden("ztensor/golden/aligned_4096.zt", || dense(WriteOptions::default().alignment(4096))),
        golden("ztensor/golden/sparse_quantized_other.zt", layouts),
    ]
}

const DTYPES: [DType; 17] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

fn zstd(frame: Option<NonZeroU64>) -> Storage {
    Storage::default().compression(Compression::Zstd { level: 3, frame })
}

/// A tensor of every element type, with an empty one and a scalar, and attributes.
fn dense(options: WriteOptions) -> Result<Vec<u8>> {
    let mut writer = options.write_to(Vec::new())?;
    writer.set_attributes(&[("framework", "none"), ("", "empty key")].into_iter().collect());
    for dtype in DTYPES {
        for shape in [&[][..], &[0, 3], &[3, 7]] {
            let elements: u64 = shape.iter().product();
            let bytes = dtype.byte_len(elements).unwrap_or_default();
            let most = if dtype == DType::Bool { 2 } else { 251 };
            let bytes: Vec<u8> = (0..bytes).map(|at| (at % most).to_le_bytes()[0]).collect();
            writer.add(&format!("{dtype} {shape:?}"), &TensorBuf::new(dtype, shape, bytes)?)?;
        }
    }
    Ok(writer.finish()?)
}

/// An object of every layout but dense, with attributes of every type.
fn layouts() -> Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new());
    let values = TensorBuf::from_slice([3], &[1.0_f32, 2.0, 3.0])?;
    let indices = TensorBuf::from_slice([3], &[0_u64, 2, 1])?;
    let indptr = TensorBuf::from_slice([3], &[0_u64, 2, 3])?;
    writer.add_csr("csr", &Csr::from_parts([2, 3], values.clone(), indices, indptr)?)?;
    let coords = TensorBuf::from_slice([6], &[0_u16, 0, 1, 0, 2, 1])?;
    writer.add_coo("coo", &Coo::from_parts([2, 3], values, coords)?)?;

    let mut quantized = writer.object("quantized")?;
    let attributes: Attributes = [
        ("bits", Value::Integer(4)),
        ("group_size", Value::Integer(8)),
        ("packing", Value::from("8_per_i32")),
    ]
    .into_iter()
    .collect();
    quantized.set_attributes(&attributes);
    quantized.put(Role::PackedWeight, DType::I32, &[0x21; 8])?;
    quantized.put(Role::Scales, DType::F16, &[0, 0x3c, 0, 0x40])?;
    quantized.put(Role::Zeros, DType::F16, &[0; 4])?;
    quantized.finish(Format::QuantizedGroup, [2, 8])?;

    let mut other = writer.object("other")?;
    other.set_attributes(&every_type());
    other.put(Role::from("left"), DType::F32, &[0; 8])?;
    other.put(Role::from("right"), DType::U8, &[1, 2, 3])?;
    other.finish(Format::from("low_rank"), [2, 3])?;
    Ok(writer.finish()?)
}

fn every_type() -> Attributes {
    [
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("least", Value::Integer(-(1 << 64))),
        ("most", Value::Integer((1 << 64) - 1)),
        ("half", Value::Float(1.5)),
        ("single", Value::Float(0.1_f32.into())),
        ("double", Value::Float(0.1)),
        ("infinite", Value::Float(f64::INFINITY)),
        ("text", Value::from("héllo")),
        ("bytes", Value::Bytes(vec![0, 255])),
        ("list", Value::Array(vec![Value::Null, Value::from("x")])),
        ("map", Value::Map(vec![(Value::Integer(1), Value::from("one"))])),
        ("tag", Value::Tag(32, Box::new(Value::from("a:b")))),
    ]
    .into_iter()
    .collect()
}
