//! A process that is killed while it edits a carton leaves the old file, or the new one, whole.

use std::{
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use carton_format::{
    Description, Links, Pack, Reader, Runner, WriteOptions, Writer, model_archive::Compression,
    repack, replace_description, shrink,
};

/// How often a process is killed, each time a little later.
const KILLS: u32 = 40;

#[test]
fn old_or_new_but_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.carton");
    pack(&path);
    let hash = Reader::open(&path).unwrap().file("model/a").unwrap().sha256();
    let mut killed = 0;
    for number in 0..KILLS {
        let mut child = child(&path);
        let ready = folder.path().join("ready");
        wait_for(&ready);
        std::fs::remove_file(&ready).unwrap();
        thread::sleep(Duration::from_micros(u64::from(number) * 400));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.file("model/a").unwrap().sha256(), hash);
        assert!(reader.validate().is_valid(), "after kill {number}");
    }
    assert_eq!(killed, KILLS, "the process is to run until it is killed");
}

fn pack(path: &Path) {
    let mut pack =
        Pack::new(&Description::new(Runner::new("noop", "=1.0.0".parse().unwrap()))).unwrap();
    for name in ["a", "b", "c"] {
        let content: Vec<u8> = (0..1_500_000_u32).map(|at| (at / 7 % 251) as u8).collect();
        pack.file(&format!("model/{name}"), content).unwrap();
    }
    pack.write(Writer::create(path).unwrap()).unwrap();
}

fn child(path: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "edits_until_it_is_killed", "--nocapture"]);
    command.env("CHILD_CARTON", path).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < Duration::from_secs(30), "the process did not start");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs in the child: edits of every kind, each in place of the file.
#[test]
fn edits_until_it_is_killed() {
    let Ok(path) = std::env::var("CHILD_CARTON") else { return };
    let path = Path::new(&path);
    std::fs::write(path.with_file_name("ready"), b"").unwrap();
    // It ends by itself where nobody kills it.
    let started = Instant::now();
    for number in 0_u32.. {
        if started.elapsed() > Duration::from_secs(20) {
            return;
        }
        let reader = Reader::open(path).unwrap();
        let compression =
            if number % 2 == 0 { Compression::Stored } else { Compression::Zstd { level: 1 } };
        let writer = WriteOptions::default().compression(compression).create(path).unwrap();
        match number % 3 {
            0 => repack(&reader, writer, |_| ()).unwrap(),
            1 => shrink(&reader, &Links::default(), writer).unwrap(),
            _ => {
                let mut text = reader.file("carton.toml").unwrap().bytes().unwrap().to_vec();
                text.extend(format!("# edit {number}\n").bytes());
                replace_description(&reader, &text, writer).unwrap()
            }
        };
    }
}
