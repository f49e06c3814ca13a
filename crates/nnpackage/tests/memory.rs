//! Claims of a file do not take memory, and no more time than its length: the allocator of this
//! program counts.

use nnpackage::{
    Builder, Config, ConfigChange, Edit, Manifest, ModelType, Partition, Reader, WriteOptions,
    Writer,
    tensor_core::{Limits, ReadAt, Source},
};
use test_support::memory::{Counting, measure};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the most memory that something took, in bytes.
fn peak(run: impl FnOnce()) -> u64 {
    measure(run).bytes
}

/// Repeats a text until it has 256 KiB, a quarter of what a document may have.
fn long(start: &str, part: &str, end: &str) -> Vec<u8> {
    let times = ((1 << 18) - start.len() - end.len()) / part.len();
    [start, &part.repeat(times), end].concat().into_bytes()
}

#[test]
fn long_documents() {
    for (start, part, end) in [
        ("{\"models\": [", "\"\",", "]}"),
        ("{\"models\": [", "[],", "]}"),
        ("{\"models\": [", "[1,],", "1]}"),
        ("{\"models\": [", "/**/", "1]}"),
        ("{", "\"models\":1,", "\"models\": [1]}"),
        ("{", "\"a\":1,", "\"models\": [1]}"),
        ("{", "\"configs\":[1],", "\"models\": [1]}"),
        ("{", "\"configs\":[1],\"a\":1,", "\"models\": [1]}"),
        ("{\"models\": [1], \"pkg-inputs\": [", "\"0:0:0\",", "1]}"),
        ("{\"models\": [1], \"model-connect\": [", "{\"from\":1,\"to\":[1]},", "1]}"),
        ("{\"models\": [", "\"é\",", "1]}"),
        ("", "[", ""),
        ("", "{\"a\":", ""),
        ("", "\"", ""),
        ("", "/*", ""),
        (
            "{\"source\":{\"file\":\"\",\"inputs\":[",
            "\"a\",",
            "\"a\"],\"outputs\":[]},\"parts\":[]}",
        ),
    ] {
        let document = long(start, part, end);
        let limits = Limits::default();
        let taken = peak(|| {
            if let Ok(mut manifest) = Manifest::parse(&document, &limits) {
                manifest.models.push("new".to_owned());
                (manifest.configs, manifest.connections) = (Vec::new(), Vec::new());
                drop(manifest.edit(&document, &limits).unwrap());
            }
            let _ = Partition::parse(&document, &limits).map(|partition| partition.wiring());
            drop(Config::parse(&document));
        });
        assert!(taken < 64 << 20, "{taken} bytes for {start}{part}");
    }
}

#[test]
fn long_configurations() {
    for part in ["\n", "=\n", "a=1\n", "=", "#", "a"] {
        let taken = peak(|| drop(Config::parse(&long("", part, ""))));
        assert!(taken < 16 << 20, "{taken} bytes for {part:?}");
    }
}

/// More zeros than may be in memory.
#[derive(Debug)]
struct Zeros;

impl ReadAt for Zeros {
    fn len(&self) -> u64 {
        1 << 27
    }

    fn read_exact_at(&self, _: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        buffer.fill(0);
        Ok(())
    }
}

#[test]
fn models_are_never_whole_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let [built, edited] = ["built.zip", "edited.zip"].map(|name| folder.path().join(name));
    let options = WriteOptions::default();
    let taken = peak(|| {
        let mut builder = Builder::default();
        let zeros = Source::from_read_at(Zeros);
        builder.model_as("zeros.bin", zeros, ModelType::Bin).unwrap();
        builder.digests(true);
        options.create(&built, &builder).unwrap().finish().unwrap();
    });
    assert!(taken < 32 << 20, "{taken} bytes to build");
    let taken = peak(|| {
        let mut edit = Edit::new(&Reader::open(&built).unwrap());
        edit.change_config(&[ConfigChange::set("NUM_THREADS", "1")]).unwrap();
        options.create(&edited, &edit).unwrap().finish().unwrap();
        Writer::options().create_folder(folder.path().join("folder"), &edit).unwrap();
    });
    assert!(taken < 32 << 20, "{taken} bytes to edit");
}
