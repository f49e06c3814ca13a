use std::{fmt::Write as _, path::Path};

use modelcrate::{
    Verdict,
    circle_format::Error as ModelError,
    nnpackage::{Diagnosis, Error, Reaction, Stage, model_archive::Archive},
    tensor_core::{At, Chain, Finding, Report, Severity},
};
use serde::Serialize;

use super::Opened;
use crate::{
    escape::escape,
    failure::{bare, is_invalid},
    options::{Input, Print},
    outcome::Outcome,
    output,
};

/// Say what is wrong with a package or a model, what would mend it, and what onert does about it
///
/// The archive, the manifest, configurations, models, kernels and connections are looked at; bytes
/// of constants are not read. The forecast says what stops onert 0.1.0 on the unpacked package, or
/// makes it go wrong, as far as that follows from what is in it. The exit status is 1 where
/// something is an error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage check model.zip
  modelcrate nnpackage check --must-run model.circle
  modelcrate nnpackage check --format json package/ | jq '.findings[] | select(.onert.stage)'")]
pub(crate) struct Check {
    /// The package, as an archive or a folder, or a Circle or TFLite model; - is standard input
    #[arg(value_name = "PACKAGE|MODEL")]
    input: Input,
    /// Exit with 1 also where onert is not expected to get through
    #[arg(long)]
    must_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Checked {
    path: String,
    /// None where it cannot be opened.
    kind: Option<&'static str>,
    verdict: Verdict,
    /// None where nothing stops onert, or nothing is known.
    forecast: Option<Reacts>,
    findings: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    finding: Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// None where it was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    onert: Option<Reacts>,
}

/// What onert does.
#[derive(Serialize)]
struct Reacts {
    reaction: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    /// What it prints, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// In words, which read on from "onert".
    text: String,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let checked = match super::open(&self.input) {
            Ok(opened) => Checked::of(&self.input, &opened),
            Err(error) if is_invalid(&error) => Checked::refused(&self.input, &error),
            Err(error) => return Err(error),
        };
        output::print_result(self.print, &checked, &checked.text())?;
        let stops = self.must_run && checked.forecast.is_some();
        let is_fine = checked.verdict != Verdict::Invalid && !stops;
        Ok(if is_fine { Outcome::Fine } else { Outcome::Invalid })
    }
}

impl Checked {
    fn of(input: &Path, opened: &Opened) -> Self {
        let (kind, archive, diagnoses) = match opened {
            Opened::Package(reader) => {
                let archive = reader.archive().map(Archive::lint).unwrap_or_default();
                ("package", archive, reader.diagnoses())
            }
            Opened::Model(reader) => {
                (reader.model().schema.name(), Report::default(), reader.diagnoses())
            }
        };
        let forecast = Diagnosis::forecast(&diagnoses);
        let mut findings: Vec<Found> = archive.into_iter().map(Found::of_finding).collect();
        findings.extend(diagnoses.into_iter().map(Found::of_diagnosis));
        Self {
            path: input.display().to_string(),
            kind: Some(kind),
            verdict: verdict(&findings),
            forecast: forecast.as_ref().map(Reacts::of),
            findings,
        }
    }

    /// Describes what cannot even be opened.
    fn refused(input: &Path, error: &anyhow::Error) -> Self {
        let error = bare(error);
        let package = error.downcast_ref().map(|error: &Error| (error.rule(), error.at()));
        let model = || error.downcast_ref().map(|error: &ModelError| (error.rule(), error.at()));
        let (rule, at) = package.or_else(model).unwrap_or_else(|| ("file/read", At::file()));
        let finding = Finding::error(rule, Chain(error.as_ref()).to_string()).at(at);
        let finding = Found::of_finding(finding);
        let (path, verdict) = (input.display().to_string(), Verdict::Invalid);
        Self { path, kind: None, verdict, forecast: None, findings: vec![finding] }
    }

    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", escape(&self.path), self.verdict);
        match &self.forecast {
            Some(forecast) => {
                let _ = writeln!(text, "  forecast: onert 0.1.0 {}", escape(&forecast.text));
            }
            None if self.kind.is_some() => {
                text.push_str("  forecast: nothing is found that stops onert 0.1.0\n");
            }
            None => {}
        }
        for found in &self.findings {
            let shown = if self.kind.is_some() { found.text() } else { found.refusal_text() };
            text.push_str(&shown);
        }
        text
    }
}

impl Found {
    const fn of_finding(finding: Finding) -> Self {
        Self { finding, hint: None, onert: None }
    }

    fn of_diagnosis(found: Diagnosis) -> Self {
        let onert = found.onert.as_ref().map(Reacts::of);
        Self { finding: found.finding, hint: found.hint, onert }
    }

    fn text(&self) -> String {
        let mut text = output::finding_text(&self.finding);
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "    hint: {}", escape(hint));
        }
        if let Some(onert) = &self.onert {
            let _ = writeln!(text, "    onert {}", escape(&onert.text));
        }
        text
    }

    /// Writes why something cannot be opened: such a message names the place itself.
    fn refusal_text(&self) -> String {
        output::finding_text(&self.finding.clone().at(At::file()))
    }
}

impl Reacts {
    fn of(reaction: &Reaction) -> Self {
        let (name, stage, message) = match reaction {
            Reaction::Ignores => ("ignores", None, None),
            Reaction::Follows => ("follows", None, None),
            Reaction::LaterSessions => ("later-sessions", None, None),
            Reaction::Garbage => ("garbage", None, None),
            Reaction::Fails { stage, message } => ("fails", Some(stage), Some(message)),
            Reaction::Crashes { stage } => ("crashes", Some(stage), None),
            Reaction::Undefined { stage } => ("undefined", Some(stage), None),
            _ => ("other", None, None),
        };
        Self {
            reaction: name,
            stage: stage.map(Stage::to_string),
            message: message.filter(|message| !message.is_empty()).cloned(),
            text: reaction.to_string(),
        }
    }
}

fn verdict(findings: &[Found]) -> Verdict {
    match findings.iter().map(|found| found.finding.severity).max() {
        None | Some(Severity::Note) => Verdict::Valid,
        Some(Severity::Warning) => Verdict::Warnings,
        Some(Severity::Error) => Verdict::Invalid,
    }
}
