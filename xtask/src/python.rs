//! Virtual environments of Python, for what is published only as a Python package.

use std::{
    env::consts::EXE_SUFFIX,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::{command, output, root, succeed};

const ATTEMPTS: u32 = 3;

/// A virtual environment below `target/`, whether it is there already or not.
pub(crate) struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Names the environment `target/<name>`.
    pub(crate) fn new(name: &str) -> Self {
        Self { folder: root().join("target").join(name) }
    }

    /// Remakes it without any package.
    pub(crate) fn create(&self) -> Result<()> {
        require_python()?;
        succeed(system_python().args(["-m", "venv", "--clear"]).arg(&self.folder))
    }

    /// Makes it with these packages, `args` of `pip install`, unless it has been already.
    pub(crate) fn provide(&self, args: &[&str]) -> Result<()> {
        let (stamp, text) = (self.folder.join("installed.txt"), args.join("\n") + "\n");
        if self.exists() && fs::read_to_string(&stamp).is_ok_and(|found| found == text) {
            return Ok(());
        }
        println!("installing into {}: {}", self.folder.display(), args.join(", "));
        self.create()?;
        self.install(args)?;
        fs::write(&stamp, text).with_context(|| format!("{stamp:?}"))
    }

    /// Installs packages; `args` are requirements and options of `pip install`.
    pub(crate) fn install(&self, args: &[impl AsRef<OsStr>]) -> Result<()> {
        let quiet = ["-m", "pip", "install", "--quiet", "--no-input"];
        retry(|| succeed(self.python().args(quiet).arg("--disable-pip-version-check").args(args)))
    }

    /// Tells whether it was made.
    pub(crate) fn exists(&self) -> bool {
        self.program("python").exists()
    }

    /// Returns a command that runs its Python.
    pub(crate) fn python(&self) -> Command {
        python(self.program("python"))
    }

    /// Returns the path of a program that one of its packages brings.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let programs = if cfg!(windows) { "Scripts" } else { "bin" };
        self.folder.join(programs).join(format!("{name}{EXE_SUFFIX}"))
    }

    /// Returns its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

fn require_python() -> Result<()> {
    let modules = ["-c", "import ensurepip, venv"];
    if output(system_python().arg("--version")).is_err() {
        bail!("python3 is missing: install Python 3.9 or later (Debian: package python3)");
    }
    if output(system_python().args(modules)).is_err() {
        bail!("python3 has no module venv: install it (Debian: package python3-venv)");
    }
    Ok(())
}

fn system_python() -> Command {
    python("python3".into())
}

fn python(program: PathBuf) -> Command {
    let mut command = command(program);
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
    command
}

fn retry(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    for number in 1..ATTEMPTS {
        let Err(error) = attempt() else {
            return Ok(());
        };
        println!("attempt {number} of {ATTEMPTS}: {error:#}; trying again");
        thread::sleep(Duration::from_secs(5 * u64::from(number)));
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_not_tried_again() {
        let mut calls = 0;
        retry(|| {
            calls += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(calls, 1);
    }
}
