//! Runs Python clients, which `cargo xtask oracles` installs into `target/oracles`.

use std::{
    env,
    ffi::OsStr,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value;

/// How long a script may run.
const LIMIT: Duration = Duration::from_secs(60);

/// A package that scripts import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The line by which the list of what is installed names it.
    requirement: &'static str,
    /// The folder that holds it, where that is not the environment itself.
    apart: Option<&'static str>,
}

impl Client {
    /// The binding to the reference implementation of zTensor 1.1.
    pub const ZTENSOR_1_1: Self = Self { requirement: "ztensor==1.1.1", apart: None };
    /// The last release of zTensor 1.
    pub const ZTENSOR_1_2: Self =
        Self { requirement: "ztensor==1.2.3", apart: Some("ztensor-1.2") };
    /// A CBOR implementation that shares no code with ours.
    pub const CBOR2: Self = Self { requirement: "cbor2", apart: None };

    /// Runs a script of the folder `python/` and returns the JSON that it prints.
    ///
    /// `None`, with a line that says so, where the client is not installed.
    ///
    /// # Panics
    ///
    /// Where the script fails, does not end, or prints something else; where the client is not
    /// installed although the environment variable `CI` is `true`.
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
        let Self { requirement, .. } = self;
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

/// Runs a command to its end and returns what it printed; an error, with what it complained about,
/// where it fails or is not done in time.
fn output(mut command: Command) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    // Both ends of the pipes are closed once the child has ended.
    let Ok(printed) = stdout.recv_timeout(LIMIT) else {
        return Err(format!("stopped after {} s", kill(child)));
    };
    let complaints = stderr.recv_timeout(LIMIT).unwrap_or_default();
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(printed);
    }
    Err(format!("{status}\n{}", String::from_utf8_lossy(&complaints)))
}

/// Reads all that comes out of a pipe, on a thread of its own.
fn read(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe
            && pipe.read_to_end(&mut bytes).is_ok()
        {
            // Nobody listens any more once the time is up.
            let _ = sender.send(bytes);
        }
    });
    receiver
}

/// Ends a child that takes too long; returns how long that is.
fn kill(mut child: Child) -> u64 {
    // It may have ended by itself in the meantime.
    let _ = child.kill();
    let _ = child.wait();
    LIMIT.as_secs()
}
