use modelcrate::rten_format::{Rewrite, Version, WriteOptions};

use super::Files;
use crate::{failure::About, outcome::Outcome};

/// Write the part of a model that computes some of its values
///
/// Names are those of the main graph; `modelcrate graph` lists them. The part keeps the
/// version, and has only the weights that it needs. Errors that the model does not have are not
/// written without --force.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten cut model.rten encoder.rten --outputs hidden
  modelcrate rten cut model.rten head.rten --inputs hidden --outputs logits,boxes")]
pub(crate) struct Cut {
    #[command(flatten)]
    files: Files,
    /// What the part returns, in this order
    #[arg(long, value_name = "NAME", required = true, value_delimiter = ',')]
    outputs: Vec<String>,
    /// What its caller gives; inputs of the model that are still needed come behind
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    inputs: Vec<String>,
}

impl Cut {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let input = &self.files.input;
        let reader = super::open(input)?;
        let model = reader.model();
        let inputs = super::find_all(model, &self.inputs).about(input)?;
        let outputs = super::find_all(model, &self.outputs).about(input)?;
        let part = model.extract(&inputs, &outputs).about(input)?;
        // What has new errors is refused with all of them, once it is whole.
        let options = WriteOptions::default().unchecked();
        let rewrite = Rewrite::new(&reader).options(options).model(part);
        match reader.version() {
            Version::V1 => self.files.rewrite(&reader, 1, |sink| rewrite.write_v1(sink)),
            Version::V2 => self.files.rewrite(&reader, 2, |sink| rewrite.write_v2(sink)),
        }
    }
}
