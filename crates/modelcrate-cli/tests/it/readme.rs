//! The README of the workspace: what it says is run.

use std::{fs, path::Path};

use test_support::{testdata, workspace};

use crate::run::{modelcrate, prints};

fn readme() -> String {
    fs::read_to_string(workspace().join("README.md")).unwrap()
}

/// Splits a command into its arguments.
fn args(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

/// Puts files of testdata where the commands of the README expect theirs.
fn prepare(folder: &Path) {
    for (from, name) in [
        ("carton/valid/ref_full.carton", "model.carton"),
        ("ptl/valid/torch251/zoo_fb.ptl", "model.ptl"),
        ("rten/valid/mlp.v1.rten", "old.rten"),
        ("weights/rows.npy", "bias.npy"),
        ("ztensor/valid/v1.1-ref/scalars.zt", "model.zt"),
    ] {
        fs::copy(testdata(from), folder.join(name)).unwrap();
    }
    let mut torn = fs::read(folder.join("model.zt")).unwrap();
    torn.extend(b"what a process that was killed had written");
    fs::write(folder.join("torn.zt"), torn).unwrap();
}

#[test]
fn commands_of_the_table_do_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let readme = readme();
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `modelcrate "));
    let commands: Vec<_> = rows.filter_map(|row| Some(row.split_once('`')?.0)).collect();
    assert!(commands.len() > 12, "{commands:?}");
    for command in commands {
        prints(folder.path(), &args(command));
    }
    for made in ["model.onnx", "weights.safetensors", "parts", "new.zt", "folder", "again.carton"] {
        assert!(folder.path().join(made).exists(), "{made}");
    }
}

#[test]
fn the_first_command_writes_weights() {
    let readme = readme();
    let (_, first) = readme.split_once("cargo run -- ").unwrap();
    let (first, _) = first.split_once('\n').unwrap();
    let folder = tempfile::tempdir().unwrap();
    let weights = folder.path().join("weights.safetensors");
    let first = first.replace("weights.safetensors", weights.to_str().unwrap());
    prints(&workspace(), &args(&first));
    assert!(prints(folder.path(), &["inspect", "weights.safetensors"]).contains("safetensors"));
}

#[test]
fn what_it_shows_is_printed() {
    let readme = readme();
    let (_, shown) = readme.split_once("\n$ modelcrate ").unwrap();
    let (command, shown) = shown.split_once('\n').unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let output = modelcrate(&workspace(), &args(command));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), shown);
}
