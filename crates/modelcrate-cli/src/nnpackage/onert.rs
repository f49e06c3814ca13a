use std::fmt::Write as _;

use anyhow::bail;
use modelcrate::{
    AnyReader, ReadOptions,
    nnpackage::{Diagnosis, Need, Reaction, Stage},
    tensor_core::{Finding, Severity},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::{self, About, is_invalid},
    options::{Input, Print, is_stdio},
    outcome::Outcome,
    output,
};

/// Say what onert does with a package or a model, and what would mend it
///
/// The forecast says what stops onert 0.1.0 on the unpacked package, or makes it go wrong, as far as
/// that follows from what is in it; bytes of constants are not read. It goes by what became of each
/// operator when it was tried alone, with every number of inputs and all element types, and by the
/// extension of a model that is in no package. What was not tried is said to be so; whether the shapes of
/// several inputs fit each other is not looked at. What is wrong with a package by the text of the format is for verify to say.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 onert is expected to run it, once inputs have the shapes and operators the kernels that \
it needs, 1 it is invalid, 2 it could not be read, 3 it is valid, but onert does not get through, or was \
not tried with it.

Examples:
  modelcrate nnpackage onert model.zip
  modelcrate nnpackage onert --format json model.circle | jq .forecast
  modelcrate nnpackage onert --format json package/ | jq '.findings[] | select(.onert.stage)'")]
pub(crate) struct Onert {
    /// The package, as an archive or a folder, or a Circle or TFLite model; - is standard input
    #[arg(value_name = "PACKAGE|MODEL")]
    input: Input,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Forecast {
    path: String,
    forecast: Reacts,
    findings: Vec<Found>,
    #[serde(skip)]
    outcome: Outcome,
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

impl Onert {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let forecast = self.forecast().about(&self.input)?;
        output::print_result(self.print, &forecast, &forecast.text())?;
        Ok(forecast.outcome)
    }

    fn forecast(&self) -> anyhow::Result<Forecast> {
        let path = self.input.display().to_string();
        let opened = output::open(&self.input, ReadOptions::default()).about(&self.input);
        let diagnoses = match opened {
            Ok(AnyReader::NnPackage(reader)) => reader.diagnoses(),
            Ok(AnyReader::Circle(reader)) if is_stdio(&self.input) => reader.diagnoses(),
            Ok(AnyReader::Circle(reader)) => reader.diagnoses_at(&self.input),
            Ok(other) => bail!("is {}, which onert does not load", other.format().title()),
            Err(error) if is_invalid(&error) => {
                vec![Diagnosis::from(failure::finding(&error)).load_fails("")]
            }
            Err(error) => return Err(error),
        };
        let forecast = Diagnosis::forecast(&diagnoses);
        let is_invalid = diagnoses.iter().any(|found| found.finding.severity == Severity::Error);
        let outcome = match &forecast {
            _ if is_invalid => Outcome::Invalid,
            None | Some(Reaction::Needs(_)) => Outcome::Fine,
            Some(_) => Outcome::Stopped,
        };
        let said = diagnoses.into_iter().filter(|found| {
            let is_error = found.finding.severity == Severity::Error;
            is_error || found.hint.is_some() || found.onert.is_some()
        });
        let findings = said.map(Found::of).collect();
        Ok(Forecast { path, forecast: Reacts::forecast(forecast.as_ref()), findings, outcome })
    }
}

impl Forecast {
    fn text(&self) -> String {
        let does = escape(&self.forecast.text);
        let mut text = format!("{}: onert 0.1.0 {does}\n", escape(&self.path));
        text.extend(self.findings.iter().map(Found::text));
        text
    }
}

impl Found {
    fn of(found: Diagnosis) -> Self {
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
}

impl Reacts {
    /// What becomes of the whole, in words that need no finding before them.
    fn forecast(reaction: Option<&Reaction>) -> Self {
        let text = match reaction {
            None => "is not known to stop",
            Some(Reaction::Follows) => "reads what lies outside of the package",
            Some(reaction) => return Self::of(reaction),
        };
        let name = reaction.map_or("runs", |_| "follows");
        Self { reaction: name, stage: None, message: None, text: text.to_owned() }
    }

    fn of(reaction: &Reaction) -> Self {
        let (name, stage, message) = match reaction {
            Reaction::Ignores => ("ignores", None, None),
            Reaction::Follows => ("follows", None, None),
            Reaction::LaterSessions => ("later-sessions", None, None),
            Reaction::Garbage => ("garbage", None, None),
            Reaction::Needs(Need::Shape) => ("needs-shape", None, None),
            Reaction::Needs(Need::Kernel) => ("needs-kernel", None, None),
            Reaction::Untried => ("untried", None, None),
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
