//! Transcripts of the command, in `tests/cmd`, and edits, which change files.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use modelcrate::ztensor::Writer;
use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

// The help of a build that reads addresses has an option more.
#[cfg(not(feature = "remote"))]
#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let valid = testdata("ztensor/valid");
    fs::copy(valid.join("v1.1-ref/scalars.zt"), folder.path().join("model.zt")).unwrap();
    fs::copy(valid.join("v1.1-ref/sparse_csr.zt"), folder.path().join("other.zt")).unwrap();
    fs::copy(valid.join("legacy/v0_1_file.zt"), folder.path().join("old.zt")).unwrap();
    fs::write(folder.path().join("bias.bin"), [0; 24]).unwrap();
    folder
}

#[test]
fn edits_go_through() {
    let folder = folder();
    let cd = folder.path();
    let added = prints(cd, &["edit", "model.zt", "--put", "bias=f32:2,3:bias.bin"]);
    assert!(added.starts_with("model.zt: added bias\nmodel.zt: edited, "), "{added}");
    prints(cd, &["edit", "model.zt", "--from", "other.zt"]);
    let raw = "bias=f64:3:bias.bin";
    prints(cd, &["edit", "model.zt", "--put", raw, "--compression", "zstd", "--digest", "sha256"]);
    let inspected = prints(cd, &["inspect", "--tensors", "model.zt"]);
    assert!(inspected.contains("bias"), "{inspected}");
    assert!(inspected.contains("sparse_csr"), "{inspected}");
    prints(cd, &["edit", "model.zt", "--remove", "bias"]);
    assert!(prints(cd, &["compact", "model.zt"]).starts_with("model.zt: compacted, "));
    assert_eq!(prints(cd, &["verify", "model.zt"]), "model.zt: valid\n");
}

#[test]
fn dry_runs_change_nothing() {
    let folder = folder();
    let cd = folder.path();
    // So much that an edit would write some of it before its end.
    fs::write(cd.join("large.bin"), vec![7; 12 << 20]).unwrap();
    let state = || {
        let path = cd.join("model.zt");
        (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap())
    };
    let before = state();
    let json =
        prints(cd, &["edit", "model.zt", "--from", "other.zt", "--dry-run", "--format", "json"]);
    assert!(json.starts_with("{\"schema\":1,\"path\":\"model.zt\",\"dry_run\":true"), "{json}");
    for args in [
        &["edit", "model.zt", "--put", "l=u8:12582912:large.bin"][..],
        &["edit", "model.zt", "--put", "s_u8=u8:12582912:large.bin"],
        &["edit", "model.zt", "--remove", "s_u8"],
        &["recover", "model.zt"],
    ] {
        prints(cd, &[args, &["--dry-run"]].concat());
        assert!(state() == before, "{args:?}");
    }
    prints(cd, &["convert", "old.zt", "new.zt", "--dry-run"]);
    assert!(!cd.join("new.zt").exists());
}

/// Each names the file that is at fault, once.
#[test]
fn refused_edits_change_nothing() {
    let folder = folder();
    let cd = folder.path();
    let before = fs::read(cd.join("model.zt")).unwrap();
    for (line, status, file, message) in [
        ("edit model.zt --remove none", 2, "model.zt", "object \"none\" is not in the file"),
        ("edit model.zt --remove none --dry-run", 2, "model.zt", "is not in the file"),
        ("edit model.zt --rename none=x", 2, "model.zt", "is not in the file"),
        ("edit model.zt --rename s_u8=s_i8", 2, "model.zt", "\"s_i8\""),
        ("edit model.zt --unset none", 2, "model.zt", "has no attribute"),
        ("edit model.zt --toml x", 2, "model.zt", "for which there is no --toml, only --remove, "),
        ("edit model.zt --put b=f32:7:bias.bin", 2, "bias.bin", "needs 28"),
        ("edit model.zt --put b=u8:24:none", 2, "none", "opening failed"),
        ("edit model.zt --from model.zt", 2, "model.zt", "is the file that is edited"),
        ("edit model.zt --from other.zt --tensor x", 2, "other.zt", "has no tensor"),
        (
            "edit model.zt --from old.zt",
            2,
            "old.zt",
            "stored as sparsecoo, expected dense (--densify",
        ),
        ("edit model.zt --from none", 2, "none", "opening failed"),
        ("edit model.zt --from bias.bin", 1, "bias.bin", "expected a format"),
        ("edit none --put b=u8:24:bias.bin", 2, "none", "opening failed"),
        ("edit none --put b=u8:24:bias.bin --dry-run", 2, "none", "opening failed"),
        ("compact old.zt", 2, "old.zt", "migrate it first"),
        ("compact bias.bin", 1, "bias.bin", "expected a format"),
        ("compact none", 2, "none", "opening failed"),
        ("recover bias.bin", 1, "bias.bin", ""),
        ("recover bias.bin --dry-run", 1, "bias.bin", ""),
        ("convert none new.zt", 2, "none", "opening failed"),
        ("convert old.zt model.zt", 2, "model.zt", "already (--overwrite replaces it)"),
        ("convert old.zt old.zt --overwrite", 2, "old.zt", "is the input"),
        ("convert old.zt none/new.zt", 2, "none/new.zt", "folder that does not exist"),
        ("inspect none", 2, "none", "opening failed"),
        ("inspect bias.bin", 1, "bias.bin", "expected a format"),
        ("verify none", 2, "none", "opening failed"),
        ("edit model.zt --put nonsense", 2, "\"nonsense\"", "NAME=DTYPE:SHAPE:FILE"),
        ("edit model.zt --put b=f31:6:x", 2, "element type is", "\"f31\""),
    ] {
        let (found, text) = fails(cd, &line.split(' ').collect::<Vec<_>>());
        assert!(found == status && text.contains(message), "{line}: {found} {text}");
        assert!(text.starts_with(&format!("error: {file}")), "{line}: {text}");
        assert_eq!(text.matches(file).count(), 1, "{line}: {text}");
    }
    assert_eq!(fs::read(cd.join("model.zt")).unwrap(), before);
    assert_eq!(fs::read_dir(cd).unwrap().count(), 4);
}

#[cfg(unix)]
#[test]
fn links_of_the_input_are_no_output() {
    let folder = folder();
    let cd = folder.path();
    let before = fs::read(cd.join("old.zt")).unwrap();
    fs::hard_link(cd.join("old.zt"), cd.join("hard.zt")).unwrap();
    std::os::unix::fs::symlink("old.zt", cd.join("soft.zt")).unwrap();
    for link in ["hard.zt", "soft.zt"] {
        let (status, text) = fails(cd, &["convert", "old.zt", link, "--overwrite"]);
        assert_eq!(text, format!("error: {link}: is the input, expected another file\n"));
        assert_eq!(status, 2);
    }
    assert_eq!(fs::read(cd.join("old.zt")).unwrap(), before);
}

#[test]
fn migrated_files_verify() {
    let folder = folder();
    let cd = folder.path();
    let text = prints(cd, &["convert", "old.zt", "new.zt"]);
    assert!(text.starts_with("new.zt: migrated from 0.1 to 1.1, 5 tensors\n"), "{text}");
    assert_eq!(prints(cd, &["verify", "new.zt"]), "new.zt: valid\n");
    let out = modelcrate(cd, &["convert", "old.zt", "-", "--to", "zt"]).stdout;
    assert_eq!(out, fs::read(cd.join("new.zt")).unwrap());
}

#[test]
fn torn_files_are_recovered() {
    let folder = folder();
    let cd = folder.path();
    let mut torn = fs::read(cd.join("model.zt")).unwrap();
    torn.extend([1; 1000]);
    fs::write(cd.join("model.zt"), torn).unwrap();
    assert_eq!(fails(cd, &["verify", "model.zt"]).0, 1);
    assert!(prints(cd, &["verify", "--lenient", "model.zt"]).contains("zt/recovered"));
    let dry = prints(cd, &["recover", "model.zt", "--dry-run"]);
    assert!(dry.starts_with("model.zt: would be cut by 1000 bytes, "), "{dry}");
    assert_eq!(fails(cd, &["verify", "model.zt"]).0, 1);
    assert!(prints(cd, &["recover", "model.zt"]).contains(": cut by 1000 bytes, "));
    assert_eq!(prints(cd, &["verify", "model.zt"]), "model.zt: valid\n");
}

#[test]
fn files_that_are_no_models_are_counted() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("notes.txt"), "no model").unwrap();
    fs::write(cd.join("Damaged.ZT"), [0; 100]).unwrap();
    let output = modelcrate(cd, &["verify", "."]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("./Damaged.ZT: invalid\n  error [file/unknown-format]"), "{text}");
    assert!(text.contains("./model.zt: valid\n") && !text.contains("notes"), "{text}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "4 files: 3 valid, 1 invalid, 2 skipped\n\
        58 % of the weight bytes are covered by a digest\n"
    );
    assert_eq!(output.status.code(), Some(1));
    let output = modelcrate(cd, &["verify", "--format", "jsonl", "."]);
    assert!(output.stderr.is_empty());
}

#[test]
fn missing_files_are_in_the_report() {
    let folder = folder();
    let cd = folder.path();
    let args = ["verify", "--format", "jsonl", "none", "model.zt"];
    let output = modelcrate(cd, &args);
    let text = String::from_utf8(output.stdout).unwrap();
    let (first, second) = text.split_once('\n').unwrap();
    let expected = "{\"schema\":1,\"path\":\"none\",\"format\":null,\"verdict\":\"invalid\",\"findings\":[\
        {\"rule\":\"file/read\",\"severity\":\"error\",\"at\":{},\"message\":\"opening failed: ";
    assert!(first.starts_with(expected), "{first}");
    assert!(second.contains("\"verdict\":\"valid\""), "{second}");
    assert!(output.stderr.is_empty());
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_folder_without_models_fails() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::create_dir_all(cd.join("empty/below")).unwrap();
    fs::write(cd.join("empty/below/notes.txt"), "no model").unwrap();
    fs::copy(testdata("ztensor/valid/v1.1-ref/scalars.zt"), cd.join("m.zt")).unwrap();
    let message = "error: empty: has no model file (--allow-empty tolerates that)\n";
    let skipped = "2 files: 1 valid, 1 not read, 1 skipped\n\
        0 % of the weight bytes are covered by a digest\n";
    assert_eq!(fails(cd, &["verify", "m.zt", "empty"]), (2, format!("{message}{skipped}")));
    let json = modelcrate(cd, &["verify", "--format", "jsonl", "empty"]);
    assert!(String::from_utf8(json.stdout).unwrap().contains("\"path\":\"empty\""));
    assert_eq!(json.status.code(), Some(2));
    assert_eq!(prints(cd, &["verify", "--allow-empty", "empty"]), "");
}

#[test]
fn an_unread_file_outweighs_an_invalid_one() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::write(cd.join("bad.zt"), [0; 100]).unwrap();
    let output = modelcrate(cd, &["verify", "none", "bad.zt"]);
    let (text, errors) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert!(text.unwrap().starts_with("bad.zt: invalid\n"));
    assert!(errors.unwrap().starts_with("error: none: opening failed"));
    assert_eq!(output.status.code(), Some(2));
    // As the help and the manual page say.
    for page in [&["verify", "--help"][..], &["man", "verify"]] {
        let page = prints(cd, page).replace('\n', " ");
        assert!(page.contains("whatever became of the others"), "{page}");
    }
}

#[test]
fn hidden_files_are_skipped() {
    let folder = folder();
    let cd = folder.path();
    fs::create_dir(cd.join(".hidden")).unwrap();
    for name in [".hidden/a.zt", ".model.zt.AbCdEf.modelcrate"] {
        fs::write(cd.join(name), "half").unwrap();
    }
    let output = modelcrate(cd, &["verify", "."]);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "3 files: 3 valid, 3 skipped\n\
        58 % of the weight bytes are covered by a digest\n"
    );
    assert!(output.status.success());
    assert_eq!(fails(cd, &["verify", ".hidden"]).0, 1);
}

#[cfg(unix)]
#[test]
fn links_are_followed_where_asked_for() {
    use std::os::unix::fs::symlink;
    let outside = folder();
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    symlink(outside.path(), cd.join("models")).unwrap();
    symlink(cd, outside.path().join("round")).unwrap();
    let message = "error: .: has no model file (--allow-empty tolerates that)\n\
        1 file: 1 not read, 1 skipped\n";
    assert_eq!(fails(cd, &["verify", "."]), (2, message.to_owned()));
    let text = prints(cd, &["verify", "-L", "."]);
    let lines = ["model.zt: valid", "old.zt: valid", "other.zt: valid"];
    assert_eq!(text, lines.map(|line| format!("./models/{line}\n")).concat());
    symlink("nowhere", cd.join("broken.zt")).unwrap();
    let (status, text) = fails(cd, &["verify", "--follow", "."]);
    assert_eq!(status, 2);
    assert!(text.starts_with("error: ./broken.zt: No such file"), "{text}");
}

/// A folder that nobody can read, not even the superuser: its path is too long.
#[cfg(target_os = "linux")]
#[test]
fn unreadable_folders_hide_no_others() {
    let folder = folder();
    let cd = folder.path();
    let chain = |name: &str| vec![name.repeat(250); 10].join("/");
    let (first, second) = (cd.join(chain("a")), cd.join(chain("b")));
    fs::create_dir_all(&first).unwrap();
    fs::create_dir_all(&second).unwrap();
    fs::rename(cd.join("b".repeat(250)), first.join("b")).unwrap();
    let output = modelcrate(cd, &["verify", "."]);
    let (text, errors) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert!(text.unwrap().contains("./model.zt: valid\n"));
    assert!(errors.unwrap().contains("File name too long"));
    assert_eq!(output.status.code(), Some(2));
    let json = modelcrate(cd, &["verify", "--format", "json", "."]).stdout;
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains("\"rule\": \"file/read\""), "{json}");
    assert!(json.contains("\"path\": \"./model.zt\""), "{json}");
}

#[test]
fn long_texts_are_whole_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let mut writer = Writer::create(cd.join("m.zt")).unwrap();
    let long = "x".repeat(10_000);
    writer.set_attributes(&[("note", long.as_str())].into_iter().collect());
    writer.finish().unwrap();
    let shown = prints(cd, &["inspect", "m.zt"]);
    let line = shown.lines().find(|line| line.contains("note")).unwrap();
    assert_eq!(line, format!("  metadata  note = \"{long}\""));
    assert!(prints(cd, &["inspect", "--format", "json", "m.zt"]).contains(&long));
}

#[test]
fn standard_input_is_a_file() {
    let bytes = fs::read(testdata("ztensor/valid/v1.1-ref/scalars.zt")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_modelcrate"))
        .args(["verify", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "-: valid\n");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_modelcrate"))
        .args(["inspect", "--tensors"])
        .arg(testdata("ztensor/valid/v1.1-ref/many_300.zt"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn names_cannot_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::copy(testdata("ztensor/valid/v1.1-ref/scalars.zt"), cd.join("m.zt")).unwrap();
    fs::write(cd.join("x"), [1]).unwrap();
    let name = "\x1b]0;x\x07\n[ok] verified\u{202e}=u8:1:x";
    prints(cd, &["edit", "m.zt", "--put", name]);
    let shown = prints(cd, &["inspect", "--tensors", "m.zt"]);
    assert!(shown.contains("\\u{1b}]0;x\\u{7}\\n[ok] verified\\u{202e}"), "{shown}");
    let json = prints(cd, &["inspect", "--format", "json", "m.zt"]);
    for text in [&shown, &json] {
        assert!(!text.contains(['\x1b', '\x07']), "{text}");
    }
}
