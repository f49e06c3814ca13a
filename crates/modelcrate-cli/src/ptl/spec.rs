use modelcrate::ptl_spec::Json;
use serde::Serialize;

use super::given::{Origin, SpecFile};
use crate::{
    escape::{escape, escape_json},
    options::{Format, Print},
    outcome::Outcome,
    output,
};

/// Show the spec of a model, and where it was found
///
/// It is looked for in the model, then in the file beside it that has its name and
/// `.live.spec.json`. The spec goes to standard output, one member a line, whether it is sound or
/// not; where it was found goes to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl spec model.ptl > live.spec.json
  modelcrate ptl spec --format json model.ptl | jq .spec.unpack")]
pub(crate) struct ShowSpec {
    #[command(flatten)]
    given: SpecFile,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Shown {
    path: String,
    origin: Origin,
    spec: Json,
}

impl ShowSpec {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let found = self.given.find()?;
        let (path, origin) = (found.path.display().to_string(), found.origin);
        let shown = Shown { path, origin, spec: found.json()? };
        if self.print.format == Format::Human {
            output::print_aside(&format!("{}: {}\n", escape(&shown.path), origin.text()));
        }
        let text = format!("{}\n", escape_json(&shown.spec.to_pretty()));
        output::print_result(self.print, &shown, &text)?;
        Ok(Outcome::Fine)
    }
}
