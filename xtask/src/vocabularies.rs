//! The vocabularies of BERT and GPT-2, which the tests of `ptl-spec` compare tokens with. They are
//! test assets of an npm package, and large.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{command, output, root, succeed};

/// The package, and its folder below `target/oracles`.
const PACKAGE: &str = "react-native-pytorch-core@0.2.4";
const FOLDER: &str = "react-native-pytorch-core-0.2.4";

/// Unpacks the package; prints a line where there is no npm to fetch it, as only a few tests need it.
pub(crate) fn install() -> Result<()> {
    if is_there() {
        return Ok(());
    }
    if output(command("npm").arg("--version")).is_err() {
        println!("skipped: {PACKAGE} needs npm (Debian: package npm)");
        return Ok(());
    }
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| format!("{folder:?}"))?;
    let mut npm = command("npm");
    npm.args(["pack", "--silent", PACKAGE, "--pack-destination"]).arg(&folder);
    let archive = folder.join(output(&mut npm)?.trim());
    succeed(command("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder))?;
    fs::remove_file(&archive).with_context(|| format!("{archive:?}"))?;
    println!("{PACKAGE}: installed");
    Ok(())
}

/// Prints whether the package is there.
pub(crate) fn check() {
    println!("{PACKAGE}: {}", if is_there() { "unpacked" } else { "missing, not required" });
}

fn is_there() -> bool {
    folder().join("package/package.json").exists()
}

fn folder() -> PathBuf {
    root().join("target/oracles").join(FOLDER)
}
