//! Packages of npm that tests use, and that are none of ours to keep: the vocabularies of BERT and GPT-2
//! for `ptl-spec`, which are test assets and large, the schema of SARIF, and what drives a browser and
//! finds what people with disabilities could not use of a page.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{command, output, root, succeed};

/// The packages, and their folders below `target/oracles`.
const PACKAGES: [(&str, &str); 4] = [
    ("react-native-pytorch-core@0.2.4", "react-native-pytorch-core-0.2.4"),
    ("@microsoft/jest-sarif@1.0.0-beta.0", "jest-sarif-1.0.0-beta.0"),
    ("playwright-core@1.65.1", "playwright-core-1.65.1"),
    ("axe-core@4.14.1", "axe-core-4.14.1"),
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

/// Returns the folder of a package, where it is there.
pub(crate) fn package(name: &str) -> Option<PathBuf> {
    let named =
        |(package, _): &&(&str, &str)| package.rsplit_once('@').is_some_and(|of| of.0 == name);
    let (_, folder) = PACKAGES.iter().find(named)?;
    is_there(folder).then(|| path(folder).join("package"))
}

fn is_there(folder: &str) -> bool {
    path(folder).join("package/package.json").exists()
}

fn path(folder: &str) -> PathBuf {
    root().join("target/oracles").join(folder)
}
