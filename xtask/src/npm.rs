//! Packages of npm that tests compare with, and that are none of ours to keep: the vocabularies of
//! BERT and GPT-2 for `ptl-spec`, which are test assets and large, and the schema of SARIF.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{command, output, root, succeed};

/// The packages, and their folders below `target/oracles`.
const PACKAGES: [(&str, &str); 2] = [
    ("react-native-pytorch-core@0.2.4", "react-native-pytorch-core-0.2.4"),
    ("@microsoft/jest-sarif@1.0.0-beta.0", "jest-sarif-1.0.0-beta.0"),
];

/// Unpacks the packages; prints a line where there is no npm to fetch them, as only a few tests need
/// them.
pub(crate) fn install() -> Result<()> {
    for (package, folder) in PACKAGES {
        if is_there(folder) {
            continue;
        }
        if output(command("npm").arg("--version")).is_err() {
            println!("skipped: {package} needs npm (Debian: package npm)");
            continue;
        }
        let folder = path(folder);
        fs::create_dir_all(&folder).with_context(|| format!("{folder:?}"))?;
        let mut npm = command("npm");
        npm.args(["pack", "--silent", package, "--pack-destination"]).arg(&folder);
        let archive = folder.join(output(&mut npm)?.trim());
        succeed(command("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder))?;
        fs::remove_file(&archive).with_context(|| format!("{archive:?}"))?;
        println!("{package}: installed");
    }
    Ok(())
}

/// Prints which packages are there.
pub(crate) fn check() {
    for (package, folder) in PACKAGES {
        let is_there = if is_there(folder) { "unpacked" } else { "missing, not required" };
        println!("{package}: {is_there}");
    }
}

fn is_there(folder: &str) -> bool {
    path(folder).join("package/package.json").exists()
}

fn path(folder: &str) -> PathBuf {
    root().join("target/oracles").join(folder)
}
