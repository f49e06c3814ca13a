//! How the tests of this crate run the command.

use std::{
    path::Path,
    process::{Command, Output},
};

pub(crate) fn modelcrate(folder: &Path, args: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_modelcrate");
    let output = Command::new(command).current_dir(folder).args(args).output().unwrap();
    crate::schema::check(args, &output.stdout);
    output
}

/// Runs a command that has to succeed and returns what it printed.
#[track_caller]
pub(crate) fn prints(folder: &Path, args: &[&str]) -> String {
    let output = modelcrate(folder, args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that has to fail and returns its exit status and what it said.
#[track_caller]
pub(crate) fn fails(folder: &Path, args: &[&str]) -> (i32, String) {
    let output = modelcrate(folder, args);
    assert!(!output.status.success(), "{args:?}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Puts the name of a group before a command, unless it is one that all formats have.
pub(crate) fn in_group<'a>(group: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    let is_common = args.first().is_some_and(|verb| COMMON.contains(verb));
    if is_common { args.to_vec() } else { [&[group], args].concat() }
}

const COMMON: [&str; 3] = ["compact", "edit", "recover"];
