//! What a model gave, as arguments of the command.

use std::path::Path;

use anyhow::{Context, ensure};
use modelcrate::{
    ptl_spec::{Unpack, Value},
    tensor_core::{Limits, TensorBuf},
    weights::npy,
};

use super::{joined, leaf};
use crate::{failure::About, output};

/// The output of a model.
#[derive(Debug, clap::Args)]
pub(super) struct Outputs {
    /// A value that the model gave; may be given several times. A tensor is a file, npy of version
    /// 1.0 or 2.0; a number, truth value or text stands as it is
    #[arg(long = "input", value_name = "PLACE=VALUE")]
    inputs: Vec<String>,
}

impl Outputs {
    /// Puts the values together as an `unpack` object wants them.
    pub(super) fn value(&self, unpack: &Unpack) -> anyhow::Result<Value> {
        let mut places = Places { given: &self.inputs, known: Vec::new() };
        let value = places.value(unpack, "")?;
        for (index, given) in self.inputs.iter().enumerate() {
            let place = places.known.iter().find(|place| value_at(given, place).is_some());
            let known = places.known.join(", ");
            let place = place.with_context(|| {
                format!("--input {given:?} is for no value of the model, expected one of {known}")
            })?;
            let earlier = self.inputs.get(..index).unwrap_or_default();
            let is_first = !earlier.iter().any(|given| value_at(given, place).is_some());
            ensure!(is_first, "--input {place} is given twice");
        }
        Ok(value)
    }
}

/// Returns the value of a place; keys may hold any sign.
fn value_at<'g>(given: &'g str, place: &str) -> Option<&'g str> {
    given.strip_prefix(place)?.strip_prefix('=')
}

struct Places<'a> {
    given: &'a [String],
    /// Places that were asked for.
    known: Vec<String>,
}

impl<'a> Places<'a> {
    fn value(&mut self, unpack: &Unpack, place: &str) -> anyhow::Result<Value> {
        Ok(match unpack {
            Unpack::Tuple(items) => Value::Tuple(self.items(items, place)?),
            Unpack::List(items) => Value::List(self.items(items, place)?),
            Unpack::Dict(items) => {
                let mut members = Vec::new();
                for (key, unpack) in items {
                    // Stubs were replaced; the text of an unbound one stays on Android.
                    let key = key.to_string();
                    let value = self.value(unpack, &joined(place, &key))?;
                    members.push((key, value));
                }
                Value::Dict(members)
            }
            Unpack::Long { .. } => Value::Int(self.parsed(place, "a whole number")?),
            Unpack::Float { .. } => Value::Double(self.parsed(place, "a number")?),
            Unpack::Bool { .. } => Value::Bool(self.parsed(place, "true or false")?),
            Unpack::String { .. } => Value::String(self.given(place, "TEXT")?.to_owned()),
            Unpack::BertAnswer { .. } => self.tensors(place, ["start_logits", "end_logits"])?,
            Unpack::BoundingBoxes(_) => self.tensors(place, ["pred_logits", "pred_boxes"])?,
            // All others take one tensor.
            _ => Value::Tensor(self.tensor(place)?),
        })
    }

    fn items(&mut self, items: &[Unpack], place: &str) -> anyhow::Result<Vec<Value>> {
        let each =
            |(index, item): (usize, &Unpack)| self.value(item, &joined(place, &index.to_string()));
        items.iter().enumerate().map(each).collect()
    }

    fn tensors(&mut self, place: &str, keys: [&str; 2]) -> anyhow::Result<Value> {
        let mut members = Vec::new();
        for key in keys {
            let tensor = self.tensor(&joined(place, key))?;
            members.push((key.to_owned(), Value::Tensor(tensor)));
        }
        Ok(Value::Dict(members))
    }

    fn tensor(&mut self, place: &str) -> anyhow::Result<TensorBuf> {
        let path = Path::new(self.given(place, "FILE.npy")?);
        output::source(path)
            .and_then(|source| Ok(npy::read(&source, &Limits::default())?))
            .about(path)
    }

    fn parsed<T: std::str::FromStr>(&mut self, place: &str, wanted: &str) -> anyhow::Result<T> {
        let text = self.given(place, "VALUE")?;
        text.parse()
            .ok()
            .with_context(|| format!("--input {} is {text:?}, expected {wanted}", leaf(place)))
    }

    fn given(&mut self, place: &str, form: &str) -> anyhow::Result<&'a str> {
        let place = leaf(place);
        self.known.push(place.to_owned());
        let mut values = self.given.iter().filter_map(|given| value_at(given, place));
        values.next().with_context(|| {
            format!("the model's output has no place {place}: expected --input {place}={form}")
        })
    }
}
