use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    ptl_spec::{Params, Signature, Value},
    tensor_core::{DType, Report, TensorBuf},
};
use serde::Serialize;

use super::{
    called,
    given::{Meaning, SpecFile, Tokenizers},
    params::Parameters,
    tensors,
};
use crate::{escape::escape, failure::About, outcome::Outcome, output, write::Writing};

/// Make the input of a model of a call's parameters
///
/// The values are those that a runtime would call the model with. Their places are counted from 0;
/// 1.0 is the first of a tuple that is the second.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl inputs model.ptl --param image=@photo.jpg --param side=224 -o inputs
  modelcrate ptl inputs live.spec.json --param text='Who was Jim Henson?' --profile android
  modelcrate ptl inputs qa.ptl --param text=@question.txt --param length=384 --bert standard
  modelcrate ptl inputs model.ptl --param image=@photo.png -o input.zt")]
pub(crate) struct Inputs {
    #[command(flatten)]
    given: SpecFile,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    meaning: Meaning,
    #[command(flatten)]
    tokenizers: Tokenizers,
    /// Write the tensors: as PLACE.npy into a folder, which is made where there is none, or all
    /// into FILE.npz or FILE.zt, or the only one into FILE.npy; - is standard output, as npy
    #[arg(short, long, value_name = "FOLDER|FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    write: Writing,
}

#[derive(Serialize)]
struct Packed {
    path: String,
    dry_run: bool,
    values: Vec<Shown>,
    files: Vec<String>,
    findings: Report,
}

/// A value of the input.
#[derive(Serialize)]
struct Shown {
    place: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Number>,
    /// The first elements of a tensor, or a value that is not one.
    preview: Vec<Number>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Number {
    Float(f32),
    Double(f64),
    Int(i64),
    Bool(bool),
}

impl Inputs {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let found = self.given.find()?;
        let spec = self.meaning.read(&found, self.tokenizers)?;
        let signature = spec.signature();
        let params = self.parameters.read(&signature)?;
        check_all(&signature, &params).about(&found.path)?;
        let mut call = called(spec.call(&params)).about(&found.path)?;
        let value = called(call.pack()).about(&found.path)?;
        let mut leaves = Vec::new();
        flatten(&value, "", &mut leaves);
        let tensors: Vec<(&str, &TensorBuf)> = leaves
            .iter()
            .filter_map(|(place, value)| match value {
                Value::Tensor(tensor) => Some((place.as_str(), tensor)),
                _ => None,
            })
            .collect();
        let files = match &self.output {
            Some(output) => tensors::write(&tensors, output, self.write)?,
            None => Vec::new(),
        };
        let packed = Packed {
            path: found.path.display().to_string(),
            dry_run: self.write.dry_run,
            values: leaves.iter().map(|(place, value)| Shown::of(place, value)).collect(),
            files: files.iter().map(|file| file.display().to_string()).collect(),
            findings: call.lint(),
        };
        let output = self.output.as_deref().unwrap_or(Path::new(""));
        self.write.report(output, &packed, &packed.text(self.write))?;
        Ok(Outcome::Fine)
    }
}

/// Refuses a call without parameters that its input is made of, all of them at once.
fn check_all(signature: &Signature, params: &Params) -> anyhow::Result<()> {
    let missing = signature.parameters.iter().filter(|parameter| {
        let is_input = parameter.places.iter().any(|place| place.starts_with("pack"));
        is_input && params.get(&parameter.name).is_none()
    });
    let missing = missing.map(|parameter| format!("--param {}={}", parameter.name, parameter.kind));
    let missing: Vec<String> = missing.collect();
    ensure!(missing.is_empty(), "needs also {}", missing.join(" "));
    Ok(())
}

/// Lists what is in tuples, with its places.
fn flatten<'v>(value: &'v Value, place: &str, leaves: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Tuple(items) | Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(item, &super::joined(place, &index.to_string()), leaves);
            }
        }
        value => leaves.push((super::leaf(place).to_owned(), value)),
    }
}

impl Packed {
    fn text(&self, write: Writing) -> String {
        let mut text = String::new();
        let values = if self.values.len() == 1 { "value" } else { "values" };
        let _ = writeln!(text, "{}: packed, {} {values}", escape(&self.path), self.values.len());
        let mut table = output::table(["place", "type", "range", "values"], &[]);
        for shown in &self.values {
            table.add_row([shown.place.clone(), shown.kind(), shown.range(), shown.preview()]);
        }
        if !table.is_empty() {
            text.push_str(&output::table_text(&table));
        }
        for finding in self.findings.findings() {
            text.push_str(&output::finding_text(finding));
        }
        for file in &self.files {
            let _ = writeln!(text, "{}: {}written", escape(file), write.would_be());
        }
        text
    }
}

impl Shown {
    fn of(place: &str, value: &Value) -> Self {
        let mut shown = Self {
            place: place.to_owned(),
            kind: "value",
            dtype: None,
            shape: None,
            min: None,
            max: None,
            preview: Vec::new(),
        };
        let (kind, scalar) = match value {
            Value::Bool(value) => ("bool", Number::Bool(*value)),
            Value::Int(value) => ("int", Number::Int(*value)),
            Value::Double(value) => ("double", Number::Double(*value)),
            Value::Tensor(tensor) => {
                shown.tensor(tensor);
                return shown;
            }
            // The packer makes nothing else.
            _ => return shown,
        };
        Self { kind, preview: vec![scalar], ..shown }
    }

    fn tensor(&mut self, tensor: &TensorBuf) {
        let (info, view) = (tensor.info(), tensor.view());
        self.kind = "tensor";
        self.dtype = Some(info.dtype.to_string());
        self.shape = Some(info.shape.dims().to_vec());
        if info.dtype == DType::I64 {
            let longs: Vec<i64> = view.to_vec().unwrap_or_default();
            self.min = longs.iter().min().copied().map(Number::Int);
            self.max = longs.iter().max().copied().map(Number::Int);
            self.preview = longs.into_iter().take(PREVIEW).map(Number::Int).collect();
        } else {
            let floats: Vec<f32> = view.to_vec().unwrap_or_default();
            let numbers = || floats.iter().copied().filter(|float| !float.is_nan());
            self.min = numbers().min_by(f32::total_cmp).map(Number::Float);
            self.max = numbers().max_by(f32::total_cmp).map(Number::Float);
            self.preview = floats.into_iter().take(PREVIEW).map(Number::Float).collect();
        }
    }

    fn kind(&self) -> String {
        match (&self.dtype, &self.shape) {
            (Some(dtype), Some(shape)) => format!("{dtype} {shape:?}"),
            _ => self.kind.to_owned(),
        }
    }

    fn range(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            _ => String::new(),
        }
    }

    fn preview(&self) -> String {
        let elements = self.shape.as_ref().map(|shape| shape.iter().product::<u64>());
        let more = elements.is_some_and(|elements| elements > self.preview.len() as u64);
        let numbers: Vec<String> = self.preview.iter().map(ToString::to_string).collect();
        format!("{}{}", numbers.join(", "), if more { ", …" } else { "" })
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Float(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Bool(value) => value.fmt(f),
        }
    }
}

/// Elements of a tensor that are shown.
const PREVIEW: usize = 4;
