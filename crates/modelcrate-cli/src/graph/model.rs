//! Circle and TFLite models.

use std::fmt::Write as _;

use modelcrate::circle_format::{
    self, ReadOptions, Reader, Schema,
    model::{
        Model, OperatorCode, Quantization, QuantizationDetails, Signature, SignatureTensor,
        Subgraph, Tensor,
    },
};
use serde::Serialize;

use super::{Language, SchemaName};
use crate::{
    escape::{escape, escape_up_to},
    output,
};

#[derive(Serialize)]
struct Shown<'a, T> {
    path: String,
    /// Of a model in a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a str>,
    model: T,
}

/// Draws a model, which is perhaps an entry of a package.
pub(super) fn draw(
    path: String,
    entry: Option<&str>,
    reader: &Reader,
    language: Language,
) -> anyhow::Result<String> {
    Ok(match language {
        Language::Text => describe(&path, entry, reader),
        Language::Json => output::json(&Shown { path, entry, model: reader.dump() })?,
        Language::Dot => reader.model().dot(),
        Language::Mermaid => reader.model().mermaid(),
    })
}

/// Returns how a model is opened whose identifier does not count.
pub(super) fn by_schema(schema: SchemaName) -> ReadOptions {
    Reader::options().schema(match schema {
        SchemaName::Circle => Schema::Circle,
        SchemaName::Tflite => Schema::Tflite,
    })
}

/// Opens a model of a package, by its position; returns its path there, too.
#[cfg(feature = "nnpackage")]
pub(super) fn of_package(
    package: &modelcrate::nnpackage::Reader,
    index: usize,
    schema: Option<SchemaName>,
) -> anyhow::Result<(String, Reader)> {
    use modelcrate::nnpackage::Error;
    let count = package.models().len();
    let Some(model) = package.model(index) else {
        let models = output::count(count, "model");
        anyhow::bail!("has {models}, so that there is none at position {index}")
    };
    let opened = match schema {
        Some(schema) => {
            let source = model.file().source();
            source.and_then(|source| Ok(by_schema(schema).from_source(source)?))
        }
        None => model.open().cloned(),
    };
    let entry = model.path().to_owned();
    match opened {
        Ok(reader) => Ok((entry, reader)),
        // It names the file itself.
        Err(error @ Error::File { .. }) => Err(error.into()),
        Err(error) => Err(anyhow::Error::from(error).context(format!("{entry:?}"))),
    }
}

fn describe(path: &str, entry: Option<&str>, reader: &Reader) -> String {
    let model = reader.model();
    let mut text = escape(path).into_owned();
    if let Some(entry) = entry {
        let _ = write!(text, ": {}", quoted(entry));
    }
    let _ = writeln!(text, "\n  type         {}, version {}", model.schema, model.version);
    if let Some(description) = &model.description {
        let _ = writeln!(text, "  description  {}", quoted(description));
    }
    let size = output::size(reader.source().len());
    let tables = reader.tables_len().map(|len| format!(", tables {}", output::size(len)));
    let _ = writeln!(text, "  size         {size}{}", tables.unwrap_or_default());
    for metadata in &model.metadata {
        let name = name(metadata.name.as_deref());
        let bytes = model.buffer(metadata.buffer).map(|buffer| output::size(buffer.len()));
        let bytes = bytes.unwrap_or_else(|| "no such buffer".to_owned());
        let _ = writeln!(text, "  metadata     {name}: {bytes}");
    }
    if let Some(training) = reader.training_info().transpose() {
        let training = training.map_or_else(|error| error.to_string(), |info| info.to_string());
        let _ = writeln!(text, "  training     {}", escape(&training));
    }
    for signature in &model.signatures {
        let _ = writeln!(text, "  signature    {}", signature_text(signature));
    }
    for (index, graph) in model.subgraphs.iter().enumerate() {
        text.push_str(&graph_text(index, graph));
        text.push_str(&operators_text(model, graph));
    }
    text.push_str(&codes_text(model));
    text.push_str(&constants_text(reader));
    text
}

fn signature_text(signature: &Signature) -> String {
    let list = |names: &[SignatureTensor]| -> String {
        let shown = names.iter().take(SHOWN_NAMES);
        let shown: Vec<_> = shown
            .map(|of| format!("{} = tensor {}", name(of.name.as_deref()), of.tensor_index))
            .collect();
        let more = if names.len() > SHOWN_NAMES { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let Signature { key, subgraph_index, inputs, outputs, .. } = signature;
    let key = name(key.as_deref());
    format!("{key} of subgraph {subgraph_index}: {} -> {}", list(inputs), list(outputs))
}

fn graph_text(index: usize, graph: &Subgraph) -> String {
    let called = graph.name.as_deref().map(|name| format!(" {}", quoted(name)));
    let (operators, tensors) = (graph.operators.len(), graph.tensors.len());
    let [operators, tensors] = [(operators, "operator"), (tensors, "tensor")]
        .map(|(count, what)| output::count(count, what));
    let called = called.unwrap_or_default();
    let mut text = format!("\n  subgraph {index}{called}: {operators}, {tensors}\n");
    let sides = [("input", &graph.inputs), ("output", &graph.outputs)];
    for (side, list) in sides {
        for (at, &index) in list.iter().enumerate() {
            let tensor = graph.tensor(index).map(|tensor| tensor_text(index, tensor));
            let tensor = tensor.unwrap_or_else(|| format!("tensor {index}, which there is not"));
            let _ = writeln!(text, "    {side:<6} {at}  {tensor}");
        }
    }
    text
}

/// Writes an input or output: name, type, shape, and how its numbers are meant.
fn tensor_text(index: i32, tensor: &Tensor) -> String {
    let name = name(tensor.name.as_deref());
    let mut text =
        format!("{name} (tensor {index}): {} {}", tensor.tensor_type, dims(&tensor.shape));
    if let Some(signature) = &tensor.shape_signature {
        let _ = write!(text, ", signature {}", dims(signature));
    }
    let mut more = quantization_text(tensor);
    more.extend(tensor.is_variable.then(|| "variable".to_owned()));
    for part in more {
        let _ = write!(text, ", {part}");
    }
    text
}

/// Writes what goes into each operator and what comes out, one a line.
fn operators_text(model: &Model, graph: &Subgraph) -> String {
    let names = |indices: &[i32]| -> String {
        let name = |&index: &i32| match graph.tensor(index) {
            Some(tensor) => name(tensor.name.as_deref()),
            None if index == -1 => "none".to_owned(),
            None => "?".to_owned(),
        };
        let shown: Vec<_> = indices.iter().take(SHOWN_TENSORS).map(name).collect();
        let more = if indices.len() > SHOWN_TENSORS { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let mut text = String::new();
    for (index, operator) in graph.operators.iter().enumerate() {
        let code = model.operator_code(operator).map(OperatorCode::name);
        let code = code.map_or_else(|| "?".into(), |code| escape_up_to(NAME, &code).into_owned());
        let (inputs, outputs) = (names(&operator.inputs), names(&operator.outputs));
        let _ = writeln!(text, "    {index:>5}  {code}: {inputs} -> {outputs}");
    }
    text
}

fn codes_text(model: &Model) -> String {
    if model.operator_codes.is_empty() {
        return String::new();
    }
    let mut table = output::table(["code", "operator", "version", "operators"], &[0, 2, 3]);
    for (index, (code, count)) in
        model.operator_codes.iter().zip(model.operator_counts()).enumerate()
    {
        table.add_row([
            index.to_string(),
            escape_up_to(NAME, &code.name()).into_owned(),
            code.version.to_string(),
            count.to_string(),
        ]);
    }
    format!("\n{}", output::table_text(&table))
}

fn constants_text(reader: &Reader) -> String {
    if reader.tensors().len() == 0 {
        return String::new();
    }
    let mut table =
        output::table(["constant", "tensor", "type", "shape", "bytes", "quantization"], &[1, 4]);
    for constant in reader.tensors() {
        table.add_row(constant_row(constant));
    }
    format!("\n{}", output::table_text(&table))
}

fn constant_row(constant: circle_format::Tensor<'_>) -> [String; 6] {
    let tensor = constant.tensor();
    let extent = constant.stored_extent();
    let mut parts = tensor.map(quantization_text).unwrap_or_default();
    parts.extend(tensor.and_then(|tensor| tensor.sparsity.as_ref()).map(|_| "sparse".to_owned()));
    if constant.is_external() {
        parts.push("outside of the tables".to_owned());
    }
    [
        name(constant.name()),
        format!("{}/{}", constant.subgraph(), constant.index()),
        tensor.map_or_else(String::new, |tensor| tensor.tensor_type.to_string()),
        tensor.map_or_else(String::new, |tensor| dims(&tensor.shape)),
        extent.map_or_else(|_| "?".to_owned(), |extent| extent.len().to_string()),
        parts.join(", "),
    ]
}

/// Says how stored numbers become real ones; nothing where they are what they mean.
fn quantization_text(tensor: &Tensor) -> Vec<String> {
    let Some(quantization) = tensor.quantization.as_deref() else { return Vec::new() };
    let mut parts = Vec::new();
    let Quantization { scale, zero_point, quantized_dimension, .. } = quantization;
    match scale[..] {
        [] => {}
        [scale] => {
            let zero_point = zero_point.first().copied().unwrap_or_default();
            parts.push(format!("scale {scale}, zero point {zero_point}"));
        }
        _ => parts.push(format!("{} scales along dimension {quantized_dimension}", scale.len())),
    }
    parts.extend(quantization.details.as_ref().map(details_text));
    parts
}

fn details_text(details: &QuantizationDetails) -> String {
    match details {
        QuantizationDetails::Custom(bytes) => format!("custom quantization, {} bytes", bytes.len()),
        QuantizationDetails::Mx { axis } => format!("blocks with scales along dimension {axis}"),
        QuantizationDetails::Blockwise { scales, zero_points, block_size, .. } => {
            format!("blocks of {block_size}: scales tensor {scales}, zero points {zero_points}")
        }
        QuantizationDetails::MultiAxis { scales, zero_points, quantized_dimensions, .. } => {
            let dimensions = dims(quantized_dimensions);
            format!("dimensions {dimensions}: scales tensor {scales}, zero points {zero_points}")
        }
        QuantizationDetails::Unknown(table) => format!("unknown quantization {}", table.tag()),
        _ => "unknown quantization".to_owned(),
    }
}

/// Writes dimensions, as far as they are worth showing.
fn dims(dims: &[i32]) -> String {
    let shown: Vec<_> = dims.iter().take(SHOWN_DIMS).map(i32::to_string).collect();
    let more = if dims.len() > SHOWN_DIMS { ", …" } else { "" };
    format!("[{}{more}]", shown.join(", "))
}

fn name(name: Option<&str>) -> String {
    name.map_or_else(|| "?".to_owned(), quoted)
}

/// Writes a text of a file in quotes, cut where it is long.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escape_up_to(NAME, text))
}

/// Characters of a name that are shown.
const NAME: usize = 72;

/// Names of a signature that are shown.
const SHOWN_NAMES: usize = 16;

/// Inputs and outputs of an operator that are shown.
const SHOWN_TENSORS: usize = 64;

/// Dimensions of a shape that are shown.
const SHOWN_DIMS: usize = 16;
