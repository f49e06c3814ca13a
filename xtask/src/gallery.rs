//! `docs/gallery`: a report for each format, of a file of `testdata`.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{cargo, output, pages, root, succeed};

/// The name of a report, and the file that it is about.
const REPORTS: [(&str, &str); 6] = [
    ("carton", "testdata/carton/valid/ref_full.carton"),
    ("nnpackage", "testdata/nnpackage/valid/06_rich_circle_numeric_versions.zip"),
    ("ptl", "testdata/ptl/valid/torch251/zoo_fb.ptl"),
    ("rten", "testdata/rten/valid/convnet.v2.rten"),
    ("tflite", "testdata/nnpackage/valid/everything.tflite"),
    ("ztensor", "testdata/ztensor/valid/v1.1-ref/digests.zt"),
];

/// Writes the reports and prints those that changed.
pub(crate) fn write() -> Result<()> {
    for (path, made, kept) in reports()? {
        if kept.as_ref() != Some(&made) {
            fs::create_dir_all(root().join("docs/gallery"))?;
            fs::write(&path, &made).with_context(|| format!("{path:?}"))?;
            println!("{}: written, {} bytes", path.display(), made.len());
        }
    }
    Ok(())
}

/// Compares the reports with what the command makes now.
pub(crate) fn check() -> Result<()> {
    for (path, made, kept) in reports()? {
        if kept.as_ref() != Some(&made) {
            bail!("{path:?} is not what the command makes; `cargo xtask golden` rewrites it");
        }
    }
    println!("{} reports are as the command makes them", REPORTS.len());
    Ok(())
}

/// Returns each report with its path, as it is made now, and as it is kept.
fn reports() -> Result<Vec<(PathBuf, String, Option<String>)>> {
    succeed(cargo().args(["build", "--quiet", "-p", "modelcrate-cli"]))?;
    let report = |(name, file): &(&str, &str)| {
        let path = root().join(format!("docs/gallery/{name}.html"));
        let made = output(pages::report()?.args(["--stats", file]))?;
        let kept = fs::read_to_string(&path).ok();
        Ok((path, made, kept))
    };
    REPORTS.iter().map(report).collect()
}
