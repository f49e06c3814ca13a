//! Edits of zTensor files: what they refuse, what they say, and what others see meanwhile.

use std::{fs, path::Path, process::Command, sync::mpsc, thread, time::Duration};

use modelcrate::{
    tensor_core::{
        DType,
        digest::{Algorithm, Digest},
        output::LockedFile,
    },
    ztensor::{
        ElementType, Encoding, Format as Layout, Reader, Role, Value, Version, WriteOptions,
    },
};
use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

fn folder(file: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(testdata("ztensor").join(file), folder.path().join("model.zt")).unwrap();
    fs::write(folder.path().join("bias.bin"), [0; 24]).unwrap();
    folder
}

#[test]
fn replacements_of_another_kind_are_said() {
    let folder = folder("valid/v1.1-ref/scalars.zt");
    let cd = folder.path();
    let raw = |spec: &'static str| ["edit", "model.zt", "--put", spec];
    let text = prints(cd, &raw("s_u8=f32:2,3:bias.bin"));
    let warning = "  warning [zt/replaced-type] \"s_u8\": u8 [] became f32 [2, 3]\n";
    assert!(text.starts_with("model.zt: replaced s_u8\n") && text.ends_with(warning), "{text}");
    assert!(!prints(cd, &raw("s_u8=f32:2,3:bias.bin")).contains("warning"));
}

#[test]
fn damage_and_faults_are_not_passed_on() {
    let folder = folder("valid/v1.1-ref/digests.zt");
    let cd = folder.path();
    let mut bytes = fs::read(cd.join("model.zt")).unwrap();
    bytes[64] ^= 1;
    fs::write(cd.join("model.zt"), &bytes).unwrap();
    fs::copy(testdata("ztensor/invalid/dtype_F32.zt"), cd.join("faulty.zt")).unwrap();
    fs::copy(testdata("ztensor/valid/v1.1-ref/scalars.zt"), cd.join("good.zt")).unwrap();
    let good = fs::read(cd.join("good.zt")).unwrap();
    for (args, fault) in [
        (&["compact", "model.zt"][..], "zt/digest-mismatch"),
        (&["convert", "model.zt", "new.zt"], "zt/digest-mismatch"),
        (&["convert", "model.zt", "-", "--to", "zt"], "zt/digest-mismatch"),
        (&["edit", "good.zt", "--from", "model.zt"], "zt/digest-mismatch"),
        (&["edit", "good.zt", "--from", "faulty.zt"], "zt/dtype"),
    ] {
        let (status, text) = fails(cd, args);
        assert_eq!(status, 1, "{args:?}: {text}");
        assert_eq!(fails(cd, &[args, &["--dry-run"]].concat()), (1, text), "{args:?}");
        assert_eq!(modelcrate(cd, args).stdout, b"", "{args:?}");
        assert_eq!(fs::read(cd.join("good.zt")).unwrap(), good);
        assert!(!cd.join("new.zt").exists(), "{args:?}");
        assert_eq!(fs::read(cd.join("model.zt")).unwrap(), bytes, "{args:?}");
        for forced in [&["--force", "--dry-run", "--format=json"][..], &["--force"]] {
            let output = modelcrate(cd, &[args, forced].concat());
            assert!(output.status.success(), "{args:?}");
            let said = [output.stdout, output.stderr].concat();
            assert!(String::from_utf8_lossy(&said).contains(fault), "{args:?} {forced:?}");
        }
        fs::write(cd.join("good.zt"), &good).unwrap();
        fs::write(cd.join("model.zt"), &bytes).unwrap();
        let _ = fs::remove_file(cd.join("new.zt"));
    }
}

#[test]
fn tensors_of_another_file_are_validated() {
    let folder = folder("valid/v1.1-ref/scalars.zt");
    let cd = folder.path();
    let good = fs::read(cd.join("model.zt")).unwrap();
    let files = [
        ("bool_not_0_1", "zt/bool"),
        ("zstd_cut", "zt/zstd"),
        ("zstd_long", "zt/decoded-length"),
        ("zstd_short", "zt/decoded-length"),
        ("zstd_bomb_dense", "zt/decoded-length"),
        ("csr_indptr_down", "zt/layout"),
        ("csr_index_range", "zt/layout"),
        ("coo_range", "zt/layout"),
    ];
    for (file, rule) in files {
        let from = testdata("ztensor/invalid").join(file).with_extension("zt");
        let args = ["edit", "model.zt", "--from", from.to_str().unwrap()];
        let (status, text) = fails(cd, &args);
        assert_eq!(status, 1, "{file}: {text}");
        assert!(fs::read(cd.join("model.zt")).unwrap() == good, "{file}");
        let text = prints(cd, &[&args[..], &["--force", "--dry-run"]].concat());
        assert!(text.contains(rule), "{file}: {text}");
    }
    let from = testdata("ztensor/invalid/csr_unsorted_row.zt");
    let text = prints(cd, &["edit", "model.zt", "--from", from.to_str().unwrap()]);
    assert!(text.contains("warning [zt/csr-order]"), "{text}");
}

#[test]
fn dry_runs_say_what_the_real_ones_say() {
    let folder = folder("valid/v1.1-ref/scalars.zt");
    let cd = folder.path();
    fs::copy(testdata("ztensor/valid/legacy/v0_1_file.zt"), cd.join("old.zt")).unwrap();
    let dry = ["convert", "old.zt", "new.zt", "--dry-run", "--format=json"];
    assert!(prints(cd, &dry).contains("\"dry_run\":true"));
    let same = |args: &[&str]| {
        let (status, text) = fails(cd, args);
        assert_eq!(fails(cd, &[args, &["--dry-run"]].concat()), (status, text.clone()), "{args:?}");
        assert_eq!(status, 2, "{text}");
        text
    };
    for output in ["old.zt", "bias.bin", "none/new.zt"] {
        let text = same(&["convert", "old.zt", output, "--to", "zt"]);
        assert!(text.starts_with(&format!("error: {output}: ")), "{text}");
    }
    let edits = [
        &["edit", "model.zt", "--put", "new=f32:6:bias.bin"][..],
        &["edit", "model.zt", "--put", "s_u8=f32:6:bias.bin"],
        &["edit", "model.zt", "--remove", "s_u8"],
        &["compact", "model.zt"],
        &["recover", "model.zt"],
    ];
    let lock = LockedFile::open(cd.join("model.zt")).unwrap();
    for args in edits {
        assert!(same(args).starts_with("error: model.zt: is locked"), "{args:?}");
    }
    drop(lock);
    let mut permissions = fs::metadata(cd.join("model.zt")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(cd.join("model.zt"), permissions).unwrap();
    for args in edits {
        same(args);
    }
    same(&["convert", "old.zt", "model.zt", "--overwrite"]);
}

#[test]
fn migrated_files_open_whatever_keys_they_had() {
    for key in ["key_dtype", "key_type", "key_uncompressed_length", "key_objects"] {
        let folder = folder(&format!("valid/legacy/v1_0_{key}.zt"));
        let text = prints(folder.path(), &["convert", "model.zt", "new.zt"]);
        assert!(text.contains("warning [zt/migrate-key]"), "{text}");
        assert_eq!(prints(folder.path(), &["verify", "new.zt"]), "new.zt: valid\n");
    }
}

#[cfg(unix)]
#[test]
fn the_file_that_cannot_be_written_is_named() {
    let folder = folder("valid/v1.1-ref/scalars.zt");
    let cd = folder.path();
    let before = fs::read(cd.join("model.zt")).unwrap();
    fs::write(cd.join("large.bin"), vec![7; 12 << 20]).unwrap();
    let command = "ulimit -f 64; exec \"$0\" edit model.zt --put l=u8:12582912:large.bin";
    let output = Command::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_modelcrate")])
        .current_dir(cd)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error: model.zt: ") && text.contains("too large"), "{text}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(cd.join("model.zt")).unwrap(), before);
}

#[test]
fn files_are_valid_while_they_are_edited() {
    let folder = folder("valid/v1.1-ref/scalars.zt");
    let cd = folder.path();
    fs::write(cd.join("large.bin"), vec![7; 20 << 20]).unwrap();
    let (done, is_done) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            edits(cd);
            done.send(()).unwrap();
        });
        let mut checked = 0_u32;
        while is_done.recv_timeout(Duration::ZERO).is_err() {
            let output = modelcrate(cd, &["verify", "model.zt"]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            checked += 1;
        }
        assert!(checked > 2, "{checked}");
    });
    assert_eq!(Reader::open(cd.join("model.zt")).unwrap().manifest().len(), 13);
}

/// Edits of every kind, five of each.
fn edits(cd: &Path) {
    let large = "large=u8:20971520:large.bin";
    for _ in 0..5 {
        prints(cd, &["edit", "model.zt", "--put", large]);
        prints(cd, &["edit", "model.zt", "--put", large]);
        prints(cd, &["edit", "model.zt", "--remove", "large"]);
        prints(cd, &["compact", "model.zt"]);
    }
}

#[test]
fn tensors_that_are_put_stay_as_they_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    for (from, name) in [
        ("v1.1-ref/scalars.zt", "m.zt"),
        ("v1.1-ref/sparse_csr.zt", "sparse.zt"),
        ("v1.1-hand/object_attributes.zt", "attributes.zt"),
    ] {
        let valid = testdata("ztensor/valid");
        fs::copy(valid.join(from), cd.join(name)).unwrap();
    }
    let put = ["--put", "s=sparse.zt:csr0_f32", "--put", "a=attributes.zt:t"];
    prints(cd, &[&["edit", "m.zt"][..], &put].concat());
    let stored = |file: &str, name: &str| {
        let reader = Reader::open(cd.join(file)).unwrap();
        let tensor = reader.tensor(name).unwrap();
        let object = tensor.object().unwrap();
        (object.format, object.shape, format!("{:?}", tensor.attributes().unwrap()))
    };
    assert_eq!(stored("m.zt", "s"), stored("sparse.zt", "csr0_f32"));
    assert_eq!(stored("m.zt", "a"), stored("attributes.zt", "t"));
    assert!(stored("m.zt", "a").2 != stored("m.zt", "s").2);
}

/// Writes a file of zTensor 2 with a tensor of each of some types, by their storage type and bytes.
fn typed(path: &Path, types: &[(&str, ElementType, &[u8])]) {
    let options = WriteOptions::default().version(Version::V2);
    let mut writer = options.write_to(Vec::new()).unwrap();
    for (name, elements, bytes) in types {
        let mut object = writer.object(name).unwrap();
        object.put(Role::Data, *elements, bytes).unwrap();
        object.finish(Layout::Dense, [4]).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

/// Puts other text of the same length into the manifest of a file of zTensor 2.
fn patch(path: &Path, from: &str, to: &str) {
    let mut file = fs::read(path).unwrap();
    let manifest = Reader::open(path).unwrap().manifest().offset() as usize;
    let footer = file.len() - 40;
    let at = file[manifest..].windows(from.len()).position(|text| text == from.as_bytes());
    file[manifest + at.unwrap()..][..to.len()].copy_from_slice(to.as_bytes());
    let Digest::Xxh3(hash) = Algorithm::Xxh3.digest(&file[manifest..footer]) else { panic!() };
    file[footer + 16..footer + 24].copy_from_slice(&hash.to_le_bytes());
    fs::write(path, file).unwrap();
}

#[test]
fn small_types_have_names() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let small = |name, bits| ElementType::Packed { name, bits };
    typed(
        &cd.join("small.zt"),
        &[
            ("a", small("f4_e2m1", 4), &[0x21; 2]),
            ("b", small("f8_e4m3fnuz", 8), &[1; 4]),
            ("c", small("f8_e5m2fnuz", 8), &[1; 4]),
            ("d", small("f8_e8m0", 8), &[1; 4]),
        ],
    );
    let text = prints(cd, &["inspect", "small.zt"]);
    for name in ["f4_e2m1", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(!text.contains('?'), "{text}");
}

/// They are what they are called, and the bytes that are stored.
#[test]
fn elements_of_unknown_types_are_hashed() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let path = cd.join("new.zt");
    typed(&path, &[("a", ElementType::Packed { name: "f8_e8m0", bits: 8 }, b"\x01\x02\x03\x04")]);
    patch(&path, "f8_e8m0", "f8_e9m9");
    let line = prints(cd, &["hash", "--tensors", "new.zt"]);
    let digits = Algorithm::Sha256.digest(b"\x01\x02\x03\x04").to_string().replace("sha256:", "");
    assert_eq!(line, format!("{digits} f8_e9m9 [4] \"a\"\n"));
    assert!(prints(cd, &["inspect", "new.zt"]).contains("f8_e9m9"));
    let (status, text) = fails(cd, &["convert", "new.zt", "new.safetensors"]);
    assert!(text.contains("has type \"f8_e9m9\", expected one of the format's"), "{status} {text}");
}

#[test]
fn only_one_format_has_a_canonical_form() {
    let folder = tempfile::tempdir().unwrap();
    let from = testdata("weights/model.safetensors");
    fs::copy(from, folder.path().join("w.safetensors")).unwrap();
    let text = prints(folder.path(), &["verify", "--canonical", "-v", "w.safetensors"]);
    let note =
        "note [zt2/canonical] a safetensors file has no canonical form, only zTensor 2 has one";
    assert!(text.contains(note), "{text}");
}

/// (code - 8) × scale, by hand.
#[test]
fn packed_codes_become_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let map = |pairs: &[(&str, Value)]| {
        Value::Map(pairs.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect())
    };
    let number = Value::Integer;
    let packing = [("word", "u8".into()), ("order", "lsb_first".into()), ("per_word", number(2))];
    let attributes = |axis| {
        [
            ("bits", number(4)),
            ("group_size", number(2)),
            ("axis", number(axis)),
            ("scale_form", Value::from("f32_factors")),
            ("packing", map(&packing)),
            ("zero_point", map(&[("form", "implied".into()), ("value", number(8))])),
        ]
    };
    for (name, axis) in [("q.zt", 1), ("other.zt", 0)] {
        let options = WriteOptions::default().version(Version::V2);
        let mut writer = options.write_to(Vec::new()).unwrap();
        let mut object = writer.object("q").unwrap();
        object.set_attributes(&attributes(axis).into_iter().collect());
        object.put(Role::Data, DType::U8, &[0x21, 0xf8]).unwrap();
        let scales = [0.5_f32, 2.0].map(f32::to_le_bytes);
        object.put(Role::Scales, DType::F32, scales.as_flattened()).unwrap();
        object.finish(Layout::QuantGroup, [2, 2]).unwrap();
        fs::write(cd.join(name), writer.finish().unwrap()).unwrap();
    }
    let expected = [-3.5_f32, -3.0, 0.0, 14.0].map(f32::to_le_bytes);
    let (_, text) = fails(cd, &["convert", "q.zt", "q.safetensors"]);
    assert!(text.contains("--dequantize"), "{text}");
    prints(cd, &["convert", "--dequantize", "q.zt", "q.safetensors"]);
    assert!(fs::read(cd.join("q.safetensors")).unwrap().ends_with(expected.as_flattened()));
    let text = prints(cd, &["inspect", "--stats", "q.zt"]);
    assert!(text.contains("-3.5000") && text.contains("14.0000"), "{text}");
    assert!(text.contains("dequantized"), "{text}");

    let text = prints(cd, &["inspect", "--stats", "other.zt"]);
    assert!(text.contains("scales along axis 0"), "{text}");
    let (status, text) = fails(cd, &["convert", "--dequantize", "other.zt", "q.npz"]);
    assert!(text.contains("cannot be dequantized") && status == 2, "{status} {text}");
}

/// Attributes stay, and so do layouts.
#[test]
fn tensors_of_other_files_are_stored_as_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let valid = testdata("ztensor/valid/v1.1-ref");
    fs::copy(testdata("ztensor/v2/valid/v2_mixed_4096.zt"), cd.join("from.zt")).unwrap();
    fs::copy(testdata("ztensor/v2/valid/v2_canonical.zt"), cd.join("to.zt")).unwrap();
    let from = Reader::open(cd.join("from.zt")).unwrap();
    prints(
        cd,
        &["edit", "to.zt", "--from", "from.zt", "--compression", "zstd", "--digest", "sha256"],
    );
    let to = Reader::open(cd.join("to.zt")).unwrap();
    assert!(to.validate().is_valid(), "{:?}", to.validate());
    for tensor in from.tensors() {
        let copy = to.tensor(tensor.name()).unwrap();
        assert_eq!(copy.attributes().unwrap(), tensor.attributes().unwrap());
        assert_eq!(copy.object().unwrap().format, tensor.object().unwrap().format);
        for blob in copy.blobs().unwrap() {
            let part = blob.component();
            assert_eq!(part.encoding, Encoding::ZstdSeekable, "{}", tensor.name());
            assert!(part.digest.as_deref().unwrap().starts_with("sha256:"));
            let expected = tensor.blob(blob.role()).unwrap().unwrap().bytes().unwrap();
            assert_eq!(blob.bytes().unwrap(), expected, "{}", tensor.name());
        }
    }
    fs::copy(valid.join("scalars.zt"), cd.join("old.zt")).unwrap();
    fs::copy(valid.join("digests.zt"), cd.join("more.zt")).unwrap();
    prints(cd, &["edit", "old.zt", "--from", "more.zt", "--compression", "zstd"]);
    let (old, more) = (cd.join("old.zt"), cd.join("more.zt"));
    let [old, more] = [old, more].map(|path| Reader::open(path).unwrap());
    for tensor in more.tensors() {
        let copy = old.tensor(tensor.name()).unwrap();
        assert_eq!(copy.object().unwrap().components[0].1.encoding, Encoding::Zstd);
        assert_eq!(copy.bytes().unwrap(), tensor.bytes().unwrap());
    }
}
