//! What is found in models, and what that takes.

use std::sync::atomic::{AtomicU64, Ordering};

use circle_format::{
    Error, Reader, Schema, Writer,
    model::{BuiltinOperator, ModelBuilder, Operator, Sparsity, Tensor, TensorType},
    sniff,
    tensor_core::{ErrorKind, Extent, Limits, Profile, ReadAt, Severity, Source, Verified, Verify},
};
use test_support::{CountingSource, testdata};

use crate::common::packed_models;

#[test]
fn packed_models_are_valid() {
    for (path, bytes) in packed_models() {
        assert!(Reader::from_bytes(bytes).unwrap().validate().is_valid(), "{path}");
    }
}

/// A model of one constant of a mebibyte.
fn large() -> Vec<u8> {
    let mut model = ModelBuilder::new(Schema::Tflite);
    let mut graph = model.subgraph("main");
    let tensor = Tensor::new("large", TensorType::Uint8, [1 << 20]);
    graph.constant(tensor, vec![7; 1 << 20]);
    graph.finish();
    model.finish().to_bytes().unwrap()
}

#[test]
fn every_byte_is_validated() {
    let bytes = large();
    let store = CountingSource::new(&bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    drop(store.take_reads());
    assert!(reader.lint().is_valid());
    let linted: u64 = store.take_reads().into_iter().map(Extent::len).sum();
    assert!(linted < 100, "{linted}");
    let done = AtomicU64::new(0);
    let report = reader.validate_with(|bytes| {
        done.fetch_add(bytes, Ordering::Relaxed);
    });
    assert_eq!(report.findings(), reader.lint().findings());
    assert_eq!(done.into_inner(), bytes.len() as u64);
    let read: u64 = store.take_reads().into_iter().map(Extent::len).sum();
    assert!(read >= 1 << 20, "{read}");
}

#[test]
fn constants_of_texts_are_looked_into() {
    let found = |bytes: &[u8]| {
        let mut model = ModelBuilder::new(Schema::Tflite);
        let mut graph = model.subgraph("main");
        graph.constant(Tensor::new("texts", TensorType::String, [2]), bytes.to_vec());
        graph.finish();
        let reader = Reader::from_bytes(model.finish().to_bytes().unwrap()).unwrap();
        assert!(reader.lint().is_valid());
        let report = reader.validate();
        let errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
        errors.map(|found| found.message.clone()).collect::<Vec<_>>()
    };
    let stored = |words: &[u32], texts: &str| {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(texts.as_bytes());
        bytes
    };
    assert_eq!(found(&stored(&[2, 16, 18, 18], "ab")), [""; 0]);
    for (bytes, message) in [
        (vec![2, 0], "has 2 bytes, expected a count of texts in 4"),
        (stored(&[3, 20, 20, 20, 20], ""), "has 3 texts, expected 2"),
        (stored(&[2, 16, 18], ""), "has 12 bytes, expected 16 before its 2 texts"),
        (stored(&[2, 12, 18, 18], "ab"), "has its first text at byte 12, expected 16 to 18"),
        (stored(&[2, 16, 15, 18], "ab"), "has the end of text 0 at byte 15, expected 16 to 18"),
        (stored(&[2, 16, 17, 19], "ab"), "has the end of text 1 at byte 19, expected 17 to 18"),
    ] {
        assert_eq!(found(&bytes), [message]);
    }
}

/// As TFLite splits off nothing: a tensor without elements has a value before, and may be made.
#[test]
fn tensors_without_elements_may_be_made() {
    let found = |bytes: &'static [u8]| {
        let mut model = ModelBuilder::new(Schema::Tflite);
        let mut graph = model.subgraph("main");
        let x = graph.input(Tensor::new("x", TensorType::Uint8, [4]));
        let empty = graph.constant(Tensor::new("empty", TensorType::Uint8, [0]), bytes);
        let y = graph.output(Tensor::new("y", TensorType::Uint8, [4]));
        graph.operator(BuiltinOperator::SPLIT_V, Operator::new([x, empty], [y, empty]));
        graph.finish();
        let reader = Reader::from_bytes(model.finish().to_bytes().unwrap()).unwrap();
        let rules = reader.lint().into_iter().map(|found| found.rule.into_owned());
        rules.filter(|rule| rule == "model/made-twice").count()
    };
    assert_eq!(found(b""), 0);
    assert_eq!(found(b"1"), 1);
}

#[test]
fn blocks_are_whole_and_counted() {
    let found = |shape: &[i32], bytes: usize| {
        let mut model = ModelBuilder::new(Schema::Circle);
        let mut graph = model.subgraph("main");
        let tensor = Tensor::new("w", TensorType::GgmlQ4_0, shape.to_vec());
        graph.constant(tensor, vec![0; bytes]);
        graph.finish();
        let reader = Reader::from_bytes(model.finish().to_bytes().unwrap()).unwrap();
        let errors = reader.lint().into_iter().filter(|found| found.severity == Severity::Error);
        errors.map(|found| format!("{} {}", found.rule, found.message)).collect::<Vec<_>>()
    };
    assert_eq!(found(&[3, 64], 108), [""; 0]);
    assert_eq!(
        found(&[64, 3], 108),
        ["model/shape is GGML_Q4_0 of shape [64, 3], expected rows of whole blocks of 32 elements"]
    );
    let shape = [i32::MAX, i32::MAX, 4];
    assert_eq!(found(&shape, 108).len(), 1);
    assert_eq!(found(&[i32::MAX, 32], 108).len(), 1);
}

/// A store that breaks in the middle of what it holds.
#[derive(Debug)]
struct Broken(Vec<u8>);

impl ReadAt for Broken {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        if (600_000..700_000).any(|at| (start..start + buffer.len()).contains(&at)) {
            return Err(std::io::Error::other("sector not found"));
        }
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        Ok(())
    }
}

#[test]
fn constants_that_cannot_be_read_are_found() {
    let reader = Reader::from_source(Source::from_read_at(Broken(large()))).unwrap();
    assert!(reader.lint().is_valid());
    let report = reader.validate();
    let mut errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
    let (Some(finding), None) = (errors.next(), errors.next()) else { panic!("{report:?}") };
    assert_eq!(finding.rule, "model/read");
    assert_eq!(finding.at.path.as_deref(), Some("subgraph 0/tensor 0 \"large\""));
    assert!(finding.message.contains("sector not found"), "{}", finding.message);
    assert_eq!(reader.tensor("large").unwrap().verify().unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn handles_read_alike() {
    let reader = Reader::from_bytes(large()).unwrap();
    let tensor = reader.tensor("large").unwrap();
    let extent = tensor.extent().unwrap().unwrap();
    assert_eq!(extent, tensor.stored_extent().unwrap());
    assert_eq!(reader.source().read(extent, "large").unwrap(), tensor.bytes().unwrap());
    assert_eq!(tensor.verify().unwrap(), Verified::NoDigest);
    let read = tensor.read().unwrap();
    assert_eq!(read.as_slice::<u8>().unwrap(), &vec![7; 1 << 20][..]);
    let mut model = reader.model().clone();
    model.subgraphs[0].tensors[0].sparsity = Some(Box::new(Sparsity::default()));
    let bytes = Writer::new(Vec::new(), &model).finish().unwrap();
    let reader = Reader::from_bytes(bytes).unwrap();
    let tensor = reader.tensor("large").unwrap();
    assert_eq!(tensor.extent().unwrap(), None);
    let error = tensor.bytes().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

#[test]
fn schemas_are_told_by_their_identifiers() {
    let sniffed = |bytes: &[u8]| sniff(&Source::from_bytes(bytes.to_vec())).unwrap();
    assert_eq!(sniffed(&large()), Some(Schema::Tflite));
    assert_eq!(sniffed(b"\x18\0\0\0CIR0"), Some(Schema::Circle));
    for other in [&b""[..], b"CIR0", b"PK\x03\x04\0\0\0\0", b"\x18\0\0\0TFL2"] {
        assert_eq!(sniffed(other), None);
    }
}

/// What has no effect here is there, as for every other format.
#[test]
fn options_of_all_formats_are_taken() {
    let options = Reader::options()
        .limits(Limits::default())
        .profile(Profile::Lenient)
        .verify(Verify::Always)
        .threads(std::num::NonZeroUsize::MIN);
    options.from_bytes(large()).unwrap();
}

#[test]
fn errors_say_whose_fault_they_are() {
    let open = |bytes: &[u8], limits| Reader::options().limits(limits).from_bytes(bytes.to_vec());
    let kind = |bytes: &[u8], limits| open(bytes, limits).unwrap_err().kind();
    assert_eq!(kind(b"\x18\0\0\0XXXX", Limits::default()), ErrorKind::Malformed);
    assert_eq!(kind(&large()[..40], Limits::default()), ErrorKind::Malformed);
    assert_eq!(kind(&large(), Limits::default().with_depth(1)), ErrorKind::OverLimit);
    let missing = Reader::open(testdata("nnpackage/valid/none.circle")).unwrap_err();
    assert_eq!((missing.kind(), missing.rule()), (ErrorKind::NotFound, "model/read"));
    let error = open(&large()[..40], Limits::default()).unwrap_err();
    let Error::Malformed(fault) = &error else { panic!("{error}") };
    assert_eq!(error.at().offset, Some(fault.at()));
}
