//! Every file of `testdata/ztensor/v2/valid` reads back exactly as `expected.json` says.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value as Json;
use test_support::{hex, testdata};
use ztensor::{
    Coo, Encoding, Error, Format, Generation, Reader, Role, Rule, Shard, ShardFiles, Value,
    tensor_core::{
        Finding, Limits, Profile, ReadAt, Source, TensorBuf, Verified, Verify,
        digest::{Algorithm, Digest},
    },
};

use super::write::canonical;

fn valid(name: &str) -> std::path::PathBuf {
    testdata("ztensor/v2/valid").join(name)
}

fn sha256(bytes: &[u8]) -> String {
    Algorithm::Sha256.digest(bytes).to_string().replacen("sha256:", "", 1)
}

#[test]
fn every_valid_file_reads_as_expected() {
    let text = std::fs::read_to_string(valid("expected.json")).unwrap();
    let Json::Object(files) = serde_json::from_str(&text).unwrap() else { panic!("no object") };
    assert_eq!(files.len(), 4);
    for (file, expected) in files {
        let reader = Reader::open(valid(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        check_file(&file, &reader, &expected);
        assert!(reader.validate().is_valid(), "{file}: {:?}", reader.validate());
    }
}

fn check_file(file: &str, reader: &Reader, expected: &Json) {
    let manifest = reader.manifest();
    assert_eq!(reader.generation(), Generation::V2);
    assert_eq!(reader.source().len(), expected["size"].as_u64().unwrap(), "{file}");
    assert_eq!(manifest.offset(), expected["manifest_offset"].as_u64().unwrap(), "{file}");
    assert_eq!(manifest.byte_len(), expected["manifest_size"].as_u64().unwrap(), "{file}");
    let attributes = manifest.attributes().unwrap().map(|attributes| {
        let text = |value: &Value| match value {
            Value::Text(text) => Json::from(text.as_str()),
            other => panic!("{other}"),
        };
        attributes.iter().map(|(key, value)| (key.to_owned(), text(value))).collect::<Json>()
    });
    assert_eq!(attributes.unwrap_or(Json::Null), expected["attributes"], "{file}");
    let digest = reader.content_digest(Algorithm::Sha256).unwrap().unwrap();
    assert_eq!(digest.to_string(), expected["content_digest"].as_str().unwrap(), "{file}");
    let shards: Vec<(&str, &Shard)> = manifest.shards().collect();
    for (name, shard) in &shards {
        let expected = &expected["shards"][name];
        assert_eq!(
            (Some(shard.size), Some(shard.digest.as_str())),
            (expected["size"].as_u64(), expected["digest"].as_str())
        );
    }
    assert_eq!(
        shards.len(),
        expected.get("shards").map_or(0, |shards| shards.as_object().unwrap().len())
    );
    let objects = expected["objects"].as_object().unwrap();
    let names: Vec<&str> = manifest.names().collect();
    assert_eq!(names, objects.keys().map(String::as_str).collect::<Vec<_>>(), "{file}");
    for (name, expected) in objects {
        let tensor = reader.tensor(name).unwrap();
        let object = tensor.object().unwrap();
        let shape: Vec<u64> = serde_json::from_value(expected["shape"].clone()).unwrap();
        assert_eq!(object.shape.dims(), shape, "{file} {name}");
        let layout = match &object.format {
            Format::SparseCsr => "zt.sparse_csr/1",
            Format::SparseCoo => "zt.sparse_coo/1",
            other => other.as_str(),
        };
        assert_eq!(layout, expected["layout"].as_str().unwrap(), "{file} {name}");
        for (role, expected) in expected["parts"].as_object().unwrap() {
            let what = format!("{file} {name} {role}");
            let blob = tensor.blob(&Role::from(role.as_str())).unwrap().unwrap();
            let part = blob.component();
            assert_eq!(Json::from(vec![part.offset, part.length]), expected["blob"], "{what}");
            assert_eq!(Some(part.dtype.name()), expected["dtype"].as_str(), "{what}");
            let text = |key: &str| expected.get(key).and_then(Json::as_str);
            assert_eq!(part.logical_type.as_deref(), text("type"), "{what}");
            assert_eq!(part.shard.as_deref(), text("shard"), "{what}");
            assert_eq!(part.digest.as_deref(), text("digest"), "{what}");
            assert_eq!(
                part.uncompressed_length,
                expected.get("decoded_length").and_then(Json::as_u64)
            );
            assert_eq!(text("encoding").unwrap_or("raw"), part.encoding.as_str(), "{what}");
            let decoded = blob.bytes().unwrap();
            assert_eq!(sha256(&decoded), text("decoded_sha256").unwrap(), "{what}");
            if let Some(digits) = text("decoded_hex") {
                assert_eq!(hex(&decoded), digits, "{what}");
            }
            let mut into = vec![0; decoded.len()];
            blob.read_into(&mut into).unwrap();
            assert_eq!(into, decoded, "{what}");
            assert_eq!(blob.verify().unwrap(), Verified::Digest, "{what}");
        }
    }
}

#[test]
fn canonical_and_not() {
    let canonical = Reader::open(valid("v2_canonical.zt")).unwrap();
    assert!(canonical.canonical().is_empty(), "{:?}", canonical.canonical());
    for other in ["v2_mixed_4096.zt", "shards.zt", "shards-00001.zt"] {
        let report = Reader::open(valid(other)).unwrap().canonical();
        assert!(report.findings().iter().any(|finding| finding.rule == "zt2/canonical"), "{other}");
        for Finding { message, .. } in report.findings() {
            let says = message.contains(", expected ") || message.contains("the same bytes as");
            assert!(says, "{message}");
        }
    }
}

#[test]
fn frames_are_decoded_one_by_one() {
    let reader = Reader::open(valid("v2_mixed_4096.zt")).unwrap();
    let blob = reader.tensor("z_zstd").unwrap().blob(&Role::Data).unwrap().unwrap();
    assert_eq!(blob.component().encoding, Encoding::ZstdSeekable);
    let all = blob.bytes().unwrap();
    for range in [0..0, 0..1, 17..4000, 4999..5000, 0..5000, 5000..5000] {
        let (start, end) = (range.start as usize, range.end as usize);
        assert_eq!(blob.bytes_at(range).unwrap(), all[start..end]);
    }
    assert!(blob.bytes_at(1..5001).is_err());
}

#[test]
fn cells_are_compared_within_a_limit() {
    let values = TensorBuf::from_slice([2], &[1.0_f32, 2.0]).unwrap();
    let coords = TensorBuf::from_slice([4], &[0_u32, 1, 2, 0]).unwrap();
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    writer.add_coo("n", &Coo::from_parts([2, 3], values, coords).unwrap()).unwrap();
    let bytes = writer.finish().unwrap();
    let found = |limit| {
        let limits = Limits::default().with_sparse_values(limit);
        let report = Reader::options().limits(limits).from_bytes(bytes.clone()).unwrap().validate();
        let found = report.findings().iter().find(|finding| finding.rule == "zt/cells-unchecked");
        found.map(|finding| finding.message.clone())
    };
    assert_eq!(found(2), None);
    let message = "has 2 values, over the limit of 1 (Limits::sparse_values), so that it is not checked \
                   that no element is stored twice";
    assert_eq!(found(1).as_deref(), Some(message));
}

/// What ends as no footer does is not looked at any closer.
#[test]
fn magics_are_searched_in_one_pass() {
    struct Counting(Vec<u8>, Arc<AtomicU64>);
    impl ReadAt for Counting {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let start = usize::try_from(offset).unwrap();
            buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
            Ok(())
        }
    }
    let whole = std::fs::read(valid("v2_canonical.zt")).unwrap();
    let mut bytes = whole.clone();
    bytes.extend(whole[..8].repeat(1 << 19));
    bytes.push(0);
    let reads = Arc::new(AtomicU64::new(0));
    let source = Source::from_read_at(Counting(bytes, Arc::clone(&reads)));
    let reader = Reader::options().profile(Profile::Lenient).from_source(source).unwrap();
    assert_eq!(reader.source().len(), whole.len() as u64);
    assert!(reads.load(Ordering::Relaxed) < 20, "{reads:?}");
}

/// The system tells what is a hole, so that 64 GiB of them take no time.
#[cfg(target_os = "linux")]
#[test]
fn holes_between_blobs_are_not_read() {
    use std::os::unix::fs::FileExt as _;
    let bytes = std::fs::read(valid("v2_canonical.zt")).unwrap();
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    let (at, far) = (usize::try_from(reader.manifest().offset()).unwrap(), 1_u64 << 36);
    let mut end = bytes[at..].to_vec();
    let footer = end.len() - 40;
    end[footer..footer + 8].copy_from_slice(&far.to_le_bytes());
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all_at(&bytes[..at], 0).unwrap();
    file.as_file().write_all_at(&end, far).unwrap();
    let begin = std::time::Instant::now();
    let reader = Reader::open(file.path()).unwrap();
    assert!(reader.validate().is_valid());
    assert_eq!(reader.canonical().findings().len(), 1);
    file.as_file().set_len(far + 1).unwrap();
    let torn = Reader::options().profile(Profile::Lenient).open(file.path()).unwrap_err();
    assert_eq!(torn.rule(), "zt2/footer-magic");
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

#[test]
fn shards_are_found_in_three_ways() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::read(valid("shards.zt")).unwrap();
    let alone = folder.path().join("root.zt");
    std::fs::write(&alone, &root).unwrap();
    let reader = Reader::open(&alone).unwrap();
    let missing = reader.tensor("base.w").unwrap();
    assert!(matches!(missing.bytes(), Err(Error::MissingShard { .. })));
    assert_eq!(reader.tensor("delta").unwrap().bytes().unwrap(), &[5, 6][..]);
    assert!(reader.validate().findings().iter().any(|finding| finding.rule == "zt2/shard-missing"));

    let shard = std::fs::read(valid("shards-00001.zt")).unwrap();
    let digits = Algorithm::Sha256.digest(&shard).to_string().replace("sha256:", "");
    let store = folder.path().join("blobs/sha256");
    std::fs::create_dir_all(&store).unwrap();
    std::fs::write(store.join(digits), &shard).unwrap();
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("same length"), vec![0; shard.len()]).unwrap();
    std::fs::write(other.join("renamed"), &shard).unwrap();
    let ways = [
        ShardFiles::Beside(valid("shards.zt")),
        ShardFiles::ByDigest(folder.path().to_owned()),
        ShardFiles::Within(other),
    ];
    let expected =
        Reader::open(valid("shards-00001.zt")).unwrap().tensor("base.w").unwrap().bytes().unwrap();
    for way in ways {
        let reader = reader.clone().with_shards(&way).unwrap();
        let tensor = reader.tensor("base.w").unwrap();
        assert_eq!(tensor.bytes().unwrap(), expected, "{way:?}");
        let extent = tensor.extent().unwrap().unwrap();
        assert_eq!(tensor.source().read(extent, "tensor").unwrap(), expected, "{way:?}");
        assert!(reader.validate().is_valid());
    }
    let given = |_: &str, _: &Shard| Ok(Some(Source::from_bytes(shard.clone())));
    assert_eq!(
        reader.clone().with_shards(&given).unwrap().tensor("base.w").unwrap().bytes().unwrap(),
        expected
    );
}

#[test]
fn other_files_are_not_taken_for_shards() {
    let reader = Reader::open(valid("shards.zt")).unwrap();
    let shard = std::fs::read(valid("shards-00001.zt")).unwrap();
    let with = |bytes: Vec<u8>| {
        reader
            .clone()
            .with_shards(&move |_: &str, _: &Shard| Ok(Some(Source::from_bytes(bytes.clone()))))
    };
    let mut longer = shard.clone();
    longer.push(0);
    let mut torn = shard.clone();
    *torn.last_mut().unwrap() ^= 1;
    for bytes in [longer, torn] {
        let error = with(bytes).unwrap_err();
        assert!(matches!(error, Error::Rejected { rule: Rule::ShardIdentity, .. }), "{error}");
    }
    // What its digest alone tells is found by validation.
    let mut changed = shard;
    changed[4096] ^= 1;
    let reader = with(changed).unwrap();
    let rules: Vec<_> =
        reader.validate().findings().iter().map(|finding| finding.rule.clone()).collect();
    assert!(rules.iter().any(|rule| rule == "zt2/shard-identity"), "{rules:?}");
    assert!(rules.iter().any(|rule| rule == "zt/digest-mismatch"), "{rules:?}");
}

#[test]
fn digests_are_compared_when_asked() {
    for (name, object) in [("v2_mixed_4096.zt", "z_zstd"), ("v2_canonical.zt", "a.bias")] {
        let mut bytes = std::fs::read(valid(name)).unwrap();
        let reader = Reader::from_bytes(bytes.clone()).unwrap();
        let part = reader.tensor(object).unwrap().object().unwrap().components[0].1.clone();
        // A byte of the digest: the manifest's hash goes with it.
        let digest = part.digest.unwrap();
        let at =
            bytes.windows(digest.len()).rposition(|window| window == digest.as_bytes()).unwrap();
        bytes[at + 6] = if bytes[at + 6] == b'0' { b'1' } else { b'0' };
        let end = bytes.len();
        let place = reader.manifest().offset() as usize;
        let manifest = bytes[place..place + reader.manifest().byte_len() as usize].to_vec();
        let Digest::Xxh3(hash) = Algorithm::Xxh3.digest(&manifest) else { panic!("another") };
        bytes[end - 24..end - 16].copy_from_slice(&hash.to_le_bytes());
        assert!(Reader::from_bytes(bytes.clone()).unwrap().tensor(object).unwrap().bytes().is_ok());
        let reader = Reader::options().verify(Verify::Always).from_bytes(bytes).unwrap();
        assert_eq!(
            reader.tensor(object).unwrap().bytes().unwrap_err().rule(),
            "zt/digest-mismatch"
        );
        assert_eq!(
            reader.tensor(object).unwrap().verify().unwrap_err().rule(),
            "zt/digest-mismatch"
        );
    }
}
