//! Where commands write, and what becomes of what is there.

use std::{fs, path::Path, process::Command};

use modelcrate::tensor_core::output::LockedFile;
use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

/// A folder with a model of each format.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (sample, name) in [
        ("carton/golden/minimal.carton", "m.carton"),
        ("nnpackage/valid/everything.circle", "m.circle"),
        ("ptl/valid/torch113/img.ptl", "m.ptl"),
        ("rten/valid/convnet.v2.rten", "m.rten"),
        ("ztensor/valid/v1.1-ref/scalars.zt", "m.zt"),
    ] {
        fs::copy(testdata(sample), folder.path().join(name)).unwrap();
    }
    folder
}

/// Commands that write a model to `new`.
const WRITERS: [&str; 9] = [
    "compact m.carton -o new --compression stored",
    "edit m.circle -o new --set license=MIT",
    "ptl strip m.ptl -o new",
    "convert m.rten new --to rten1",
    "convert m.rten new --to onnx",
    "convert m.rten new --to onnx --external-data 256",
    "convert m.zt new --to zt",
    "convert m.zt new --to safetensors",
    "create new --to zt --from m.zt",
];

/// Commands that change a model in place.
const EDITS: [&str; 8] = [
    "edit m.carton --set license=MIT",
    "edit m.circle --set license=MIT",
    "ptl strip m.ptl",
    "edit m.ptl --remove model/live.spec.json",
    "recover m.ptl",
    "edit m.rten --set license=MIT",
    "edit m.zt --remove s_u8",
    "compact m.zt",
];

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn dry_runs_sweep_nothing() {
    let folder = folder();
    let left = folder.path().join(".x.dead00.modelcrate");
    fs::write(&left, "").unwrap();
    for line in WRITERS.iter().chain(&EDITS) {
        for more in [&["--dry-run"][..], &["--dry-run", "--overwrite"]] {
            if more.len() == 1 || WRITERS.contains(line) {
                prints(folder.path(), &[&words(line), more].concat());
                assert!(left.exists(), "{line}");
            }
        }
    }
    prints(folder.path(), &words(EDITS[0]));
    assert!(!left.exists());
}

#[test]
fn an_output_that_is_edited_is_not_replaced() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("new"), "old").unwrap();
    fs::write(cd.join("new.data"), "old").unwrap();
    let replace = |line: &str, name: &str| {
        let _editor = LockedFile::open(cd.join(name)).unwrap();
        for more in [&["--overwrite", "--dry-run"][..], &["--overwrite"]] {
            let said = fails(cd, &[&words(line), more].concat());
            let expected = format!("error: {name}: is locked, expected no other writer\n");
            assert_eq!(said, (2, expected), "{line}");
        }
        assert_eq!(fs::read(cd.join(name)).unwrap(), b"old");
    };
    WRITERS.iter().for_each(|line| replace(line, "new"));
    replace(WRITERS[5], "new.data");
    WRITERS
        .iter()
        .for_each(|line| drop(prints(cd, &[&words(line), &["--overwrite"][..]].concat())));
}

/// Runs a command whose standard output or standard error cannot be written to.
#[cfg(target_os = "linux")]
fn into_full(cd: &Path, line: &str, is_error: bool) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modelcrate"));
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    match is_error {
        true => command.stderr(full),
        false => command.stdout(full),
    };
    let output = command.args(words(line)).current_dir(cd).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn where_errors_cannot_be_written_the_status_is_what_it_is() {
    let folder = folder();
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("empty/notes"), "").unwrap();
    for (line, status) in [
        ("convert m.rten - --to rten1", 0),
        ("ptl spec m.ptl", 0),
        ("verify --allow-empty empty", 0),
        ("inspect none", 2),
        ("inspekt", 2),
        ("verify none", 2),
    ] {
        assert_eq!(into_full(folder.path(), line, true).0, Some(status), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_edit_that_cannot_be_reported_is_done_and_says_so() {
    let folder = folder();
    let cd = folder.path();
    let failed = "writing to standard output failed: No space left on device (os error 28)\n";
    for line in WRITERS.iter().chain(&EDITS) {
        let args = words(line);
        let name = if WRITERS.contains(line) {
            "new"
        } else {
            args.iter().find(|word| word.starts_with("m.")).unwrap()
        };
        let dry_run = into_full(cd, &format!("{line} --dry-run"), false);
        assert_eq!(dry_run, (Some(2), format!("error: {name}: {failed}")), "{line}");
        let said = into_full(cd, line, false);
        let expected = format!("error: {name}: everything is done, but {failed}");
        assert_eq!(said, (Some(2), expected), "{line}");
        if name == "new" {
            fs::remove_file(cd.join("new")).unwrap();
        }
    }
}

#[test]
fn standard_output_needs_a_temporary_folder_for_large_files_only() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("large"), vec![7; 70 << 20]).unwrap();
    fs::copy(cd.join("m.zt"), cd.join("large.zt")).unwrap();
    prints(cd, &words("edit large.zt --put large=u8:73400320:large"));
    let print = |name: &str, temporary: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_modelcrate"));
        command.args(["convert", name, "-", "--to", "zt"]).current_dir(cd);
        command.env("TMPDIR", temporary).output().unwrap()
    };
    for name in ["m.zt", "large.zt"] {
        prints(cd, &["convert", name, "new", "--to", "zt", "--overwrite"]);
        assert!(print(name, cd).stdout == fs::read(cd.join("new")).unwrap(), "{name}");
    }
    if cfg!(unix) {
        let none = cd.join("none");
        assert!(print("m.zt", &none).status.success());
        let large = print("large.zt", &none);
        let said = String::from_utf8(large.stderr).unwrap();
        assert_eq!(large.status.code(), Some(2));
        assert!(said.contains("in the folder for temporary files, ") && said.contains("none"));
        assert!(large.stdout.is_empty());
    }
}

#[test]
fn outputs_are_no_folders() {
    let folder = folder();
    for line in WRITERS {
        for more in [&[][..], &["--dry-run"]] {
            let mut args = words(line);
            let output = args.iter_mut().find(|word| **word == "new").unwrap();
            *output = "new/";
            let (status, said) = fails(folder.path(), &[&args, more].concat());
            let expected =
                "new/: creation failed: it is the path of a folder, which is not there\n";
            assert_eq!((status, said), (2, format!("error: {expected}")), "{line}");
        }
    }
    let missing = ["ptl", "inputs", "new.json", "--param", "a=1", "-o", "none/new"];
    fs::write(folder.path().join("new.json"), PACKED).unwrap();
    let said = fails(folder.path(), &missing);
    assert_eq!(fails(folder.path(), &[&missing[..], &["--dry-run"]].concat()), said);
    let before = fs::read(folder.path().join("m.rten")).unwrap();
    fs::rename(folder.path().join("m.rten"), folder.path().join("m.data")).unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let line = "convert m.data m --to onnx --external-data 1 --overwrite";
        let said = fails(folder.path(), &[&words(line), more].concat());
        let expected =
            "error: m.data: is the input, and where constants go: expected another output\n";
        assert_eq!(said, (2, expected.to_owned()));
        assert!(fs::read(folder.path().join("m.data")).unwrap() == before);
    }
    assert!(modelcrate(folder.path(), &["verify", "m.data"]).status.success());
}

const PACKED: &str = r#"{
    "pack": {"type": "tensor", "dtype": "float", "sizes": [1, 2], "items": ["$a", 0.5]},
    "unpack": {"type": "tensor", "dtype": "float", "key": "scores"}
}"#;
