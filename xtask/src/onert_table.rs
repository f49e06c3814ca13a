//! What onert does with each operator: the table by which `circle-format` tells what becomes of a
//! model.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{oracles, output, root};

/// Measures it anew.
pub(crate) fn write() -> Result<()> {
    let path = path();
    fs::write(&path, measured()?).with_context(|| format!("{path:?}"))
}

/// Compares it with what the runtime does; an error where a line differs.
pub(crate) fn check() -> Result<()> {
    if !oracles::HAS_NATIVE {
        println!("skipped: onert is not made for this platform");
        return Ok(());
    }
    let path = path();
    let kept = fs::read_to_string(&path).with_context(|| format!("{path:?}"))?;
    let measured = measured()?;
    let lost = kept.lines().find(|line| !measured.lines().any(|other| other == *line));
    let new = measured.lines().find(|line| !kept.lines().any(|other| other == *line));
    if let Some(line) = lost.or(new) {
        let line = line.replace('\t', ", ");
        bail!("{path:?} is not what onert does, as here: {line} (`cargo xtask onert-table`)");
    }
    Ok(())
}

fn measured() -> Result<String> {
    let environment = oracles::environment();
    if !environment.exists() {
        bail!("onert is not installed; `cargo xtask oracles` installs it");
    }
    output(environment.python().args(["-B", "crates/conformance/python/onert_table.py"]))
}

fn path() -> PathBuf {
    root().join("crates/circle-format/src/validate/onert.tsv")
}
