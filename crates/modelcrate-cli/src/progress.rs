//! One bar on standard error for whatever takes its time.

use std::{
    io::{self, IsTerminal as _},
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{escape::escape_up_to, options::manner};

/// How far a command has come: name, number, percent, a bar and the time that is left.
///
/// Nothing is drawn where standard error is no terminal, nor before the command has taken
/// [`PATIENCE`].
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    /// Whether the bar waits for its time.
    is_waiting: AtomicBool,
    /// How many files there are, of which so many have begun.
    files: AtomicU64,
    begun: AtomicU64,
}

impl Progress {
    /// Starts a bar for so many bytes of a file; more files than one are counted as each
    /// [begins](Self::begin).
    pub(crate) fn new(path: &Path, bytes: u64) -> Self {
        let progress = Self::of_files(1, bytes);
        progress.begin(path);
        progress
    }

    /// Starts a bar for so many files, which have so many bytes together.
    pub(crate) fn of_files(files: u64, bytes: u64) -> Self {
        idle();
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        let is_waiting = AtomicBool::new(is_wanted());
        let [files, begun] = [files, 0].map(AtomicU64::new);
        Self { bar, started: Instant::now(), is_waiting, files, begun }
    }

    /// Says how many files there are, where that was not known.
    pub(crate) fn expect(&self, files: usize) {
        self.files.store(files as u64, Ordering::Relaxed);
    }

    /// Says which file is next.
    pub(crate) fn begin(&self, path: &Path) {
        let number = self.begun.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if !self.is_shown() {
            return;
        }
        self.bar.set_message(escape_up_to(NAME, &path.to_string_lossy()).into_owned());
        let files = self.files.load(Ordering::Relaxed);
        if files > 1 {
            self.bar.set_prefix(format!("{number}/{files} "));
        }
    }

    /// Adds bytes that are done.
    pub(crate) fn inc(&self, bytes: u64) {
        self.bar.inc(bytes);
        self.is_shown();
    }

    /// Adds to the bytes that there are.
    pub(crate) fn grow(&self, bytes: u64) {
        self.bar.inc_length(bytes);
    }

    /// Says how many bytes of a file of so many are done.
    pub(crate) fn set(&self, done: u64, of: Option<u64>) {
        if let Some(bytes) = of {
            self.bar.set_length(bytes);
        }
        self.bar.set_position(done);
        self.is_shown();
    }

    /// Takes the bar away; it comes back with what is done next.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away for good.
    pub(crate) fn finish(&self) {
        self.is_waiting.store(false, Ordering::Relaxed);
        self.bar.finish_and_clear();
    }

    /// Shows the bar once its time has come; tells whether it might be seen.
    fn is_shown(&self) -> bool {
        if !self.is_waiting.load(Ordering::Relaxed) {
            return !self.bar.is_hidden();
        }
        let is_time = self.started.elapsed() >= PATIENCE;
        if is_time && self.is_waiting.swap(false, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        true
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Shows that a file is worked on of which nobody counts how much is done, until something is printed
/// or a bar begins.
pub(crate) fn busy(path: &Path) {
    if !is_wanted() {
        return;
    }
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        spinner.set_style(style);
    }
    spinner.set_message(escape_up_to(NAME, &path.to_string_lossy()).into_owned());
    *shown() = Some(spinner.clone());
    thread::spawn(move || {
        thread::sleep(PATIENCE);
        let _shown = shown();
        if !spinner.is_finished() {
            spinner.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            spinner.enable_steady_tick(TICK);
        }
    });
}

/// Takes away what [`busy`] shows.
pub(crate) fn idle() {
    if let Some(spinner) = shown().take() {
        spinner.finish_and_clear();
    }
}

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells whether anybody could see a bar.
pub(crate) fn is_wanted() -> bool {
    let manner = manner();
    !manner.quiet && !manner.no_progress && io::stderr().is_terminal()
}

const TEMPLATE: &str = "{msg} {prefix}{percent:>3} % {wide_bar} {bytes}/{total_bytes}, {eta} left";

/// What a command may take before a bar is drawn.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often a spinner moves.
const TICK: Duration = Duration::from_millis(100);

/// Characters of a name beside the bar.
const NAME: usize = 32;
