use std::{cmp::Reverse, fmt::Write as _};

use anyhow::bail;
use clap::ValueEnum;
use comfy_table::Table;
use modelcrate::{
    AnyReader, FileSummary, GraphSummary, Number, OperatorSummary, Port, QuantizationSummary,
    Summary, SummaryOptions, TensorSummary, Verdict, natural_order, tensor_core::Profile,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    escape::escape,
    failure::{About, chain, is_invalid},
    glob::{Glob, check_meant, is_meant},
    options::{Format, Input, Print},
    outcome::{Outcome, print_error},
    output,
    progress::busy,
    walk::Found,
};

/// Show what is in model files: version, metadata, tensors
///
/// Only the document of a file is read, whatever the size of its tensors. A file whose end is
/// missing is shown as the last complete one inside it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate inspect model.zt
  modelcrate inspect --tensor 'layers.0.*' --stats --values 8 model.safetensors
  modelcrate inspect --sort size model.rten
  modelcrate inspect --digests --format json model.zt | jq '.files[].tensors[].sha256'")]
pub(crate) struct Inspect {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Input>,
    /// List every tensor; without it at most 40 are shown to people
    #[arg(long)]
    tensors: bool,
    /// List every file inside a container; without it at most 40 are shown to people
    #[arg(long = "files")]
    files_too: bool,
    /// Compute the SHA-256 of the decoded bytes of every tensor
    #[arg(long)]
    digests: bool,
    /// Compute statistics of the elements of every tensor: range, mean, deviation, percentiles,
    /// numbers of zero, NaN and infinite elements, histogram. Quantized ones are dequantized
    #[arg(long)]
    stats: bool,
    /// Look only at tensors of this name; * stands for any text
    #[arg(long, value_name = "GLOB")]
    tensor: Vec<Glob>,
    /// Show the first N elements of every tensor
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    values: u64,
    /// In which order tensors are listed: by name for people, as in the file for programs by default
    #[arg(long, value_enum)]
    sort: Option<Sort>,
    /// List the operators of graphs and methods, with what they read and make
    #[arg(long)]
    operators: bool,
    #[command(flatten)]
    print: Print,
}

/// The order of tensors.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    /// By name, numbers in it by their value
    Name,
    /// The largest first
    Size,
    /// As they are in the file
    File,
}

#[derive(Serialize)]
struct File {
    path: String,
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    operators: Option<Vec<OperatorSummary>>,
}

impl Inspect {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (mut outcome, mut done) = (Outcome::Fine, Vec::new());
        for found in self.files.iter().flat_map(|input| Found::meant(input)) {
            let file = match self.summary(&found).about(&found.path) {
                Ok(file) => file,
                Err(error) => {
                    print_error(&chain(&error));
                    let invalid = is_invalid(&error);
                    outcome = outcome.and(if invalid { Outcome::Invalid } else { Outcome::Failed });
                    continue;
                }
            };
            if Verdict::from(&file.summary.findings) == Verdict::Invalid {
                outcome = outcome.and(Outcome::Invalid);
            }
            match self.print.format {
                Format::Human => output::print_text(&self.text(&file))?,
                Format::Jsonl => output::print_line(&file)?,
                Format::Json => done.push(file),
            }
        }
        if self.print.format == Format::Json {
            output::print_document(&done)?;
        }
        Ok(outcome)
    }

    fn summary(&self, found: &Found) -> anyhow::Result<File> {
        let input = &found.path;
        if let Some(fault) = &found.fault {
            bail!("{fault}");
        }
        let (reader, faults) = found.open(AnyReader::options().profile(Profile::Lenient))?;
        let globs = self.tensor.clone();
        let options = SummaryOptions::default()
            .digests(self.digests)
            .stats(self.stats)
            .values(self.values)
            .select(move |name| is_meant(&globs, name));
        if self.stats || self.digests {
            busy(input);
        }
        let mut summary = reader.summary(options);
        if let Some(fault) = faults.first() {
            bail!("{fault}");
        }
        check_meant(&self.tensor, "tensor", summary.tensors.iter().map(|tensor| &*tensor.name))?;
        match self.sort.unwrap_or(match self.print.format {
            Format::Human => Sort::Name,
            _ => Sort::File,
        }) {
            Sort::Name => {
                summary.tensors.sort_by(|one, other| natural_order(&one.name, &other.name));
            }
            Sort::Size => summary.tensors.sort_by_key(|tensor| Reverse(tensor.bytes)),
            Sort::File => {}
        }
        let operators = self.operators.then(|| reader.operators());
        Ok(File { path: input.display().to_string(), summary, operators })
    }

    fn text(&self, file: &File) -> String {
        let File { path, summary, operators } = file;
        let bytes = summary.tensors.iter().fold(0, |sum: u64, t| sum.saturating_add(t.bytes));
        let bold = anstyle::Style::new().bold();
        let mut text = format!("{bold}{}{bold:#}\n", escape(path));
        let tensors = summary.tensors.len();
        let version = escape(&summary.version);
        let _ = writeln!(text, "  format    {} {version}", summary.format);
        if let Some(hash) = &summary.model_hash {
            let _ = writeln!(text, "  hash      {hash}");
        }
        if !summary.files.is_empty() {
            let bytes = summary.files.iter().filter_map(|file| file.bytes);
            let bytes = bytes.fold(0, u64::saturating_add);
            let _ = writeln!(text, "  files     {}, {}", summary.files.len(), output::size(bytes));
        }
        let _ = writeln!(text, "  tensors   {tensors}, {}", output::size(bytes));
        if let Some(graph) = &summary.graph {
            let _ = writeln!(text, "  graph     {}", graph_text(graph));
        }
        for (key, value) in &summary.metadata {
            let pair = format!("{key} = {value}");
            let _ = writeln!(text, "  metadata  {}", output::fitted(&pair));
        }
        for (side, ports) in [("input", &summary.inputs), ("output", &summary.outputs)] {
            for port in ports {
                let port = port_text(port);
                let _ = writeln!(text, "  {side:<9} {}", output::fitted(&port));
            }
        }
        for method in &summary.methods {
            let _ = writeln!(text, "  method    {}", output::fitted(&method.signature));
        }
        text.push_str(&self.files_text(&summary.files));
        text.push_str(&self.tensors_text(&summary.tensors));
        text.push_str(&operators_text(operators.as_deref().unwrap_or_default()));
        for finding in summary.findings.findings() {
            text.push_str(&output::finding_text(finding));
        }
        text
    }

    fn files_text(&self, files: &[FileSummary]) -> String {
        let mut table = output::table(["file", "bytes", "stored"], &[1]);
        for file in shown(files, self.files_too) {
            let bytes = file.bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
            table.add_row([name(&file.path), bytes, file_stored(file)]);
        }
        listed(&table, files.len(), "--files")
    }

    fn tensors_text(&self, tensors: &[TensorSummary]) -> String {
        let shown = || shown(tensors, self.tensors || !self.tensor.is_empty());
        let columns = [
            Column::new("model", |tensor| tensor.model.as_deref().map(of_file)),
            Column::new("name", |tensor| Some(name(&tensor.name))).always(),
            Column::new("dtype", |tensor| Some(dtype(tensor))).always(),
            Column::new("shape", |tensor| Some(of_file(&tensor.shape.to_string()))).always(),
            Column::new("bytes", |tensor| Some(tensor.bytes.to_string())).right().always(),
            Column::new("stored", |tensor| Some(stored(tensor))).always(),
            Column::new("quantized", |tensor| tensor.quantization.as_ref().map(quantization)),
            Column::new("attributes", |tensor| {
                let pairs = tensor.metadata.iter().map(|(key, value)| format!("{key} = {value}"));
                let pairs = pairs.collect::<Vec<_>>().join(", ");
                (!pairs.is_empty()).then(|| of_file(&pairs))
            }),
            Column::new("values", |tensor| {
                let values: Vec<String> = tensor.values.iter().map(Value::to_string).collect();
                (!values.is_empty()).then(|| of_file(&values.join(" ")))
            }),
            Column::new("sha256", digests),
        ];
        let mut text = listed(&rows(&columns, shown()), tensors.len(), "--tensors");
        if self.stats {
            text.push_str(&stats_text(shown()));
        }
        text
    }
}

/// A column of a table of tensors, which is there where a tensor has something in it.
struct Column {
    head: &'static str,
    cell: fn(&TensorSummary) -> Option<String>,
    is_right: bool,
    is_always: bool,
}

impl Column {
    const fn new(head: &'static str, cell: fn(&TensorSummary) -> Option<String>) -> Self {
        Self { head, cell, is_right: false, is_always: false }
    }

    const fn right(mut self) -> Self {
        self.is_right = true;
        self
    }

    const fn always(mut self) -> Self {
        self.is_always = true;
        self
    }
}

fn rows<'t>(columns: &[Column], tensors: impl Iterator<Item = &'t TensorSummary>) -> Table {
    let rows: Vec<Vec<Option<String>>> = tensors
        .map(|tensor| columns.iter().map(|column| (column.cell)(tensor)).collect())
        .collect();
    let is_there = |at: usize| rows.iter().any(|row| row.get(at).is_some_and(Option::is_some));
    let there: Vec<(usize, &Column)> = columns
        .iter()
        .enumerate()
        .filter(|(at, column)| column.is_always || is_there(*at))
        .collect();
    let right = there.iter().enumerate().filter(|(_, (_, column))| column.is_right);
    let right: Vec<usize> = right.map(|(at, _)| at).collect();
    let heads = there.iter().map(|(_, column)| column.head);
    let mut table = output::table(heads, &right);
    for row in &rows {
        let cells = there.iter().map(|(at, _)| row.get(*at).cloned().flatten().unwrap_or_default());
        table.add_row(cells);
    }
    table
}

/// Writes what was computed from the elements of tensors.
fn stats_text<'t>(tensors: impl Iterator<Item = &'t TensorSummary>) -> String {
    let column = |head, cell| Column::new(head, cell).right().always();
    let columns = [
        Column::new("model", |tensor| tensor.model.as_deref().map(of_file)),
        Column::new("name", |tensor| Some(name(&tensor.name))).always(),
        column("min", |tensor| tensor.stats.as_ref()?.min.map(number)),
        column("max", |tensor| tensor.stats.as_ref()?.max.map(number)),
        column("mean", |tensor| float(tensor.stats.as_ref()?.mean)),
        column("std", |tensor| float(tensor.stats.as_ref()?.std)),
        column("p1", |tensor| percentile(tensor, 0)),
        column("p50", |tensor| percentile(tensor, 3)),
        column("p99", |tensor| percentile(tensor, 6)),
        column("zeros", |tensor| Some(tensor.stats.as_ref()?.zeros.to_string())),
        column("NaN", |tensor| Some(tensor.stats.as_ref()?.nan.to_string())),
        column("Inf", |tensor| Some(tensor.stats.as_ref()?.infinite.to_string())),
        Column::new("histogram", |tensor| Some(bars(&tensor.stats.as_ref()?.histogram))).always(),
        Column::new("of", |tensor| tensor.stats_of.as_deref().map(of_file)),
    ];
    let table = rows(&columns, tensors);
    if table.row_count() == 0 {
        return String::new();
    }
    format!("\n{}", output::table_text(&table))
}

fn percentile(tensor: &TensorSummary, at: usize) -> Option<String> {
    float(tensor.stats.as_ref()?.percentiles.get(at).copied())
}

fn float(value: Option<f64>) -> Option<String> {
    value.map(|value| number(Number::Float(value)))
}

/// Draws a histogram with a bar for two of its ranges each.
fn bars(histogram: &[u64]) -> String {
    let pairs =
        histogram.chunks(2).map(|pair| pair.iter().fold(0_u64, |a, b| a.saturating_add(*b)));
    let counts: Vec<u64> = pairs.collect();
    let most = counts.iter().copied().max().unwrap_or_default();
    let bar = |count: u64| {
        let scaled = u128::from(count).saturating_mul(BARS.len() as u128);
        let height = scaled.div_ceil(u128::from(most).max(1)).saturating_sub(1);
        let height = usize::try_from(height).unwrap_or_default();
        if count == 0 { ' ' } else { BARS.get(height).copied().unwrap_or(' ') }
    };
    counts.into_iter().map(bar).collect()
}

fn operators_text(operators: &[OperatorSummary]) -> String {
    let mut table = output::table(["graph", "operator", "inputs", "outputs", "attributes"], &[]);
    for operator in operators {
        let names = |names: &[Option<String>]| {
            let names: Vec<String> =
                names.iter().map(|of| of.as_deref().map_or_else(|| "-".to_owned(), name)).collect();
            names.join(", ")
        };
        let attributes: Vec<String> =
            operator.attributes.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        table.add_row([
            of_file(&operator.graph),
            of_file(&operator.operator),
            names(&operator.inputs),
            names(&operator.outputs),
            of_file(&attributes.join(", ")),
        ]);
    }
    listed(&table, operators.len(), "--operators")
}

/// Escapes a text from a file.
fn of_file(text: &str) -> String {
    escape(text).into_owned()
}

fn dtype(tensor: &TensorSummary) -> String {
    let named = || tensor.logical_type.as_deref().map_or_else(|| "?".to_owned(), of_file);
    tensor.dtype.map_or_else(named, |dtype| dtype.to_string())
}

fn stored(tensor: &TensorSummary) -> String {
    let parts = tensor.layout.iter().chain(&tensor.encoding).cloned();
    let elements = tensor.stored_elements.map(|elements| format!("{elements} elements"));
    of_file(&stored_text(parts.chain(elements), tensor.stored_bytes))
}

/// Writes how whole numbers stand for real ones: few parameters as they are, of many how many.
fn quantization(found: &QuantizationSummary) -> String {
    let QuantizationSummary { scale, zero_point, axis, scheme, .. } = found;
    let mut parts: Vec<String> = scheme.iter().cloned().collect();
    match (scale.as_slice(), zero_point.as_slice()) {
        ([scale], []) => parts.push(format!("scale {scale}")),
        ([scale], [zero]) => parts.push(format!("scale {scale}, zero point {zero}")),
        ([], _) => {}
        (scales, zeros) if scales.len() <= FEW => {
            parts.push(format!("scales {}", listed_numbers(scales)));
            if !zeros.is_empty() {
                parts.push(format!("zero points {}", listed_numbers(zeros)));
            }
        }
        (scales, _) => parts.push(format!("{} scales", scales.len())),
    }
    parts.extend(axis.map(|axis| format!("axis {axis}")));
    parts.join(", ")
}

fn listed_numbers(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Writes the digests of a tensor and of its components.
fn digests(tensor: &TensorSummary) -> Option<String> {
    let of_part = tensor
        .components
        .iter()
        .filter_map(|part| Some(format!("{} {}", escape(&part.role), part.sha256.as_ref()?)));
    let all: Vec<String> = tensor.sha256.iter().cloned().chain(of_part).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Returns what people see where they did not ask for all.
fn shown<T>(items: &[T], all: bool) -> impl Iterator<Item = &T> {
    items.iter().take(if all { items.len() } else { SHOWN })
}

/// Writes a table, and which option lists the rest of so many rows.
fn listed(table: &Table, rows: usize, option: &str) -> String {
    if rows == 0 {
        return String::new();
    }
    let mut text = format!("\n{}", output::table_text(table));
    let left = rows.saturating_sub(table.row_count());
    if left > 0 {
        let _ = writeln!(text, "  … and {left} more ({option} lists them)");
    }
    text
}

/// Writes a name so that it can be told from its neighbours: in quotes where its ends would not show.
pub(crate) fn name(name: &str) -> String {
    let shown = escape(name);
    if name.trim() != name || name.is_empty() { format!("\"{shown}\"") } else { shown.into_owned() }
}

/// Writes what a graph is made of: its size, and the operators that are there most often.
fn graph_text(graph: &GraphSummary) -> String {
    let GraphSummary { graphs, operators, parameters, .. } = graph;
    let mut text = format!("{operators} operators, {parameters} parameters");
    if *graphs > 1 {
        let _ = write!(text, ", {graphs} graphs");
    }
    let mut counts: Vec<_> = graph.by_operator.iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(**count));
    for (at, (name, count)) in counts.iter().take(OPERATORS).enumerate() {
        let joint = if at == 0 { ": " } else { ", " };
        let _ = write!(text, "{joint}{count} {name}");
    }
    if counts.len() > OPERATORS {
        text.push_str(", …");
    }
    text
}

/// Writes an input or output of a model: name, type, shape, and what its maker says of it.
pub(crate) fn port_text(port: &Port) -> String {
    let name = name(&port.name);
    let shape = match &port.shape {
        Value::String(symbol) => symbol.clone(),
        shape => shape.to_string().replace('"', "").replace(',', ", "),
    };
    let mut text = format!("{name}: {} {shape}", port.dtype);
    if let Some(internal) = &port.internal_name {
        let _ = write!(text, " (inside: {internal})");
    }
    if let Some(description) = &port.description {
        let _ = write!(text, " - {description}");
    }
    text
}

/// Says how a file of a container is stored.
fn file_stored(file: &FileSummary) -> String {
    let mut parts: Vec<String> = file.encoding.clone().into_iter().collect();
    parts.extend(file.place.map(str::to_owned));
    if let Some(target) = &file.target {
        parts.push(format!("link to {}", escape(target)));
    }
    stored_text(parts, file.stored_bytes)
}

/// Says how something is stored, where that is not simply as it is.
fn stored_text(parts: impl IntoIterator<Item = String>, bytes: Option<u64>) -> String {
    let bytes = bytes.map(|bytes| format!("{bytes} bytes"));
    let parts: Vec<String> = parts.into_iter().chain(bytes).collect();
    if parts.is_empty() { "raw".to_owned() } else { parts.join(", ") }
}

/// Writes an integer with all its digits, and another number with four behind the point, or with an
/// exponent where those do not do.
fn number(value: Number) -> String {
    let Number::Float(value) = value else { return value.to_string() };
    match value.abs() {
        0.0 => "0".to_owned(),
        0.001..1e9 => format!("{value:.4}"),
        _ => format!("{value:.3e}"),
    }
}

/// Bars of a histogram, from the lowest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Types of operators that are counted for people.
const OPERATORS: usize = 8;

/// Tensors that are listed when not all were asked for.
const SHOWN: usize = 40;

/// Scales of slices that are shown to people as they are.
const FEW: usize = 4;
