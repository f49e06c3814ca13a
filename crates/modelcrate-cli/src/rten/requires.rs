use std::fmt::Write as _;

use modelcrate::rten_format::{Release, Requirement};
use serde::Serialize;

use crate::{
    escape::{escape, escape_up_to},
    options::{Input, Print},
    outcome::Outcome,
    output,
};

/// Show which release of RTen reads a model, and why
///
/// Operators, attributes and how constants are stored tell. The exit status is 1 where a release is
/// given that does not read it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten requires model.rten
  modelcrate rten requires model.rten --release 0.14.0")]
pub(crate) struct Requires {
    /// The model; - is standard input
    file: Input,
    /// Say whether this release reads the model
    #[arg(long, value_name = "VERSION")]
    release: Option<Release>,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Required {
    path: String,
    /// None where something is not known.
    release: Option<Release>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<bool>,
    reasons: Vec<Requirement>,
}

impl Requires {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = super::open(&self.file)?;
        let found = reader.requirements();
        let release = found.release();
        let reads = self.release.map(|given| release.is_some_and(|needed| given >= needed));
        let result = Required {
            path: self.file.display().to_string(),
            release,
            reads,
            reasons: found.reasons,
        };
        output::print_result(self.print, &result, &self.text(&result))?;
        Ok(if reads == Some(false) { Outcome::Invalid } else { Outcome::Fine })
    }

    fn text(&self, result: &Required) -> String {
        let path = escape(&result.path);
        let mut text = match &result.release {
            Some(release) => format!("{path}: read from release {release} on\n"),
            None => format!("{path}: read by no release that is known\n"),
        };
        if let (Some(given), Some(reads)) = (self.release, result.reads) {
            let does = if reads { "reads" } else { "does not read" };
            let _ = writeln!(text, "  release {given} {does} it");
        }
        for Requirement { what, since, count, path, .. } in &result.reasons {
            let since = since.map_or_else(|| "?".to_owned(), |since| since.to_string());
            let what = escape_up_to(TEXT, what);
            let _ = write!(text, "  {since:<8} {what}");
            if *count > 1 {
                let _ = write!(text, ", {count} times");
            }
            if let Some(path) = path {
                let _ = write!(text, ", first at {}", escape_up_to(TEXT, path));
            }
            text.push('\n');
        }
        text
    }
}

/// Characters of a text from a file that are shown to people.
const TEXT: usize = 200;
