use std::{
    fmt::Write as _,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use anyhow::Context;
use modelcrate::{
    Error, Format as ModelFormat, OpenOptions, Profile, Verdict, detect,
    tensor_core::{At, Report, Severity, Source},
};
use serde::Serialize;

use crate::{
    Outcome,
    args::{Format, Input, Print, is_stdio},
    chain,
    escape::escape,
    output, print_error,
};

/// Read model files whole and report every fault: structure, digests, contents
///
/// Folders are walked; files in them that are no model files are passed over. A file that cannot be
/// opened is invalid, with the reason as its finding.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate verify model.zt
  modelcrate verify --format json models/ > report.json")]
pub(crate) struct Verify {
    /// Files or folders; - is standard input
    #[arg(required = true, value_name = "FILE|FOLDER")]
    files: Vec<Input>,
    /// Put up with a file whose end is missing: check the last complete one inside it
    #[arg(long)]
    lenient: bool,
    /// How many threads read and hash; as many as the system offers by default
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct File {
    path: String,
    format: Option<ModelFormat>,
    verdict: Verdict,
    findings: Report,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (mut outcome, mut done) = (Outcome::Fine, Vec::new());
        for input in &self.files {
            let paths = match walk(input) {
                Ok(paths) => paths,
                Err(error) => {
                    print_error(&format!("{error:#}"));
                    outcome = outcome.and(Outcome::Failed);
                    continue;
                }
            };
            for path in paths {
                let file = match self.verify(&path) {
                    Ok(file) => file,
                    Err(error) => {
                        print_error(&format!("{}: {}", path.display(), chain(&error)));
                        outcome = outcome.and(Outcome::Failed);
                        continue;
                    }
                };
                if file.verdict == Verdict::Invalid {
                    outcome = outcome.and(Outcome::Invalid);
                }
                match self.print.format {
                    Format::Human => output::print_text(&text(&file))?,
                    Format::Jsonl => output::print_line(&file)?,
                    Format::Json => done.push(file),
                }
            }
        }
        if self.print.format == Format::Json {
            output::print_document(&done)?;
        }
        Ok(outcome)
    }

    fn verify(&self, path: &Input) -> anyhow::Result<File> {
        let profile = if self.lenient { Profile::Lenient } else { Profile::Strict };
        let options = OpenOptions::default().profile(profile).threads(self.threads);
        let shown = path.display().to_string();
        let reader = match output::open(path, options) {
            Ok(reader) => reader,
            Err(error) if crate::is_invalid(&error) => {
                let mut findings = Report::default();
                let known = error.downcast_ref::<Error>();
                let rule = known.map_or("file/read", Error::rule);
                let at = At::file().offset(known.and_then(Error::offset));
                findings.push(Severity::Error, rule, at, chain(&error));
                let format = format_of(known);
                let verdict = Verdict::Invalid;
                return Ok(File { path: shown, format, verdict, findings });
            }
            Err(error) => return Err(error),
        };
        let bar = output::progress(self.print, reader.byte_len());
        let findings = reader.verify_with(|bytes| bar.inc(bytes));
        bar.finish_and_clear();
        let verdict = Verdict::from(&findings);
        Ok(File { path: shown, format: Some(reader.format()), verdict, findings })
    }
}

/// Tells of which format a file is that could not be opened.
fn format_of(error: Option<&Error>) -> Option<ModelFormat> {
    match error {
        Some(Error::ZTensor(_)) => Some(ModelFormat::ZTensor),
        _ => None,
    }
}

/// Returns the files that an argument means: itself, or the model files of a folder, sorted.
fn walk(input: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if is_stdio(input) || !input.is_dir() {
        return Ok(vec![input.to_owned()]);
    }
    let (mut found, mut folders) = (Vec::new(), vec![input.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let entry = entry.with_context(|| folder.display().to_string())?;
            let kind = entry.file_type().with_context(|| entry.path().display().to_string())?;
            // A link is not followed: it may lead out of the folder, or round in a circle.
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && is_model(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Tells whether a file is worth opening: what cannot be read is, so that it is reported.
fn is_model(path: &Path) -> bool {
    Source::open(path).and_then(|source| detect(&source)).map_or(true, |format| format.is_some())
}

fn text(file: &File) -> String {
    let style = match file.verdict {
        Verdict::Valid => anstyle::AnsiColor::Green.on_default(),
        Verdict::Warnings => anstyle::AnsiColor::Yellow.on_default(),
        Verdict::Invalid => anstyle::AnsiColor::Red.on_default(),
    };
    let mut text = String::new();
    let _ = writeln!(text, "{}: {style}{}{style:#}", escape(&file.path), file.verdict);
    for finding in file.findings.findings() {
        text.push_str(&output::finding_text(finding));
    }
    text
}
