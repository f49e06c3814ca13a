//! Every file of `testdata/ztensor/invalid` gets the verdict of `cases.toml`, within its bounds of
//! memory and time; and no cut or change of a small file does more than give an error.
#![expect(unsafe_code, reason = "memory is counted by the allocator of this test")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::{Duration, Instant},
};

use serde_json::Value as Json;
use test_support::{files, hex, mutations, testdata, truncations};
use ztensor::{
    Format, Reader, Tensor,
    tensor_core::{Profile, Severity},
};

/// Counts the bytes that each thread holds, and the most that it held.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = HELD.try_with(|held| {
            held.set(held.get().saturating_add(layout.size()));
            let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
        });
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(layout.size())));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs something and returns the most memory that it held, in bytes, and how long it took.
fn measured<T>(run: impl FnOnce() -> T) -> (T, usize, Duration) {
    let before = HELD.get();
    MOST.set(before);
    let start = Instant::now();
    let result = run();
    (result, MOST.get().saturating_sub(before), start.elapsed())
}

/// Reads the elements of an object in the way of its format.
fn elements(tensor: Tensor<'_>) -> ztensor::Result<Vec<u8>> {
    match tensor.object()?.format {
        Format::Dense => tensor.bytes().map(|bytes| bytes.to_vec()),
        Format::SparseCsr => tensor.csr().map(|csr| csr.values().bytes().to_vec()),
        Format::SparseCoo => tensor.coo().map(|coo| coo.values().bytes().to_vec()),
        Format::QuantizedGroup => tensor.quantized().map(|q| q.packed_weight().bytes().to_vec()),
        _ => tensor
            .blobs()?
            .iter()
            .map(|blob| blob.bytes().map(|bytes| bytes.to_vec()))
            .collect::<ztensor::Result<Vec<_>>>()
            .map(|parts| parts.concat()),
    }
}

/// What became of a file.
#[derive(Debug)]
enum Outcome {
    NotOpened(String),
    NotRead(String),
    NotValid(String),
    Fine(Vec<u8>),
}

fn attempt(bytes: &[u8]) -> Outcome {
    let reader =
        match Reader::options().threads(std::num::NonZeroUsize::MIN).from_bytes(bytes.to_vec()) {
            Ok(reader) => reader,
            Err(error) => return Outcome::NotOpened(error.to_string()),
        };
    let mut read = Vec::new();
    let mut first_error = None;
    for tensor in reader.tensors() {
        match elements(tensor) {
            Ok(bytes) => read.extend(bytes),
            Err(error) => first_error = first_error.or(Some(error.to_string())),
        }
    }
    let report = reader.validate();
    if let Some(error) = first_error {
        assert!(!report.is_valid(), "{error}, but validation finds nothing");
        return Outcome::NotRead(error);
    }
    let finding = report.findings().iter().find(|finding| finding.severity == Severity::Error);
    match finding {
        Some(finding) => Outcome::NotValid(finding.message.clone()),
        None => Outcome::Fine(read),
    }
}

fn cases() -> Vec<Json> {
    let text = std::fs::read_to_string(testdata("ztensor/cases.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()["case"].as_array().unwrap().clone()
}

#[test]
fn every_invalid_file_gets_its_verdict() {
    let cases = cases();
    assert_eq!(cases.len(), 39);
    let mut wrong = Vec::new();
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let file = text("file");
        let bytes = std::fs::read(testdata("ztensor/invalid").join(&file)).unwrap();
        let (outcome, memory, time) = measured(|| attempt(&bytes));
        let (verdict, message) = match (text("expect").as_str(), &outcome) {
            ("open-error", Outcome::NotOpened(message))
            | ("object-error", Outcome::NotOpened(message) | Outcome::NotRead(message))
            | ("verify-error", Outcome::NotValid(message)) => (true, message.clone()),
            ("ok", Outcome::Fine(read)) => (hex(read) == text("decoded"), String::new()),
            ("either", Outcome::Fine(_)) => (true, String::new()),
            _ => (false, String::new()),
        };
        let number = |key: &str, default: u64| case[key].as_u64().unwrap_or(default);
        let within = memory as u64 <= number("max_rss_mb", 64) << 20
            && time <= Duration::from_secs(number("max_seconds", 5));
        if !verdict || !within || message != text("message") {
            wrong.push(format!("{file}: {outcome:?}, {memory} bytes, {time:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Small valid files of every kind.
fn small_files() -> Vec<(String, Vec<u8>)> {
    ["v1.1-ref", "v1.1-hand", "legacy"]
        .into_iter()
        .flat_map(|folder| files(&format!("ztensor/valid/{folder}"), "zt"))
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .filter(|(_, bytes)| bytes.len() < 700)
        .collect()
}

#[test]
fn every_truncation_is_an_error() {
    for (file, bytes) in small_files() {
        truncations(&bytes, |cut| {
            let outcome = attempt(cut);
            let fine = matches!(outcome, Outcome::Fine(_));
            assert!(!fine, "{file} of {} bytes reads", cut.len());
        });
    }
}

#[test]
fn changed_bytes_give_errors_only() {
    for (_, bytes) in small_files() {
        mutations(&bytes, |changed| {
            let (_, memory, _) = measured(|| attempt(changed));
            assert!(memory < 64 << 20, "{memory} bytes of memory");
        });
    }
}

#[test]
fn files_inside_blobs_are_not_recovered() {
    use ztensor::{Writer, tensor_core::TensorBuf};
    let file = |tensors: &[(&str, &[u8])]| {
        let mut writer = Writer::new(Vec::new());
        for (name, bytes) in tensors {
            let tensor = TensorBuf::from_slice([bytes.len() as u64], bytes).unwrap();
            writer.add(name, &tensor).unwrap();
        }
        writer.finish().unwrap()
    };
    for inner in [file(&[]), file(&[("inner", &[7; 100])])] {
        let mut outer = file(&[("a", &[1; 1000]), ("embedded", &inner), ("z", &[2; 5000])]);
        outer.truncate(outer.len() - 20);
        let error = Reader::options().profile(Profile::Lenient).from_bytes(outer).unwrap_err();
        assert!(error.to_string().starts_with("footer at byte"), "{error}");
    }
}

#[test]
fn recovery_is_bounded() {
    let magics = b"ZTEN1000".repeat(1 << 17);
    let manifest = [&b"\xa1\x61x\x9a\x00\x07\xff\xff"[..], &[0; 0x7_ffff]].concat();
    let mut footers = [&b"ZTEN1000"[..], &manifest].concat();
    for index in 0..1000_u64 {
        let size = manifest.len() as u64 + 16 * index;
        footers.extend(size.to_le_bytes());
        footers.extend(b"ZTEN1000");
    }
    footers.push(0);
    for bytes in [magics, footers] {
        let open = || Reader::options().profile(Profile::Lenient).from_bytes(bytes).map(drop);
        let (result, memory, time) = measured(open);
        result.unwrap_err();
        assert!(memory < 16 << 20 && time < Duration::from_secs(5), "{memory} bytes, {time:?}");
    }
}

#[test]
fn long_names_are_not_repeated() {
    use ztensor::{Writer, tensor_core::TensorBuf};
    let name = "n".repeat(1 << 20);
    let mut writer = Writer::new(Vec::new());
    writer.add(&name, &TensorBuf::from_slice([1], &[1_u8]).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap();
    // The one stored byte becomes part of the header's padding, and the blob misaligned.
    let at = bytes.windows(8).rposition(|word| word == b"offset\x18\x40").unwrap();
    bytes[at + 7] = 0x41;
    let report = Reader::from_bytes(bytes).unwrap().validate();
    assert!(!report.is_valid());
    let longest = report.findings().iter().map(|f| f.message.len()).max();
    assert!(longest < Some(1000), "{longest:?}");
}
