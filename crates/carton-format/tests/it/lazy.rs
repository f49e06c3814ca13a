//! What is read of a carton, and when.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use carton_format::{Reader, Sha256};
use tensor_core::{ErrorKind, ReadAt, Source, Verified, Verify};
use test_support::{CountingSource, zip::Zip};

/// A carton in which the parts stand far apart, in the order of this list, and `MANIFEST` and
/// `LINKS` at the end.
struct Apart {
    zip: Zip,
    bytes: Vec<u8>,
}

impl Apart {
    fn new() -> Self {
        let (toml, index) = ("carton.toml", "tensor_data/index.toml");
        let pad = vec![7; 100_000];
        let files: [(&str, &[u8]); 8] = [
            ("tensor_data/b.bin", &[2; 5000]),
            ("model/1", &pad),
            (toml, TOML.as_bytes()),
            ("model/2", &pad),
            (index, INDEX.as_bytes()),
            ("model/3", &pad),
            ("tensor_data/a.bin", &[1; 5000]),
            ("model/4", &pad),
        ];
        let mut lines: Vec<String> = files
            .iter()
            .map(|(path, content)| format!("{path}={}\n", Sha256::digest(content)))
            .collect();
        lines.sort();
        let manifest = lines.concat();
        let links = b"version = 1\n\n[urls]\n";
        let last: [(&str, &[u8]); 2] = [("MANIFEST", manifest.as_bytes()), ("LINKS", links)];
        let zip = Zip::of(&[&files[..], &last[..]].concat());
        let bytes = zip.to_bytes();
        Self { zip, bytes }
    }

    /// Returns where an entry stands, local header included.
    fn part(&self, name: &str) -> Range<u64> {
        let is_it = |entry: &test_support::zip::Entry| entry.central.name == name.as_bytes();
        let index = self.zip.entries.iter().position(is_it).unwrap();
        let end = self.zip.data_offset(index) + self.zip.entries[index].data.len();
        self.zip.header_offset(index) as u64..end as u64
    }
}

/// Asserts what was read since the last time; the header of the entry behind a part may be.
#[track_caller]
fn reads_only(store: &CountingSource, parts: &[Range<u64>]) {
    const HEADER: u64 = 30 + 128;
    for read in store.take_reads() {
        let is_in = |part: &Range<u64>| {
            part.start <= read.offset() && read.end() <= part.end.max(part.start + HEADER)
        };
        assert!(parts.iter().any(is_in), "{read:?} is in none of {parts:?}");
    }
}

#[test]
fn each_call_reads_its_part() {
    let apart = Apart::new();
    let store = CountingSource::new(&apart.bytes);
    let len = apart.bytes.len() as u64;
    let reader = Reader::from_source(store.source()).unwrap();
    // As far back as a comment may reach, or the longest end records.
    let tail = len - 65_557 - 76..len;
    assert!(tail.start > apart.part("model/4").start && tail.start < apart.part("MANIFEST").start);
    reads_only(&store, &[tail]);

    reader.description().unwrap();
    reads_only(&store, &[apart.part("carton.toml")]);
    reader.description().unwrap();
    reads_only(&store, &[]);

    let tensor = reader.tensor("a").unwrap().unwrap();
    reads_only(&store, &[apart.part("tensor_data/index.toml")]);
    assert_eq!((tensor.name(), tensor.shape().unwrap().dims()), ("a", &[5000][..]));
    assert!(reader.tensor("b").unwrap().is_some() && reader.tensor("c").unwrap().is_none());
    reads_only(&store, &[]);

    assert_eq!(tensor.bytes().unwrap(), [1; 5000][..]);
    reads_only(&store, &[apart.part("tensor_data/a.bin")]);
    let handles: Vec<_> = reader.files().map(|file| (file.path(), file.len().unwrap())).collect();
    assert_eq!(handles.len(), 8);
    reads_only(&store, &[]);
}

#[test]
fn validation_reads_every_byte_once() {
    let apart = Apart::new();
    let store = CountingSource::new(&apart.bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    let before = store.total();
    let report = reader.validate();
    assert!(report.is_valid(), "{report:?}");
    // Documents are read to be parsed, too, and headers to be compared.
    let documents = (TOML.len() + INDEX.len()) as u64;
    let headers = apart.zip.entries.len() as u64 * 4 * (30 + 128);
    let read = store.total() - before;
    let len = apart.bytes.len() as u64;
    assert!(read < len + documents + headers, "{read} bytes of {len}");
}

#[test]
fn tensors_in_memory_are_slices_of_it() {
    let apart = Apart::new();
    let bytes = Bytes::from(apart.bytes.clone());
    for verify in [Verify::Never, Verify::Once, Verify::Always] {
        let source = Source::from_bytes(bytes.clone());
        let reader = Reader::options().verify(verify).from_source(source).unwrap();
        let tensor = reader.tensor("b").unwrap().unwrap();
        let found = tensor.bytes().unwrap();
        let extent = tensor.extent().unwrap().unwrap();
        let expected = &bytes[extent.offset() as usize..extent.end() as usize];
        assert!(std::ptr::eq(&*found, expected), "{verify:?}");
        assert_eq!(found, [2; 5000][..]);
    }
}

#[test]
fn digests_are_compared_once_and_never_unasked() {
    let mut apart = Apart::new();
    let end = apart.part("tensor_data/b.bin").end as usize;
    apart.bytes[end - 1] ^= 1;
    let open = |verify| Reader::options().verify(verify).from_bytes(apart.bytes.clone()).unwrap();
    let reader = open(Verify::Never);
    let tensor = reader.tensor("b").unwrap().unwrap();
    assert_eq!(tensor.bytes().unwrap()[4999], 3);
    assert_eq!(tensor.verify().unwrap_err().rule(), "zip/crc");
    let reader = open(Verify::Once);
    for _ in 0..2 {
        let tensor = reader.tensor("b").unwrap().unwrap();
        assert_eq!(tensor.bytes().unwrap_err().rule(), "carton/digest");
    }
}

/// What a store gives first is right, and what it gives later is not.
#[test]
fn every_read_is_compared_if_asked() {
    let apart = Apart::new();
    let end = apart.part("tensor_data/b.bin").end as usize;
    for (verify, is_found) in [(Verify::Once, false), (Verify::Always, true)] {
        let store =
            Changing { bytes: apart.bytes.clone(), at: end - 1, is_changed: Arc::default() };
        let is_changed = Arc::clone(&store.is_changed);
        let reader = Reader::options().verify(verify);
        let reader = reader.from_source(Source::from_read_at(store)).unwrap();
        let tensor = reader.tensor("b").unwrap().unwrap();
        let mut buffer = vec![0; 5000];
        tensor.read_into(&mut buffer).unwrap();
        assert_eq!(buffer, [2; 5000]);
        is_changed.store(true, Ordering::Relaxed);
        let (bytes, read) = (tensor.bytes().err(), tensor.read_into(&mut buffer).err());
        let rules = [bytes, read].map(|error| error.map(|error| error.rule()));
        assert_eq!(rules, [is_found.then_some("carton/digest"); 2], "{verify:?}");
    }
}

/// A store whose content changes when it is told to.
struct Changing {
    bytes: Vec<u8>,
    at: usize,
    is_changed: Arc<AtomicBool>,
}

impl ReadAt for Changing {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let start = offset as usize;
        buffer.copy_from_slice(&self.bytes[start..start + buffer.len()]);
        let place = self.at.checked_sub(start).and_then(|place| buffer.get_mut(place));
        if let Some(byte) = place.filter(|_| self.is_changed.load(Ordering::Relaxed)) {
            *byte ^= 1;
        }
        Ok(())
    }
}

#[test]
fn tensors_are_read_into_the_caller_s_memory() {
    let apart = Apart::new();
    let store = CountingSource::new(&apart.bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    let tensor = reader.tensor("a").unwrap().unwrap();
    let mut buffer = [0; 5000];
    tensor.read_into(&mut buffer).unwrap();
    assert_eq!(buffer, [1; 5000]);
    assert_eq!(tensor.read().unwrap().as_slice::<i8>().unwrap(), [1; 5000]);
    assert_eq!(tensor.verify().unwrap(), Verified::Digest);
    let error = tensor.read_into(&mut buffer[1..]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn lint_reads_no_content() {
    let apart = Apart::new();
    let store = CountingSource::new(&apart.bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    let before = store.total();
    let report = reader.lint();
    assert!(report.is_valid(), "{report:?}");
    let read = store.total() - before;
    assert!(read < 20_000, "{read} bytes");
}

/// Another file under the name of one that was read is found by the next read.
#[test]
fn folders_are_compared_at_every_read() {
    let folder = tempfile::tempdir().unwrap();
    let apart = Apart::new();
    for entry in &apart.zip.entries {
        let path = folder.path().join(std::str::from_utf8(&entry.central.name).unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &entry.data).unwrap();
    }
    let reader = Reader::open(folder.path()).unwrap();
    let file = reader.file("tensor_data/a.bin").unwrap();
    assert_eq!(file.bytes().unwrap(), [1; 5000][..]);
    std::fs::write(folder.path().join("tensor_data/a.bin"), [3; 5000]).unwrap();
    assert_eq!(file.bytes().unwrap_err().rule(), "carton/digest");
}

const TOML: &str = "\
spec_version = 1

[runner]
runner_name = \"noop\"
required_framework_version = \"=1.2.3\"
runner_compat_version = 1
";

const INDEX: &str = "\
[[tensor]]
name = \"a\"
dtype = \"int8\"
shape = [5000]
file = \"a.bin\"

[[tensor]]
name = \"b\"
dtype = \"int8\"
shape = [5000]
file = \"b.bin\"
";
