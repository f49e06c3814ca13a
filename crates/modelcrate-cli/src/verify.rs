mod ordered;
mod sarif;
mod text;

use std::{
    io,
    num::NonZeroUsize,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use modelcrate::{
    AnyReader, Coverage, Error, Format as ModelFormat, Verdict,
    rules::{self, Rule},
    tensor_core::{At, Finding, Profile, Report},
};
use serde::Serialize;

use self::{
    sarif::Log,
    text::{Tally, annotations, text},
};
use crate::{
    escape::escape,
    failure::{self, About, bare, is_invalid},
    options::{Input, Runtime, manner},
    outcome::{Outcome, print_error},
    output::{self, path_text},
    progress::{self, Progress},
    walk::{Found, Walked},
};

/// Read model files whole and report every fault: structure, digests, contents
///
/// Where a list of hashes is beside a file, as model.zt.hash beside model.zt, they are compared too.
///
/// A folder with MANIFEST and carton.toml is verified as the carton that it was, one with
/// metadata/MANIFEST as an nnpackage. Other folders are walked; what is hidden in them, links, and
/// files that are not model files, neither by content nor by name, are skipped and counted. The
/// report has files that could not be read, too, with the reason as their finding. Findings of a file
/// that say the same are counted for people; -v prints all of them, and the files that are skipped;
/// -q prints files that fail, and nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 all files are valid (warnings allowed, unless --strict), 1 a file is invalid, \
2 a file or folder could not be read or a folder has no model file, whatever became of the others.

Examples:
  modelcrate verify model.zt
  modelcrate verify --format json models/ > report.json
  modelcrate verify --strict --ignore zt/gap --format sarif models/ > models.sarif
  modelcrate verify --canonical published.zt
  modelcrate verify --for onert model.tflite")]
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
    /// Fail where there are warnings, too
    #[arg(long)]
    strict: bool,
    /// Say, too, what keeps zTensor 2 files from the one form in which equal tensors make equal files
    #[cfg(feature = "ztensor")]
    #[arg(long)]
    canonical: bool,
    /// Say, too, what of Circle and TFLite models, and of their names, stops a runtime
    #[arg(long = "for", value_enum, value_name = "RUNTIME")]
    runtime: Option<Runtime>,
    /// Leave out what is found by a rule, or by all that start so, up to a slash or a hyphen
    #[arg(long, value_name = "RULE", value_parser = known_rule)]
    ignore: Vec<String>,
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// One JSON object a line and file, as each is done
    Jsonl,
    /// One SARIF 2.1.0 log, for code scanners
    Sarif,
    /// A line for each finding that GitHub shows beside a change
    Github,
}

fn known_rule(pattern: &str) -> Result<String, String> {
    match Rule::matching(pattern).next() {
        Some(_) => Ok(pattern.to_owned()),
        None => Err("is no rule (modelcrate explain lists all)".to_owned()),
    }
}

#[derive(Serialize)]
struct File {
    path: String,
    format: Option<ModelFormat>,
    /// Only of formats that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_hash: Option<String>,
    verdict: Verdict,
    /// None of a file that does not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Coverage>,
    findings: Report,
    /// How many findings were left out.
    #[serde(skip)]
    ignored: u64,
    #[serde(skip)]
    is_unread: bool,
}

#[derive(Serialize)]
struct Verified {
    files: Vec<File>,
    summary: Tally,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (mut files, mut skipped) = (Vec::new(), Vec::new());
        for input in &self.files {
            let walked = Walked::of(input, self.follow);
            if walked.files.is_empty() && !self.allow_empty {
                let fault = "has no model file (--allow-empty tolerates that)".to_owned();
                files.push(Found::unread(input.clone(), &fault));
            }
            files.extend(walked.files);
            skipped.extend(walked.skipped);
        }
        let bar = Self::bar(&files);
        let tally = Tally { skipped: skipped.len() as u64, ..Tally::default() };
        let mut results = Results::new(&self, &bar, tally);
        let large = Mutex::new(());
        let work = |found: &Found| self.verify(found, files.len(), &large, &bar);
        ordered::each(&files, manner().threads(), work, |file| results.take(file))?;
        if manner().verbose && self.format == Format::Human {
            for path in &skipped {
                results.text.push_str(&format!("{}: skipped\n", escape(&path_text(path))));
            }
        }
        Ok(results.finish()?)
    }

    fn bar(files: &[Found]) -> Progress {
        // To ask for all lengths takes its time.
        let len = |found: &Found| found.len().unwrap_or_default();
        let bytes = if progress::is_wanted() { files.iter().map(len).sum() } else { 0 };
        Progress::of_files(files.len() as u64, bytes)
    }

    fn verify(&self, found: &Found, files: usize, large: &Mutex<()>, bar: &Progress) -> File {
        let path = &found.path;
        bar.begin(path);
        if let Some(fault) = &found.fault {
            return File::unread(path, fault.clone());
        }
        // Files are many, or large: threads work on several of the former, or on one of the latter.
        let len = found.len().unwrap_or(LARGE);
        let is_large = len >= LARGE || files == 1;
        let _turn = is_large.then(|| large.lock().unwrap_or_else(PoisonError::into_inner));
        let threads = if is_large { manner().threads() } else { NonZeroUsize::MIN };
        let profile = if self.lenient { Profile::Lenient } else { Profile::Strict };
        let options = AnyReader::options().profile(profile).threads(threads);
        let (reader, faults) = match found.open(options).about(path) {
            Ok(opened) => opened,
            Err(error) => return File::refused(path, &error),
        };
        bar.grow(reader.byte_len().saturating_sub(len));
        let mut findings = reader.validate_with(|bytes| bar.inc(bytes));
        if let Some(fault) = faults.first() {
            return File::unread(path, fault.to_owned());
        }
        if found.has_neighbours() {
            findings.append(reader.check_sidecar(path, threads, |_| ()));
        }
        #[cfg(feature = "ztensor")]
        if self.canonical {
            match &reader {
                AnyReader::ZTensor(file) => findings.append(file.canonical()),
                #[allow(unreachable_patterns, reason = "without other formats")]
                reader => {
                    let format = reader.format().title();
                    let message = format!("{format} has no canonical form, only zTensor 2 has one");
                    findings.add(Finding::note("zt2/canonical", message));
                }
            }
        }
        #[cfg(feature = "circle")]
        if let (Some(Runtime::Onert), AnyReader::Circle(model)) = (self.runtime, &reader) {
            findings.append(model.lint_for_onert(Some(&**path).filter(|_| found.has_neighbours())));
        }
        let ignored = self.leave_out(&mut findings);
        File {
            path: path_text(path),
            format: Some(reader.format()),
            model_hash: reader.model_hash(),
            verdict: Verdict::from(&findings),
            coverage: Some(reader.coverage()),
            findings,
            ignored,
            is_unread: false,
        }
    }

    /// Takes out the findings that are to be ignored; returns how many there were.
    fn leave_out(&self, findings: &mut Report) -> u64 {
        let is_ignored =
            |finding: &Finding| self.ignore.iter().any(|rule| rules::is_match(rule, &finding.rule));
        if !findings.findings().iter().any(is_ignored) {
            return 0;
        }
        let (left_out, kept) = std::mem::take(findings).split(is_ignored);
        *findings = kept;
        left_out
    }

    fn outcome(&self, file: &File) -> Outcome {
        match file.verdict {
            _ if file.is_unread => Outcome::Failed,
            Verdict::Invalid => Outcome::Invalid,
            Verdict::Warnings if self.strict => Outcome::Invalid,
            _ => Outcome::Fine,
        }
    }
}

impl File {
    /// Describes a file that does not open: one that is broken, or that could not be read.
    fn refused(path: &Path, error: &anyhow::Error) -> Self {
        let finding = failure::finding(error);
        if !is_invalid(error) {
            return Self::unread(path, finding.message);
        }
        let format = bare(error).downcast_ref().and_then(Error::format);
        Self { format, ..Self::invalid(path, finding) }
    }

    fn invalid(path: &Path, finding: Finding) -> Self {
        let mut findings = Report::default();
        findings.add(finding);
        Self {
            path: path_text(path),
            format: None,
            model_hash: None,
            verdict: Verdict::Invalid,
            coverage: None,
            findings,
            ignored: 0,
            is_unread: false,
        }
    }

    /// Describes a file or folder that could not be looked at.
    fn unread(path: &Path, reason: String) -> Self {
        let finding = Finding::error("file/read", reason).at(At::file());
        Self { is_unread: true, ..Self::invalid(path, finding) }
    }
}

/// What is printed of results, some of them at once.
struct Results<'a> {
    verify: &'a Verify,
    bar: &'a Progress,
    outcome: Outcome,
    tally: Tally,
    text: String,
    printed: Instant,
    /// Where all are printed together.
    done: Vec<File>,
    log: Log,
}

impl<'a> Results<'a> {
    fn new(verify: &'a Verify, bar: &'a Progress, tally: Tally) -> Self {
        Self {
            verify,
            bar,
            outcome: Outcome::Fine,
            tally,
            text: String::new(),
            printed: Instant::now(),
            done: Vec::new(),
            log: Log::default(),
        }
    }

    /// Takes a result, or the news that the next one takes its time.
    fn take(&mut self, file: Option<File>) -> io::Result<()> {
        if file.is_none() || self.text.len() >= ENOUGH || self.printed.elapsed() >= PATIENCE {
            self.print()?;
        }
        let Some(file) = file else { return Ok(()) };
        let outcome = self.verify.outcome(&file);
        self.outcome = self.outcome.and(outcome);
        self.tally.add(&file);
        match self.verify.format {
            Format::Human if file.is_unread => {
                self.print()?;
                let reason = file.findings.findings().iter().map(|finding| &*finding.message);
                let reason: String = reason.collect();
                self.bar.suspend(|| print_error(&format!("{}: {reason}", file.path)));
            }
            Format::Human if manner().quiet && outcome == Outcome::Fine => {}
            Format::Human => self.text.push_str(&text(&file)),
            Format::Github => self.text.push_str(&annotations(&file)),
            Format::Jsonl => self.text.push_str(&output::json(&file)?),
            Format::Json => self.done.push(file),
            Format::Sarif => self.log.add(&file),
        }
        Ok(())
    }

    fn print(&mut self) -> io::Result<()> {
        if !self.text.is_empty() {
            self.bar.suspend(|| output::print_text(&self.text))?;
            self.text.clear();
        }
        self.printed = Instant::now();
        Ok(())
    }

    fn finish(mut self) -> io::Result<Outcome> {
        self.print()?;
        self.bar.finish();
        if self.verify.format == Format::Human {
            output::print_aside(&self.tally.text());
        }
        match self.verify.format {
            Format::Json => {
                output::print_json(&Verified { files: self.done, summary: self.tally })?;
            }
            Format::Sarif => {
                let is_whole = self.outcome != Outcome::Failed;
                output::print_value(&self.log.finish(is_whole))?;
            }
            _ => {}
        }
        Ok(self.outcome)
    }
}

/// From how many bytes on one file keeps all threads busy.
const LARGE: u64 = 64 << 20;

/// How many bytes of text are printed at once, where there are many results.
const ENOUGH: usize = 64 << 10;

/// How long a result that is there may wait for others.
const PATIENCE: Duration = Duration::from_millis(50);
