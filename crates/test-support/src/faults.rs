//! What happens to commands in the field: signals at any moment, full disks, limits on files, and
//! readers that look on.

use std::{
    ffi::OsString,
    fs,
    io::Read as _,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use tensor_core::output::is_temporary;

/// A signal that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGKILL, which nothing can handle.
    Kill,
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit status, or the signal that it died of.
    pub status: ExitStatus,
    /// What it said.
    pub stderr: String,
    /// Whether a signal was sent before it ended by itself.
    pub was_hit: bool,
    /// How long it ran.
    pub ran: Duration,
}

impl Ended {
    /// Returns the exit status as a shell shows it: 128 and the signal that it died of, if one.
    #[must_use]
    pub fn code(&self) -> i32 {
        let signal = self.status.signal().map(|signal| 128 + signal);
        self.status.code().or(signal).unwrap_or(-1)
    }
}

/// Runs a command undisturbed.
///
/// # Panics
///
/// Where it does not start.
pub fn run(command: &mut Command) -> Ended {
    meanwhile(command, || thread::sleep(Duration::from_micros(200)))
}

/// Calls `read` again and again while a command runs, and at least once.
///
/// # Panics
///
/// Where it does not start.
pub fn meanwhile(command: &mut Command, mut read: impl FnMut()) -> Ended {
    let (mut child, started) = (start(command), Instant::now());
    loop {
        read();
        if child.try_wait().unwrap_or_else(|error| panic!("waiting: {error}")).is_some() {
            return end(child, false, started.elapsed());
        }
    }
}

/// Runs a command, and sends it a signal after so long a time, unless it has ended.
///
/// # Panics
///
/// Where it does not start.
pub fn interrupt(command: &mut Command, signal: Signal, after: Duration) -> Ended {
    let (mut child, started) = (start(command), Instant::now());
    thread::sleep(after);
    let ended = child.try_wait().unwrap_or_else(|error| panic!("waiting: {error}"));
    let was_hit = ended.is_none() && send(&mut child, signal);
    end(child, was_hit, started.elapsed())
}

/// Runs the commands that `prepare` makes until as many as `hits` were hit by a signal while they
/// ran, each at another moment, spread over the time that one takes undisturbed; calls `check`
/// after each, with its number. Returns how many were started.
///
/// # Panics
///
/// Where three times as many commands have ended before they were hit.
pub fn interrupt_often(
    signal: Signal,
    hits: u32,
    mut prepare: impl FnMut(u32) -> Command,
    mut check: impl FnMut(u32, &Ended),
) -> u32 {
    let whole = (0..2).map(|_| run(&mut prepare(0)).ran).max().unwrap_or_default();
    let (mut number, mut hit) = (0, 0);
    while hit < hits {
        number += 1;
        assert!(number <= 4 * hits, "{hit} of {number} commands were hit within {whole:?}");
        // The golden ratio spreads any number of moments evenly.
        let moment = whole.mul_f64((f64::from(number) * 0.618_033_988_75).fract());
        let ended = interrupt(&mut prepare(number), signal, moment);
        hit += u32::from(ended.was_hit);
        check(number, &ended);
    }
    number
}

/// Returns a command that does the same, but whose files cannot grow beyond so many bytes, rounded
/// up to 512 (`RLIMIT_FSIZE`).
#[must_use]
pub fn limited(command: &Command, bytes: u64) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -f "$0" && exec "$@""#, &bytes.div_ceil(512).to_string()]);
    limited.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// Returns the names in a folder, and in those in it, that are ours until a file is complete.
///
/// # Panics
///
/// Where a folder cannot be listed.
#[must_use]
pub fn leftovers(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        if is_temporary(&entry.file_name()) {
            found.push(entry.file_name());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(leftovers(&entry.path()));
        }
    }
    found
}

/// A disk in memory with little room, mounted until it is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of so many bytes on a folder; `None`, with a line that says so, where that is not
    /// permitted.
    #[must_use]
    #[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
    pub fn mount(folder: &Path, bytes: u64) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(folder);
        mount.stdout(Stdio::null()).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(folder.to_owned()));
        }
        eprintln!("skipped: a disk in memory cannot be mounted");
        None
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Where this fails, it goes with the machine.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Tells whether the process could be sent a signal: until it is waited for, it has its number.
fn send(child: &mut Child, signal: Signal) -> bool {
    let name = match signal {
        Signal::Kill => return child.kill().is_ok(),
        Signal::Interrupt => "INT",
        Signal::Terminate => "TERM",
        Signal::HangUp => "HUP",
    };
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s $0 $1", name, &child.id().to_string()]).stderr(Stdio::null());
    kill.status().is_ok_and(|status| status.success())
}

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn end(mut child: Child, was_hit: bool, ran: Duration) -> Ended {
    let mut said = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_end(&mut said).unwrap_or_else(|error| panic!("reading: {error}"));
    }
    let status = child.wait().unwrap_or_else(|error| panic!("waiting: {error}"));
    let stderr = String::from_utf8_lossy(&said).into_owned();
    Ended { status, stderr, was_hit, ran }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn signals_end_commands() {
        for (signal, code) in [(Signal::Kill, 137), (Signal::Interrupt, 130)] {
            let ended = interrupt(&mut shell("exec sleep 30"), signal, Duration::from_millis(20));
            assert!(ended.was_hit);
            assert_eq!(ended.code(), code);
        }
        let ended = run(&mut shell("echo no >&2; exit 3"));
        assert_eq!((ended.code(), &*ended.stderr, ended.was_hit), (3, "no\n", false));
    }

    #[test]
    fn as_many_hits_as_asked_for() {
        let mut checked = 0;
        let command = |_| shell("exec sleep 0.05");
        let started = interrupt_often(Signal::Terminate, 5, command, |_, _| checked += 1);
        assert!(started >= 5 && started == checked);
    }

    #[test]
    fn files_do_not_grow_beyond_the_limit() {
        let dir = std::env::temp_dir().join(format!("limited-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let mut command = shell("head -c 5000 /dev/zero > a");
        command.current_dir(&dir);
        assert!(!run(&mut limited(&command, 1024)).status.success());
        assert_eq!(fs::metadata(dir.join("a")).unwrap().len(), 1024);
        assert!(run(&mut limited(&command, 1 << 20)).status.success());
        fs::remove_dir_all(&dir).unwrap();
    }
}
