//! Opening packages and checking the models in them, however large their weights are.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ::nnpackage::{Reader, tensor_core::Severity};
use anyhow::{Result, ensure};
use bytes::Bytes;
use criterion::Throughput;
use tempfile::TempDir;

use super::{LAYERS, Weights, circle, write_package};
use crate::{
    Bound::{TimeAtMost, Within},
    Case, Scale, Topic, fixture,
};

/// A model with weights of 512 MiB and the same one with 1 MiB, each in an archive as it is.
#[derive(Debug)]
pub struct NnpackageOpen {
    large: PathBuf,
    /// The model of `large`, with its weights behind the tables.
    behind: PathBuf,
    small: PathBuf,
    /// `large` and `small` in memory.
    in_memory: [Bytes; 2],
    /// Where onert is; `None` where it is not installed.
    python: Option<PathBuf>,
    folder: TempDir,
}

impl Topic for NnpackageOpen {
    const NAME: &'static str = "nnpackage_open";

    fn prepare(scale: Scale) -> Result<Self> {
        let folder = fixture::folder()?;
        let package = |name: &str, size: usize, weights: Weights| -> Result<PathBuf> {
            let model = folder.path().join("model.circle");
            let package = folder.path().join(name);
            fs::write(&model, circle(size, weights))?;
            write_package(&package, &model)?;
            fixture::warm(&package)?;
            let report = Reader::open(&package)?.validate();
            let expected =
                if weights == Weights::Behind { Severity::Error } else { Severity::Note };
            ensure!(report.worst() <= Some(expected), "{report:?}");
            Ok(package)
        };
        let size = if scale == Scale::TEST { 64 } else { 1024 };
        let large = package("large.zip", size, Weights::InTables)?;
        let behind = package("behind.zip", size, Weights::Behind)?;
        let small = package("small.zip", 45, Weights::InTables)?;
        fs::remove_file(folder.path().join("model.circle"))?;
        let in_memory = [fs::read(&large)?.into(), fs::read(&small)?.into()];
        Ok(Self { large, behind, small, in_memory, python: python(), folder })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let [large, small] = &self.in_memory;
        Ok(vec![self.open(), self.check(large, small)])
    }
}

impl NnpackageOpen {
    fn open(&self) -> Case<'_> {
        let case = Case::new("open", Throughput::Elements(LAYERS))
            .run("mapped", || list(&map(&self.large)?))
            .run("by position", || list(&Reader::open(&self.large)?))
            .run("behind, by position", || list(&Reader::open(&self.behind)?))
            .run("zip crate", || Ok(zip::ZipArchive::new(File::open(&self.large)?)?));
        let (case, peer) = match &self.python {
            Some(python) => (case.side(ONERT, || self.load(python)), ONERT),
            None => (case, "zip crate"),
        };
        case.check(
            "nnpackage: open a ZIP file with a model of 512 MiB, list its tensors, mapped",
            "mapped",
            peer,
            Within(2.0),
        )
        .check("the same, read by position", "by position", peer, Within(2.0))
        .check(
            "the same, weights behind the tables",
            "behind, by position",
            peer,
            Within(2.0),
        )
    }

    /// Everything that can be said of the structure of a model, opening included.
    fn check<'f>(&'f self, large: &'f Bytes, small: &'f Bytes) -> Case<'f> {
        let check = |reader: Reader| {
            ensure!(
                reader.diagnoses().iter().all(|found| found.finding.severity < Severity::Error),
                "faults"
            );
            Ok(reader)
        };
        Case::new("check", Throughput::Elements(LAYERS))
            .run("512 MiB", move || check(Reader::from_bytes(large.clone())?))
            .run("1 MiB", move || check(Reader::from_bytes(small.clone())?))
            .run("512 MiB, mapped", move || check(map(&self.large)?))
            .run("1 MiB, mapped", move || check(map(&self.small)?))
            .check(
                "nnpackage: check a model in memory, 512 MiB of weights against 1 MiB",
                "512 MiB",
                "1 MiB",
                TimeAtMost(1.1),
            )
            .check("the other way round", "1 MiB", "512 MiB", TimeAtMost(1.1))
            .check(
                "the same, mapped: pages that are touched for the first time",
                "512 MiB, mapped",
                "1 MiB, mapped",
                TimeAtMost(2.5),
            )
    }

    /// Unpacks the package and loads it, in a process of its own that times itself.
    fn load(&self, python: &Path) -> Result<Duration> {
        let unpacked = self.folder.path().join("unpacked");
        fixture::remove(&unpacked)?;
        fs::create_dir(&unpacked)?;
        let output =
            Command::new(python).args(["-c", LOAD]).arg(&self.large).arg(&unpacked).output()?;
        fixture::remove(&unpacked)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "onert: {errors}");
        let seconds = String::from_utf8(output.stdout)?;
        Ok(Duration::from_secs_f64(seconds.trim().parse()?))
    }
}

/// Names all constants with their types and shapes.
///
/// # Errors
///
/// Where the model is malformed.
pub fn list(reader: &Reader) -> Result<Reader> {
    let mut listed = 0;
    for model in reader.models() {
        for constant in model.open()?.tensors() {
            ensure!(constant.name().is_some() && constant.info()?.shape.rank() == 2, "constant");
            listed += 1;
        }
    }
    ensure!(listed == LAYERS, "{listed} constants");
    Ok(reader.clone())
}

/// Opens a mapped package.
///
/// # Errors
///
/// Where it is malformed.
pub fn map(path: &Path) -> Result<Reader> {
    Ok(Reader::from_source(fixture::map(path)?)?)
}

/// Returns the Python that has onert; `None`, with a line that says so, where there is none.
#[expect(clippy::print_stderr, reason = "what is skipped has to be said")]
fn python() -> Option<PathBuf> {
    let python = test_support::workspace().join("target/oracles/bin/python");
    let has_onert = Command::new(&python).args(["-c", "import onert"]).output();
    if has_onert.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    eprintln!("skipped: onert is absent; `cargo xtask oracles` installs it");
    None
}

const ONERT: &str = "unzip and onert 0.1.0";

const LOAD: &str = include_str!("../../python/onert_load.py");
