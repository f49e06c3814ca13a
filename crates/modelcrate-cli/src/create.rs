use std::{path::PathBuf, str::FromStr};

use anyhow::{Context as _, anyhow, bail, ensure};
use modelcrate::{Product, Target};
use serde_json::Value;

use crate::{
    address,
    convert::{Tensors, product, sets},
    failure::About,
    options::{Force, is_stdio},
    outcome::Outcome,
    paths::same_file,
    put::NewTensors,
    write::Writing,
};

/// Make a file of tensors from other files, or from elements alone
///
/// The format is what the name of the output ends in, or --to: safetensors, npz, npy, zt or gguf. Of
/// files that tensors are taken from, the metadata stays behind; `convert` carries it over. What a format
/// cannot hold is listed for all tensors before anything is written, with exit status 2.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate create model.zt --put weight=weight.npy --put bias=f32:128:bias.bin
  modelcrate create small.safetensors --from large.gguf --tensor 'blk.0.*' --set author=me
  modelcrate create one.npy --put w=weights.npz:layer/w")]
pub(crate) struct Create {
    /// The file to write; - is standard output
    output: PathBuf,
    #[command(flatten)]
    sources: NewTensors,
    /// Set metadata to a text (KEY=TEXT), or to any value in JSON (KEY:=JSON); may be given several
    /// times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Entry>,
    /// The format of the output
    #[arg(long, value_name = "FORMAT")]
    to: Option<Product>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
    #[command(flatten)]
    tensors: Tensors,
}

impl Create {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let to = product(self.to, &self.output).about(&self.output)?;
        let Some(target) = to.tensors() else {
            let known: Vec<&str> = Target::ALL.iter().map(|target| target.name()).collect();
            let known = known.join(", ");
            return Err(anyhow!("{to} holds models, expected a format of tensors: {known}"))
                .about(&self.output);
        };
        let options = self.tensors.options(target).about(&self.output)?;
        ensure!(!self.sources.is_empty(), "nothing to put into the file: give --put or --from");
        let opened = self.sources.open(self.force)?;
        self.check_output().about(&self.output)?;
        let mut set = opened.set()?;
        for Entry { key, value } in self.set {
            set.metadata_mut().insert(key, value);
        }
        let job = sets::Job {
            target,
            output: &self.output,
            force: self.force,
            write: self.write,
            is_folder: self.tensors.is_folder(),
        };
        job.run(&set, &options, &self.sources.inputs())
    }

    fn check_output(&self) -> anyhow::Result<()> {
        let mut inputs = self.sources.put.iter().map(|put| &put.path).chain(&self.sources.from);
        let is_input =
            !is_stdio(&self.output) && inputs.any(|input| same_file(input, &self.output));
        ensure!(!is_input, "is an input, expected another file");
        Ok(())
    }
}

/// `KEY=TEXT` or `KEY:=JSON`.
#[derive(Clone, Debug)]
struct Entry {
    key: String,
    value: Value,
}

impl FromStr for Entry {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((key, value)) = text.split_once('=') else {
            bail!("{text:?} is neither KEY=TEXT nor KEY:=JSON");
        };
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let given = address::text(value)?;
                let read = json(&given);
                // What was hidden of it stays so.
                let read = if given == value { read } else { read.map_err(|_| not_json(value)) };
                (key, read?)
            }
            None => (key, Value::String(address::text(value)?)),
        };
        ensure!(!key.is_empty(), "{text:?} has no key");
        Ok(Self { key: key.to_owned(), value })
    }
}

fn not_json(text: &str) -> anyhow::Error {
    anyhow!("{text:?} is not JSON")
}

/// Reads JSON, but no integers of more than 64 bits, which would be rounded.
fn json(text: &str) -> anyhow::Result<Value> {
    let value = text.parse().with_context(|| not_json(text))?;
    let bare = text.replace("\\\\", "").replace("\\\"", "");
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let words = bare.split('"').step_by(2).flat_map(|piece| piece.split(|c| !is_part(c)));
    let mut integers = words.filter(|word| {
        word.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && !word.contains(['.', 'e', 'E'])
    });
    match integers.find(|word| word.parse::<i64>().is_err() && word.parse::<u64>().is_err()) {
        Some(word) => bail!("{word} does not fit 64 bits, expected a smaller number or a text"),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_digits() {
        for text in ["-9223372036854775808", "18446744073709551615", "1e30", "1.5", "[-0]"] {
            json(text).unwrap();
        }
        json(r#"{"99999999999999999999\" 99999999999999999999": 1}"#).unwrap();
        for text in ["18446744073709551616", "[1, {\"a\": -9223372036854775809}]"] {
            let said = json(text).unwrap_err().to_string();
            assert!(said.contains(" does not fit 64 bits"), "{said}");
        }
    }
}
