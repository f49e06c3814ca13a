//! Options that commands share.

use std::{num::NonZeroUsize, path::PathBuf, str::FromStr, sync::OnceLock, time::Duration};

use clap::ValueEnum;
use modelcrate::tensor_core::{Verify, output::Output, parallel};

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// One JSON object a line and file, as each is done
    Jsonl,
}

/// Options that every command has that prints results.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Print {
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Options that every command has.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Manner {
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more, such as every file that is skipped
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Show no progress
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
    /// Say at the end how many requests were made of servers, how many bytes came and went, and how many
    /// requests were made again
    #[cfg(feature = "remote")]
    #[arg(long, global = true)]
    pub(crate) requests: bool,
    /// Ask other hosts than this machine by http, too, whose answers anybody on the way can read and change
    #[cfg(feature = "remote")]
    #[arg(long, global = true)]
    pub(crate) allow_http: bool,
    /// Use the proxy that the environment names
    #[cfg(feature = "remote")]
    #[arg(long, global = true)]
    pub(crate) use_env_proxy: bool,
    /// How many threads may be used; as many as the system offers by default
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

impl Manner {
    /// Makes the process keep to them.
    pub(crate) fn set(self) {
        match self.color {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        // Nothing sets them twice.
        let _ = MANNER.set(self);
    }

    /// Returns how many threads to use.
    pub(crate) fn threads(self) -> NonZeroUsize {
        self.threads.unwrap_or_else(parallel::available)
    }
}

/// Returns the options that every command has.
pub(crate) fn manner() -> Manner {
    MANNER.get().copied().unwrap_or_default()
}

/// Options of every command that changes a file in place.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct InPlace {
    /// Wait so many seconds where another process edits the file
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true)]
    wait: u64,
}

impl InPlace {
    pub(crate) const fn wait(self) -> Duration {
        Duration::from_secs(self.wait)
    }

    /// Returns how a changed file takes its place.
    pub(crate) fn output(self) -> Output {
        Output { wait: self.wait(), ..Output::default() }
    }
}

/// Option of every command that checks what it writes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Force {
    /// Write the result even where verify would find new errors in it
    #[arg(long)]
    pub(crate) force: bool,
}

impl Force {
    /// Returns whether what is read is compared with its digests.
    pub(crate) const fn verify(self) -> Verify {
        if self.force { Verify::Never } else { Verify::Once }
    }
}

/// Tells whether a path means standard input or output.
pub(crate) fn is_stdio(path: &std::path::Path) -> bool {
    path.as_os_str() == "-"
}

/// A file to read; `-` is standard input.
pub(crate) type Input = PathBuf;

/// A number of bytes: digits alone, or with one of `KiB`, `MiB` and `GiB` behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
        let unit = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
        let (digits, unit) = unit.unwrap_or((text, 1_u64));
        let number = digits.trim_end().parse::<u64>().ok();
        let bytes = number.and_then(|number| number.checked_mul(unit));
        bytes.map(Self).ok_or_else(|| format!("{text:?} is not a number of bytes, such as 16MiB"))
    }
}

/// What runs models, and stops at some that are as they should be.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Runtime {
    /// onert 0.1.0
    Onert,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("17", 17), ("1KiB", 1024), ("3 MiB", 3 << 20)] {
            assert_eq!(text.parse::<Size>().unwrap().0, bytes);
        }
        for text in ["", "MiB", "-1", "1.5GiB", "1 kb", "99999999999999GiB"] {
            let message = format!("{text:?} is not a number of bytes, such as 16MiB");
            assert_eq!(text.parse::<Size>().unwrap_err(), message);
        }
    }
}
