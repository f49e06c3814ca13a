//! Results of a model's output, by an `unpack` whose stubs are replaced.

use tensor_core::DType;

use crate::{
    BoundingBoxes, Call, Dialect, ElementType, Error, Fault, Result, Results, Slot, Unpack, Value,
    call::value::{BoundingBox, ResultValue},
    spec::path::{Path, at},
};

impl Call<'_> {
    /// Makes named results of the model's output. Answers belong to the text that [`pack`](Self::pack)
    /// packed last.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] with the place in the spec that the output does not fit.
    pub fn unpack(&self, output: &Value) -> Result<Results> {
        let mut results = Results::default();
        value(self, &self.unpack, output, &mut results, &mut Path::root("unpack"))?;
        Ok(results)
    }
}

fn value(
    call: &Call<'_>,
    unpack: &Unpack,
    output: &Value,
    results: &mut Results,
    path: &mut Path,
) -> Result<()> {
    let dialect = call.spec.dialect();
    let put = |key: &Slot<String>, value: ResultValue, results: &mut Results, path: &Path| {
        put(dialect, key, value, results).map_err(|fault| Error::spec(path, fault))
    };
    let wrong = |expected| Err(Error::spec(&*path, output.fault(expected)));
    match (unpack, output) {
        (Unpack::Tuple(items), Value::Tuple(values))
        | (Unpack::List(items), Value::List(values)) => each(call, items, values, results, path),
        (Unpack::Tuple(_), _) => wrong("a tuple"),
        (Unpack::List(_), _) => wrong("a list"),
        (Unpack::Dict(items), _) => path.member("items", |path| {
            for (index, (key, unpack)) in items.iter().enumerate() {
                path.item(index, |path| {
                    let found = at(path, key.bound().and_then(|key| member(output, key)))?;
                    value(call, unpack, found, results, path)
                })?;
            }
            Ok(())
        }),
        (Unpack::Tensor { key, dtype }, _) => {
            let elements = match dtype {
                ElementType::Float => ResultValue::Floats(at(path, output.floats())?),
                ElementType::Long => {
                    let longs = at(path, longs(output))?;
                    let longs = longs.into_iter().map(|long| narrowed(long, dialect));
                    ResultValue::Longs(longs.collect())
                }
            };
            put(key, elements, results, path)
        }
        (Unpack::Long { key }, Value::Int(long)) => {
            put(key, ResultValue::Int(narrowed(*long, dialect)), results, path)
        }
        (Unpack::Long { .. }, _) => wrong("an int"),
        (Unpack::Float { key }, Value::Double(double)) => {
            put(key, ResultValue::Double(*double), results, path)
        }
        (Unpack::Float { .. }, _) => wrong("a double"),
        (Unpack::Bool { key }, Value::Bool(bool)) => {
            put(key, ResultValue::Bool(*bool), results, path)
        }
        (Unpack::Bool { .. }, _) => wrong("a bool"),
        (Unpack::String { key }, Value::String(text)) => {
            put(key, ResultValue::String(text.clone()), results, path)
        }
        (Unpack::String { .. }, _) => wrong("a string"),
        (Unpack::TensorToString { key }, _) => {
            let ids = at(path, longs(output))?;
            let mode = call.spec.run_options().gpt2;
            let text = at(path, call.spec.gpt2()?.decode(&ids, mode, dialect))?;
            put(key, ResultValue::String(text), results, path)
        }
        (Unpack::BertAnswer { key }, _) => match answer(call, output, path)? {
            Some(text) => put(key, ResultValue::String(text), results, path),
            None => Ok(()),
        },
        (Unpack::Argmax { key, dtype, value_key }, _) => {
            let elements = match dtype {
                ElementType::Float => at(path, output.floats())?,
                ElementType::Long => at(path, longs(output).map(|longs| to_floats(&longs)))?,
            };
            let index = at(path, largest_or_none(&elements, dialect))?;
            let found = index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1);
            put(key, ResultValue::Int(found), results, path)?;
            match (value_key, index) {
                (Some(key), Some(index)) => {
                    let probability = f64::from(softmax(&elements, index, dialect));
                    put(key, ResultValue::Double(probability), results, path)
                }
                _ => Ok(()),
            }
        }
        (Unpack::BoundingBoxes(wanted), _) => {
            let boxes = at(path, boxes(wanted, output, dialect))?;
            put(&wanted.key, ResultValue::Boxes(boxes), results, path)
        }
        (Unpack::TensorToImage { key }, _) => {
            let picture = crate::image::of_tensor(output, dialect, path)?;
            put(key, picture, results, path)
        }
        // The parser makes none of a spec whose stubs are replaced.
        (Unpack::Deferred(node), _) => {
            let (found, expected) = (node.described(), "an object without stubs");
            Err(Error::spec(path, Fault::Value { found, expected }))
        }
    }
}

fn each(
    call: &Call<'_>,
    items: &[Unpack],
    values: &[Value],
    results: &mut Results,
    path: &mut Path,
) -> Result<()> {
    let (found, expected) = (values.len(), items.len());
    if found != expected {
        return Err(Error::spec(path, Fault::OutputCount { found, expected }));
    }
    path.member("items", |path| {
        for (index, (item, output)) in items.iter().zip(values).enumerate() {
            path.item(index, |path| value(call, item, output, results, path))?;
        }
        Ok(())
    })
}

fn put(
    dialect: Dialect,
    key: &Slot<String>,
    value: ResultValue,
    results: &mut Results,
) -> Result<(), Fault> {
    let key = key.bound()?;
    if dialect == Dialect::Documented && results.contains(key) {
        return Err(Fault::DuplicateKey { key: key.clone() });
    }
    results.put(key, value);
    Ok(())
}

fn member<'v>(output: &'v Value, key: &str) -> Result<&'v Value, Fault> {
    let Value::Dict(members) = output else { return Err(output.fault("a dictionary")) };
    let found = members.iter().rfind(|(name, _)| name == key);
    found.map(|(_, value)| value).ok_or_else(|| Fault::MissingOutput { key: key.to_owned() })
}

fn longs(output: &Value) -> Result<Vec<i64>, Fault> {
    output.elements("a tensor of i64")
}

fn to_floats(longs: &[i64]) -> Vec<f32> {
    longs.iter().map(|&long| long as f32).collect()
}

/// Returns a whole number, on Android as far as 32 bits hold it.
#[expect(clippy::cast_possible_truncation, reason = "that is what phones lose")]
fn narrowed(long: i64, dialect: Dialect) -> i64 {
    match dialect {
        Dialect::Documented => long,
        Dialect::Android => (long as i32).into(),
    }
}

/// Returns the index of the first largest element; `None` where there is none but NaN.
fn largest(elements: &[f32]) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (index, &element) in elements.iter().enumerate() {
        if !element.is_nan() && best.is_none_or(|(_, most)| element > most) {
            best = Some((index, element));
        }
    }
    best.map(|(index, _)| index)
}

fn largest_or_none(elements: &[f32], dialect: Dialect) -> Result<Option<usize>, Fault> {
    match (largest(elements), dialect) {
        (None, Dialect::Documented) => Err(Fault::ModelOutput {
            found: format!("a tensor of {} elements without a largest", elements.len()),
            expected: "at least one that is a number",
        }),
        (index, _) => Ok(index),
    }
}

/// Returns the softmax of one element; phones do not subtract the largest first, so that large
/// elements make it NaN.
fn softmax(elements: &[f32], index: usize, dialect: Dialect) -> f32 {
    let most = match dialect {
        Dialect::Documented => elements.iter().copied().fold(f32::NEG_INFINITY, f32::max),
        Dialect::Android => 0.0,
    };
    let sum: f32 = elements.iter().map(|element| (element - most).exp()).sum();
    elements.get(index).map_or(f32::NAN, |element| (element - most).exp() / sum)
}

/// Keeps the boxes whose best class is likely enough and has a name.
fn boxes(
    BoundingBoxes { threshold, classes, .. }: &BoundingBoxes,
    output: &Value,
    dialect: Dialect,
) -> Result<Vec<BoundingBox>, Fault> {
    let (threshold, classes) = (*threshold.bound()?, classes.bound()?);
    let (logits, bounds) = (member(output, "pred_logits")?, member(output, "pred_boxes")?);
    let (count, width) = rows(logits, "a tensor [1, boxes, classes] of f32")?;
    if rows(bounds, "a tensor [1, boxes, 4] of f32")? != (count, 4) {
        return Err(bounds.fault("a tensor [1, boxes, 4] of f32, a row for each of logits"));
    }
    let (logits, bounds) = (logits.floats()?, bounds.floats()?);
    let mut found = Vec::new();
    for (logits, bounds) in logits.chunks_exact(width.max(1)).zip(bounds.as_chunks::<4>().0) {
        let Some(index) = largest(logits) else { continue };
        let is_likely = f64::from(softmax(logits, index, dialect)) > threshold;
        if let Some(class) = classes.get(index).filter(|_| is_likely) {
            found.push(BoundingBox { class: class.bound()?.clone(), bounds: *bounds });
        }
    }
    Ok(found)
}

/// Returns the rows of a tensor of three dimensions, and the elements of each.
fn rows(value: &Value, expected: &'static str) -> Result<(u64, usize), Fault> {
    let dims = match value {
        Value::Tensor(tensor) if tensor.info().dtype == DType::F32 => tensor.info().shape.dims(),
        _ => &[],
    };
    let wrong = || value.fault(expected);
    let &[1, rows, width] = dims else { return Err(wrong()) };
    Ok((rows, usize::try_from(width).map_err(|_| wrong())?))
}

/// Returns the part of the packed text that the model points at.
fn answer(call: &Call<'_>, output: &Value, path: &Path) -> Result<Option<String>> {
    let tokens = call.tokens.as_ref().ok_or_else(|| Error::spec(path, Fault::NoTokens))?;
    let index =
        |key| at(path, member(output, key).and_then(Value::floats)).map(|logits| largest(&logits));
    let (start, end) = (index("start_logits")?, index("end_logits")?);
    let (Some(start), Some(end)) = (start, end) else { return Ok(None) };
    if start == end {
        return Ok(None);
    }
    let dialect = call.spec.dialect();
    let is_inside = end < tokens.len() || dialect == Dialect::Android;
    if end < start || !is_inside {
        return Err(Error::spec(path, Fault::Answer { start, end, tokens: tokens.len() }));
    }
    let vocabulary = call.spec.bert()?;
    let mut words = Vec::new();
    for index in start..=end {
        // Phones take what lies behind the text for id 0.
        let id = tokens.get(index).copied().unwrap_or_default();
        match (vocabulary.token(id), dialect) {
            (Some(token), _) => words.push(token),
            (None, Dialect::Android) => words.push("null"),
            (None, Dialect::Documented) => return Err(Error::spec(path, Fault::UnknownId { id })),
        }
    }
    Ok(Some(words.join(" ").replace(" ##", "").trim().to_owned()))
}
