use std::fmt::Write as _;

use anyhow::bail;
use modelcrate::{
    AnyReader, ReadOptions,
    nnpackage::{Diagnosis, Reaction, Stage},
    tensor_core::Finding,
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Input, Print},
    outcome::Outcome,
    output,
};

/// Say what onert does with a package or a model, and what would mend it
///
/// The forecast says what stops onert 0.1.0 on the unpacked package, or makes it go wrong, as far as
/// that follows from what is in it; bytes of constants are not read. What is wrong with a package by
/// the text of the format is for verify to say.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage onert model.zip
  modelcrate nnpackage onert --must-run model.circle
  modelcrate nnpackage onert --format json package/ | jq '.findings[] | select(.onert.stage)'")]
pub(crate) struct Onert {
    /// The package, as an archive or a folder, or a Circle or TFLite model; - is standard input
    #[arg(value_name = "PACKAGE|MODEL")]
    input: Input,
    /// Exit with 1 where onert is not expected to get through
    #[arg(long)]
    must_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Forecast {
    path: String,
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

impl Onert {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let forecast = self.forecast().about(&self.input)?;
        output::print_result(self.print, &forecast, &forecast.text())?;
        let stops = self.must_run && forecast.forecast.is_some();
        Ok(if stops { Outcome::Invalid } else { Outcome::Fine })
    }

    fn forecast(&self) -> anyhow::Result<Forecast> {
        let diagnoses = match output::open(&self.input, ReadOptions::default())? {
            AnyReader::NnPackage(reader) => reader.diagnoses(),
            AnyReader::Circle(reader) => reader.diagnoses(),
            other => bail!("is {}, which onert does not load", other.format().title()),
        };
        let forecast = Diagnosis::forecast(&diagnoses).as_ref().map(Reacts::of);
        let path = self.input.display().to_string();
        let said =
            diagnoses.into_iter().filter(|found| found.hint.is_some() || found.onert.is_some());
        Ok(Forecast { path, forecast, findings: said.map(Found::of).collect() })
    }
}

impl Forecast {
    fn text(&self) -> String {
        let does = self.forecast.as_ref().map(|forecast| escape(&forecast.text));
        let does = does
            .map_or_else(|| ": nothing is found that stops it".into(), |does| format!(" {does}"));
        let mut text = format!("{}: onert 0.1.0{does}\n", escape(&self.path));
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
