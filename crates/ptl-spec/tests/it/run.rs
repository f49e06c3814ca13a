//! Every call of `testdata/ptl/calls/cases.json`, in both profiles.

use std::{fs, path::PathBuf};

use ptl_spec::{
    Dialect, Error, Filter, Image, Json, Param, Params, ResultValue, Results, Spec, SpecOptions,
    Value,
    tensor_core::{DType, Shape, TensorBuf},
};
use test_support::testdata;

use crate::json::{self, array, long, members, text};

fn folder() -> PathBuf {
    testdata("ptl/calls")
}

fn cases() -> Vec<Json> {
    let cases = array(&json::read(folder().join("cases.json")), "cases").to_vec();
    assert_eq!(cases.len(), 189);
    cases
}

/// Numbers, of which some are the texts "nan", "inf" and "-inf".
fn double(json: &Json) -> f64 {
    match json {
        Json::Int(number) => *number as f64,
        Json::Float(number) => *number,
        Json::String(text) => text.parse().unwrap(),
        other => panic!("{other}"),
    }
}

fn params(case: &Json) -> Params {
    let mut params = Params::new();
    for (name, value) in members(case.get("params").unwrap()) {
        let param = if let Some(image) = value.get("$image") {
            let file = fs::read(folder().join(image.as_str().unwrap())).unwrap();
            Param::from(Image::decode(&file).unwrap())
        } else if value.get("$pcm16").is_some() {
            Param::Audio(array(value, "$pcm16").iter().map(|s| long(s) as i16).collect())
        } else {
            Param::Json(value.clone())
        };
        params.insert(name, param);
    }
    params
}

/// Builds what the model gave.
fn output(json: &Json) -> Value {
    let values = || array(json, "v").iter().map(output).collect();
    let shape = || array(json, "s").iter().map(|dim| long(dim) as u64).collect::<Vec<_>>();
    let value = || json.get("v").unwrap();
    match text(json, "t") {
        "float" => {
            let elements: Vec<f32> = array(json, "d").iter().map(|e| double(e) as f32).collect();
            Value::Tensor(TensorBuf::from_slice(shape(), &elements).unwrap())
        }
        "long" => {
            let elements: Vec<i64> = array(json, "d").iter().map(long).collect();
            Value::Tensor(TensorBuf::from_slice(shape(), &elements).unwrap())
        }
        "int" => Value::Int(long(value())),
        "double" => Value::Double(double(value())),
        "bool" => Value::Bool(*value() == Json::Bool(true)),
        "str" => Value::String(value().as_str().unwrap().to_owned()),
        "tuple" => Value::Tuple(values()),
        "list" => Value::List(values()),
        "dict" => {
            let member = |(key, value): &(String, Json)| (key.clone(), output(value));
            Value::Dict(members(value()).iter().map(member).collect())
        }
        other => panic!("{other}"),
    }
}

fn is_close(found: f32, expected: f32) -> bool {
    let ulps = || (i64::from(found.to_bits()) - i64::from(expected.to_bits())).abs();
    found == expected || found.is_nan() && expected.is_nan() || ulps() <= 1
}

fn same_value(found: &Value, expected: &Json) -> bool {
    let [(kind, expected)] = members(expected) else { panic!("{expected}") };
    match (kind.as_str(), found) {
        ("tensor", Value::Tensor(tensor)) => {
            let shape: Vec<u64> =
                array(expected, "shape").iter().map(|dim| long(dim) as u64).collect();
            let data = array(expected, "data");
            let same_elements = match text(expected, "dtype") {
                "float" if tensor.info().dtype == DType::F32 => {
                    let found = tensor.view().to_vec::<f32>().unwrap();
                    found.len() == data.len()
                        && found.iter().zip(data).all(|(f, e)| is_close(*f, double(e) as f32))
                }
                "long" if tensor.info().dtype == DType::I64 => {
                    let found = tensor.view().to_vec::<i64>().unwrap();
                    found.iter().copied().eq(data.iter().map(long))
                }
                _ => false,
            };
            *tensor.info().shape.dims() == *shape && same_elements
        }
        ("tuple", Value::Tuple(found)) => {
            let Json::Array(expected) = expected else { panic!("{expected}") };
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| same_value(found, expected))
        }
        ("bool", Value::Bool(found)) => Json::Bool(*found) == *expected,
        ("long", Value::Int(found)) => *found == long(expected),
        ("double", Value::Double(found)) => *found == double(expected),
        _ => false,
    }
}

fn same_json(found: &Json, expected: &Json) -> bool {
    match (found, expected) {
        (Json::Float(found), Json::String(text)) => found.is_nan() && text == "nan",
        (Json::Array(found), Json::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(f, e)| same_json(f, e))
        }
        (Json::Object(found), Json::Object(expected)) => {
            let same = |((a, found), (b, expected)): (&(String, Json), &(String, Json))| {
                a == b && same_json(found, expected)
            };
            found.len() == expected.len() && found.iter().zip(expected).all(same)
        }
        (Json::Float(found), Json::Float(expected)) => {
            found == expected || is_close(*found as f32, *expected as f32)
        }
        (found, expected) => found == expected,
    }
}

/// What became of a call.
struct Outcome {
    packed: Option<Value>,
    results: Option<Results>,
}

fn attempt(case: &Json, options: SpecOptions) -> Result<Outcome, Error> {
    let spec = options.from_json(case.get("spec").unwrap().clone())?;
    let mut params = params(case);
    // These cases call unpack alone, without the parameters of pack.
    let alone = case.get("unpack_only").is_some();
    if alone {
        for parameter in spec.signature().parameters {
            if params.get(&parameter.name).is_none() {
                params.insert(parameter.name, "x");
            }
        }
    }
    let mut call = spec.call(&params)?;
    let packed = if alone { None } else { Some(call.pack()?) };
    let results = case.get("model_output").map(|json| call.unpack(&output(json))).transpose()?;
    Ok(Outcome { packed, results })
}

/// Returns what differs between an outcome and what is expected of it.
fn difference(outcome: &Result<Outcome, Error>, expected: &Json) -> Option<String> {
    let outcome = match (outcome, expected.get("error")) {
        (Err(_), Some(_)) => return None,
        (Err(error), None) => return Some(format!("fails: {error}")),
        (Ok(_), Some(error)) => return Some(format!("does not fail: {error}")),
        (Ok(outcome), None) => outcome,
    };
    if let (Some(packed), Some(expected)) = (&outcome.packed, expected.get("pack"))
        && !same_value(packed, expected)
    {
        return Some(format!("packs {packed:?}"));
    }
    if let (Some(results), Some(expected)) = (&outcome.results, expected.get("unpack"))
        && !same_json(&results.to_json(), expected)
    {
        return Some(format!("unpacks {results}"));
    }
    None
}

/// Compares every call but those that `exceptions` name; returns what became of those.
fn check(options: &SpecOptions, expected: impl Fn(&Json) -> &Json, exceptions: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for case in cases() {
        let (id, outcome) = (text(&case, "id"), attempt(&case, options.clone()));
        let exception = exceptions.iter().find(|(exception, _)| *exception == id);
        let difference = match exception {
            Some((_, expected)) => {
                let found = shown(&outcome);
                (found != *expected).then_some(found)
            }
            None => difference(&outcome, expected(&case)),
        };
        wrong.extend(difference.map(|difference| format!("{id}: {difference}")));
    }
    assert!(wrong.is_empty(), "{} calls:\n{}", wrong.len(), wrong.join("\n"));
}

fn shown(outcome: &Result<Outcome, Error>) -> String {
    match outcome {
        Err(error) => error.to_string(),
        Ok(Outcome { packed: Some(Value::Tensor(tensor)), .. }) => match tensor.info().dtype {
            DType::I64 => format!("{:?}", tensor.view().to_vec::<i64>().unwrap()),
            _ => tensor.info().to_string(),
        },
        Ok(Outcome { packed, .. }) => format!("{packed:?}"),
    }
}

fn reference(case: &Json) -> &Json {
    case.get("reference").unwrap()
}

fn recommended(case: &Json) -> &Json {
    case.get("recommended").unwrap_or_else(|| reference(case))
}

fn ended(case: &Json) -> &Json {
    let reference = reference(case);
    let error = reference.get("error").and_then(Json::as_str);
    match error.filter(|error| error.starts_with("TIMEOUT")) {
        Some(_) => recommended(case),
        None => reference,
    }
}

/// Calls that did not end on phones end here.
#[test]
fn android_does_as_phones_did() {
    let options = Spec::options().dialect(Dialect::Android);
    // A tensor of 2^32 elements without any would be read far beyond its end.
    let exceptions =
        [("tensor.int32_overflow", "pack has 0 items, but sizes [65536, 65536] need 4294967296")];
    check(&options, ended, &exceptions);
}

/// The filter is that of phones, so that scaled pictures can be compared.
#[test]
fn documented_does_as_the_text_says() {
    let options = Spec::options().filter(Filter::Nearest);
    // Crops have the size that they say; numbers are not cut to whole ones, texts are no truth
    // values; a backslash is a character.
    let exceptions = [
        ("crop.1x1", "f32 [1, 3, 1, 1]"),
        ("crop.2x1", "f32 [1, 3, 1, 2]"),
        ("crop.1x2", "f32 [1, 3, 2, 1]"),
        ("crop.448x448", "pack.transforms[0] crops 448 x 448 pixels from a picture of 5 x 3"),
        ("crop.3x2", "f32 [1, 3, 2, 3]"),
        ("crop.7x4", "pack.transforms[0] crops 7 x 4 pixels from a picture of 5 x 3"),
        ("crop.string_numbers", "f32 [1, 3, 1, 2]"),
        ("crop.fraction", "pack.transforms[0].width is 2.9, expected a whole number of 64 bits"),
        ("chain.stubs", "pack.transforms[0] crops 448 x 448 pixels from a picture of 64 x 48"),
        ("chain.scale_then_crop", "f32 [1, 3, 3, 3]"),
        ("chain.crop_twice", "pack.transforms[1] crops 2 x 1 pixels from a picture of 1 x 1"),
        (
            "doc.example",
            "pack.items[0].transforms[0] crops 448 x 448 pixels from a picture of 64 x 48",
        ),
        ("tensor.long_truncates", "pack.items[0] is 224.9, expected a whole number of 64 bits"),
        ("scalar.bool_string", "pack.value is \"TRUE\", expected true or false"),
        ("scalar.long_fraction", "pack.value is 5.9, expected a whole number of 64 bits"),
        ("gpt2.'$'", "[13]"),
    ];
    check(&options, recommended, &exceptions);
}

#[test]
fn pictures_are_scaled_smoothly_by_default() {
    let case = cases().into_iter().find(|case| text(case, "id") == "scale.rand8x8.4x4").unwrap();
    let pack = |options: SpecOptions| match attempt(&case, options).unwrap().packed {
        Some(Value::Tensor(tensor)) => tensor.view().to_vec::<f32>().unwrap(),
        other => panic!("{other:?}"),
    };
    let bilinear = pack(Spec::options().filter(Filter::Bilinear));
    assert_eq!(pack(Spec::options()), bilinear);
    assert_ne!(pack(Spec::options().dialect(Dialect::Android)), bilinear);
}

#[test]
fn what_is_not_used_is_reported() {
    let spec = Spec::parse(
        r#"{"pack": {"type": "tensor", "dtype": "float", "sizes": [1], "items": ["$x"]},
            "unpack": {"type": "scalar_long", "key": "k"}}"#,
    );
    let (spec, params) = (spec.unwrap(), Params::new().with("x", "1.5").with("y", 2));
    let call = spec.call(&params).unwrap();
    let report = call.lint();
    let messages: Vec<&str> = report.findings().iter().map(|f| f.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "pack.items[0] is the text \"1.5\", read as a number",
            "parameter \"y\" is used nowhere in the spec"
        ]
    );
}

/// Unpacks one value by one object.
fn unpacked(unpack: &str, output: &Value, dialect: Dialect) -> Result<ResultValue, String> {
    let text = format!(r#"{{"pack": {{"type": "scalar_long", "value": 1}}, "unpack": {unpack}}}"#);
    let spec = Spec::options().dialect(dialect).parse(text).unwrap();
    let params = Params::new();
    let results = spec.call(&params).unwrap().unpack(output).map_err(|error| error.to_string())?;
    Ok(results.get("k").unwrap().clone())
}

fn floats(shape: &[u64], elements: &[f32]) -> Value {
    Value::Tensor(
        TensorBuf::from_slice(shape.iter().copied().collect::<Shape>(), elements).unwrap(),
    )
}

#[test]
fn detections_are_kept_by_probability_and_class() {
    let detected = |logits: Value, boxes: Value, threshold: f64| {
        let unpack = format!(
            r#"{{"type": "bounding_boxes", "key": "k", "probabilityThreshold": {threshold},
                 "classes": ["cat", "dog"]}}"#
        );
        let output = vec![("pred_boxes".to_owned(), boxes), ("pred_logits".to_owned(), logits)];
        match unpacked(&unpack, &Value::Dict(output), Dialect::Documented) {
            Ok(ResultValue::Boxes(boxes)) => Ok(boxes),
            other => other.map(|value| panic!("{value:?}")),
        }
    };
    let boxes =
        || floats(&[1, 3, 4], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    // Logits beyond what an exponential of 32 bits holds; no class of that index; two that are even.
    let logits =
        || floats(&[1, 3, 3], &[0.0, 300.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, f32::NEG_INFINITY]);
    let found = detected(logits(), boxes(), 0.4).unwrap();
    let shown: Vec<_> = found.iter().map(|found| (found.class.as_str(), found.bounds)).collect();
    assert_eq!(shown, [("dog", [0.0, 1.0, 2.0, 3.0]), ("cat", [8.0, 9.0, 10.0, 11.0])]);
    // Exactly one half is not above it.
    assert_eq!(detected(logits(), boxes(), 0.5).unwrap().len(), 1);
    assert_eq!(detected(floats(&[1, 0, 3], &[]), floats(&[1, 0, 4], &[]), 0.5).unwrap(), []);
    let fewer = floats(&[1, 1, 4], &[0.0; 4]);
    assert_eq!(
        detected(logits(), fewer, 0.5).unwrap_err(),
        "unpack gets a tensor f32 [1, 1, 4] from the model, expected a tensor [1, boxes, 4] of f32, a \
         row for each of logits"
    );
    let flat = floats(&[3, 3], &[0.0; 9]);
    assert_eq!(
        detected(flat, boxes(), 0.5).unwrap_err(),
        "unpack gets a tensor f32 [3, 3] from the model, expected a tensor [1, boxes, classes] of f32"
    );
}

#[test]
fn tensors_become_pictures() {
    let picture = |output: &Value, dialect| match unpacked(
        r#"{"type": "tensor_to_image", "key": "k"}"#,
        output,
        dialect,
    ) {
        Ok(ResultValue::Image(image)) => {
            Ok((image.width(), image.height(), image.pixels().to_vec()))
        }
        other => other.map(|value| panic!("{value:?}")),
    };
    // Two rows of one pixel: red, then white with half of blue.
    let output = floats(&[1, 3, 2, 1], &[1.0, 1.0, 0.0, 1.0, 0.0, 0.5]);
    let expected = (1, 2, vec![255, 0, 0, 255, 255, 128]);
    assert_eq!(picture(&output, Dialect::Documented).unwrap(), expected);
    assert_eq!(picture(&output, Dialect::Android).unwrap(), expected);
    let below = floats(&[1, 3, 1, 1], &[-4.0, -3.0, -2.0]);
    assert_eq!(picture(&below, Dialect::Documented).unwrap().2, [0, 128, 255]);
    assert_eq!(picture(&below, Dialect::Android).unwrap().2, [0, 64, 128]);
    let infinite = floats(&[1, 3, 1, 1], &[f32::INFINITY, 0.0, 1.0]);
    assert_eq!(
        picture(&infinite, Dialect::Documented).unwrap_err(),
        "unpack gets a tensor with infinite elements or NaN from the model, expected numbers"
    );
    for shape in [&[3, 1, 1][..], &[1, 1, 1, 3], &[2, 3, 1, 1], &[1, 3, 0, 1]] {
        let len = shape.iter().product::<u64>() as usize;
        let output = floats(shape, &vec![0.0; len]);
        let message = picture(&output, Dialect::Documented).unwrap_err();
        assert!(message.ends_with("expected a tensor [1, 3, height, width] of f32"), "{message}");
    }
}
