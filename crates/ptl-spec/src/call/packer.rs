//! Values for the model, of a `pack` whose stubs are replaced.

use tensor_core::{Shape, TensorBuf};

use crate::{
    Call, Dialect, Error, Fault, Items, Pack, PackString, PackTensor, Param, Result, Slot,
    Tokenizer, Value,
    spec::path::{Path, at},
    tokenizer::{BERT, GPT2},
};

impl Call<'_> {
    /// Makes the value that the model is called with.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] with the place in the spec that the parameters do not fit.
    pub fn pack(&mut self) -> Result<Value> {
        let pack = std::mem::replace(&mut self.pack, Pack::Tuple(Vec::new()));
        let value = value(self, &pack, &mut Path::root("pack"));
        self.pack = pack;
        value
    }
}

fn value(call: &mut Call<'_>, pack: &Pack, path: &mut Path) -> Result<Value> {
    Ok(match pack {
        Pack::Tuple(items) => Value::Tuple(path.member("items", |path| {
            let each = |(index, item)| path.item(index, |path| value(call, item, path));
            items.iter().enumerate().map(each).collect::<Result<_>>()
        })?),
        Pack::Bool(flag) => Value::Bool(*at(path, flag.bound())?),
        Pack::Long(number) => Value::Int(*at(path, number.bound())?),
        Pack::Double(number) => Value::Double(*at(path, number.bound())?),
        Pack::Tensor(packed) => Value::Tensor(at(path, tensor(packed))?),
        Pack::Image(picture) => Value::Tensor(crate::image::tensor(call, picture, path)?),
        Pack::String(string) => Value::Tensor(text(call, string, path)?),
        Pack::Audio { audio } => Value::Tensor(path.member("audio", |path| {
            let name = at(path, audio.bound())?;
            at(path, sound(call, name))
        })?),
        // The parser makes none of a spec whose stubs are replaced.
        Pack::Deferred(node) => {
            let (found, expected) = (node.described(), "an object without stubs");
            return Err(Error::spec(path, Fault::Value { found, expected }));
        }
    })
}

/// Makes a tensor of items that stand in the spec; their number was compared with the sizes.
fn tensor(PackTensor { sizes, items }: &PackTensor) -> Result<TensorBuf, Fault> {
    let sizes: Shape =
        sizes.bound()?.iter().map(|size| size.bound().copied()).collect::<Result<_, Fault>>()?;
    Ok(match items {
        Items::Float(items) => TensorBuf::from_slice(sizes, &floats(items.bound()?)?)?,
        Items::Long(items) => {
            let items = items.bound()?.iter().map(|item| item.bound().copied());
            TensorBuf::from_slice(sizes, &items.collect::<Result<Vec<i64>, Fault>>()?)?
        }
    })
}

#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest, as the format asks")]
fn floats(items: &[Slot<f64>]) -> Result<Vec<f32>, Fault> {
    items.iter().map(|item| item.bound().map(|&item| item as f32)).collect()
}

fn text(call: &mut Call<'_>, string: &PackString, path: &mut Path) -> Result<TensorBuf> {
    let text = at(path, string.string.bound())?;
    let (found, limit) = (text.len() as u64, MAX_TEXT);
    if found > limit {
        let target = "a text of at most 1 MiB";
        let fault = Fault::Range { found: format!("{found} bytes long"), target };
        return Err(path.member("string", |path| Error::spec(path, fault)));
    }
    let spec = call.spec;
    let options = spec.run_options();
    let ids = match &string.tokenizer {
        Tokenizer::Bert { length } => {
            let length = *at(path, length.bound())?;
            let vocabulary = spec.bert()?;
            if options.dialect == Dialect::Android {
                path.member("string", |path| at(path, refuse_lead(text)))?;
            }
            let mut ids = vocabulary.encode(text, options.bert);
            fill_up(&mut ids, length, options.dialect, || vocabulary.padding())
                .map_err(|fault| Error::spec(BERT, fault))?;
            call.tokens = Some(ids.clone());
            ids
        }
        Tokenizer::Gpt2 => {
            let ids = spec.gpt2()?.encode(text, options.gpt2);
            ids.map_err(|fault| Error::spec(GPT2, fault))?
        }
    };
    Ok(TensorBuf::from_slice([1, ids.len() as u64], &ids)?)
}

/// Refuses what phones fail on: a text whose first word is empty.
fn refuse_lead(text: &str) -> Result<(), Fault> {
    if text.chars().next().is_some_and(|first| !first.is_whitespace()) {
        return Ok(());
    }
    let found = crate::Json::from(text).described();
    Err(Fault::Value { found, expected: "a text that starts with a word, as on Android" })
}

/// Cuts or fills up ids; phones put the padding id in the first free place only, and 0 elsewhere.
fn fill_up(
    ids: &mut Vec<i64>,
    length: i64,
    dialect: Dialect,
    padding: impl FnOnce() -> Result<i64, Fault>,
) -> Result<(), Fault> {
    let length = usize::try_from(length).unwrap_or_default();
    if length <= ids.len() {
        ids.truncate(length);
        return Ok(());
    }
    let padding = padding()?;
    if dialect == Dialect::Android {
        ids.push(padding);
        ids.resize(length, 0);
    }
    ids.resize(length, padding);
    Ok(())
}

/// Makes a tensor `[1, samples]` of the samples of a sound, divided by 32,767.
fn sound(call: &Call<'_>, name: &str) -> Result<TensorBuf, Fault> {
    match call.params.get(name) {
        Some(Param::Audio(samples)) => {
            let floats: Vec<f32> = samples.iter().map(|&s| f32::from(s) / 32_767.0).collect();
            Ok(TensorBuf::from_slice([1, floats.len() as u64], &floats)?)
        }
        Some(other) => Err(Fault::Value { found: other.described(), expected: "sound" }),
        None => Err(Fault::MissingParam { name: name.to_owned() }),
    }
}

/// Bytes of the longest text that is made into tokens.
const MAX_TEXT: u64 = 1 << 20;
