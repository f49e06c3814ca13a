//! What this crate has in common with every other format.

use std::{
    io,
    num::NonZeroUsize,
    sync::atomic::{AtomicU64, Ordering},
};

use rten_format::{
    Constant, ConstantDataType, Error, GraphBuilder, Model, Reader, WriteOptions, Writer, sniff,
    tensor_core::{
        ErrorKind, Extent, Limits, Profile, ReadAt, Source, TensorBuf, Verified, Verify,
        output::{Existing, Output},
    },
};
use test_support::{CountingSource, files, testdata};

fn open_error(file: &str) -> Error {
    Reader::open(testdata("rten/invalid").join(file)).unwrap_err()
}

#[test]
fn errors_have_a_rule_a_kind_and_a_place() {
    let error = open_error("header_version.rten");
    assert_eq!((error.rule(), error.kind()), ("rten/version", ErrorKind::Unsupported));
    assert_eq!(error.at().offset, Some(4));
    let error = open_error("v1_cut.rten");
    assert_eq!((error.rule(), error.kind()), ("rten/model-data", ErrorKind::Malformed));
    assert_eq!(error.at().offset, Some(212));
    let error = Reader::open("none.rten").unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("rten/read", ErrorKind::NotFound));
    let path = testdata("rten/valid/mlp.v2.rten");
    let limits = Limits::default().with_tensors(1);
    let error = Reader::options().limits(limits).open(&path).unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("rten/limit", ErrorKind::OverLimit));
    let error = Writer::options().alignment(3).write_to(io::sink(), &Model::default()).unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("rten/write", ErrorKind::Usage));
}

/// The place of what is wrong with model data is counted from the start of the file, where it does
/// not start.
#[test]
fn places_count_from_the_start_of_the_file() {
    let mut file = std::fs::read(testdata("rten/valid/mlp.v2.rten")).unwrap();
    // The offset of the root table, behind the header.
    file[32..36].fill(0);
    let error = Reader::from_bytes(file).unwrap_err();
    assert_eq!(error.at().offset, Some(32));
    assert_eq!(
        error.to_string(),
        "model data is malformed: reference at byte 32 has the offset 0, expected one that leads \
         forward"
    );
}

#[test]
fn files_are_told_by_a_few_bytes() {
    for path in files("rten/valid", "rten") {
        let counting = CountingSource::new(&std::fs::read(&path).unwrap());
        assert!(sniff(&counting.source()).unwrap(), "{path:?}");
        assert!(counting.total() <= 4 * 64, "{path:?}: {}", counting.total());
    }
    for bytes in [&b""[..], b"RTE", b"PK\x03\x04", &[0; 64], &[0xff; 64], b"\x08\0\0\0ZTEN0001"] {
        assert!(!sniff(&Source::from_bytes(bytes.to_vec())).unwrap(), "{bytes:?}");
    }
}

/// A file with one large constant.
fn large() -> Vec<u8> {
    let mut graph = GraphBuilder::new();
    let constant = Constant::described([1 << 16], ConstantDataType::UInt8);
    let constant = graph.constant("w", constant).unwrap();
    graph.output(constant).unwrap();
    let model = Model { graph: graph.finish(), metadata: None };
    let mut writer = Writer::new(Vec::new(), &model).unwrap();
    writer.add(&vec![7; 1 << 16]).unwrap();
    writer.finish().unwrap()
}

#[test]
fn lint_reads_no_tensor_data_and_validate_all_of_it() {
    let counting = CountingSource::new(&large());
    let reader = Reader::from_source(counting.source()).unwrap();
    drop(counting.take_reads());
    assert!(reader.lint().is_valid());
    let extent = reader.tensor("w").unwrap().extent().unwrap().unwrap();
    let touched = counting.take_reads();
    assert!(touched.iter().all(|read| !read.overlaps(extent)), "{touched:?}");
    let done = AtomicU64::new(0);
    let report = reader.validate_with(|bytes| {
        done.fetch_add(bytes, Ordering::Relaxed);
    });
    assert_eq!(report, reader.lint());
    assert_eq!(done.into_inner(), reader.model_data().end() + extent.len());
    let read: u64 = counting.take_reads().iter().map(|read| read.len()).sum();
    assert!(read >= extent.len(), "{read}");
}

/// A store that fails where tensor data starts.
#[derive(Debug)]
struct Broken(Vec<u8>);

impl ReadAt for Broken {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        if start + buffer.len() > 1024 {
            return Err(io::Error::other("the disk is broken"));
        }
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        Ok(())
    }
}

#[test]
fn constants_that_cannot_be_read_are_found() {
    let reader = Reader::from_source(Source::from_read_at(Broken(large()))).unwrap();
    let report = reader.validate();
    let finding = report.findings().iter().find(|finding| finding.rule == "rten/read").unwrap();
    assert_eq!(finding.at.path.as_deref(), Some("graph/node 0 \"w\""));
    assert_eq!(finding.at.tensor.as_deref(), Some("w"));
    assert!(finding.message.ends_with("could not be read: the disk is broken"), "{finding:?}");
    assert_eq!(reader.tensor("w").unwrap().verify().unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn handles_give_the_same_elements_every_way() {
    let options = Reader::options().profile(Profile::Lenient).verify(Verify::Always);
    let reader = options.threads(NonZeroUsize::MIN).from_bytes(large()).unwrap();
    let tensor = reader.tensor("w").unwrap();
    let mut buffer = vec![0; 1 << 16];
    tensor.read_into(&mut buffer).unwrap();
    assert_eq!((tensor.name(), &tensor.bytes().unwrap()[..]), (Some("w"), &buffer[..]));
    let elements = tensor.read().unwrap();
    let expected = TensorBuf::from_vec([1 << 16], vec![7_u8; 1 << 16]).unwrap();
    assert_eq!((elements.info(), elements.bytes()), (expected.info(), expected.bytes()));
    assert_eq!(tensor.info().unwrap(), *elements.info());
    assert_eq!(tensor.verify().unwrap(), Verified::NoDigest);
    let error = tensor.read_into(&mut buffer[1..]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn outputs_are_placed_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.rten");
    let output = Output { existing: Existing::Keep, ..Output::default() };
    let write = |options: WriteOptions| options.create(&path, &Model::default())?.finish();
    write(Writer::options().output(output)).unwrap();
    write(Writer::options().output(output)).unwrap_err();
    write(Writer::options().output(output).existing(Existing::Replace)).unwrap();
    let whole = Extent::first(path.metadata().unwrap().len());
    assert_eq!(Reader::open(&path).unwrap().model_data().offset(), 32.min(whole.len()));
}
