//! Processes that are killed while they edit a file.
//!
//! The process is this test program again: the parent's test calls [`kill`] with the name of
//! another test, which calls [`edits`] and does nothing unless it was started that way.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Runs a test of this program in a process of its own, `kills` times, and kills it, each time
/// `step` later after its first edit; calls `check` with the number of each kill.
///
/// # Panics
///
/// Where the process does not start, or ends before it is killed.
pub fn kill(test: &str, path: &Path, kills: u32, step: Duration, mut check: impl FnMut(u32)) {
    for number in 0..kills {
        let mut child = start(test, path);
        let ready = ready(path);
        wait_for(&ready, &mut child);
        fs::remove_file(&ready).unwrap_or_else(|error| panic!("{ready:?}: {error}"));
        thread::sleep(step * number);
        child.kill().unwrap_or_else(|error| panic!("killing: {error}"));
        let status = child.wait().unwrap_or_else(|error| panic!("waiting: {error}"));
        assert!(!status.success(), "the process is to run until it is killed");
        check(number);
    }
}

/// Calls `edit` with the path that the parent gave and the number of the turn, until this process
/// is killed, or half a minute is over; does nothing where no parent did.
///
/// # Panics
///
/// Where it cannot tell the parent that the first edit is done.
pub fn edits(mut edit: impl FnMut(&Path, u64)) {
    let Some(path) = env::var_os(EDITED).map(PathBuf::from) else { return };
    let started = Instant::now();
    for turn in 0.. {
        edit(&path, turn);
        if turn == 0 {
            let ready = ready(&path);
            fs::write(&ready, "").unwrap_or_else(|error| panic!("{ready:?}: {error}"));
        }
        if started.elapsed() > PATIENCE {
            return;
        }
    }
}

fn start(test: &str, path: &Path) -> Child {
    let program = env::current_exe().unwrap_or_else(|error| panic!("own program: {error}"));
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]).env(EDITED, path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("starting: {error}"))
}

fn wait_for(ready: &Path, child: &mut Child) {
    let started = Instant::now();
    while !ready.exists() {
        let ended = child.try_wait().unwrap_or_else(|error| panic!("waiting: {error}"));
        assert!(ended.is_none(), "the process ended before its first edit was done: {ended:?}");
        assert!(started.elapsed() < PATIENCE, "the process did not make an edit");
        thread::sleep(Duration::from_micros(100));
    }
}

/// The file that says that an edit is done, beside the one that is edited.
fn ready(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".ready");
    path.with_file_name(name)
}

const EDITED: &str = "EDITED_BY_A_CHILD";

const PATIENCE: Duration = Duration::from_secs(30);
