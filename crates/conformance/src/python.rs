//! Runs Python clients, which `cargo xtask oracles` installs into `target/oracles`.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::process::output;

/// A package that scripts import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The line by which the list of what is installed names it.
    requirement: &'static str,
    /// The folder that holds it, where that is not the environment itself.
    apart: Option<&'static str>,
    /// Whether it exists for this platform.
    is_offered: bool,
}

impl Client {
    /// The binding to the reference implementation of zTensor 1.1.
    pub const ZTENSOR_1_1: Self = Self::shared("ztensor==1.1.1");
    /// The reader and writer of safetensors.
    pub const SAFETENSORS: Self = Self::shared("safetensors");
    /// The reader of npy and npz.
    pub const NUMPY: Self = Self::shared("numpy");
    /// The reader of GGUF.
    pub const GGUF: Self = Self::shared("gguf==0.19.0");
    /// Hugging Face's tokenizers, without what fetches vocabularies.
    pub const TOKENIZERS: Self =
        Self { apart: Some("tokenizers"), ..Self::shared("tokenizers==0.22.1") };
    /// The last release of zTensor 1.
    pub const ZTENSOR_1_2: Self =
        Self { apart: Some("ztensor-1.2"), ..Self::shared("ztensor==1.2.3") };
    /// The binding to the reference implementation of zTensor 2.
    pub const ZTENSOR_2: Self = Self { apart: Some("ztensor-2"), ..Self::shared("ztensor==2.1.2") };
    /// A CBOR implementation that shares no code with ours.
    pub const CBOR2: Self = Self::shared("cbor2");
    /// A binding to the zstd library, for scripts that read archives with what Python has of itself.
    pub const ZSTANDARD: Self = Self::shared("zstandard");
    /// The reference implementation of Carton.
    pub const CARTON: Self = Self::native("cartonml-nightly==0.0.1.dev20231020");

    /// The generated readers of Circle models.
    pub const CIRCLE_SCHEMA: Self = Self::shared("circle-schema==0.10.1");
    /// The generated readers of TFLite models.
    pub const TFLITE: Self = Self::shared("tflite==2.18.0");
    /// The runtime of nnpackages.
    pub const ONERT: Self = Self::native("onert==0.1.0");
    /// The runtime of TFLite models.
    pub const LITERT: Self =
        Self { apart: Some("litert"), ..Self::native("ai-edge-litert==2.3.0") };
    /// ONNX Runtime, and ONNX's own checker, which is installed with it.
    pub const ONNX_RUNTIME: Self = Self::shared("onnxruntime==1.31.1");

    /// RTen's converter, the last release that writes `.rten`.
    pub const RTEN_CONVERT: Self = Self::shared("rten-convert==0.22.0");

    /// Packages of which nothing is imported: they ship TFLite models.
    const MODELS: Self = Self { apart: Some("models"), ..Self::native("mediapipe==0.10.14") };

    /// Returns the TFLite models that real packages ship; none, with a line that says so, where they
    /// are not installed.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run) where they are not installed.
    #[must_use]
    #[track_caller]
    pub fn models() -> Vec<PathBuf> {
        let Some(folder) = Self::MODELS.folder() else {
            Self::MODELS.skip();
            return Vec::new();
        };
        let (mut folders, mut models) = (vec![folder.join("models")], Vec::new());
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension() == Some(OsStr::new("tflite")) {
                    models.push(path);
                }
            }
        }
        models.sort();
        models
    }

    const fn shared(requirement: &'static str) -> Self {
        Self { requirement, apart: None, is_offered: true }
    }

    const fn native(requirement: &'static str) -> Self {
        let is_offered = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
        Self { requirement, apart: None, is_offered }
    }

    /// Runs a script of the folder `python/` and returns the JSON that it prints.
    ///
    /// `None`, with a line that says so, where the client is not installed.
    ///
    /// # Panics
    ///
    /// Where the script fails, does not end, or prints something else; where the client is not
    /// installed although there is one for this platform and the environment variable `CI` is
    /// `true`.
    #[must_use]
    #[track_caller]
    pub fn run<A: AsRef<OsStr>>(self, script: &str, args: &[A]) -> Option<Value> {
        let Some(folder) = self.folder() else {
            self.skip();
            return None;
        };
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut command = Command::new(interpreter(&folder));
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env("PYTHONUTF8", "1");
        if let Some(apart) = self.apart {
            command.env("PYTHONPATH", folder.join(apart));
        }
        // No compiled scripts beside the sources.
        command.arg("-B").arg(scripts.join(script)).args(args);
        let printed = output(command).unwrap_or_else(|error| panic!("{script}: {error}"));
        let json = serde_json::from_slice(&printed);
        Some(json.unwrap_or_else(|error| panic!("{script} printed no JSON: {error}")))
    }

    /// Returns the folder of the clients, if this one is among them.
    fn folder(self) -> Option<PathBuf> {
        folders().into_iter().find(|folder| {
            let installed = std::fs::read_to_string(folder.join("installed.txt"));
            let installed = installed.unwrap_or_default();
            installed.lines().any(|line| line == self.requirement) && interpreter(folder).exists()
        })
    }

    #[track_caller]
    #[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
    fn skip(self) {
        let Self { requirement, is_offered, .. } = self;
        if !is_offered {
            eprintln!("skipped: {requirement} is not made for this platform");
            return;
        }
        let message =
            format!("{requirement} is not among the clients; `cargo xtask oracles` installs them");
        assert!(env::var_os("CI").is_none_or(|value| value != "true"), "{message}");
        eprintln!("skipped: {message}");
    }
}

/// Returns where the clients may be: cargo may be told to build elsewhere, `xtask oracles` does not
/// follow it.
fn folders() -> Vec<PathBuf> {
    let workspace = test_support::workspace();
    let told = env::var_os("CARGO_TARGET_DIR").map(|folder| workspace.join(folder));
    let targets = told.into_iter().chain([workspace.join("target")]);
    targets.map(|target| target.join("oracles")).collect()
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}
