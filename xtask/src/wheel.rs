//! The Python package, tested as users have it: from a wheel, in an environment of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result};

use crate::{output, python::Environment, root, succeed};

/// What builds and checks the package, and what it is compared with. All wheels are small: PyTorch is
/// not among them, which brings two gigabytes.
const PACKAGES: [&str; 12] = [
    "maturin==1.16.0",
    "mypy==2.4.1",
    "pyright==1.1.414",
    "pytest==9.2.0",
    "typing_extensions",
    "gguf==0.19.0",
    "ml_dtypes==0.6.0",
    "numpy",
    "onnx==1.23.2",
    "pyarrow==26.0.1",
    "safetensors==0.8.0",
    "ztensor==1.1.1",
];

/// What reads and writes zTensor 2, of the same name as what reads 1.1.
const ZTENSOR_2: &str = "ztensor==2.1.2";

/// Builds the package, and runs its tests and type checkers.
pub(crate) fn test() -> Result<()> {
    let started = Instant::now();
    let environment = environment()?;
    let ztensor_2 = apart(&environment)?;
    install(&environment, "dev")?;
    let folder = folder();
    let python = || {
        let mut python = environment.python();
        python.current_dir(&folder).env("ZTENSOR_2", &ztensor_2);
        python
    };
    succeed(python().args(["-m", "pytest"]))?;
    succeed(python().args(["-m", "mypy", "--strict", "python/modelcrate", "tests", "benches"]))?;
    let stubs = ["-m", "mypy.stubtest", "modelcrate._native", "--allowlist", "tests/stubtest.txt"];
    succeed(python().args(stubs).args(["--ignore-unused-allowlist"]).env("MYPYPATH", "typings"))?;
    succeed(python().args(["-m", "pyright", "--pythonpath"]).arg(environment.program("python")))?;
    if output(python().args(["-c", "import torch"])).is_err() {
        println!(
            "skipped: tests with PyTorch, which is not installed in {:?}",
            environment.folder()
        );
    }
    println!("the Python package passed after {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Measures the package, as it is released, beside safetensors.
pub(crate) fn bench() -> Result<()> {
    let environment = environment()?;
    install(&environment, "wheel")?;
    succeed(environment.python().arg(folder().join("benches/load.py")))
}

/// Returns the environment with everything but the package.
fn environment() -> Result<Environment> {
    let environment = Environment::new("python");
    environment.provide(&PACKAGES)?;
    Ok(environment)
}

/// Installs what cannot share the environment into a folder in it, and returns that.
fn apart(environment: &Environment) -> Result<PathBuf> {
    let folder = environment.folder().join("ztensor-2");
    if !folder.is_dir() {
        let target = folder.display().to_string();
        environment.install(&["--no-deps", "--target", &target, ZTENSOR_2])?;
    }
    Ok(folder)
}

/// Builds the wheel with a profile, and installs it.
fn install(environment: &Environment, profile: &str) -> Result<()> {
    let wheels = environment.folder().join("wheels");
    let manifest = folder().join("Cargo.toml");
    let mut maturin = environment.python();
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(crate::is_about_this_package) {
            maturin.env_remove(name);
        }
    }
    maturin.args(["-m", "maturin", "build", "--quiet", "--profile", profile]);
    succeed(maturin.arg("--manifest-path").arg(manifest).arg("--out").arg(&wheels))?;
    let wheel = newest(&wheels)?;
    environment.install(&["--force-reinstall".as_ref(), "--no-deps".as_ref(), wheel.as_os_str()])
}

/// Returns the wheel that was built last.
fn newest(wheels: &Path) -> Result<PathBuf> {
    let built = |path: &PathBuf| fs::metadata(path).and_then(|wheel| wheel.modified()).ok();
    let wheels = fs::read_dir(wheels)?.map(|wheel| Ok(wheel?.path()));
    let wheels = wheels.collect::<Result<Vec<PathBuf>>>()?;
    wheels.into_iter().max_by_key(built).context("maturin has built no wheel")
}

fn folder() -> PathBuf {
    root().join("crates/modelcrate-python")
}
