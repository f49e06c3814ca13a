//! Cartons that cover what the writer can do, each as small as it shows that.

use anyhow::Result;
use carton_format::{
    Description, Example, Links, Named, OptionValue, Pack, Reader, Reference, Runner, SelfTest,
    TensorSpec, Value, WriteOptions, Writer,
    model_archive::Compression,
    shrink,
    tensor_core::{
        DType, TensorBuf,
        symbolic::{Dim, SymbolicShape},
    },
};

use super::Golden;

pub(super) fn goldens() -> Vec<Golden> {
    let golden = |path, make| Golden { path, make };
    vec![
        golden("carton/golden/minimal.carton", || {
            let runner = Runner::new("noop", "=1.0.0".parse()?);
            Ok(Pack::new(&Description::new(runner))?.write(Writer::new(Vec::new()))?.sink)
        }),
        golden("carton/golden/everything.carton", || packed(WriteOptions::default())),
        golden("carton/golden/stored.carton", || packed(compressed(Compression::Stored))),
        golden("carton/golden/deflate.carton", || {
            packed(compressed(Compression::Deflate { level: 6 }))
        }),
        golden("carton/golden/zstd.carton", || {
            packed(compressed(Compression::Zstd { level: 3 }).alignment(1))
        }),
        golden("carton/golden/shrunk.carton", shrunk),
    ]
}

fn compressed(compression: Compression) -> WriteOptions {
    WriteOptions::default().compression(compression)
}

fn packed(options: WriteOptions) -> Result<Vec<u8>> {
    let mut pack = Pack::new(&description()?)?;
    pack.file("model/weights.bin", vec![7_u8; 1000])?;
    pack.file("model/.hidden/a=b", &b""[..])?;
    pack.file("model/ünï.txt", &b"text"[..])?;
    pack.file("misc/picture.png", &b"\x89PNG\r\n\x1a\n"[..])?;
    for (dtype, tensor) in tensors()? {
        pack.tensor(dtype, &Value::Numeric(tensor))?;
    }
    let texts = ["", "it's \"quoted\"", "\u{1b}\0\r\n\t\u{7f}\u{1f600}"].map(str::to_owned);
    let strings = Value::Strings { shape: [3].into(), strings: texts.to_vec() };
    pack.tensor("string", &strings)?;
    let inner = Value::Numeric(TensorBuf::from_slice([0, 2], &[0_u8; 0])?);
    pack.tensor("nested", &Value::Nested(vec![inner, strings]))?;
    Ok(pack.write(options.write_to(Vec::new()))?.sink)
}

fn tensors() -> Result<Vec<(&'static str, TensorBuf)>> {
    let shape = [2, 1];
    Ok(vec![
        ("float32", TensorBuf::from_slice(shape, &[1.5_f32, f32::NAN])?),
        ("float64", TensorBuf::from_slice(shape, &[-0.0_f64, f64::INFINITY])?),
        ("int8", TensorBuf::from_slice(shape, &[i8::MIN, i8::MAX])?),
        ("int16", TensorBuf::from_slice(shape, &[i16::MIN, i16::MAX])?),
        ("int32", TensorBuf::from_slice(shape, &[i32::MIN, i32::MAX])?),
        ("int64", TensorBuf::from_slice(shape, &[i64::MIN, i64::MAX])?),
        ("uint8", TensorBuf::from_slice(shape, &[0, u8::MAX])?),
        ("uint16", TensorBuf::from_slice(shape, &[0, u16::MAX])?),
        ("uint32", TensorBuf::from_slice(shape, &[0, u32::MAX])?),
        ("uint64", TensorBuf::from_slice(shape, &[0, u64::MAX])?),
    ])
}

fn description() -> Result<Description> {
    let mut runner = Runner::new("noop", ">=1.2, <3".parse()?);
    runner.compat_version = Some(1);
    runner.options = Some(Named::from_iter([
        ("threads", OptionValue::Integer(i64::MAX)),
        ("scale", OptionValue::Float(2.0)),
        ("mode", OptionValue::String("fast\n".to_owned())),
        ("debug", OptionValue::Boolean(false)),
    ]));
    let mut description = Description::new(runner);
    description.model_name = Some("Everything".to_owned());
    description.short_description = Some("Every field".to_owned());
    description.model_description =
        Some("Two lines,\nand ![a picture](@misc/picture.png)".to_owned());
    description.license = Some("MIT".to_owned());
    description.repository = Some("https://example.com/repository".to_owned());
    description.homepage = Some("https://example.com".to_owned());
    description.required_platforms = Some(vec!["x86_64-unknown-linux-gnu".parse()?]);
    let rows = || Dim::Symbol("rows".to_owned());
    let columns = SymbolicShape::Dims(vec![rows(), Dim::Fixed(1)]);
    let mut first = TensorSpec::new("x", DType::F32, columns);
    first.internal_name = Some("graph/x:0".to_owned());
    first.description = Some("The first".to_owned());
    description.inputs = Some(vec![
        first,
        TensorSpec::new("any", DType::Str, SymbolicShape::Any),
        TensorSpec::new("same", DType::U8, SymbolicShape::Symbol("shape".to_owned())),
    ]);
    let free = SymbolicShape::Dims(vec![rows(), Dim::Any]);
    description.outputs = Some(vec![
        TensorSpec::new("y", DType::I64, free),
        TensorSpec::new("same_again", DType::U16, SymbolicShape::Symbol("shape".to_owned())),
    ]);
    let inputs = [("x", "float32"), ("any", "string"), ("same", "uint8")];
    let mut test = SelfTest::new(named(inputs));
    test.name = Some("types".to_owned());
    test.expected_out = Some(named([("y", "int64"), ("same_again", "uint16")]));
    description.self_tests = Some(vec![test]);
    let picture = Reference::Misc("picture.png".to_owned());
    let list = Reference::Tensor("nested".to_owned());
    let example = Example::new(Named::from_iter([("x", picture)]), Named::from_iter([("y", list)]));
    description.examples = Some(vec![example]);
    Ok(description)
}

fn named<const N: usize>(tensors: [(&str, &str); N]) -> Named<String> {
    tensors.into_iter().map(|(name, tensor)| (name, tensor.to_owned())).collect()
}

fn shrunk() -> Result<Vec<u8>> {
    let whole = Reader::from_bytes(packed(WriteOptions::default())?)?;
    let mut links = Links::default();
    for file in whole.model().filter(|file| file.len().is_ok_and(|len| len > 100)) {
        links.add(file.sha256(), "https://models.example.com/weights.bin");
        links.add(file.sha256(), "https://mirror.example.com/weights.bin");
    }
    Ok(shrink(&whole, &links, Writer::new(Vec::new()))?.sink)
}
