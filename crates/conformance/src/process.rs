//! Runs other programs.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How long a program may run.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns a command that runs a program of this machine.
///
/// `None`, with a line that says so, where it is not installed; `version` is what makes it say its
/// version.
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub fn tool(name: &str, version: &str) -> Option<Command> {
    let mut probe = Command::new(name);
    probe.arg(version).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if probe.status().is_ok_and(|status| status.success()) {
        return Some(Command::new(name));
    }
    eprintln!("skipped: {name} is not installed");
    None
}

/// Runs a command to its end and returns what it printed.
///
/// # Errors
///
/// Where it fails or is not done in time; says what it complained about.
pub fn output(command: Command) -> Result<Vec<u8>, String> {
    output_within(command, LIMIT)
}

/// Does as [`output`] with another limit of time.
///
/// # Errors
///
/// As for [`output`].
pub fn output_within(mut command: Command, limit: Duration) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    // Both ends of the pipes are closed once the child has ended.
    let Ok(printed) = stdout.recv_timeout(limit) else {
        kill(child);
        return Err(format!("stopped after {} s", limit.as_secs()));
    };
    let complaints = stderr.recv_timeout(limit).unwrap_or_default();
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

/// Ends a child that takes too long.
fn kill(mut child: Child) {
    // It may have ended by itself in the meantime.
    let _ = child.kill();
    let _ = child.wait();
}
