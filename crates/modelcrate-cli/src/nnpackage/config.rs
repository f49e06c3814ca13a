use std::{collections::BTreeMap, fmt::Write as _};

use modelcrate::nnpackage::{ConfigEffect, ConfigEntry, ConfigKey, ConfigType};
use serde::Serialize;

use crate::{
    escape::{escape, escape_up_to},
    failure::About,
    options::{Input, Print},
    outcome::Outcome,
    output,
};

/// Show the configuration of a package: what is set, what that means, and when it takes effect
///
/// onert reads the first configuration file that the manifest names. Of several lines of one key the
/// last one counts. Most keys take effect on sessions that the same process creates later, not on
/// the one that loads the package.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage config package.zip
  modelcrate nnpackage config --all package.zip")]
pub(crate) struct Config {
    /// The package, as an archive or a folder; - is standard input
    package: Input,
    /// Show also the keys that are not set
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Shown {
    path: String,
    /// The configuration file; none where the manifest names none.
    entry: Option<String>,
    entries: Vec<Entry>,
    /// Lines that hold something and set nothing.
    skipped_lines: Vec<u64>,
    byte_order_mark: bool,
    /// Keys that are not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    unset: Option<Vec<Key>>,
}

#[derive(Serialize)]
struct Entry {
    key: String,
    value: String,
    line: u64,
    /// Whether no later line of the same key takes its place.
    counts: bool,
    /// None for a key that onert does not know.
    known: Option<Key>,
}

#[derive(Serialize)]
struct Key {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'static str>,
    #[serde(rename = "type")]
    value_type: &'static str,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    words: &'static [&'static str],
    default: &'static str,
    effect: &'static str,
}

impl Config {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let package = super::package(&self.package)?;
        let config = package.config().about(&self.package)?.unwrap_or_default();
        let entries = config.entries();
        let last: BTreeMap<&str, u64> =
            entries.iter().map(|entry| (entry.key.as_str(), entry.line)).collect();
        let entry = |entry: &ConfigEntry| {
            let counts = last.get(entry.key.as_str()) == Some(&entry.line);
            Entry::of(entry, counts)
        };
        let is_unset = |known: &&ConfigKey| entries.iter().all(|entry| entry.key != known.name);
        let unset = ConfigKey::all().iter().filter(is_unset).map(Key::named);
        let shown = Shown {
            path: self.package.display().to_string(),
            entry: package.config_path(),
            entries: entries.iter().map(entry).collect(),
            skipped_lines: config.skipped_lines().to_vec(),
            byte_order_mark: config.has_bom(),
            unset: self.all.then(|| unset.collect()),
        };
        output::print_result(self.print, &shown, &shown.text())?;
        Ok(Outcome::Fine)
    }
}

impl Shown {
    fn text(&self) -> String {
        let path = escape(&self.path);
        let mut text = match &self.entry {
            Some(entry) => format!("{path}: \"{}\"\n", escape(entry)),
            None => format!("{path}: no configuration\n"),
        };
        if !self.entries.is_empty() {
            let header = ["line", "key", "value", "type", "default", "effect"];
            let mut table = output::table(header, &[0]);
            for entry in &self.entries {
                table.add_row(entry.row());
            }
            text.push_str(&output::table_text(&table));
        }
        for line in self.skipped_lines.iter().take(SHOWN_LINES) {
            let _ = writeln!(text, "  line {line} sets nothing");
        }
        if let Some(left) =
            self.skipped_lines.len().checked_sub(SHOWN_LINES).filter(|left| *left > 0)
        {
            let _ = writeln!(text, "  … and {left} more lines");
        }
        if self.byte_order_mark {
            text.push_str(
                "  the file starts with a byte order mark, which is part of its first key\n",
            );
        }
        if let Some(unset) = self.unset.as_ref().filter(|unset| !unset.is_empty()) {
            let mut table = output::table(["not set", "type", "default", "effect"], &[]);
            for key in unset {
                let name = key.key.unwrap_or_default().to_owned();
                table.add_row([name, key.type_text(), key.default.to_owned(), key.effect_text()]);
            }
            let _ = write!(text, "\n{}", output::table_text(&table));
        }
        text
    }
}

impl Entry {
    fn of(entry: &ConfigEntry, counts: bool) -> Self {
        Self {
            key: entry.key.clone(),
            value: entry.value.clone(),
            line: entry.line,
            counts,
            known: ConfigKey::find(&entry.key).as_ref().map(Key::of),
        }
    }

    fn row(&self) -> [String; 6] {
        let [key, value] =
            [&self.key, &self.value].map(|text| escape_up_to(TEXT, text).into_owned());
        let known = self.known.as_ref();
        let effect = if self.counts {
            known.map_or_else(|| "none: onert does not know the key".to_owned(), Key::effect_text)
        } else {
            "none: a later line counts".to_owned()
        };
        [
            self.line.to_string(),
            key,
            value,
            known.map_or_else(|| "?".to_owned(), Key::type_text),
            known.map_or("?", |known| known.default).to_owned(),
            effect,
        ]
    }
}

impl Key {
    fn of(key: &ConfigKey) -> Self {
        let (value_type, words): (_, &'static [&'static str]) = match key.value_type {
            ConfigType::Text => ("text", &[]),
            ConfigType::Word(words) => ("word", words),
            ConfigType::Backends => ("backends", &[]),
            ConfigType::Int => ("int", &[]),
            ConfigType::Bool => ("bool", &[]),
            ConfigType::BackendMap => ("backend-map", &[]),
            ConfigType::Folder => ("folder", &[]),
            _ => ("other", &[]),
        };
        let effect = match key.effect {
            ConfigEffect::ThisSession => "this-session",
            ConfigEffect::LaterSessions => "later-sessions",
            ConfigEffect::Half => "half",
            ConfigEffect::Never => "never",
            _ => "other",
        };
        Self { key: None, value_type, words, default: key.default, effect }
    }

    fn named(key: &ConfigKey) -> Self {
        Self { key: Some(key.name), ..Self::of(key) }
    }

    fn type_text(&self) -> String {
        if self.words.is_empty() { self.value_type.to_owned() } else { self.words.join("|") }
    }

    fn effect_text(&self) -> String {
        let text = match self.effect {
            "this-session" => "on this session",
            "later-sessions" => "on later sessions of the process only",
            "half" => "half on this session, which then does not run",
            "never" => "none",
            other => other,
        };
        text.to_owned()
    }
}

/// Characters of a text from a file that are shown to people.
const TEXT: usize = 72;

/// Lines without a setting that are listed for people.
const SHOWN_LINES: usize = 16;
