//! What holds for every command: standard input, options of all, threads, paths.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

/// Runs a command line by a shell, in which `$M` is the command.
fn shell(folder: &Path, line: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("M", env!("CARGO_BIN_EXE_modelcrate")).current_dir(folder);
    shell.output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn large_standard_input_is_not_held_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    zeros_of(&folder.path().join("a.npy"), 671_088_640);
    let shown = shell(folder.path(), "ulimit -v 500000; cat a.npy | TMPDIR=. $M inspect -");
    let said = text(shown.stderr);
    assert!(shown.status.success(), "{said}");
    assert!(text(shown.stdout).contains("671088640"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_model_is_refused_at_its_start() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modelcrate"));
    let endless = File::open("/dev/zero").unwrap();
    let output = command.args(["inspect", "-"]).stdin(endless).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(output.stderr);
    assert!(said.starts_with("error: -: file is bytes that start with"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_by_path_are_hinted_at() {
    let shown = shell(Path::new("."), "cat Cargo.toml | $M inspect /dev/stdin");
    let expected = "error: /dev/stdin: is a pipe or a device, expected a regular file \
        (what a pipe brings is read as -)\n";
    assert_eq!((shown.status.code(), text(shown.stderr)), (Some(2), expected.to_owned()));
}

#[test]
fn truncated_files_are_called_so() {
    let folder = tempfile::tempdir().unwrap();
    for (path, name) in [
        ("ptl/valid/torch251/dict.ptl", "cut.ptl"),
        ("carton/valid/ref_minimal.carton", "cut.carton"),
        ("ztensor/valid/v1.1-ref/scalars.zt", "cut.zt"),
    ] {
        let bytes = fs::read(testdata(path)).unwrap();
        fs::write(folder.path().join(name), &bytes[..bytes.len() / 2]).unwrap();
        let output = modelcrate(folder.path(), &["verify", name]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(output.stdout);
        assert!(said.contains(": the file is truncated"), "{said}");
    }
}

#[test]
fn threads_do_not_change_what_is_printed() {
    let root = test_support::workspace();
    let verify = |more: &[&str]| {
        let args = [&["verify"][..], more, &["testdata/ztensor", "testdata/rten"]].concat();
        let output = modelcrate(&root, &args);
        assert_eq!(output.status.code(), Some(1));
        (text(output.stdout), text(output.stderr))
    };
    for more in ["--format=human", "--format=jsonl"] {
        assert!(verify(&[more, "--threads=1"]) == verify(&[more, "--threads=3"]), "{more}");
    }
}

#[test]
fn quiet_commands_say_nothing_but_results_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::copy(testdata("ztensor/valid/v1.1-ref/scalars.zt"), cd.join("m.zt")).unwrap();
    fs::write(cd.join("notes.txt"), "no model").unwrap();
    assert_eq!(prints(cd, &["verify", "-q", "."]), "");
    assert!(modelcrate(cd, &["verify", "-q", "."]).stderr.is_empty());
    assert_eq!(prints(cd, &["verify", "-v", "."]), "./m.zt: valid\n./notes.txt: skipped\n");
    assert!(prints(cd, &["inspect", "-q", "m.zt"]).contains("s_f32"));
    assert_eq!(prints(cd, &["convert", "-q", "m.zt", "m.safetensors"]), "");
    assert_eq!(fails(cd, &["-q", "inspect", "none"]).0, 2);
}

#[test]
fn colours_are_there_where_they_are_asked_for() {
    let path = testdata("ztensor/valid/v1.1-ref/scalars.zt");
    let path = path.to_str().unwrap();
    let colours = |when| prints(Path::new("."), &["--color", when, "verify", path]);
    assert!(colours("always").contains("\x1b[32mvalid"));
    assert!(!colours("auto").contains('\x1b') && !colours("never").contains('\x1b'));
}

#[test]
fn all_manual_pages_are_written() {
    let folder = tempfile::tempdir().unwrap();
    prints(folder.path(), &["man", "--all", "."]);
    let page = fs::read_to_string(folder.path().join("modelcrate-verify.1")).unwrap();
    assert!(page.contains("whatever became of the others"), "{page}");
    assert_eq!(fails(folder.path(), &["man", "--all", "none"]).0, 2);
}

#[cfg(target_os = "linux")]
#[test]
fn paths_that_are_not_utf_8_stay_apart() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    for name in [&b"a\xff.zt"[..], b"a\xfe.zt"] {
        let to = folder.path().join(std::ffi::OsStr::from_bytes(name));
        fs::copy(testdata("ztensor/valid/v1.1-ref/scalars.zt"), to).unwrap();
    }
    let lines = prints(folder.path(), &["verify", "--format", "jsonl", "."]);
    assert!(lines.contains(r#""path":"./a\\xff.zt""#) && lines.contains(r"a\\xfe.zt"), "{lines}");
}

#[cfg(target_os = "linux")]
#[test]
fn models_are_not_printed_to_a_terminal() {
    // util-linux has it, but not every system.
    let args = ["-qec", "\"$M\" convert \"$MODEL\" - --to safetensors", "/dev/null"];
    let mut command = Command::new("script");
    command.args(args).env("M", env!("CARGO_BIN_EXE_modelcrate")).stdin(Stdio::null());
    command.env("MODEL", testdata("ztensor/valid/v1.1-ref/scalars.zt"));
    let Ok(output) = command.output() else { return };
    let shown = text(output.stdout);
    assert!(shown.contains("is a terminal, which shows no model"), "{shown}");
}

#[cfg(target_os = "linux")]
#[test]
fn lines_of_hashes_lead_back() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let sample = testdata("weights/rows.npy");
    for name in [&b"back\\slash.npy"[..], b"two\nlines.npy", b"a b.npy", b"\xff.npy"] {
        fs::copy(&sample, cd.join(OsStr::from_bytes(name))).unwrap();
    }
    let named = ["back\\slash.npy", "two\nlines.npy", "a b.npy"];
    let lines = prints(cd, &[&["hash"], &named[..]].concat());
    assert!(lines.starts_with('\\') && lines.lines().count() == 3, "{lines}");
    fs::write(cd.join("HASHES"), lines).unwrap();
    let said = prints(cd, &["hash", "--check", "HASHES"]);
    assert_eq!(said.matches(": OK\n").count(), 3, "{said}");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_modelcrate"));
        let command = command.current_dir(cd).arg("hash").args(args);
        command.arg(OsStr::from_bytes(b"\xff.npy")).output().unwrap()
    };
    let refused = run(&[]);
    assert_eq!((refused.status.code(), &*refused.stdout), (Some(2), &b""[..]));
    assert!(run(&["--format", "json"]).status.success());
}

/// Writes a file of zeros, most of which takes no place on the disk.
#[cfg(target_os = "linux")]
fn zeros_of(path: &Path, bytes: u64) {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({bytes},), }}");
    let mut file = File::create(path).unwrap();
    file.write_all(b"\x93NUMPY\x01\x00\x76\x00").unwrap();
    file.write_all(format!("{header:<117}\n").as_bytes()).unwrap();
    file.set_len(128 + bytes).unwrap();
}

/// A terminal shows how far a command is, a pipe does not, nor does --quiet.
#[cfg(target_os = "linux")]
#[test]
fn what_takes_long_is_shown_on_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no command script");
        return;
    }
    let run = |args: &str| {
        let line = format!("stty cols 100; $M {args}");
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("M", env!("CARGO_BIN_EXE_modelcrate"))
            .stdin(Stdio::null())
            .current_dir(cd)
            .output();
        text(output.unwrap().stdout)
    };
    // As much as it takes to be slow.
    let slow = |args: &str, shown: &str| {
        let mut sizes = [256_u64, 1024, 4096, 16_384].into_iter();
        sizes.find_map(|mebibytes| {
            zeros_of(&cd.join("m.npy"), mebibytes << 20);
            Some(run(args)).filter(|said| said.contains(shown))
        })
    };
    let inspected = slow("inspect --stats m.npy", "m.npy 0s").unwrap();
    assert!(inspected.find("m.npy 0s") < inspected.find("format"), "{inspected}");
    assert!(slow("hash m.npy", "iB, ").is_some());
    for line in ["hash m.npy --quiet", "hash m.npy --no-progress", "hash m.npy 2> said; cat said"] {
        assert!(!run(line).contains("iB"), "{line}");
    }
}
