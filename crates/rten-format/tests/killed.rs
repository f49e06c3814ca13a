//! A process that is killed while it edits a model leaves the old file, or the new one, whole.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rten_format::{
    Editor, Reader, Tensor, WriteOptions, tensor_core::output::Durability, topology::Topology,
};
use test_support::testdata;

/// How often a process is killed for each version, each time a little later.
const KILLS: u32 = 20;

#[test]
fn old_or_new_but_whole() {
    for name in ["all_ops.v1.rten", "all_ops.v2.rten"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.rten");
        std::fs::copy(testdata("rten/valid").join(name), &path).unwrap();
        let (contents, nodes) = parts(&path);
        let mut killed = 0;
        for number in 0..KILLS {
            let mut child = child(&path);
            let ready = folder.path().join("ready");
            wait_for(&ready);
            std::fs::remove_file(&ready).unwrap();
            thread::sleep(Duration::from_micros(u64::from(number) * 300));
            child.kill().unwrap();
            killed += u32::from(!child.wait().unwrap().success());
            assert_eq!(parts(&path), (contents.clone(), nodes), "after kill {number}");
        }
        assert_eq!(killed, KILLS, "the process is to run until it is killed");
    }
}

/// Returns what edits leave as it is.
fn parts(path: &Path) -> (Vec<Vec<u8>>, usize) {
    let reader = Reader::open(path).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    let content = |tensor: Tensor<'_>| tensor.bytes().unwrap().to_vec();
    let contents = reader.tensors().map(content).collect();
    (contents, Topology::of(reader.model()).scopes()[0].graph().nodes.len())
}

fn child(path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "edits_until_it_is_killed", "--nocapture"]);
    command.env(MODEL, path).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < Duration::from_secs(30), "the process did not start");
        thread::sleep(Duration::from_micros(100));
    }
}

/// Runs in a process of its own; alone it does nothing.
#[test]
fn edits_until_it_is_killed() {
    let Some(path) = std::env::var_os(MODEL) else { return };
    let options = WriteOptions::default().durability(Durability::Cached);
    let started = Instant::now();
    for turn in 0_u64.. {
        let mut editor = Editor::open_with(&path, options).unwrap();
        let metadata = editor.model_mut().metadata.get_or_insert_default();
        metadata.description = Some("x".repeat((turn % 7) as usize * 1000 + 1));
        editor.commit().unwrap();
        if turn == 0 {
            std::fs::write(Path::new(&path).with_file_name("ready"), "").unwrap();
        }
        if started.elapsed() > Duration::from_secs(30) {
            return;
        }
    }
}

const MODEL: &str = "CHILD_MODEL";
