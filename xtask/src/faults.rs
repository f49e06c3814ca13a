//! Runs every command that changes or makes a file, and kills it, limits the size of its files, and
//! fills its disk: afterwards there is the old file or the new one, and nothing beside it.

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::{cargo, command, output, root, succeed};

/// Runs each command so many times, and prints a table of what was there afterwards.
pub(crate) fn run(kills: u32) -> Result<()> {
    succeed(cargo().args(["build", "--quiet", "-p", "modelcrate-cli"]))?;
    let program = env::current_exe()?.with_file_name("modelcrate");
    let table: Table = toml::from_str(&fs::read_to_string(root().join("xtask/faults.toml"))?)?;
    println!("| command | kills | old after | new after | too large | disk full |");
    println!("|---|---|---|---|---|---|");
    let (noise, mut broken) = (noise(), 0);
    for edit in &table.edit {
        let row = edit.row(&program, &noise, kills).unwrap_or_else(|error| {
            broken += 1;
            format!("| {} | {error:#} |", edit.title())
        });
        println!("{row}");
    }
    ensure!(broken == 0, "{broken} commands leave something else than the old file or the new one");
    Ok(())
}

/// A tenth of that, for every change of the code.
pub(crate) fn some() -> Result<()> {
    run(20)
}

#[derive(Deserialize)]
struct Table {
    edit: Vec<Edit>,
}

/// A command, and what it changes or makes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    run: String,
    file: String,
    /// The file of `testdata` that is there first.
    old: Option<String>,
    /// Commands that come first; those for a shell begin with `$`.
    #[serde(default)]
    before: Vec<String>,
    /// Whether `file` is a folder of files that appear one after the other, each whole.
    #[serde(default)]
    one_by_one: bool,
    /// Whether what it writes may fit where no byte is left: nothing, or what the last page has room
    /// for.
    #[serde(default)]
    fits: bool,
}

impl Edit {
    /// Returns the command and the name of the file that is there first.
    fn title(&self) -> String {
        let old = self.old.as_ref().and_then(|old| old.rsplit('/').next()).unwrap_or("noise");
        format!("`{}`, {old}", self.run)
    }

    fn row(&self, program: &Path, noise: &[u8], kills: u32) -> Result<String> {
        let folder = tempfile::tempdir()?;
        let trial = Trial::start(self, program, noise, folder.path())?;
        let (old, new) = trial.killed(kills)?;
        let too_large = trial.limited()?;
        let full = self.on_a_small_disk(program, noise)?;
        Ok(format!("| {} | {kills} | {old} | {new} | {too_large} | {full} |", self.title()))
    }

    /// Runs the command where less space is left than it needs, if this process may mount a disk.
    fn on_a_small_disk(&self, program: &Path, noise: &[u8]) -> Result<&'static str> {
        let folder = tempfile::tempdir()?;
        let mut mount = command("mount");
        mount.args(["-t", "tmpfs", "-o", "size=40m", "none"]).arg(folder.path());
        if output(&mut mount).is_err() {
            return Ok("skipped");
        }
        let refused = self.refused_for_space(program, noise, folder.path());
        output(command("umount").arg(folder.path()))?;
        let refused = refused.context("where the disk is full")?;
        ensure!(refused || self.fits, "all of it fits on a full disk");
        Ok(if refused { "refused" } else { "fits" })
    }

    fn refused_for_space(&self, program: &Path, noise: &[u8], folder: &Path) -> Result<bool> {
        let trial = Trial::start(self, program, noise, folder)?;
        trial.old.restore(&trial.path())?;
        let mut filler = fs::File::create(folder.join("filler"))?;
        while filler.write_all(&[7; 4096]).is_ok() {}
        trial.refused(&trial.command(&self.run).output()?)
    }
}

/// A folder in which a command is run again and again.
struct Trial<'a> {
    edit: &'a Edit,
    program: &'a Path,
    folder: &'a Path,
    old: State,
    new: State,
    /// How long the command takes.
    took: Duration,
}

impl<'a> Trial<'a> {
    fn start(edit: &'a Edit, program: &'a Path, noise: &[u8], folder: &'a Path) -> Result<Self> {
        fs::write(folder.join("noise"), noise)?;
        if let Some(old) = &edit.old {
            fs::copy(root().join("testdata").join(old), folder.join("old"))?;
        }
        let (old, new, took) = <_>::default();
        let mut trial = Self { edit, program, folder, old, new, took };
        for line in &edit.before {
            ensure_success(&trial.command(line).output()?).with_context(|| line.clone())?;
        }
        trial.old = trial.state()?;
        let started = Instant::now();
        ensure_success(&trial.command(&edit.run).output()?)?;
        trial.took = started.elapsed();
        trial.new = trial.state()?;
        ensure!(trial.new.files != trial.old.files, "the command changes nothing");
        Ok(trial)
    }

    fn command(&self, line: &str) -> Command {
        let script = line.strip_prefix("$ ");
        let mut command = Command::new(script.map_or(self.program, |_| Path::new("sh")));
        match script {
            Some(script) => command.args(["-c", script]),
            None => command.args(line.split_whitespace()),
        };
        command.current_dir(self.folder).stdin(Stdio::null());
        command
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.edit.file)
    }

    fn state(&self) -> Result<State> {
        let mut state = State::default();
        state.read(&self.path())?;
        let shown = ["inspect", "--digests", "--format", "json", &self.edit.file].join(" ");
        state.shown = shown_by(&self.command(&shown).output()?);
        Ok(state)
    }

    /// Kills the command at random moments, by every fourth kill so that it can tidy up; returns how
    /// often the old file and the new one were there afterwards.
    fn killed(&self, kills: u32) -> Result<(u32, u32)> {
        let (mut old, mut random) = (0, Random(u64::from(kills) + 1));
        for number in 0..kills {
            self.old.restore(&self.path())?;
            let delay = self.took.mul_f64(random.next() * 1.1);
            let mut child =
                self.command(&self.edit.run).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            thread::sleep(delay);
            let tidies = number % 4 == 0;
            if tidies {
                // It may have ended by itself.
                let _ = output(command("kill").args(["-TERM", &child.id().to_string()]));
            } else {
                child.kill()?;
            }
            let status = child.wait()?;
            let expected = if tidies { 15 } else { 9 };
            ensure!(status.success() || status.signal() == Some(expected), "{status}");
            let when = || format!("{status} after {delay:?}");
            old += u32::from(self.judge().with_context(when)? == After::Old);
            if !tidies && !self.hidden()?.is_empty() {
                // What a dead process left is gone with the next edit.
                let next = self.command(&self.edit.run).output()?;
                if !next.status.success() {
                    // That was none: it found what the dead one had made.
                    self.old.restore(&self.path())?;
                    ensure_success(&self.command(&self.edit.run).output()?)?;
                }
            }
            let hidden = self.hidden()?;
            ensure!(hidden.is_empty(), "{}: {hidden:?} was left", when());
        }
        Ok((old, kills - old))
    }

    /// Runs the command with several limits on the size of a file, in blocks of a shell; returns how
    /// often that was too little.
    fn limited(&self) -> Result<u32> {
        let mut refused = 0;
        for blocks in [0, 1, 8, 64, 1024, 8192] {
            self.old.restore(&self.path())?;
            let mut shell = Command::new("sh");
            let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
            shell.current_dir(self.folder).args(["-c", &script]).arg(self.program);
            let output = shell.args(self.edit.run.split_whitespace()).output()?;
            refused +=
                u32::from(self.refused(&output).with_context(|| format!("{blocks} blocks"))?);
        }
        ensure!(refused > 0 || self.edit.fits, "no limit on the size of files was too small");
        Ok(refused)
    }

    /// Tells whether a command could not be carried out, and proves that nothing came of it then.
    fn refused(&self, output: &Output) -> Result<bool> {
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(matches!(output.status.code(), Some(0 | 2)), "{}: {errors}", output.status);
        let (after, refused) = (self.judge()?, !output.status.success());
        ensure!(refused == (after == After::Old), "{}, but the file is {after:?}", output.status);
        let hidden = self.hidden()?;
        ensure!(hidden.is_empty(), "{hidden:?} was left");
        Ok(refused)
    }

    /// Tells which of the two files is there, or the old one where some of several are; bytes that an
    /// edit has put behind the old one, and that no reader looks at, do not matter.
    fn judge(&self) -> Result<After> {
        let mut found = State::default();
        found.read(&self.path())?;
        for (state, after) in [(&self.old, After::Old), (&self.new, After::New)] {
            if found.files == state.files {
                return Ok(after);
            }
        }
        let is_new = |(path, bytes): (_, &_)| self.new.files.get(path) == Some(bytes);
        if self.edit.one_by_one && found.files.iter().all(is_new) {
            // Some are missing.
            return Ok(After::Old);
        }
        ensure_success(&self.command(&format!("verify {}", self.edit.file)).output()?)?;
        let found = self.state()?.shown.context("the file cannot be looked at")?;
        if self.old.shown.as_ref() == Some(&found) {
            return Ok(After::Old);
        }
        ensure!(self.new.shown.as_ref() == Some(&found), "neither the old file nor the new one");
        Ok(After::New)
    }

    /// Returns the hidden names in the folder, and in one that is made or changed: nothing there has one
    /// by itself.
    fn hidden(&self) -> Result<Vec<PathBuf>> {
        let mut hidden = Vec::new();
        for folder in [self.folder, &self.path()].into_iter().filter(|folder| folder.is_dir()) {
            for entry in fs::read_dir(folder)? {
                hidden.extend(Some(entry?.path()).filter(|path| is_hidden(path)));
            }
        }
        Ok(hidden)
    }
}

/// Tells whether a name is one that no reader takes for content.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Old,
    New,
}

/// A file, all files of a folder, or nothing.
#[derive(Default)]
struct State {
    is_folder: bool,
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// What `inspect` says of it, findings and places apart.
    shown: Option<Json>,
}

impl State {
    fn read(&mut self, path: &Path) -> Result<()> {
        if path.is_dir() {
            self.is_folder = true;
            for entry in fs::read_dir(path)? {
                let path = entry?.path();
                if !is_hidden(&path) {
                    self.read(&path)?;
                }
            }
        } else if path.exists() {
            self.files.insert(path.to_owned(), fs::read(path)?);
        }
        Ok(())
    }

    fn restore(&self, path: &Path) -> Result<()> {
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else if path.exists() {
            fs::remove_file(path)?;
        }
        if self.is_folder {
            fs::create_dir(path)?;
        }
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

fn shown_by(inspect: &Output) -> Option<Json> {
    let mut shown: Json = serde_json::from_slice(&inspect.stdout).ok()?;
    let file = shown["files"].get_mut(0)?;
    file.as_object_mut()?.remove("findings");
    for part in ["tensors", "files"] {
        for tensor in file[part].as_array_mut().into_iter().flatten() {
            tensor.as_object_mut()?.remove("offset");
        }
    }
    Some(file.take())
}

fn ensure_success(output: &Output) -> Result<()> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", output.status);
    Ok(())
}

/// Bytes that cannot be compressed.
fn noise() -> Vec<u8> {
    let mut random = Random(1);
    (0..6 << 20).map(|_| random.bits().to_le_bytes()[0]).collect()
}

/// Numbers without a pattern that matters here, the same each time.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number from 0 to 1.
    fn next(&mut self) -> f64 {
        f64::from(self.bits() as u32) / f64::from(u32::MAX)
    }
}
