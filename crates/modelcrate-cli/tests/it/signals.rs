//! Commands that are interrupted leave nothing behind, and say so by how they end.

use std::{
    fs::{self, File},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use test_support::{names, noise};

use crate::run::prints;

/// A carton that takes so long to unpack that a signal comes in between.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::create_dir(cd.join("model")).unwrap();
    for number in 0..64 {
        let file = File::create(cd.join(format!("model/{number}"))).unwrap();
        file.set_len(4 << 20).unwrap();
    }
    let runner = ["--runner", "x", "--framework-version", "*"];
    prints(cd, &[&["pack", "model", "m.carton"][..], &runner].concat());
    folder
}

/// Starts a command by a shell, and waits until something hidden stands in its folder.
fn started(cd: &Path, script: &str) -> Child {
    let script =
        format!("{script} exec '{}' unpack m.carton out", env!("CARGO_BIN_EXE_modelcrate"));
    let mut child = Command::new("sh")
        .current_dir(cd)
        .args(["-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !names(cd).iter().any(|name| name.starts_with('.')) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        thread::sleep(Duration::from_millis(1));
    }
    child
}

fn ended(mut child: Child, signal: &str) -> ExitStatus {
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    child.wait().unwrap()
}

/// Tells whether processes that are started here ignore a signal, as under `nohup` and behind `&` in a
/// script; where the system does not say, they do not.
fn is_ignored_here(number: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    mask & (1 << (number - 1)) != 0
}

#[test]
fn the_command_dies_of_the_signal_and_leaves_nothing() {
    let folder = folder();
    let cd = folder.path();
    for (signal, number) in [("-HUP", 1), ("-INT", 2), ("-TERM", 15)] {
        if is_ignored_here(number) {
            eprintln!("skipped: {signal} is ignored by all that is started here");
            continue;
        }
        let mut attempts = 0..20;
        let status = loop {
            let status = ended(started(cd, ""), signal);
            // On a busy machine it may have ended before the signal came.
            if !status.success() || attempts.next().is_none() {
                break status;
            }
            fs::remove_dir_all(cd.join("out")).unwrap();
        };
        assert_eq!(status.signal(), Some(number), "{signal} {status}");
        assert_eq!(names(cd), ["m.carton", "model"], "{signal}");
    }
}

#[test]
fn what_is_ignored_stays_ignored() {
    let folder = folder();
    let status = ended(started(folder.path(), "trap '' HUP;"), "-HUP");
    assert!(status.success(), "{status}");
    assert_eq!(names(folder.path()), ["m.carton", "model", "out"]);
}

#[test]
fn a_limit_of_file_sizes_is_an_error() {
    let folder = folder();
    let cd = folder.path();
    fs::write(cd.join("noise"), noise(1 << 20)).unwrap();
    let before = names(cd);
    let program = env!("CARGO_BIN_EXE_modelcrate");
    for command in ["unpack m.carton out", "pack noise n.carton --runner x --framework-version '*'"]
    {
        let script = format!("ulimit -f 100; exec '{program}' {command}");
        let output = Command::new("sh").current_dir(cd).args(["-c", &script]).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("File too large"), "{command}: {errors}");
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_eq!(names(cd), before, "{command}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_comes_from_a_pipe_has_no_name() {
    use std::{io::Write as _, os::unix::fs::MetadataExt as _};
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_modelcrate"))
        .args(["verify", "-"])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&fs::read(test_support::testdata("rten/valid/mlp.v2.rten")).unwrap()).unwrap();
    input.write_all(&vec![0; 70 << 20]).unwrap();
    let handles = format!("/proc/{}/fd", child.id());
    let spools: Vec<_> = fs::read_dir(handles)
        .unwrap()
        .map(|handle| handle.unwrap().path())
        .filter(|handle| fs::read_link(handle).is_ok_and(|to| to.starts_with(temporary.path())))
        .collect();
    let [spool] = spools.as_slice() else { panic!("{spools:?}") };
    assert_eq!(fs::metadata(spool).unwrap().nlink(), 0);
    assert_eq!(names(temporary.path()), [""; 0]);
    drop(input);
    child.wait().unwrap();
}
