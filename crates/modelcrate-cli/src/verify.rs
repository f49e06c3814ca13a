use std::{
    collections::HashSet,
    fmt::Write as _,
    fs, io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use modelcrate::{
    AnyReader, Error, Format as ModelFormat, Verdict, detect, is_model_folder,
    tensor_core::{At, Finding, Profile, Report, Source},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::{About, Failure, chain, is_invalid},
    options::{Format, Input, Print, is_stdio},
    outcome::{Outcome, print_error},
    output,
};

/// Read model files whole and report every fault: structure, digests, contents
///
/// A folder with MANIFEST and carton.toml is verified as the carton that it was, one with
/// metadata/MANIFEST as an nnpackage. Other folders are walked; what is hidden in them, links, and
/// files that are not model files, neither by content nor by name, are skipped and counted. The
/// report has files that could not be read, too, with the reason as their finding.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 all files are valid (warnings allowed), 1 a file is invalid, 2 a file or folder could
not be read or a folder has no model file, whatever became of the others.

Examples:
  modelcrate verify model.zt
  modelcrate verify --format json models/ > report.json")]
pub(crate) struct Verify {
    /// Files or folders; - is standard input
    #[arg(required = true, value_name = "FILE|FOLDER")]
    files: Vec<Input>,
    /// Follow links in folders
    #[arg(short = 'L', long)]
    follow: bool,
    /// Tolerate a folder without model files
    #[arg(long)]
    allow_empty: bool,
    /// Tolerate a file whose end is missing: check the last complete one inside it
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
    /// Only of formats that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_hash: Option<String>,
    verdict: Verdict,
    findings: Report,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (mut outcome, mut done, mut skipped) = (Outcome::Fine, Vec::new(), 0_u64);
        for input in &self.files {
            let walked = self.walk(input);
            skipped = skipped.saturating_add(walked.skipped);
            for (path, error) in walked.files {
                let verified = error.map_or_else(|| self.verify(&path), Err);
                let file = match verified.about(&path) {
                    Ok(file) => file,
                    Err(error) => {
                        outcome = outcome.and(Outcome::Failed);
                        if self.print.format == Format::Human {
                            print_error(&chain(&error));
                            continue;
                        }
                        File::unread(&path, &error)
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
        match self.print.format {
            Format::Human if skipped > 0 => {
                let files = if skipped == 1 { "file" } else { "files" };
                output::print_aside(&format!("{skipped} {files} skipped\n"));
            }
            Format::Json => output::print_document(&done)?,
            _ => {}
        }
        Ok(outcome)
    }

    fn walk(&self, input: &Path) -> Walked {
        let mut walked = Walked::default();
        if is_stdio(input) || !input.is_dir() || is_model_folder(input) {
            walked.files.push((input.to_owned(), None));
            return walked;
        }
        walked.folders.push(input.to_owned());
        while let Some(folder) = walked.folders.pop() {
            if let Err(error) = walked.folder(&folder, self.follow) {
                walked.files.push((folder, Some(error.into())));
            }
        }
        if walked.files.is_empty() && !self.allow_empty {
            let error = anyhow!("has no model file (--allow-empty tolerates that)");
            walked.files.push((input.to_owned(), Some(error)));
        }
        walked.files.sort_by(|(a, _), (b, _)| a.cmp(b));
        walked
    }

    fn verify(&self, path: &Input) -> anyhow::Result<File> {
        let profile = if self.lenient { Profile::Lenient } else { Profile::Strict };
        let mut options = AnyReader::options().profile(profile);
        if let Some(threads) = self.threads {
            options = options.threads(threads);
        }
        let reader = match output::open(path, options) {
            Ok(reader) => reader,
            Err(error) if is_invalid(&error) => {
                let known = error.downcast_ref::<Error>();
                let rule = known.map_or("file/read", Error::rule);
                let at = known.map(Error::at).unwrap_or_default();
                let message = chain(&error);
                let file = File::invalid(path, rule, at, message);
                return Ok(File { format: known.and_then(Error::format), ..file });
            }
            Err(error) => return Err(error),
        };
        let bar = output::progress(self.print, reader.byte_len());
        let findings = reader.validate_with(|bytes| bar.inc(bytes));
        bar.finish_and_clear();
        let verdict = Verdict::from(&findings);
        let path = path.display().to_string();
        let (format, model_hash) = (Some(reader.format()), reader.model_hash());
        Ok(File { path, format, model_hash, verdict, findings })
    }
}

impl File {
    fn invalid(path: &Path, rule: &'static str, at: At, message: String) -> Self {
        let mut findings = Report::default();
        findings.add(Finding::error(rule, message).at(at));
        let path = path.display().to_string();
        let verdict = Verdict::Invalid;
        Self { path, format: None, model_hash: None, verdict, findings }
    }

    /// Describes a file or folder that could not be looked at.
    fn unread(path: &Path, error: &anyhow::Error) -> Self {
        let failure = error.downcast_ref::<Failure>();
        let reason = failure.map_or_else(|| chain(error), Failure::reason);
        Self::invalid(path, "file/read", At::file(), reason)
    }
}

/// The files that an argument means: itself, or the model files of a folder, sorted.
#[derive(Default)]
struct Walked {
    /// With the reason where it is already known that one cannot be read; folders only then.
    files: Vec<(PathBuf, Option<anyhow::Error>)>,
    skipped: u64,
    /// Folders that are still to be walked.
    folders: Vec<PathBuf>,
    /// Where links are followed, all folders that there were, so that none is walked twice.
    seen: HashSet<PathBuf>,
}

impl Walked {
    fn folder(&mut self, folder: &Path, follow: bool) -> io::Result<()> {
        if follow && !self.seen.insert(folder.canonicalize()?) {
            return Ok(());
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            // So is what a command that was killed may have left.
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // A link may lead out of the folder.
            let followed = || fs::metadata(&path).map(|found| found.file_type());
            match if follow { followed() } else { entry.file_type() } {
                _ if is_hidden => self.skipped = self.skipped.saturating_add(1),
                Ok(kind) if kind.is_dir() && !is_model_folder(&path) => self.folders.push(path),
                Ok(kind) if kind.is_dir() || kind.is_file() && is_model(&path) => {
                    self.files.push((path, None));
                }
                Ok(_) => self.skipped = self.skipped.saturating_add(1),
                Err(error) => self.files.push((path, Some(error.into()))),
            }
        }
        Ok(())
    }
}

/// Tells whether a file is worth opening: what is named as a model is, so that damage to its start
/// does not hide it, and what cannot be read is, so that it is reported.
fn is_model(path: &Path) -> bool {
    let detected = || anyhow::Ok(detect(&Source::open(path)?)?);
    ModelFormat::from_path(path).is_some() || detected().map_or(true, |format| format.is_some())
}

fn text(file: &File) -> String {
    let style = match file.verdict {
        Verdict::Valid => anstyle::AnsiColor::Green.on_default(),
        Verdict::Warnings => anstyle::AnsiColor::Yellow.on_default(),
        Verdict::Invalid => anstyle::AnsiColor::Red.on_default(),
    };
    let mut text = String::new();
    let _ = writeln!(text, "{}: {style}{}{style:#}", escape(&file.path), file.verdict);
    if let Some(hash) = &file.model_hash {
        let _ = writeln!(text, "  model hash {hash}");
    }
    for finding in file.findings.findings() {
        text.push_str(&output::finding_text(finding));
    }
    text
}
