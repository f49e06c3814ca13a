//! Edits in place: what they leave, what they keep, and what happens where they fail.

use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    thread,
    time::Duration,
};

use tempfile::TempDir;
use test_support::testdata;
use ztensor::{
    Editor, Error, Reader, Value, WriteOptions, Writer,
    tensor_core::{
        DType, ErrorKind, Profile, Severity, Source, TensorBuf, Verify,
        output::{Edited, Output},
    },
};

/// A copy of a valid file in a folder of its own.
fn copy(file: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    fs::copy(testdata("ztensor/valid").join(file), &path).unwrap();
    (folder, path)
}

fn numbers(first: f32) -> TensorBuf {
    TensorBuf::from_slice([3], &[first, 2.0, 3.0]).unwrap()
}

fn names(reader: &Reader) -> Vec<String> {
    reader.manifest().names().map(str::to_owned).collect()
}

#[test]
fn blobs_that_are_there_stay_where_they_are() {
    let (_folder, path) = copy("v1.1-hand/object_attributes.zt");
    let before = fs::read(&path).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.writer().add("new", &numbers(1.0)).unwrap();
    editor.replace("u", &numbers(9.0)).unwrap();
    editor.remove("v").unwrap();
    editor.commit().unwrap();
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before), "the old file is the beginning of the new one");
    let reader = Reader::open(&path).unwrap();
    assert_eq!(names(&reader), ["new", "t", "u"]);
    let view = |name: &str| reader.tensor(name).unwrap().read().unwrap();
    assert_eq!(view("new").to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(view("u").to_vec::<f32>().unwrap(), [9.0, 2.0, 3.0]);
    let old = Reader::from_bytes(before).unwrap();
    let attributes = |reader: &Reader| reader.tensor("t").unwrap().attributes().unwrap();
    assert_eq!(attributes(&reader), attributes(&old));
    assert!(reader.validate().is_valid());
}

#[test]
fn what_is_not_known_is_kept() {
    let (_folder, path) = copy("v1.1-hand/unknown_fields.zt");
    let keys = |path: &PathBuf| {
        let reader = Reader::open(path).unwrap();
        let mut keys: Vec<String> = reader.manifest().unknown_keys().map(str::to_owned).collect();
        let object = reader.tensor("t").unwrap().object().unwrap();
        keys.extend(object.unknown_keys().map(str::to_owned));
        keys.extend(object.components[0].1.unknown_keys().map(str::to_owned));
        keys
    };
    let before = keys(&path);
    assert!(before.len() >= 5, "{before:?}");
    let mut editor = Editor::open(&path).unwrap();
    editor.writer().add("new", &numbers(1.0)).unwrap();
    editor.commit().unwrap();
    assert_eq!(keys(&path), before);
    ztensor::compact(&path, WriteOptions::default()).unwrap();
    assert_eq!(keys(&path), before);
}

#[test]
fn dropped_edits_leave_only_what_others_wrote() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    let before = fs::read(&path).unwrap();
    let large = TensorBuf::from_slice([3 << 20], &vec![1.0_f32; 3 << 20]).unwrap();
    for (tensor, theirs) in [(&large, ""), (&numbers(1.0), "theirs"), (&large, "theirs")] {
        fs::write(&path, &before).unwrap();
        let mut editor = Editor::open(&path).unwrap();
        editor.writer().add("new", tensor).unwrap();
        let written = fs::metadata(&path).unwrap().len();
        // So much may be written that the file has grown, and it opens all the same.
        assert_eq!(written > before.len() as u64, tensor.shape() == large.shape());
        assert!(Reader::open(&path).unwrap().tensor("new").is_none());
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(theirs.as_bytes()).unwrap();
        drop(editor);
        let after = fs::read(&path).unwrap();
        if written > before.len() as u64 && !theirs.is_empty() {
            assert!(after.starts_with(&before) && after.ends_with(theirs.as_bytes()));
        } else {
            assert_eq!(after, [&before, theirs.as_bytes()].concat());
        }
    }
}

#[test]
fn edits_that_change_nothing_write_nothing() {
    for file in [
        "v1.1-ref/scalars.zt",
        "v1.1-hand/cbor_wide_ints.zt",
        "legacy/v12_types.zt",
        "v1.1-hand/object_attributes.zt",
    ] {
        let (_folder, path) = copy(file);
        let state = || (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
        let before = state();
        let mut editor = Editor::open(&path).unwrap();
        for tensor in Reader::open(&path).unwrap().tensors() {
            for (key, value) in tensor.attributes().unwrap().unwrap_or_default().iter() {
                editor.set_tensor_attribute(tensor.name(), key, value.clone()).unwrap();
            }
        }
        editor.remove_attribute("not there").unwrap();
        assert_eq!(editor.commit().unwrap(), Edited::Unchanged);
        assert!(state() == before, "{file}");
    }
}

#[test]
fn edits_of_the_manifest_alone_are_written() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    let mut editor = Editor::open(&path).unwrap();
    editor.writer().set_attributes(&[("framework", "none")].into_iter().collect());
    editor.commit().unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.remove("s_u8").unwrap();
    editor.commit().unwrap();
    let reader = Reader::open(&path).unwrap();
    let attributes = reader.manifest().attributes().unwrap().unwrap();
    assert_eq!(attributes.get("framework"), Some(&"none".into()));
    assert!(reader.tensor("s_u8").is_none());
}

#[test]
fn dry_runs_check_and_write_nothing() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    let state = || (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
    let before = state();
    let mut editor = Editor::dry_run(&path, WriteOptions::default()).unwrap();
    let large = TensorBuf::from_slice([3 << 20], &vec![1.0_f32; 3 << 20]).unwrap();
    editor.writer().add("large", &large).unwrap();
    editor.remove("s_u8").unwrap();
    let error = editor.remove("nothing").unwrap_err();
    assert!(matches!(error, Error::MissingObject { .. }), "{error}");
    assert!(state() == before, "written before the commit");
    let would = editor.commit().unwrap();
    assert!(state() == before, "written by the commit");
    let mut editor = Editor::open(&path).unwrap();
    editor.writer().add("large", &large).unwrap();
    editor.remove("s_u8").unwrap();
    assert_eq!(editor.commit().unwrap(), would);
    let (before, after) = (before.0.len() as u64, fs::metadata(&path).unwrap().len());
    assert_eq!(would, Edited::Appended { before, after });
    let mut editor = Editor::dry_run(&path, WriteOptions::default()).unwrap();
    drop(editor.writer().object("begun").unwrap());
    let error = editor.commit().unwrap_err();
    assert!(matches!(error, Error::Unfinished { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn files_that_took_the_place_stay() {
    let (folder, path) = copy("v1.1-ref/scalars.zt");
    for elements in [3, 3 << 20] {
        let mut editor = Editor::open(&path).unwrap();
        let tensor = TensorBuf::from_slice([elements as u64], &vec![1.0_f32; elements]).unwrap();
        editor.writer().add("new", &tensor).unwrap();
        let other = folder.path().join("other.zt");
        fs::copy(testdata("ztensor/valid/v1.1-ref/digests.zt"), &other).unwrap();
        fs::rename(&other, &path).unwrap();
        let theirs = fs::read(&path).unwrap();
        let error = editor.commit().unwrap_err();
        assert!(matches!(error, Error::Core(tensor_core::Error::Replaced { .. })), "{error}");
        assert_eq!(fs::read(&path).unwrap(), theirs);
    }
}

#[test]
fn compressed_tensors_are_copied_by_every_build() {
    let reader = Reader::open(testdata("ztensor/valid/v1.1-ref/zstd_levels.zt")).unwrap();
    assert!(reader.lint().is_valid());
    assert_eq!(reader.validate().is_valid(), cfg!(feature = "zstd"));
    let mut writer = Writer::new(Vec::new());
    reader.tensors().for_each(|tensor| writer.copy(tensor).unwrap());
    let new = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!((names(&new), new.lint().is_valid()), (names(&reader), true));
}

#[test]
fn failed_edits_leave_no_trace() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    let before = fs::read(&path).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    let error = editor.remove("nothing").unwrap_err();
    assert_eq!(error.to_string(), "object \"nothing\" is not in the file");
    let name = editor.reader().manifest().names().next().unwrap().to_owned();
    let error = editor.writer().add(&name, &numbers(0.0)).unwrap_err();
    assert_eq!(error.to_string(), format!("object {name:?} is there already, expected a new name"));
    drop(editor.writer().object("begun").unwrap());
    let error = editor.commit().unwrap_err();
    assert!(matches!(error, Error::Unfinished { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn two_editors_do_not_meet() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    let all = || {
        let options = WriteOptions::default();
        [
            Editor::open(&path).map(drop),
            Editor::dry_run(&path, options).map(drop),
            ztensor::compact_dry_run(&path, options).map(drop),
            ztensor::compact(&path, options).map(drop),
            ztensor::recover(&path, options).map(drop),
        ]
    };
    let editor = Editor::open(&path).unwrap();
    for refused in all() {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Core(tensor_core::Error::Locked { .. })), "{error}");
    }
    let reader = editor.reader().clone();
    editor.commit().unwrap();
    all().into_iter().for_each(Result::unwrap);
    assert_eq!(reader.manifest().len(), 13);
}

#[test]
fn compacting_and_recovering_wait_for_an_editor() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    let output = Output { wait: Duration::from_secs(60), ..Output::default() };
    let options = WriteOptions::default().output(output);
    thread::scope(|scope| {
        let editor = Editor::open(&path).unwrap();
        let edits = [
            scope.spawn(|| ztensor::compact(&path, options)),
            scope.spawn(|| ztensor::recover(&path, options)),
        ];
        assert!(edits.iter().all(|edit| !edit.is_finished()));
        drop(editor);
        let done = edits.map(|edit| edit.join().unwrap().unwrap().has_changed());
        assert_eq!(done, [true, false]);
    });
}

#[test]
fn older_generations_are_migrated_first() {
    for (file, generation) in [("legacy/v0_1_file.zt", "0.1"), ("legacy/v1_0_file.zt", "1.0")] {
        let (_folder, path) = copy(file);
        let error = Editor::open(&path).unwrap_err();
        let expected = format!(
            "file is of generation {generation}, expected 1.1 or 1.2 for editing: migrate it first"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn files_of_1_2_stay_of_1_2() {
    let (_folder, path) = copy("legacy/v12_types.zt");
    let mut editor = Editor::open(&path).unwrap();
    let float8 = TensorBuf::new(DType::F8E5M2, [2], vec![1, 2]).unwrap();
    editor.writer().add("float8", &float8).unwrap();
    editor.commit().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.manifest().version(), "1.2.0");
    let object = reader.tensor("float8").unwrap().object().unwrap();
    assert_eq!(object.components[0].1.logical_type.as_deref(), Some("f8_e5m2"));
}

#[test]
fn compacting_drops_what_belongs_to_nothing() {
    let (_folder, path) = copy("v1.1-ref/duplicate_add_last_wins.zt");
    let old = Reader::from_bytes(fs::read(&path).unwrap()).unwrap();
    let edited = ztensor::compact(&path, WriteOptions::default()).unwrap();
    let Edited::Replaced { before, after } = edited else { panic!("{edited:?}") };
    assert_eq!(before, old.source().len());
    assert_eq!(after, fs::metadata(&path).unwrap().len());
    assert!(before - after >= 64, "{edited:?}");
    let new = Reader::open(&path).unwrap();
    assert!(new.validate().is_empty());
    assert_eq!(names(&new), names(&old));
    for tensor in old.tensors() {
        assert_eq!(new.tensor(tensor.name()).unwrap().bytes().unwrap(), tensor.bytes().unwrap());
    }
}

#[test]
fn compacting_replaces_the_file_behind_a_link() {
    let (folder, path) = copy("v1.1-ref/duplicate_add_last_wins.zt");
    let links = folder.path().join("links");
    fs::create_dir(&links).unwrap();
    let link = links.join("link.zt");
    std::os::unix::fs::symlink("../model.zt", &link).unwrap();
    let edited = ztensor::compact(&link, WriteOptions::default()).unwrap();
    let Edited::Replaced { after, .. } = edited else { panic!("{edited:?}") };
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().len(), after);
    assert_eq!(fs::read_dir(&links).unwrap().count(), 1);
}

#[test]
fn every_valid_file_survives_compacting() {
    for folder in ["v1.1-ref", "v1.1-hand"] {
        for file in test_support::files(&format!("ztensor/valid/{folder}"), "zt") {
            let name = file.strip_prefix(testdata("ztensor/valid")).unwrap().display().to_string();
            let (_folder, path) = copy(&name);
            let old = Reader::open(&file).unwrap();
            ztensor::compact(&path, WriteOptions::default()).unwrap();
            let new = Reader::open(&path).unwrap();
            for tensor in old.tensors() {
                let twin = new.tensor(tensor.name()).unwrap();
                assert_eq!(twin.attributes().unwrap(), tensor.attributes().unwrap(), "{name}");
                for b in tensor.blobs().unwrap() {
                    let a = twin.blob(b.role()).unwrap().unwrap();
                    assert_eq!(a.stored().unwrap(), b.stored().unwrap(), "{name}");
                    assert_eq!(a.component().digest, b.component().digest, "{name}");
                }
            }
        }
    }
}

#[test]
fn torn_files_are_recovered() {
    let (_folder, path) = copy("v1.1-ref/many_300.zt");
    let before = fs::read(&path).unwrap();
    let torn = [&before[..], &[1; 100_000]].concat();
    fs::write(&path, &torn).unwrap();
    assert!(matches!(Reader::open(&path), Err(Error::BadFooter { .. })));
    let reader = Reader::options().profile(Profile::Lenient).open(&path).unwrap();
    assert_eq!((reader.manifest().len(), reader.recovered()), (300, Some(100_000)));
    let (len, cut) = (before.len() as u64, torn.len() as u64);
    assert_eq!(
        ztensor::recover(&path, WriteOptions::default()).unwrap(),
        Edited::Truncated { before: cut, after: len }
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(ztensor::recover(&path, WriteOptions::default()).unwrap(), Edited::Unchanged);
}

#[test]
fn whole_files_over_a_limit_are_not_torn() {
    let (_folder, path) = copy("v1.1-ref/many_300.zt");
    let old = fs::read(&path).unwrap();
    let footer = |size: u64| [&size.to_le_bytes()[..], b"ZTEN1000"].concat();
    // Another manifest behind the old file, whole but nested deeper than is read.
    let mut deep = b"\xa3\x67version\x651.1.0\x67objects\xa0\x64deep".to_vec();
    deep.extend([0x81; 200]);
    deep.push(0);
    let deep = [&deep[..], &footer(deep.len() as u64)].concat();
    // And one that is longer than is read, of which nothing is written.
    let hole = (1 << 30) + 1;
    for (skipped, end) in [(0, deep), (hole, footer(hole))] {
        for torn in [&[][..], &[1; 5000]] {
            fs::write(&path, &old).unwrap();
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(old.len() as u64 + skipped)).unwrap();
            file.write_all(&[&end[..], torn].concat()).unwrap();
            let len = file.metadata().unwrap().len();
            let lenient = Reader::options().profile(Profile::Lenient).open(&path);
            lenient.unwrap_err();
            let error = ztensor::recover(&path, WriteOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OverLimit, "{error}");
            assert_eq!(fs::metadata(&path).unwrap().len(), len);
        }
    }
}

#[test]
fn nothing_is_recovered_from_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    fs::write(&path, b"ZTEN1000 and nothing more, at least nothing that is complete").unwrap();
    let error = ztensor::recover(&path, WriteOptions::default()).unwrap_err();
    let expected = "no complete manifest was found in 60 bytes, so there is nothing to recover";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn migrating_loses_nothing() {
    for folder in ["legacy", "v1.1-hand", "v1.1-ref"] {
        for file in test_support::files(&format!("ztensor/valid/{folder}"), "zt") {
            let old = Reader::open(&file).unwrap();
            let mut writer = Writer::new(Vec::new());
            ztensor::migrate(&old, &mut writer).unwrap();
            let new = Reader::from_source(Source::from_bytes(writer.finish().unwrap())).unwrap();
            assert!(new.validate().is_valid(), "{file:?}");
            assert_eq!(new.manifest().len(), old.manifest().len());
            for tensor in old.tensors() {
                let twin = new.tensor(tensor.name()).unwrap_or_else(|| panic!("{file:?}"));
                assert_eq!(twin.attributes().unwrap(), tensor.attributes().unwrap(), "{file:?}");
                let dense = |tensor: ztensor::Tensor<'_>| {
                    let dense = tensor.read().ok()?;
                    Some((dense.info().clone(), dense.bytes().clone()))
                };
                assert_eq!(dense(twin), dense(tensor), "{file:?} {}", tensor.name());
                if let (Ok(a), Ok(b)) = (twin.coo(), tensor.coo()) {
                    assert_eq!(a.values().bytes(), b.values().bytes(), "{file:?}");
                    assert_eq!(a.coords().bytes(), b.coords().bytes(), "{file:?}");
                } else if dense(tensor).is_none() {
                    for b in tensor.blobs().unwrap() {
                        let a = twin.blob(b.role()).unwrap().unwrap();
                        assert_eq!(a.bytes().unwrap(), b.bytes().unwrap(), "{file:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_changes_in_a_migration_is_reported() {
    let rules = |file: &str| {
        let reader = Reader::open(testdata("ztensor/valid").join(file)).unwrap();
        let mut writer = Writer::new(Vec::new());
        let report = ztensor::migrate(&reader, &mut writer).unwrap();
        let rules: Vec<String> = report.into_iter().map(|found| found.rule.into_owned()).collect();
        (rules, Reader::from_bytes(writer.finish().unwrap()).unwrap())
    };
    let (found, new) = rules("legacy/v0_1_file.zt");
    assert_eq!(found, ["zt/migrate-byte-order", "zt/migrate-sparse"]);
    let object = new.tensor("be").unwrap().object().unwrap();
    assert_eq!(object.components[0].1.digest, None);
    assert_eq!(new.manifest().version(), "1.1.0");
    let (found, new) = rules("legacy/v1_0_file.zt");
    assert_eq!(found, ["zt/migrate-generator"]);
    let attributes = new.manifest().attributes().unwrap().unwrap();
    assert_eq!(attributes.get("generator"), Some(&"zTensor-Rust v0.1.0".into()));
    for key in ["dtype", "type", "uncompressed_length"] {
        let (found, new) = rules(&format!("legacy/v1_0_key_{key}.zt"));
        assert_eq!(found, ["zt/migrate-generator", "zt/migrate-key"], "{key}");
        let object = new.tensor("t").unwrap().object().unwrap();
        assert_eq!(object.components[0].1.unknown_keys().count(), 0);
        assert_eq!(object.components[0].1.logical_type, None);
    }
    let (found, new) = rules("legacy/v1_0_key_objects.zt");
    assert_eq!(found, ["zt/migrate-key", "zt/migrate-generator"]);
    assert_eq!(names(&new), ["t"]);
    let (found, new) = rules("legacy/v1_0_generator_twice.zt");
    assert_eq!(found, ["zt/migrate-generator"]);
    assert_eq!(new.manifest().unknown_keys().collect::<Vec<_>>(), ["generator"]);
    let attributes = new.manifest().attributes().unwrap().unwrap();
    assert_eq!(attributes.get("generator"), Some(&"mine".into()));
    let (found, new) = rules("legacy/v12_types.zt");
    assert!(found.contains(&"zt/migrate-type".to_owned()), "{found:?}");
    assert!(found.contains(&"zt/migrate-attribute".to_owned()), "{found:?}");
    let object = new.tensor("f8").unwrap().object().unwrap();
    assert_eq!(object.components[0].1.dtype.name(), "f8_e4m3");
}

#[test]
fn damage_is_not_passed_on() {
    let (_folder, path) = copy("v1.1-ref/digests.zt");
    let mut bytes = fs::read(&path).unwrap();
    bytes[64] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let damaged = Reader::open(&path).unwrap();
    let faulty = Reader::open(testdata("ztensor/invalid/dtype_F32.zt")).unwrap();
    let (checked, never) = (WriteOptions::default(), WriteOptions::default().verify(Verify::Never));
    let migrate = |options: WriteOptions| {
        ztensor::migrate(&damaged, &mut options.write_to(Vec::new()).unwrap()).map(drop)
    };
    let copy = |options: WriteOptions| {
        options.write_to(Vec::new()).unwrap().copy(faulty.tensor("t").unwrap())
    };
    for (refused, rule) in [
        (ztensor::compact(&path, checked).map(drop), "zt/digest-mismatch"),
        (ztensor::compact_dry_run(&path, checked).map(drop), "zt/digest-mismatch"),
        (migrate(checked), "zt/digest-mismatch"),
        (copy(checked), "zt/write"),
    ] {
        assert_eq!(refused.unwrap_err().rule(), rule);
    }
    migrate(never).unwrap();
    copy(never).unwrap();
    let would = ztensor::compact_dry_run(&path, never).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(ztensor::compact(&path, never).unwrap(), would);
    assert_eq!(Reader::open(&path).unwrap().validate().findings()[0].rule, "zt/digest-mismatch");
}

#[test]
fn nothing_is_added_under_objects_without_a_place() {
    for file in ["length_into_manifest.zt", "length_past_eof.zt"] {
        let (_folder, path) = copy(&format!("../invalid/{file}"));
        let before = fs::read(&path).unwrap();
        let mut editor = Editor::open(&path).unwrap();
        editor.writer().add("new", &numbers(1.0)).unwrap();
        assert_eq!(editor.commit().unwrap_err().rule(), "zt/blob-out-of-bounds");
        assert_eq!(fs::read(&path).unwrap(), before);
        let mut editor = Editor::open(&path).unwrap();
        editor.replace("t", &numbers(1.0)).unwrap();
        editor.commit().unwrap();
        assert!(Reader::open(&path).unwrap().validate().is_valid());
    }
}

#[test]
fn what_edits_leave_is_no_fault() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    for turn in 0..3 {
        let mut editor = Editor::open(&path).unwrap();
        editor.writer().add(&format!("new {turn}"), &numbers(1.0)).unwrap();
        editor.replace("s_u8", &numbers(2.0)).unwrap();
        editor.commit().unwrap();
        let mut editor = Editor::open(&path).unwrap();
        editor.set_attribute("turn", u64::from(turn == 1)).unwrap();
        editor.commit().unwrap();
        let report = Reader::open(&path).unwrap().validate();
        let rules = report.findings().iter().map(|found| (&*found.rule, found.severity));
        assert!(rules.clone().all(|rule| rule == ("zt/gap", Severity::Note)), "{report:?}");
        assert!(rules.count() > 0);
    }
    // Bytes that are not a manifest are hidden all the same.
    let mut bytes = fs::read(&path).unwrap();
    let magic = bytes[8..].windows(8).position(|word| word == b"ZTEN1000").unwrap();
    bytes[8 + magic] = b'X';
    let report = Reader::from_bytes(bytes).unwrap().validate();
    assert!(report.findings().iter().any(|found| found.rule == "zt/padding"), "{report:?}");
}

#[test]
fn attributes_are_edited_one_by_one() {
    let (_folder, path) = copy("v1.1-hand/object_attributes.zt");
    let old = Reader::from_bytes(fs::read(&path).unwrap()).unwrap();
    let of_t = |reader: &Reader| reader.tensor("t").unwrap().attributes().unwrap().unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.set_attribute("license", "MIT").unwrap();
    editor.set_attribute("license", "Apache-2.0").unwrap();
    editor.remove_attribute("not there").unwrap();
    editor.set_tensor_attribute("t", "frozen", true).unwrap();
    editor.writer().add("new", &numbers(1.0)).unwrap();
    editor.set_tensor_attribute("new", "unit", "m").unwrap();
    let error = editor.set_tensor_attribute("none", "unit", "m").unwrap_err();
    assert!(matches!(error, Error::MissingObject { .. }), "{error}");
    editor.commit().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert!(reader.validate().is_valid());
    let root = reader.manifest().attributes().unwrap().unwrap();
    assert_eq!(root.get("license"), Some(&"Apache-2.0".into()));
    let mut expected = of_t(&old);
    expected.insert("frozen", true);
    assert_eq!(of_t(&reader), expected);
    let bytes = |reader: &Reader| reader.tensor("t").unwrap().bytes().unwrap();
    assert_eq!(bytes(&reader), bytes(&old));
    let unit = reader.tensor("new").unwrap().attributes().unwrap().unwrap();
    assert_eq!(unit.get("unit"), Some(&Value::Text("m".to_owned())));
    let mut editor = Editor::open(&path).unwrap();
    editor.remove_tensor_attribute("new", "unit").unwrap();
    editor.commit().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.tensor("new").unwrap().attributes().unwrap(), None);
}

/// The same changes, in place and of a copy.
#[test]
fn copies_are_edited_as_files_are() {
    let (_folder, path) = copy("v1.1-ref/scalars.zt");
    let reader = Reader::open(&path).unwrap();
    let added = TensorBuf::from_slice([3], &[1_u8, 2, 3]).unwrap();
    let swap = [("s_u8", "s_i8"), ("s_i8", "s_u8")];
    let mut copy = Editor::copy_to(Vec::new(), &reader, WriteOptions::default()).unwrap();
    copy.rename(&swap).unwrap();
    copy.writer().add("new", &added).unwrap();
    copy.set_tensor_attribute("new", "unit", "mV").unwrap();
    let expected = names(&copy.preview().unwrap());
    let copy = Reader::from_bytes(copy.finish().unwrap()).unwrap();
    assert_eq!(names(&copy), expected);
    assert!(copy.validate().is_valid());

    let mut editor = Editor::open(&path).unwrap();
    editor.rename(&swap).unwrap();
    editor.writer().add("new", &added).unwrap();
    editor.set_tensor_attribute("new", "unit", "mV").unwrap();
    let preview = editor.preview().unwrap();
    assert_eq!((names(&preview), preview.lint().is_valid()), (expected.clone(), true));
    editor.commit().unwrap();
    let edited = Reader::open(&path).unwrap();
    assert_eq!(names(&edited), expected);
    for name in &expected {
        let [a, b] = [&copy, &edited].map(|reader| reader.tensor(name).unwrap().bytes().unwrap());
        assert_eq!(a, b, "{name}");
    }
    let old = |name| reader.tensor(name).unwrap().bytes().unwrap();
    assert_eq!(edited.tensor("s_u8").unwrap().bytes().unwrap(), old("s_i8"));
}

#[test]
fn names_that_are_taken_or_missing_rename_nothing() {
    let reader = Reader::open(testdata("ztensor/valid/v1.1-ref/scalars.zt")).unwrap();
    let mut editor = Editor::copy_to(Vec::new(), &reader, WriteOptions::default()).unwrap();
    for (names, message) in [
        (&[("none", "x")][..], "object \"none\" is not in the file"),
        (&[("s_u8", "x"), ("s_u8", "y")], "object \"s_u8\" is not in the file"),
        (&[("s_u8", "s_i8")], "object \"s_i8\""),
        (&[("s_u8", "x"), ("s_i8", "x")], "object \"x\""),
    ] {
        let error = editor.rename(names).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(editor.contains("s_u8") && editor.contains("s_i8") && !editor.contains("x"));
}
