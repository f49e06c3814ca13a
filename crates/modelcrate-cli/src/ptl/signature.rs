use std::fmt::Write as _;

use modelcrate::ptl_spec::{Json, Output, Parameter, Signature};
use serde::Serialize;

use super::given::{Meaning, Origin, SpecFile, Tokenizers};
use crate::{
    escape::{escape, escape_json, escape_up_to},
    options::Print,
    outcome::Outcome,
    output,
};

/// Show which parameters a call of a model takes and which results it gives
///
/// Nothing is run: kinds are those of the places that the spec uses parameters in.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl signature model.ptl
  modelcrate ptl signature live.spec.json --json-schema > parameters.schema.json")]
pub(crate) struct ShowSignature {
    #[command(flatten)]
    given: SpecFile,
    #[command(flatten)]
    meaning: Meaning,
    /// Print a JSON Schema of an object that holds the parameters, and nothing else
    #[arg(long)]
    json_schema: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Shown<'a> {
    path: String,
    origin: Origin,
    parameters: Vec<ShownParameter<'a>>,
    results: Vec<ShownResult<'a>>,
    /// Places whose parameters decide which others there are.
    deferred: &'a [String],
}

#[derive(Serialize)]
struct ShownParameter<'a> {
    name: &'a str,
    kind: &'static str,
    places: &'a [String],
}

#[derive(Serialize)]
struct ShownResult<'a> {
    key: String,
    kind: &'static str,
    place: &'a str,
}

impl ShowSignature {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let found = self.given.find()?;
        let signature = self.meaning.read(&found, Tokenizers::default())?.signature();
        if self.json_schema {
            print_schema(&signature.json_schema())?;
            return Ok(Outcome::Fine);
        }
        let shown = Shown {
            path: found.path.display().to_string(),
            origin: found.origin,
            parameters: signature.parameters.iter().map(parameter).collect(),
            results: signature.results.iter().map(result).collect(),
            deferred: &signature.deferred,
        };
        output::print_result(self.print, &shown, &text(&shown, &signature))?;
        Ok(Outcome::Fine)
    }
}

fn print_schema(schema: &Json) -> std::io::Result<()> {
    output::print_text(&format!("{}\n", escape_json(&schema.to_pretty())))
}

fn parameter(parameter: &Parameter) -> ShownParameter<'_> {
    let Parameter { name, kind, places, .. } = parameter;
    ShownParameter { name, kind: kind.name(), places }
}

fn result(output: &Output) -> ShownResult<'_> {
    let Output { key, kind, place, .. } = output;
    ShownResult { key: key.to_string(), kind: kind.name(), place }
}

fn text(shown: &Shown<'_>, signature: &Signature) -> String {
    let signature = signature.to_string();
    let mut text = format!("{}: {}\n", escape(&shown.path), escape_up_to(SIGNATURE, &signature));
    let parameters = shown.parameters.iter().map(|p| (p.name, p.kind, p.places.join(", ")));
    text.push_str(&table("parameter", parameters));
    let results = shown.results.iter().map(|r| (r.key.as_str(), r.kind, r.place.to_owned()));
    text.push_str(&table("result", results));
    for place in shown.deferred {
        let _ = writeln!(text, "  {}: decided by a parameter", escape_up_to(TEXT, place));
    }
    text
}

fn table<'a>(header: &str, rows: impl Iterator<Item = (&'a str, &'static str, String)>) -> String {
    let mut table = output::table([header, "kind", "place"], &[]);
    for (name, kind, place) in rows {
        table.add_row([&escape_up_to(TEXT, name), kind, &escape_up_to(TEXT, &place)]);
    }
    if table.is_empty() { String::new() } else { output::table_text(&table) }
}

/// Characters of a text from a file that are shown to people.
const TEXT: usize = 200;
const SIGNATURE: usize = 2000;
