//! Every file of `testdata/ztensor/invalid`, and of `v2/invalid`, gets the verdict of `cases.toml`, within its bounds of
//! memory and time; and no cut or change of a small file does more than give an error.

#![cfg(all(feature = "digest", feature = "zstd"))]

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use test_support::{
    cases::cases,
    files, hex,
    memory::{Counting, measure},
    mutations, testdata, truncations,
};
use ztensor::{
    Compression, Coo, Format, Generation, Reader, Role, Storage, Tensor, Version, WriteOptions,
    Writer,
    tensor_core::{
        DType, Profile, Severity, TensorBuf,
        digest::{Algorithm, Digest},
    },
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
            // A type that nobody knows is no fault of a file of generation 2.
            Err(error) if reader.generation() == Generation::V2 && error.rule() == "zt/dtype" => {}
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

#[test]
fn every_invalid_file_gets_its_verdict() {
    let (first, second) = (cases("ztensor"), cases("ztensor/v2"));
    assert_eq!((first.len(), second.len()), (38, 112));
    let mut wrong = Vec::new();
    for case in first.into_iter().chain(second) {
        let bytes = case.bytes();
        let taken = measure(|| attempt(&bytes));
        let (verdict, message) = match (case.text("expect"), &taken.result) {
            ("open-error", Outcome::NotOpened(message))
            | ("object-error", Outcome::NotOpened(message) | Outcome::NotRead(message))
            | ("verify-error", Outcome::NotValid(message)) => (true, message.clone()),
            ("ok", Outcome::Fine(read)) => (hex(read) == case.text("decoded"), String::new()),
            ("either", Outcome::Fine(_)) => (true, String::new()),
            _ => (false, String::new()),
        };
        let within = taken.bytes <= case.bytes_allowed() && taken.time <= case.time_allowed();
        if !verdict || !within || message != case.text("message") {
            wrong.push(format!("{}: {taken:?}", case.file()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A sparse matrix whose values decode to 256 MiB, with the roles that are given
/// beside them.
fn bomb(roles: &[Role], shape: [u64; 2]) -> Vec<u8> {
    let storage = Storage::default().compression(Compression::Zstd { level: 3, frame: None });
    let mut writer = Writer::options().storage(storage).write_to(Vec::new()).unwrap();
    let mut object = writer.object("s").unwrap();
    let mut values = object.component(Role::Values, DType::F64).unwrap();
    let zeros = vec![0; 1 << 20];
    (0..256).for_each(|_| values.write_all(&zeros).unwrap());
    values.finish().unwrap();
    for role in roles {
        object.put(role.clone(), DType::U64, &[0; 24]).unwrap();
    }
    object.finish(Format::Other("sparse_css".to_owned()), shape).unwrap();
    let mut bytes = writer.finish().unwrap();
    let at = bytes.windows(10).position(|word| word == b"sparse_css").unwrap();
    bytes[at + 9] = b'r';
    bytes
}

#[test]
fn values_beyond_the_shape_are_not_decoded() {
    for (roles, expected) in [
        (&[Role::Indptr][..], "object \"s\" of format \"sparse_csr\" has no component \"indices\""),
        (
            &[Role::Indptr, Role::Indices],
            "component \"values\" of object \"s\" at byte 64 decodes to more than 8388608 bytes, \
             expected 8388608 bytes",
        ),
    ] {
        let reader = Reader::from_bytes(bomb(roles, [2, 3])).unwrap();
        let taken = measure(|| reader.tensor("s").unwrap().csr());
        assert_eq!(taken.result.unwrap_err().to_string(), expected);
        assert!(taken.bytes < 24 << 20, "{} bytes of memory", taken.bytes);
        assert!(!reader.validate().is_valid());
    }
}

/// What may turn out to equal another part is held back in memory no further than to 16 MiB.
#[test]
fn parts_that_start_alike_take_bounded_memory() {
    let piece = vec![0; 1 << 20];
    let taken = measure(|| {
        let mut writer =
            WriteOptions::default().version(Version::V2).write_to(std::io::sink()).unwrap();
        for name in ["a", "b"] {
            let mut object = writer.object(name).unwrap();
            let mut part = object.component(Role::Data, DType::U8).unwrap();
            (0..64).for_each(|_| part.write_all(&piece).unwrap());
            part.finish().unwrap();
            object.finish(Format::Dense, [64 << 20]).unwrap();
        }
        writer.finish().unwrap();
    });
    assert!(taken.bytes < 40 << 20, "{} bytes of memory", taken.bytes);
}

#[test]
fn parts_that_expand_a_lot_are_not_held() {
    let reader = Reader::from_bytes(bomb(&[Role::Indptr, Role::Indices], [2, 1 << 40])).unwrap();
    let taken = measure(|| reader.tensor("s").unwrap().dense_reader().map(drop));
    let error = taken.result.unwrap_err().to_string();
    assert!(error.starts_with("parts of a sparse tensor in bytes is "), "{error}");
    assert!(taken.bytes < 8 << 20, "{} bytes of memory", taken.bytes);
}

/// A stored element and 64 MiB of zeros: they are given out, and not held.
#[test]
fn zeros_of_sparse_tensors_take_no_memory() {
    let values = TensorBuf::from_slice([1], &[1.5_f64]).unwrap();
    let coords = TensorBuf::from_slice([2], &[1000_u64, 3]).unwrap();
    let coo = Coo::from_parts([1 << 10, 1 << 13], values, coords).unwrap();
    let (at, value) = ((1000 * (1 << 13) + 3) * 8, 1.5_f64.to_le_bytes());
    for version in [Version::V1_1, Version::V2] {
        let mut writer = WriteOptions::default().version(version).write_to(Vec::new()).unwrap();
        writer.add_coo("s", &coo).unwrap();
        let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
        let taken = measure(|| {
            let mut stream = reader.tensor("s").unwrap().dense_reader().unwrap();
            let (zeros, mut piece, mut before) = (vec![0; 1 << 20], vec![1; 1 << 20], 0);
            loop {
                let read = stream.read(&mut piece).unwrap();
                match &piece[..read] {
                    [] => return before,
                    stored if before == at => assert_eq!(stored, value),
                    stored => assert!(*stored == zeros[..read]),
                }
                before += read;
            }
        });
        assert_eq!(taken.result, 64 << 20);
        assert!(taken.bytes < 4 << 20, "{} bytes of memory", taken.bytes);
    }
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
            let memory = measure(|| attempt(changed)).bytes;
            assert!(memory < 64 << 20, "{memory} bytes of memory");
        });
    }
}

/// Changes a byte of a file of generation 2, and makes the hash of the manifest right again.
fn rehashed(file: &[u8], at: usize, value: u8) -> Vec<u8> {
    let mut bytes = file.to_vec();
    bytes[at] = value;
    let footer = bytes.len() - 40;
    let start = u64::from_le_bytes(*bytes[footer..].first_chunk().unwrap());
    let start = usize::try_from(start).unwrap();
    if let Digest::Xxh3(hash) = Algorithm::Xxh3.digest(&bytes[start..footer]) {
        bytes[footer + 16..footer + 24].copy_from_slice(&hash.to_le_bytes());
    }
    bytes
}

#[test]
fn changed_bytes_of_generation_2_give_errors_only() {
    let mut valid = 0;
    for name in ["v2_mixed_4096.zt", "shards.zt"] {
        let file = std::fs::read(testdata("ztensor/v2/valid").join(name)).unwrap();
        let manifest = Reader::from_bytes(file.clone()).unwrap().manifest().offset();
        let blobs = (24576..24768).filter(|_| name.starts_with("v2"));
        let manifest = usize::try_from(manifest).unwrap()..file.len() - 40;
        for at in blobs.chain(manifest) {
            for value in [0, 0x80, 0xff, file[at] ^ 1, file[at].wrapping_add(1)] {
                let changed = rehashed(&file, at, value);
                let taken = measure(|| attempt(&changed));
                assert!(taken.bytes < 64 << 20, "{name}: {at}: {} bytes", taken.bytes);
                valid += u32::from(matches!(taken.result, Outcome::Fine(_)));
            }
        }
    }
    // Of 8,000 changes: names, free texts, and layouts that nobody knows then.
    assert!(valid < 1200, "{valid}");
}

/// A file of one part whose table claims 100,000 frames of 16 MiB.
fn frame_bomb() -> Vec<u8> {
    let mut stored = vec![0; 800_000];
    stored.extend([0x5e, 0x2a, 0x4d, 0x18]);
    stored.extend(800_009_u32.to_le_bytes());
    for _ in 0..100_000 {
        stored.extend(8_u32.to_le_bytes());
        stored.extend((16_u32 << 20).to_le_bytes());
    }
    stored.extend(100_000_u32.to_le_bytes());
    stored.extend([0, 0xb1, 0xea, 0x92, 0x8f]);
    let claim = (100_000_u64 << 24).to_be_bytes();
    let mut manifest =
        b"\xa1\x67objects\xa1\x61w\xa3\x65parts\xa1\x64data\xa4\x64blob\x82\x19\x10\x00\x1a"
            .to_vec();
    manifest.extend(u32::try_from(stored.len()).unwrap().to_be_bytes());
    manifest.extend(b"\x65dtype\x62u8\x68encoding\x72zt.zstd-seekable/1\x6edecoded_length\x1b");
    manifest.extend(claim);
    manifest.extend(b"\x65shape\x81\x1b");
    manifest.extend(claim);
    manifest.extend(b"\x66layout\x65dense");
    let mut file = b"\x89ZT2\r\n\x1a\n".to_vec();
    file.resize(4096, 0);
    file.extend(&stored);
    file.resize(file.len().next_multiple_of(4096), 0);
    let offset = file.len() as u64;
    file.extend(&manifest);
    file.extend(offset.to_le_bytes());
    file.extend((manifest.len() as u64).to_le_bytes());
    file.extend([0; 8]);
    file.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(b"\x89ZT2\r\n\x1a\n");
    rehashed(&file, 0, 0x89)
}

#[test]
fn tables_that_claim_much_are_refused_early() {
    // The reader of the format's own library allocates what they claim, and aborts.
    let reader = Reader::from_bytes(frame_bomb()).unwrap();
    let tensor = reader.tensor("w").unwrap();
    let blob = tensor.blob(&Role::Data).unwrap().unwrap();
    assert_eq!(blob.decoded_len(), Some(1_677_721_600_000));
    let attempts: [(&str, &dyn Fn() -> String); 5] = [
        ("bytes", &|| tensor.bytes().unwrap_err().rule().to_owned()),
        ("part", &|| blob.bytes_at(0..100).unwrap_err().rule().to_owned()),
        ("part at the end", &|| {
            blob.bytes_at(1_677_721_599_990..1_677_721_600_000).unwrap_err().rule().to_owned()
        }),
        ("verify", &|| {
            let error = std::io::copy(&mut blob.stream().unwrap(), &mut std::io::sink());
            blob.stream_fault(error.unwrap_err()).rule().to_owned()
        }),
        ("validate", &|| reader.validate().findings()[0].rule.to_string()),
    ];
    for (what, attempt) in attempts {
        let taken = measure(attempt);
        assert!(taken.bytes < 16 << 20, "{what}: {} bytes", taken.bytes);
        assert!(taken.time < Duration::from_secs(5), "{what}: {:?}", taken.time);
        assert!(["zt/limit", "zt/zstd"].contains(&&*taken.result), "{what}: {}", taken.result);
    }
    // A claim below the limits gets memory as it proves true.
    let file = std::fs::read(testdata("ztensor/v2/invalid/frames_no_checksum.zt")).unwrap();
    let reader = Reader::from_bytes(file).unwrap();
    let taken = measure(|| reader.tensor("w").unwrap().bytes().unwrap_err().to_string());
    assert!(taken.bytes < 4 << 20, "{} bytes", taken.bytes);
}

#[test]
fn recovery_of_generation_2_is_bounded() {
    let mut magics = b"\x89ZT2\r\n\x1a\n".repeat(1 << 17);
    magics.push(0);
    let mut footers = std::fs::read(testdata("ztensor/v2/valid/v2_mixed_4096.zt")).unwrap();
    let footer = footers[footers.len() - 40..].to_vec();
    footers.truncate(8);
    footers.resize(1 << 20, 0x81);
    for index in 0..10_000_u64 {
        let mut footer = footer.clone();
        footer[..8].copy_from_slice(&4096_u64.to_le_bytes());
        footer[8..16].copy_from_slice(&((1 << 20) - 4096 + 40 * index).to_le_bytes());
        footers.extend(footer);
    }
    footers.push(0);
    for bytes in [magics, footers] {
        let open = || Reader::options().profile(Profile::Lenient).from_bytes(bytes).map(drop);
        let taken = measure(open);
        assert!(taken.bytes < 16 << 20 && taken.time < Duration::from_secs(5), "{taken:?}");
        taken.result.unwrap_err();
    }
}

#[test]
fn files_inside_blobs_are_not_recovered() {
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
        let taken = measure(open);
        assert!(taken.bytes < 16 << 20 && taken.time < Duration::from_secs(5), "{taken:?}");
        taken.result.unwrap_err();
    }
}

#[test]
fn long_names_are_not_repeated() {
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

#[test]
fn findings_of_many_objects_are_not_held() {
    fn text(text: &str, out: &mut Vec<u8>) {
        out.push(0x60 + text.len() as u8);
        out.extend(text.as_bytes());
    }
    let (objects, keys) = (1000_u16, 100_u8);
    let mut manifest = vec![0xa2];
    text("version", &mut manifest);
    text("1.1.0", &mut manifest);
    text("objects", &mut manifest);
    manifest.push(0xb9);
    manifest.extend(objects.to_be_bytes());
    for object in 0..objects {
        text(&format!("{object}"), &mut manifest);
        manifest.extend([0xb8, 3 + keys]);
        for (key, value) in [("shape", &b"\x80"[..]), ("format", b"\x61x"), ("components", b"\xa0")]
        {
            text(key, &mut manifest);
            manifest.extend(value);
        }
        for key in 0..keys {
            text(&format!("{key}"), &mut manifest);
            manifest.push(0);
        }
    }
    let mut file = b"ZTEN1000".to_vec();
    file.extend(&manifest);
    file.extend((manifest.len() as u64).to_le_bytes());
    file.extend(b"ZTEN1000");
    let reader = Reader::options().threads(std::num::NonZeroUsize::MIN).from_bytes(file).unwrap();
    let taken = measure(|| reader.lint());
    assert_eq!(taken.result.omitted(), u64::from(objects) * u64::from(keys) - 1000);
    assert!(taken.bytes < 16 << 20, "{} bytes of memory", taken.bytes);
}
