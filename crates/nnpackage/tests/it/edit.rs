//! Packages that are changed: what changes, what stays, and what is refused.

use std::{collections::BTreeMap, fs, path::Path};

use nnpackage::{
    BuildFault, Builder, Config, ConfigChange, Connected, Connection, Edit, Edited, Editor, Error,
    IoRef, Manifest, Merge, ModelType, PackageVersion, Reader, Sums, WriteOptions, Writer, extract,
    model_archive::Method,
    split,
    tensor_core::{Chain, Finding, Limits, Severity, Source},
};
use proptest::prelude::*;
use test_support::testdata;

use crate::common::{both, bytes, circle, edited, open, part, refuses, valid, walk, written};

fn io(text: &str) -> IoRef {
    text.parse().unwrap()
}

/// Returns every file of a package.
fn contents(reader: &Reader) -> BTreeMap<String, Vec<u8>> {
    let files = reader.files().unwrap();
    files.map(|file| (file.path().to_owned(), file.bytes().unwrap().to_vec())).collect()
}

/// Proves that two packages have the same files but for some, and returns these as they are now.
#[track_caller]
fn differ(before: &Reader, after: &Reader) -> Vec<String> {
    let (before, after) = (contents(before), contents(after));
    let mut paths: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| before.get(path) != after.get(path));
    paths
}

#[test]
fn edits_of_nothing_copy_all_bytes() {
    for path in test_support::files("nnpackage/valid", "zip") {
        let before = Reader::open(&path).unwrap();
        let after = written(&Edit::new(&before));
        assert_eq!(differ(&before, &after), [""; 0], "{path:?}");
        assert_eq!(after.root(), before.root());
        let methods = |reader: &Reader| -> Vec<(String, Method, u32)> {
            let entries = reader.archive().unwrap().entries();
            let files = entries.filter(|entry| !entry.name().ends_with('/'));
            files.map(|e| (e.name().to_owned(), e.info().method, e.info().crc32)).collect()
        };
        assert_eq!(methods(&after), methods(&before), "{path:?}");
    }
}

#[test]
fn packages_of_the_corpus_are_edited_in_place() {
    let folder = tempfile::tempdir().unwrap();
    for path in test_support::files("nnpackage/valid", "zip") {
        let [archive, unpacked] = ["a.zip", "a"].map(|name| folder.path().join(name));
        fs::copy(&path, &archive).unwrap();
        extract(&Reader::open(&path).unwrap(), &unpacked).unwrap();
        for place in [&archive, &unpacked] {
            let before = Reader::open(place).unwrap();
            let old = contents(&before);
            assert_eq!(Editor::open(place).unwrap().commit().unwrap(), Edited::Unchanged);
            let added = edited(place, |edit| edit.put("notes/new.txt", bytes("new")));
            let mut new = contents(&added);
            assert_eq!(new.remove("notes/new.txt").unwrap(), b"new");
            assert!(new == old, "{place:?}");
            let removed = edited(place, |edit| edit.remove("notes/new.txt"));
            assert!(contents(&removed) == old, "{place:?}");
        }
        fs::remove_dir_all(&unpacked).unwrap();
    }
}

#[test]
fn rebuilt_packages_say_the_same() {
    for path in test_support::files("nnpackage/valid", "zip") {
        let before = Reader::open(&path).unwrap();
        let mut merge = Merge::default();
        let after = written(&merge.package(&before).build().unwrap());
        let (old, new) = (before.manifest(), after.manifest());
        assert_eq!(new.models, old.models, "{path:?}");
        assert_eq!(new.connections, old.connections);
        assert_eq!((&new.pkg_inputs, &new.pkg_outputs), (&old.pkg_inputs, &old.pkg_outputs));
        assert_eq!(new.config(), old.config());
        assert_eq!(new.model_infos, old.model_infos);
        let types = |reader: &Reader| -> Vec<String> {
            reader.models().map(|model| model.model_type().unwrap().to_string()).collect()
        };
        assert_eq!(types(&after), types(&before));
        let left: Vec<String> = differ(&before, &after)
            .into_iter()
            .filter(|path| path != "metadata/MANIFEST" && !path.starts_with("metadata/tc/"))
            .collect();
        assert_eq!(left, [""; 0], "{path:?}");
        for (old, new) in before.models().zip(after.models()) {
            let extent = new.file().extent().unwrap().unwrap();
            assert!(extent.is_aligned(4096), "{extent:?}");
            assert_eq!(old.content().unwrap(), new.content().unwrap());
        }
    }
}

#[test]
fn text_around_a_change_stays() {
    let before = open("02");
    let mut edit = Edit::new(&before);
    edit.change_config(&[ConfigChange::set("BACKENDS", "ruy")]).unwrap();
    edit.add_model("second.circle", circle()).unwrap();
    let after = written(&edit);
    let changed = ["metadata/MANIFEST", "metadata/model.cfg", "second.circle"];
    assert_eq!(differ(&before, &after), changed);
    let text = |reader: &Reader, path: &str| {
        String::from_utf8(reader.file(path).unwrap().bytes().unwrap().to_vec()).unwrap()
    };
    let expected = text(&before, changed[1]).replace("=cpu;ruy", "=ruy");
    assert_eq!(text(&after, changed[1]), expected);
    let expected = text(&before, changed[0])
        .replace("\"mymodel.model\"", "\"mymodel.model\", \"second.circle\"")
        .replace("\"tflite\"", "\"tflite\", \"circle\"");
    assert_eq!(text(&after, changed[0]), expected);
    let extent = after.model(1).unwrap().file().extent().unwrap().unwrap();
    assert!(extent.is_aligned(4096));
}

#[test]
fn models_behind_a_removed_one_move_up() {
    let mut edit = Edit::new(&open("03"));
    edit.add_model("m2.circle", part("03", "m1.circle")).unwrap();
    edit.connect(io("1:0:0"), io("2:0:0"));
    edit.manifest_mut().pkg_outputs = vec![io("2:0:0")];
    let three = written(&edit);
    let connected = "models[1] is connected by model-connect[0], expected that this is dropped too";
    let mut edit = Edit::new(&three);
    refuses(edit.remove_model(1, Connected::Refuse), connected);
    edit.remove_model(1, Connected::Drop).unwrap();
    let two = written(&edit);
    assert_eq!(differ(&three, &two), ["m1.circle", "metadata/MANIFEST"]);
    let manifest = two.manifest();
    assert_eq!(manifest.models, ["m0.circle", "m2.circle"]);
    assert_eq!(manifest.connections, []);
    assert_eq!(
        (&manifest.pkg_inputs[..], &manifest.pkg_outputs[..]),
        (&[io("0:0:0")][..], &[io("1:0:0")][..])
    );
    let mut edit = Edit::new(&two);
    edit.connect(io("0:0:0"), io("1:0:0"));
    edit.disconnect(io("0:0:0"), io("1:0:0")).unwrap();
    refuses(
        edit.disconnect(io("0:0:0"), io("1:0:0")),
        "there is no connection from 0:0:0 to 1:0:0",
    );
    edit.remove_model(0, Connected::Drop).unwrap();
    refuses(edit.remove_model(0, Connected::Drop), "the package would have no model");
    refuses(edit.remove_model(7, Connected::Drop), "models[7] is not there: there are 1 models");
    assert_eq!(written(&edit).manifest().models, ["m2.circle"]);
}

#[test]
fn information_goes_with_its_model() {
    let before = open("05");
    let mut edit = Edit::new(&before);
    edit.remove_model(2, Connected::Refuse).unwrap();
    let after = written(&edit);
    let gone = ["metadata/MANIFEST", "metadata/pre-compiled.json", "pre-compiled.model"];
    assert_eq!(differ(&before, &after), gone);
    let manifest = after.manifest();
    assert_eq!((manifest.models.len(), manifest.model_infos.len()), (2, 0));
    assert_eq!(manifest.model_types.as_ref().unwrap(), &["tflite", "circle"]);
}

#[test]
fn replaced_models_have_their_own_type() {
    let before = open("01");
    let mut edit = Edit::new(&before);
    edit.replace_model(0, part("04", "sub/add.tflite")).unwrap();
    let after = written(&edit);
    assert_eq!(after.manifest().models, ["add.circle"]);
    assert_eq!(after.manifest().model_type(0), Some("tflite"));
    edit.replace_model_as(0, bytes("binary"), ModelType::Bin).unwrap();
    let after = written(&edit);
    assert_eq!(after.manifest().model_type(0), Some("bin"));
    assert_eq!(after.model(0).unwrap().file().bytes().unwrap(), "binary");
    let other = "\"add.circle\" is of no known format, expected a Circle or TFLite model, or that \
                 its type is given";
    refuses(edit.replace_model(0, bytes("text")), other);
}

#[test]
fn types_are_added_where_extensions_do_not_tell() {
    let mut edit = Edit::new(&open("04"));
    edit.add_model("other.circle", circle()).unwrap();
    assert_eq!(written(&edit).manifest().model_types, None);
    edit.add_model("weights", circle()).unwrap();
    let types = written(&edit).manifest().model_types.clone().unwrap();
    assert_eq!(types, ["tflite", "circle", "circle", "circle"]);
}

#[test]
fn version_rises_with_what_is_used() {
    let version = |edit: &Edit| edit.manifest().version.to_string();
    let mut builder = Builder::default();
    builder.model("a.circle", circle()).unwrap();
    let mut edit = Edit::new(&written(&builder));
    assert_eq!(version(&edit), "1.0.0");
    edit.set_config("a.cfg", "NUM_THREADS=1\n").unwrap();
    assert_eq!(version(&edit), "1.1.0");
    edit.remove_config().unwrap();
    assert_eq!(version(&edit), "1.0.0");
    refuses(edit.remove_config(), "the package has no configuration");
    // One that was too low, or not there, is left alone.
    let mut edit = Edit::new(&open("04"));
    edit.set_config("a.cfg", "NUM_THREADS=1\n").unwrap();
    assert_eq!(version(&edit), open("04").manifest().version.to_string());
}

#[test]
fn configurations_are_made_replaced_and_removed() {
    let before = open("02");
    let mut edit = Edit::new(&before);
    edit.set_config("other.cfg", "NUM_THREADS=1\n").unwrap();
    let changed = ["metadata/MANIFEST", "metadata/model.cfg", "metadata/other.cfg"];
    assert_eq!(differ(&before, &written(&edit)), changed);
    edit.remove_config().unwrap();
    assert_eq!(differ(&before, &written(&edit)), &changed[..2]);
    edit.change_config(&[ConfigChange::set("USE_MMAPED_DATA", "1")]).unwrap();
    let after = written(&edit);
    assert_eq!(after.config_path().as_deref(), Some("metadata/config.cfg"));
    refuses(
        edit.set_config("../x.cfg", ""),
        "\"metadata/../x.cfg\" is not a path for a file of a package: it has a component \".\" or \"..\"",
    );
}

#[test]
fn files_that_are_named_stay() {
    let mut edit = Edit::new(&open("05"));
    refuses(edit.remove("mymodel.model"), "\"mymodel.model\" is named as models[0]");
    refuses(
        edit.remove("metadata/pre-compiled.json"),
        "\"metadata/pre-compiled.json\" is named as model-infos[2]",
    );
    refuses(edit.remove("none"), "\"none\" is not in the package");
    refuses(
        edit.remove("metadata/MANIFEST"),
        "\"metadata/MANIFEST\" is made with the package, expected another path",
    );
    refuses(edit.put("mymodel.model", bytes("x")), "\"mymodel.model\" is named as models[0]");
    refuses(
        edit.put("MyModel.model", bytes("x")),
        "\"MyModel.model\" is one file with \"mymodel.model\" where case does not count",
    );
    refuses(
        edit.put("metadata/MANIFEST", bytes("{}")),
        "\"metadata/MANIFEST\" is made with the package, expected another path",
    );
    edit.remove("custom_op/libMyOp.x86_64-linux.release.so").unwrap();
    edit.put("custom_op/libMyOp.x86_64-linux.release.so", bytes("again")).unwrap();
    let changed = ["custom_op/libMyOp.x86_64-linux.release.so"];
    assert_eq!(differ(&open("05"), &written(&edit)), changed);
}

/// Whatever is wrong with a package: an edit is refused, or makes one that opens.
#[test]
fn faulty_packages_are_edited_or_refused() {
    let (mut edited, mut refused) = (0, 0);
    for entry in fs::read_dir(testdata("nnpackage/invalid")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(reader) = Reader::open(&path) else { continue };
        let mut count = |built: Result<Vec<u8>, Error>| match built {
            Ok(bytes) => {
                let reader = Reader::from_bytes(bytes).unwrap_or_else(|e| panic!("{path:?}: {e}"));
                drop(reader.validate());
                edited += 1;
            }
            Err(_) => refused += 1,
        };
        let options = WriteOptions::default();
        let write = |change: &dyn Fn(&mut Edit) -> Result<(), Error>| {
            let mut edit = Edit::new(&reader);
            change(&mut edit)?;
            options.write_to(Vec::new(), &edit).finish()
        };
        count(write(&|edit| edit.put("new", bytes("x"))));
        count(write(&|edit| edit.add_model("new.circle", circle()).map(drop)));
        count(write(&|edit| edit.replace_model(0, circle())));
        count(write(&|edit| edit.change_config(&[ConfigChange::set("NUM_THREADS", "1")])));
        count(write(&|edit| {
            edit.add_model("new.circle", circle())?;
            edit.digests(true);
            edit.remove_model(0, Connected::Drop)
        }));
        for builder in split(&reader).unwrap_or_default() {
            count(options.write_to(Vec::new(), &builder).finish());
        }
        let mut merge = Merge::default();
        let (first, sound) = (open("01"), reader.clone());
        let merged = merge.package_in("first", &first).package(&sound).build();
        count(merged.and_then(|builder| options.write_to(Vec::new(), &builder).finish()));
    }
    assert!(edited > 300 && refused > 10, "{edited} {refused}");
}

/// A sink that is full after so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.0.min(bytes.len());
        self.0 -= room;
        if room == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(room) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn full_sinks_are_errors() {
    let mut edit = Edit::new(&open("02"));
    edit.add_model("new.circle", circle()).unwrap();
    edit.digests(true);
    let options = WriteOptions::default().alignment(64);
    let whole = options.write_to(Vec::new(), &edit).finish().unwrap().len();
    for len in 0..whole {
        let error = options.write_to(Full(len), &edit).finish().map(drop).unwrap_err();
        assert_eq!(error.to_string(), "writing the archive failed", "{len} bytes");
    }
    options.write_to(Full(whole), &edit).finish().map(drop).unwrap();
}

#[test]
fn documents_stay_within_what_readers_take() {
    let long = |what: &str| {
        format!("{what} in bytes is 1048577, over the limit of 1048576 (Limits::document_bytes)")
    };
    let text = vec![b'#'; (1 << 20) + 1];
    let mut edit = Edit::new(&open("01"));
    refuses(edit.set_config("a.cfg", text.clone()), &long("configuration file"));
    refuses(edit.set_model_info(0, "a.json", text.clone()), &long("model information"));
    let mut builder = Builder::default();
    refuses(builder.config("a.cfg", text), &long("configuration file"));
    builder.model("a.circle", circle()).unwrap();
    builder.digests(true);
    for index in 0..14_000 {
        builder.file(&format!("files/{index}"), bytes("")).unwrap();
    }
    let error = Writer::new(Vec::new(), &builder).finish().unwrap_err().to_string();
    assert!(error.starts_with("SHA256SUMS in bytes is 1"), "{error}");
    builder.digests(false);
    Writer::new(Vec::new(), &builder).finish().unwrap();
}

/// A folder with a model that runs another, and a package of it.
fn running() -> (tempfile::TempDir, Reader) {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("run.circle");
    fs::copy(testdata("nnpackage/invalid/run_model_missing/add.circle"), &model).unwrap();
    fs::write(folder.path().join("other.tvn"), "binary").unwrap();
    let mut builder = Builder::default();
    builder.model("add.circle", circle()).unwrap();
    builder.model_from("a/run.circle", &model).unwrap();
    (folder, written(&builder))
}

#[test]
fn files_that_a_model_needs_go_with_it() {
    let (_folder, reader) = running();
    let mut edit = Edit::new(&reader);
    edit.remove("a/other.tvn").unwrap();
    let named = "\"a/other.tvn\" is named as \"other.tvn\" by models[1]";
    refuses(Writer::new(Vec::new(), &edit).finish(), named);
    let mut edit = Edit::new(&reader);
    edit.remove_model(1, Connected::Refuse).unwrap();
    let gone = ["a/other.tvn", "a/run.circle", "metadata/MANIFEST"];
    assert_eq!(differ(&reader, &written(&edit)), gone);
}

#[test]
fn files_that_a_new_model_needs_come_with_it() {
    let (folder, _) = running();
    let before = open("01");
    let mut edit = Edit::new(&before);
    edit.add_model_from("run.circle", folder.path().join("run.circle")).unwrap();
    let new = ["metadata/MANIFEST", "other.tvn", "run.circle"];
    assert_eq!(differ(&before, &written(&edit)), new);
    let mut edit = Edit::new(&before);
    edit.replace_model_from(0, folder.path().join("run.circle")).unwrap();
    assert_eq!(differ(&before, &written(&edit)), ["add.circle", "other.tvn"]);
    let mut edit = Edit::new(&before);
    let source = Source::open(folder.path().join("run.circle")).unwrap();
    edit.add_model("run.circle", source).unwrap();
    let missing = "\"run.circle\" needs the file \"other.tvn\", which is not in the package";
    refuses(Writer::new(Vec::new(), &edit).finish(), missing);
}

#[test]
fn digests_are_kept_up() {
    let (_folder, places) = both("03");
    for place in places {
        let listed = |edit: &dyn Fn(&mut Edit) -> Result<(), Error>| {
            let reader = edited(&place, edit);
            assert!(reader.validate().is_valid(), "{:?}", reader.validate());
            reader.sums().unwrap().map(|sums| sums.iter().len())
        };
        let digests = |wanted| {
            move |edit: &mut Edit| {
                edit.digests(wanted);
                Ok(())
            }
        };
        assert_eq!(listed(&digests(true)), Some(5));
        let more = listed(&|edit| {
            edit.set_config("a.cfg", "NUM_THREADS=1\n")?;
            edit.put("new", bytes("x"))
        });
        assert_eq!(more, Some(7));
        assert_eq!(listed(&|edit| edit.remove("new")), Some(6));
        assert_eq!(listed(&digests(false)), None);
        assert!(Reader::open(&place).unwrap().file(Sums::PATH).is_none());
        assert_eq!(listed(&digests(true)), Some(6));
    }
}

#[test]
fn edits_do_not_hide_what_was_broken_before() {
    let mut edit = Edit::new(&open("03"));
    edit.digests(true);
    let folder = tempfile::tempdir().unwrap();
    let [package, archive] = ["a", "a.zip"].map(|name| folder.path().join(name));
    Writer::options().create_folder(&package, &edit).unwrap();
    fs::write(package.join("m0.circle"), contents(&open("01"))["add.circle"].clone()).unwrap();
    fs::remove_file(package.join("metadata/tc/input.h5")).unwrap();
    fs::write(package.join("stray"), "x").unwrap();
    let same = Edit::new(&Reader::open(&package).unwrap());
    Writer::create(&archive, &same).unwrap().finish().unwrap();
    let faults = |place: &Path| -> Vec<(String, Option<String>)> {
        let report = Reader::open(place).unwrap().validate();
        let about = report.findings().iter().filter(|found| found.rule.starts_with("nnp/digest"));
        let about = about.filter(|found| found.rule != "nnp/digests");
        about.map(|found| (found.rule.to_string(), found.at.entry.clone())).collect()
    };
    let fault = |rule: &str, path: &str| (rule.to_owned(), Some(path.to_owned()));
    let expected = [
        fault("nnp/digest", "m0.circle"),
        fault("nnp/digest-missing-file", "metadata/tc/input.h5"),
        fault("nnp/digest-unlisted-file", "stray"),
    ];
    for place in [&package, &archive] {
        assert_eq!(faults(place), expected, "{place:?}");
        edited(place, |edit| edit.put("new", bytes("x")));
        assert_eq!(faults(place), expected, "{place:?}");
        edited(place, |edit| {
            edit.digests(true);
            edit.replace_model(0, part("03", "m0.circle"))
        });
        assert_eq!(faults(place), []);
    }
}

#[test]
fn dry_runs_change_nothing() {
    let (_folder, places) = both("02");
    for place in places {
        let before = contents(&Reader::open(&place).unwrap());
        let mut editor = Editor::dry_run(&place, WriteOptions::default()).unwrap();
        editor.edit_mut().change_config(&[ConfigChange::set("NUM_THREADS", "1")]).unwrap();
        editor.edit_mut().remove("metadata/mymodel.json").unwrap();
        match editor.commit().unwrap() {
            Edited::Replaced { after, .. } => assert!(after > 500, "{after}"),
            edited => assert_eq!(edited, Edited::Updated { written: 1, removed: 1 }),
        }
        assert!(contents(&Reader::open(&place).unwrap()) == before);
    }
}

#[cfg(unix)]
#[test]
fn failed_edits_of_folders_leave_everything() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("a");
    extract(&open("03"), &package).unwrap();
    // A folder that leads out: nothing may be written there.
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    symlink("../elsewhere", package.join("out")).unwrap();
    let before = walk(folder.path());
    let unchecked = WriteOptions::default().unchecked();
    let mut editor = Editor::open_with(&package, unchecked).unwrap();
    let outside = "\"out/file\" and \"out\" cannot both be there: one would be a file inside of the \
                   other";
    refuses(editor.edit_mut().put("out/file", bytes("x")), outside);
    // A place that a folder has; it is found out after other files are in theirs.
    fs::create_dir(package.join("z")).unwrap();
    editor.edit_mut().set_config("a.cfg", "NUM_THREADS=1\n").unwrap();
    editor.edit_mut().replace_model(0, circle()).unwrap();
    editor.edit_mut().remove("metadata/tc/input.h5").unwrap();
    editor.edit_mut().put("new/folder/file", bytes("x")).unwrap();
    editor.edit_mut().put("z", bytes("x")).unwrap();
    assert!(editor.commit().unwrap_err().to_string().starts_with("\"z\" "));
    assert!(walk(folder.path()) == before);
    assert!(!package.join("new").exists());
    // A folder that takes no file; whoever may do everything is not kept out.
    fs::set_permissions(package.join("metadata/tc"), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(package.join("metadata/tc/x"), "").is_ok() {
        return;
    }
    let mut editor = Editor::open(&package).unwrap();
    editor.edit_mut().put("a", bytes("x")).unwrap();
    editor.edit_mut().remove("metadata/tc/input.h5").unwrap();
    assert!(editor.commit().is_err());
    assert!(walk(folder.path()) == before);
}

#[test]
fn edits_that_bring_errors_in_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [archive, unpacked] = ["a.zip", "a"].map(|name| folder.path().join(name));
    Writer::create(&archive, &Edit::new(&open("03"))).unwrap().finish().unwrap();
    extract(&open("03"), &unpacked).unwrap();
    let before = walk(folder.path());
    let edit = |editor: Result<Editor, Error>| {
        let mut editor = editor.unwrap();
        editor.edit_mut().connect(IoRef::new(0, 0, 0), IoRef::new(9, 0, 0));
        editor.commit()
    };
    for place in [&archive, &unpacked] {
        let options = WriteOptions::default();
        for editor in [Editor::dry_run(place, options), Editor::open(place)] {
            let error = edit(editor).unwrap_err();
            let Error::Build { path, fault: BuildFault::Invalid(_) } = &error else {
                panic!("{error}")
            };
            assert_eq!(path, "metadata/MANIFEST");
        }
        assert!(walk(folder.path()) == before);
    }
    for place in [&archive, &unpacked] {
        assert!(
            edit(Editor::open_with(place, WriteOptions::default().unchecked()))
                .unwrap()
                .has_changed()
        );
    }
}

#[test]
fn split_packages_have_what_belongs_to_each() {
    let builders = split(&open("05")).unwrap();
    let paths: Vec<Vec<&str>> = builders.iter().map(|builder| builder.paths().collect()).collect();
    let kernels = ["a", "so"].map(|end| format!("custom_op/libMyOp.x86_64-linux.release.{end}"));
    assert_eq!(paths[0], ["mymodel.model"]);
    assert_eq!(paths[1], [&kernels[0], &kernels[1], "yourmodel.model"]);
    assert_eq!(paths[2], ["metadata/pre-compiled.json", "pre-compiled.model"]);
    let types: Vec<_> =
        builders.iter().map(|builder| builder.manifest().model_types.unwrap().remove(0)).collect();
    assert_eq!(types, ["tflite", "circle", "bin"]);
    for builder in builders {
        let reader = written(&builder);
        assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    }
}

#[test]
fn golden_data_stay_with_one_model() {
    let with_golden = |builder: &Builder| builder.paths().any(|path| path.ends_with("input.h5"));
    let reader = open("03");
    assert!(split(&reader).unwrap().iter().all(|builder| !with_golden(builder)));
    let mut edit = Edit::new(&reader);
    edit.remove_model(1, Connected::Drop).unwrap();
    let builders = split(&written(&edit)).unwrap();
    assert!(builders.len() == 1 && with_golden(&builders[0]));
}

#[test]
fn split_and_merged_packages_are_as_before() {
    let before = open("03");
    let parts: Vec<Reader> = split(&before).unwrap().iter().map(|part| written(part)).collect();
    let mut merge = Merge::default();
    merge.package(&parts[0]).package(&parts[1]).connect(io("0:0:0"), io("1:0:0"));
    let merged = written(&merge.build().unwrap());
    let expected = Manifest { configs: Vec::new(), ..before.manifest().clone() };
    assert_eq!(*merged.manifest(), expected);
    let tc = ["metadata/tc/expected.h5", "metadata/tc/input.h5"];
    assert_eq!(differ(&before, &merged), ["metadata/MANIFEST", tc[0], tc[1]]);
}

#[test]
fn merged_packages_keep_their_connections() {
    let (pair, single) = (open("03"), open("01"));
    let mut merge = Merge::default();
    merge.package(&single).package(&pair).package_in("again", &pair);
    merge.connect(io("2:0:0"), io("3:0:0"));
    let merged = merge.build().unwrap();
    let manifest = merged.manifest();
    let models = ["add.circle", "m0.circle", "m1.circle", "again/m0.circle", "again/m1.circle"];
    assert_eq!(manifest.models, models);
    let edges: Vec<String> = manifest.edges().map(|(from, to)| format!("{from}-{to}")).collect();
    assert_eq!(edges, ["1:0:0-2:0:0", "3:0:0-4:0:0", "2:0:0-3:0:0"]);
    assert_eq!(manifest.pkg_inputs, [io("0:0:0"), io("0:0:1"), io("1:0:0")]);
    assert_eq!(manifest.pkg_outputs, [io("0:0:0"), io("4:0:0")]);
    let report = written(&merged).validate();
    assert!(report.is_valid(), "{report:?}");
}

#[test]
fn packages_that_cannot_be_merged() {
    let (pair, config) = (open("03"), open("02"));
    let mut merge = Merge::default();
    let taken = "\"m0.circle\" is in the package already";
    refuses(merge.package(&pair).package(&pair).build(), taken);
    let mut edit = Edit::new(&config);
    edit.change_config(&[ConfigChange::set("NUM_THREADS", "7")]).unwrap();
    let other = written(&edit);
    let mut merge = Merge::default();
    merge.package(&pair).package(&config).package_in("x", &other);
    let configs = "packages 1 and 2 have different configurations, expected one to be chosen";
    refuses(merge.build(), configs);
    let merged = written(&merge.config(2).build().unwrap());
    let config = merged.config().unwrap().unwrap();
    assert_eq!(config.value("NUM_THREADS"), Some("7"));
    refuses(merge.config(3).build(), "package 3 is not there: there are 3 packages");
    merge.config(0).connect(io("0:0:0"), io("9:0:0"));
    refuses(merge.build(), "models[9] is not there: there are 4 models");
    let nothing = "the package would have no model";
    refuses(Merge::default().build(), nothing);
}

const MANIFESTS: [&str; 6] = [
    "{\n  \"major-version\": \"1\",\n  \"models\": [\n    \"a\", // x\n    /* y */ \"b\",\n  ],\n}\n",
    "{\"models\":[\"a\"],\"model-types\":[\"circle\",],\"x\":{\"models\":[1]}} rest",
    "\u{feff}{\r\n\t\"models\" : [ \"a\", 5, null, true ],\r\n\t\"configs\" : [ ],\r\n\t\"configs\" : \
     [\"\"]\r\n}",
    "{\"main-model\": \"a\" /* , */ , \"patch-version\": 3}",
    "{ \"models\": [ \"a\", \"b\" ], \"model-connect\": [ {\"from\": \"0:0:0 \", \"to\": [\"1:0:0\"], \
     \"z\": [] }, 7, {} ], \"pkg-inputs\": [ \"0:0:0x\", \"x\" ] }",
    "{\n// only\n\"models\":\n[\n\"a\"\n]\n//end\n}//",
];

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-c\"\\\\/\u{e9}]{0,3}", 0..4)
}

fn references() -> impl Strategy<Value = Vec<IoRef>> {
    let reference = (0..3_u16, 0..2_u16, 0..2_u32);
    prop::collection::vec(
        reference.prop_map(|(model, graph, io)| IoRef::new(model, graph, io)),
        0..4,
    )
}

proptest! {
    /// Whatever is asked of whatever text: the result reads as asked, or the edit is refused.
    #[test]
    fn edited_manifests_read_as_asked(
        text in prop::sample::select(MANIFESTS.to_vec()),
        (models, types, configs) in (texts(), prop::option::of(texts()), texts()),
        (inputs, outputs) in (references(), references()),
        connections in prop::collection::vec((references(), references()), 0..3),
        version in prop::option::of((0..3_u64, 0..3_u64)),
    ) {
        let limits = Limits::default();
        let mut manifest = Manifest::parse(text.as_bytes(), &limits).unwrap();
        prop_assert_eq!(manifest.edit(text.as_bytes(), &limits).unwrap(), text.as_bytes());
        if !models.is_empty() {
            (manifest.models, manifest.is_main_model) = (models, false);
        }
        (manifest.model_types, manifest.configs) = (types, configs);
        (manifest.pkg_inputs, manifest.pkg_outputs) = (inputs, outputs);
        let connections = connections.into_iter().filter_map(|(from, to)| {
            Some(Connection { from: *from.first()?, to })
        });
        manifest.connections = connections.collect();
        if let Some((major, minor)) = version {
            manifest.version = PackageVersion::new(major, minor, 0);
        }
        let edited = manifest.edit(text.as_bytes(), &limits).unwrap();
        prop_assert_eq!(&Manifest::parse(&edited, &limits).unwrap(), &manifest);
        let whole = Manifest::parse(&manifest.to_bytes(), &limits).unwrap();
        prop_assert_eq!(whole, manifest);
        for kept in ["// x", "/* y */", "rest", "// only", "//end", "\"z\": []"] {
            let was_inside = ["// x", "/* y */", "\"z\": []"].contains(&kept);
            if text.contains(kept) && !was_inside {
                prop_assert!(String::from_utf8_lossy(&edited).contains(kept));
            }
        }
    }

    /// Bytes that are anything: a typed error or a text that reads back, never a panic.
    #[test]
    fn mutated_manifests_do_not_panic(
        text in prop::sample::select(MANIFESTS.to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        models in texts(),
    ) {
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let limits = Limits::default();
        if let Ok(mut manifest) = Manifest::parse(&bytes, &limits) {
            manifest.models.extend(models);
            manifest.configs = vec!["c".to_owned()];
            if let Ok(edited) = manifest.edit(&bytes, &limits) {
                prop_assert_eq!(Manifest::parse(&edited, &limits).unwrap(), manifest);
            }
        }
    }

    /// Whatever stands in a configuration, a key that is set counts and nothing else changes.
    #[test]
    fn edited_configurations_read_as_asked(
        text in "([AB#= \t\r\n\u{e9}]|A=1\n|B=2 # x\n){0,12}",
        value in "[a-c=]{1,3}",
    ) {
        let edited = Config::edit(text.as_bytes(), &[ConfigChange::set("A", &*value)]);
        let edited = edited.unwrap();
        let (before, after) =
            (Config::parse(text.as_bytes()), Config::parse(&edited));
        prop_assert_eq!(after.get("A").map(|entry| &*entry.value), Some(&*value));
        prop_assert_eq!(after.get("B").map(|entry| &entry.value), before.get("B").map(|entry| &entry.value));
        let unset = Config::edit(&edited, &[ConfigChange::unset("A")]).unwrap();
        prop_assert!(Config::parse(&unset).get("A").is_none());
    }
}

/// What a link that is a model leads to stays.
#[cfg(unix)]
#[test]
fn files_behind_models_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("package");
    let reader = open("01");
    extract(&reader, &path).unwrap();
    let model = reader.model(0).unwrap().path();
    fs::rename(path.join(model), path.join("real.circle")).unwrap();
    std::os::unix::fs::symlink("real.circle", path.join(model)).unwrap();
    let mut edit = Edit::new(&Reader::open(&path).unwrap());
    let error = edit.remove("real.circle").unwrap_err().to_string();
    assert!(error.contains("models[0]"), "{error}");
}

/// A list that is asked for has every file, whatever the old one had.
#[test]
fn lists_are_made_anew_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("package");
    extract(&open("01"), &path).unwrap();
    fs::write(path.join("metadata/SHA256SUMS"), "").unwrap();
    assert!(!Reader::open(&path).unwrap().validate().is_valid());
    let reader = edited(&path, |edit| {
        edit.digests(true);
        Ok(())
    });
    assert!(reader.validate().is_valid());
}

/// A second configuration, which onert does not look at, goes with the first.
#[test]
fn further_configurations_do_not_stay_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("metadata")).unwrap();
    let manifest = "{\"configs\": [\"a.cfg\", \"b.cfg\"], \"models\": [\"m\"], \
                    \"model-types\": [\"circle\"]}";
    for (path, text) in [("MANIFEST", manifest), ("a.cfg", "A=1\n"), ("b.cfg", "B=1\n")] {
        fs::write(folder.path().join("metadata").join(path), text).unwrap();
    }
    let reader = Reader::open(folder.path()).unwrap();
    let mut edit = Edit::new(&reader);
    edit.set_config("c.cfg", "C=1\n").unwrap();
    assert_eq!(edit.manifest().configs, ["c.cfg", "b.cfg"]);
    let changed = ["metadata/MANIFEST", "metadata/a.cfg", "metadata/c.cfg"];
    assert_eq!(differ(&reader, &written(&edit)), changed);
    let mut edit = Edit::new(&reader);
    edit.remove_config().unwrap();
    let changed = ["metadata/MANIFEST", "metadata/a.cfg", "metadata/b.cfg"];
    assert_eq!(differ(&reader, &written(&edit)), changed);
}

/// What the checks say of a preview is what they say of the package once it is written.
#[test]
fn previews_are_as_what_is_written() {
    let rules = |reader: &Reader| {
        let report = reader.diagnoses().into_iter().map(|found| found.finding);
        // What is beside the package only an archive has.
        let is_compared = |found: &Finding| {
            let only_archive = ["nnp/stray-file", "nnp/top-folder"].contains(&&*found.rule);
            found.severity > Severity::Note && !only_archive
        };
        let report = report.filter(is_compared);
        let mut found: Vec<_> = report.map(|found| (found.rule, found.at, found.message)).collect();
        found.sort_by_key(|found| format!("{found:?}"));
        found
    };
    let mut count = 0;
    for entry in fs::read_dir(testdata("nnpackage/invalid")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(reader) = Reader::open(&path) else { continue };
        let mut edit = Edit::new(&reader);
        edit.put("new", bytes("x")).unwrap();
        let (Ok(preview), Ok(bytes)) = (edit.preview(), Writer::new(Vec::new(), &edit).finish())
        else {
            continue;
        };
        let found = rules(&Reader::from_bytes(bytes).unwrap());
        assert_eq!(rules(&preview), found, "{path:?}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

/// The longest names that file systems have.
#[test]
fn long_names_are_edited() {
    let folder = tempfile::tempdir().unwrap();
    let (long, zip) = ("n".repeat(255), format!("{}.zip", "a".repeat(251)));
    let [archive, unpacked] = [&zip, &"b".repeat(255)].map(|name| folder.path().join(name));
    fs::copy(valid("01"), &archive).unwrap();
    extract(&open("01"), &unpacked).unwrap();
    for place in [archive, unpacked] {
        let reader = edited(&place, |edit| edit.put(&long, bytes("x")));
        assert_eq!(reader.file(&long).unwrap().bytes().unwrap(), "x");
    }
}

#[cfg(unix)]
#[test]
fn dry_runs_are_refused_as_edits_are() {
    use std::os::unix::fs::PermissionsExt as _;
    let refused = |place: &Path| {
        let edit = |editor: Result<Editor, Error>| {
            let mut editor = editor?;
            editor.edit_mut().replace_model(0, circle())?;
            editor.commit()
        };
        let editors = [Editor::dry_run(place, WriteOptions::default()), Editor::open(place)];
        let [dry_run, real] = editors.map(|editor| Chain(&edit(editor).unwrap_err()).to_string());
        assert_eq!(dry_run, real);
        real
    };
    let (_folder, places) = both("02");
    for place in &places {
        let first = Editor::open(place).unwrap();
        let error = refused(place);
        assert!(error.contains("is locked") || error.contains("another"), "{error}");
        drop(first);
        drop(Editor::open(place).unwrap());
    }
    let model = places[1].join("mymodel.model");
    for (place, file) in places.iter().zip([&places[0], &model]) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
        let error = refused(place);
        assert!(error.ends_with("ermission denied") || error.contains("os error"), "{error}");
    }
}
