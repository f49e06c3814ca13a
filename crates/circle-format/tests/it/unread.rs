//! Large constants between the tables of a file that is read by position.

use circle_format::{
    BufferPlacement, Reader, WriteOptions, Writer,
    model::{
        Buffer, BuiltinOperator, Metadata, Model, ModelBuilder, Operator, Schema, Tensor,
        TensorType,
    },
    tensor_core::Extent,
};
use test_support::{CountingSource, assert_bytes};

const LEN: usize = 256 << 10;
const LAYERS: usize = 8;

/// Returns a model of constants of 256 KiB each, of small ones, and of long metadata.
fn model(schema: Schema) -> Model {
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    for layer in 0..LAYERS {
        let shape = [i32::try_from(LEN).unwrap()];
        let elements: Vec<u8> = (0..LEN).map(|at| (at * 7 + layer) as u8).collect();
        let tensor = Tensor::new(format!("large {layer}"), TensorType::Uint8, shape);
        let large = graph.constant(tensor, elements);
        let tensor = Tensor::new(format!("small {layer}"), TensorType::Uint8, [16]);
        let small = graph.constant(tensor, vec![layer as u8; 16]);
        let out = graph.output(Tensor::new(format!("out {layer}"), TensorType::Uint8, shape));
        graph.operator(BuiltinOperator::NEG, Operator::new([large], [out]));
        graph.operator(BuiltinOperator::NEG, Operator::new([small], [out]));
    }
    graph.finish();
    let mut model = model.finish();
    model.set_metadata("long", vec![3; LEN]);
    model
}

fn written(schema: Schema) -> Vec<u8> {
    model(schema).to_bytes().unwrap()
}

fn by_position(bytes: &[u8]) -> (Reader, CountingSource) {
    let store = CountingSource::new(bytes);
    (Reader::from_source(store.source()).unwrap(), store)
}

#[test]
fn they_are_read_when_they_are_asked_for() {
    for schema in [Schema::Circle, Schema::Tflite] {
        let bytes = written(schema);
        let memory = Reader::from_bytes(bytes.clone()).unwrap();
        let (reader, store) = by_position(&bytes);
        // The metadata, and not much more than the tables.
        let most = (LEN + (64 << 10)) as u64;
        assert!(store.total() < most, "{} of {}", store.total(), bytes.len());
        assert_eq!(reader.diagnoses(), memory.diagnoses());
        assert_eq!(reader.tables_len(), memory.tables_len());
        assert!(store.total() < most);
        assert_eq!(reader.tensors().len(), 2 * LAYERS);
        for (found, expected) in reader.tensors().zip(memory.tensors()) {
            assert_eq!(found.info().unwrap(), expected.info().unwrap());
            assert_eq!(found.stored_extent().unwrap(), expected.stored_extent().unwrap());
            assert_eq!(found.is_external(), expected.is_external());
            let bytes = expected.bytes().unwrap();
            assert_bytes(&found.bytes().unwrap(), &bytes, &found.path());
            let mut buffer = vec![0; bytes.len()];
            found.read_into(&mut buffer).unwrap();
            assert_bytes(&buffer, &bytes, &found.path());
            found.verify().unwrap();
        }
        assert_eq!(reader.model().metadata("long").unwrap(), &vec![3; LEN]);
        let unread = |buffer: &&Buffer| buffer.is_unread;
        assert_eq!(reader.model().buffers.iter().filter(unread).count(), LAYERS);
        assert!(!memory.model().buffers.iter().any(|buffer| buffer.is_unread));
    }
}

#[test]
fn they_are_written_from_where_they_are() {
    let bytes = written(Schema::Tflite);
    let memory = Reader::from_bytes(bytes.clone()).unwrap();
    let (reader, _) = by_position(&bytes);
    for placement in [BufferPlacement::Keep, BufferPlacement::Inline, BufferPlacement::Outside] {
        let options = WriteOptions::default().placement(placement);
        let found = options.write_to(Vec::new(), reader.model()).origin(&reader).finish().unwrap();
        let expected =
            options.write_to(Vec::new(), memory.model()).origin(&memory).finish().unwrap();
        assert_bytes(&found, &expected, &format!("{placement:?}"));
    }
    let circle = reader.model().to_schema(Schema::Circle).unwrap();
    let found = Writer::new(Vec::new(), &circle).origin(&reader).finish().unwrap();
    let expected = memory.model().to_schema(Schema::Circle).unwrap();
    assert_bytes(&found, &expected.to_bytes().unwrap(), "Circle");
    // A model without its file has not all bytes.
    let error = reader.model().to_bytes().unwrap_err().to_string();
    assert!(error.contains("there is none to read them from"), "{error}");
}

/// The same bytes are those of two buffers.
#[test]
fn buffers_can_share_them() {
    let mut bytes = written(Schema::Circle);
    let memory = Reader::from_bytes(bytes.clone()).unwrap();
    let at = |name: &str| memory.tensor(name).unwrap().stored_extent().unwrap().offset();
    let lists = [at("large 0") - 4, at("large 1") - 4];
    let field = reference(&bytes, lists[1]);
    let distance = u32::try_from(lists[0] - field as u64).unwrap();
    bytes[field..field + 4].copy_from_slice(&distance.to_le_bytes());
    let (reader, store) = by_position(&bytes);
    assert!(store.total() < (2 * LEN) as u64 + (64 << 10), "{}", store.total());
    let [first, second] =
        ["large 0", "large 1"].map(|name| reader.tensor(name).unwrap().bytes().unwrap());
    assert_bytes(&second, &first, "shared");
}

/// Returns the place of the reference that leads to a list.
fn reference(bytes: &[u8], list: u64) -> usize {
    let leads = |at: &usize| {
        let distance = u32::from_le_bytes(bytes[*at..*at + 4].try_into().unwrap());
        distance > 0 && *at as u64 + u64::from(distance) == list
    };
    (0..64 << 10).step_by(4).find(leads).unwrap()
}

/// What refers into bytes that were not read is read whole, and is what it is in memory.
#[test]
fn tables_among_them() {
    let memory = Reader::from_bytes(written(Schema::Circle)).unwrap();
    // The description of the model as a text in the elements of a constant, or with its number of
    // bytes as the last of them.
    let changed = Model { description: Some("elsewhere".to_owned()), ..memory.model().clone() };
    let bytes = changed.to_bytes().unwrap();
    let memory = Reader::from_bytes(bytes.clone()).unwrap();
    let constant = memory.tensor("large 3").unwrap().stored_extent().unwrap();
    for offset in [constant.offset(), constant.end() - 4] {
        let mut bytes = bytes.clone();
        let text = bytes.windows(9).position(|part| part == b"elsewhere").unwrap() as u64 - 4;
        let field = reference(&bytes, text);
        let at = usize::try_from(offset).unwrap();
        bytes[at..at + 11].copy_from_slice(b"\x06\0\0\0inside\0");
        let distance = u32::try_from(at - field).unwrap();
        bytes[field..field + 4].copy_from_slice(&distance.to_le_bytes());
        let memory = Reader::from_bytes(bytes.clone()).unwrap();
        assert_eq!(memory.model().description.as_deref(), Some("inside"));
        let (reader, _) = by_position(&bytes);
        assert_eq!(reader.model(), memory.model());
        assert!(!reader.model().buffers.iter().any(|buffer| buffer.is_unread));
    }
}

/// Bytes that are those of metadata, too, are read.
#[test]
fn metadata_among_them() {
    let mut model = model(Schema::Circle);
    let buffer = model.buffers.len() as u32;
    model.buffers.push(Buffer { data: vec![1; 16].into(), ..Buffer::default() });
    model.metadata.push(Metadata { name: Some("shared".to_owned()), buffer });
    let mut bytes = model.to_bytes().unwrap();
    let memory = Reader::from_bytes(bytes.clone()).unwrap();
    let list = memory.tensor("large 5").unwrap().stored_extent().unwrap().offset() - 4;
    let old = bytes.windows(16).rposition(|part| part == [1; 16]).unwrap() as u64 - 4;
    let field = reference(&bytes, old);
    let distance = u32::try_from(list - field as u64).unwrap();
    bytes[field..field + 4].copy_from_slice(&distance.to_le_bytes());
    let (reader, _) = by_position(&bytes);
    assert_eq!(reader.model().metadata("shared").unwrap().len(), LEN);
    assert_eq!(reader.diagnoses(), Reader::from_bytes(bytes).unwrap().diagnoses());
}

/// What stands behind the tables is not read.
#[test]
fn files_behind_the_tables() {
    let mut bytes = written(Schema::Tflite);
    bytes.resize(bytes.len() + (16 << 20), 7);
    let (_, store) = by_position(&bytes);
    assert!(store.total() < (LEN + (2 << 20)) as u64, "{}", store.total());
}

/// Wherever a byte of the tables is changed, the file says the same from memory and by position.
#[test]
fn changed_tables() {
    let mut bytes = written(Schema::Circle);
    let memory = Reader::from_bytes(bytes.clone()).unwrap();
    let tables = memory.tensor("large 0").unwrap().stored_extent().unwrap().offset() as usize;
    let mut opened = 0;
    for at in 0..tables {
        for new in [bytes[at] ^ 1, bytes[at] ^ 0x40, 0, 0xff] {
            let old = std::mem::replace(&mut bytes[at], new);
            same(&bytes, &mut opened);
            bytes[at] = old;
        }
    }
    assert!(opened > 1000, "{opened}");
}

#[track_caller]
fn same(bytes: &[u8], opened: &mut usize) {
    let store = CountingSource::new(bytes);
    let found = Reader::from_source(store.source());
    let expected = Reader::from_bytes(bytes.to_vec());
    match (found, expected) {
        (Ok(found), Ok(expected)) => {
            *opened += 1;
            let mut model = found.model().clone();
            for buffer in model.buffers.iter_mut().filter(|buffer| buffer.is_unread) {
                let extent = Extent::new(buffer.offset, buffer.size).unwrap();
                let data = found.source().read(extent, "buffer").unwrap();
                *buffer = Buffer { data, ..Buffer::default() };
            }
            assert!(model == *expected.model());
        }
        (Err(found), Err(expected)) => assert_eq!(found.to_string(), expected.to_string()),
        (found, expected) => panic!("{found:?}, expected {expected:?}"),
    }
}
