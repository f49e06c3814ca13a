use modelcrate::ptl_spec::{Json, Spec, Unpack};
use serde::Serialize;

use super::{
    called,
    given::{Meaning, SpecFile, Tokenizers, put},
    outputs::Outputs,
    params::Parameters,
};
use crate::{escape::escape_json, failure::About, options::Print, outcome::Outcome, output};

/// Make the results of a call of what a model gave
///
/// Values have places as those of inputs do, with keys for dictionaries: those of an answer are
/// `start_logits` and `end_logits`, those of boxes `pred_logits` and `pred_boxes`. Parameters are only
/// needed where the results depend on them, as answers do on the packed text.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl results model.ptl --input 0=scores.npy
  modelcrate ptl results model.ptl --input 0=42 --input 1=true
  modelcrate ptl results qa.ptl --param text=@question.txt --param length=384 \\
    --input start_logits=start.npy --input end_logits=end.npy")]
pub(crate) struct Results {
    #[command(flatten)]
    given: SpecFile,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    meaning: Meaning,
    #[command(flatten)]
    tokenizers: Tokenizers,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Made {
    path: String,
    results: Json,
}

impl Results {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let found = self.given.find()?;
        let whole = self.meaning.read(&found, self.tokenizers)?;
        let params = self.parameters.read(&whole.signature())?;
        let light = self.without_pack(&whole)?;
        let mut call = called(light.call(&params)).about(&found.path)?;
        if has_answer(call.unpack_spec()) {
            call = called(whole.call(&params)).about(&found.path)?;
            called(call.pack()).about(&found.path)?;
        }
        let value = self.outputs.value(call.unpack_spec())?;
        let results = called(call.unpack(&value)).about(&found.path)?.to_json();
        let made = Made { path: found.path.display().to_string(), results };
        let text = format!("{}\n", escape_json(&made.results.to_pretty()));
        output::print_result(self.print, &made, &text)?;
        Ok(Outcome::Fine)
    }

    /// Returns a spec that packs nothing, and so needs no parameters for it.
    fn without_pack(&self, spec: &Spec) -> anyhow::Result<Spec> {
        let mut json = spec.json().clone();
        let nothing = [("type", Json::from("tuple")), ("items", Json::Array(Vec::new()))];
        let nothing = nothing.map(|(key, value)| (key.to_owned(), value));
        put(&mut json, "pack", Json::Object(nothing.to_vec()));
        Ok(self.meaning.options().from_json(json)?)
    }
}

/// Tells whether a result depends on the text that was packed.
fn has_answer(unpack: &Unpack) -> bool {
    match unpack {
        Unpack::Tuple(items) | Unpack::List(items) => items.iter().any(has_answer),
        Unpack::Dict(items) => items.iter().any(|(_, unpack)| has_answer(unpack)),
        Unpack::BertAnswer { .. } => true,
        _ => false,
    }
}
