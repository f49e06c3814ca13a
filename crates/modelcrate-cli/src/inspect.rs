use std::fmt::Write as _;

use comfy_table::Table;
use modelcrate::{
    AnyReader, FileSummary, GraphSummary, Number, Port, Summary, SummaryOptions, TensorSummary,
    Verdict, tensor_core::Profile,
};
use serde::Serialize;

use crate::{
    escape::{escape, escape_up_to},
    failure::{About, chain, is_invalid},
    options::{Format, Input, Print},
    outcome::{Outcome, print_error},
    output,
};

/// Show what is in model files: version, metadata, tensors
///
/// Only the document of a file is read, whatever the size of its tensors. A file whose end is
/// missing is shown as the last complete one inside it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate inspect model.zt
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
    /// Compute range, mean, and the numbers of NaN and infinite elements of every tensor
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct File {
    path: String,
    #[serde(flatten)]
    summary: Summary,
}

impl Inspect {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (mut outcome, mut done) = (Outcome::Fine, Vec::new());
        for input in &self.files {
            let file = match self.summary(input).about(input) {
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

    fn summary(&self, input: &Input) -> anyhow::Result<File> {
        let options = AnyReader::options().profile(Profile::Lenient);
        let reader = output::open(input, options)?;
        let options = SummaryOptions::default().digests(self.digests).stats(self.stats);
        let summary = reader.summary(options);
        Ok(File { path: input.display().to_string(), summary })
    }

    fn text(&self, file: &File) -> String {
        let File { path, summary } = file;
        let bytes = summary.tensors.iter().fold(0, |sum: u64, t| sum.saturating_add(t.bytes));
        let bold = anstyle::Style::new().bold();
        let mut text = format!("{bold}{}{bold:#}\n", escape(path));
        let tensors = summary.tensors.len();
        let version = escape_up_to(TEXT, &summary.version);
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
            let _ = writeln!(text, "  metadata  {}", escape_up_to(TEXT, &pair));
        }
        for (side, ports) in [("input", &summary.inputs), ("output", &summary.outputs)] {
            for port in ports {
                let port = port_text(port);
                let _ = writeln!(text, "  {side:<9} {}", escape_up_to(TEXT, &port));
            }
        }
        text.push_str(&self.files_text(&summary.files));
        text.push_str(&self.tensors_text(&summary.tensors));
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
        let mut table = output::table(["name", "dtype", "shape", "bytes", "stored", ""], &[3]);
        for tensor in shown(tensors, self.tensors) {
            let dtype = tensor.dtype.map_or_else(|| "?".to_owned(), |dtype| dtype.to_string());
            let stored = tensor.layout.iter().chain(&tensor.encoding).cloned();
            table.add_row([
                name(&tensor.name),
                dtype,
                escape_up_to(TEXT, &tensor.shape.to_string()).into_owned(),
                tensor.bytes.to_string(),
                escape_up_to(TEXT, &stored_text(stored, tensor.stored_bytes)).into_owned(),
                contents(tensor),
            ]);
        }
        listed(&table, tensors.len(), "--tensors")
    }
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

/// Writes a name so that it can be told from its neighbours: cut where it is long, in quotes where
/// its ends would not show.
pub(crate) fn name(name: &str) -> String {
    let shown = escape(name);
    let cut = shown.char_indices().nth(NAME).map(|(at, _)| at);
    match cut.and_then(|at| shown.get(..at)) {
        Some(start) => format!("{start}…"),
        None if name.trim() != name || name.is_empty() => format!("\"{shown}\""),
        None => shown.into_owned(),
    }
}

/// Writes what a graph is made of: its size, and the operators that are there most often.
fn graph_text(graph: &GraphSummary) -> String {
    let GraphSummary { graphs, operators, parameters, .. } = graph;
    let mut text = format!("{operators} operators, {parameters} parameters");
    if *graphs > 1 {
        let _ = write!(text, ", {graphs} graphs");
    }
    let mut counts: Vec<_> = graph.by_operator.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
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
        serde_json::Value::String(symbol) => symbol.clone(),
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
        parts.push(format!("link to {}", escape_up_to(TEXT, target)));
    }
    stored_text(parts, file.stored_bytes)
}

/// Says how something is stored, where that is not simply as it is.
fn stored_text(parts: impl IntoIterator<Item = String>, bytes: Option<u64>) -> String {
    let bytes = bytes.map(|bytes| format!("{bytes} bytes"));
    let parts: Vec<String> = parts.into_iter().chain(bytes).collect();
    if parts.is_empty() { "raw".to_owned() } else { parts.join(", ") }
}

/// Writes what was computed from the elements of a tensor.
fn contents(tensor: &TensorSummary) -> String {
    let mut parts = Vec::new();
    if let Some(stats) = &tensor.stats {
        if let (Some(min), Some(max), Some(mean)) = (stats.min, stats.max, stats.mean) {
            let [min, max, mean] = [min, max, Number::Float(mean)].map(number);
            let std = stats.std.map(|std| format!(", std {}", number(Number::Float(std))));
            parts.push(format!("{min} to {max}, mean {mean}{}", std.unwrap_or_default()));
        }
        for (count, what) in [(stats.nan, "NaN"), (stats.infinite, "infinite")] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
    }
    parts.extend(tensor.sha256.iter().map(|digest| format!("sha256:{digest}")));
    for component in &tensor.components {
        let digest = component.sha256.iter();
        parts.extend(digest.map(|digest| format!("{} sha256:{digest}", escape(&component.role))));
    }
    parts.join(", ")
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

/// Characters of a name that are shown to people.
const NAME: usize = 72;

/// Characters of any other text from a file that are shown to people.
const TEXT: usize = 200;

/// Types of operators that are counted for people.
const OPERATORS: usize = 8;

/// Tensors that are listed when not all were asked for.
const SHOWN: usize = 40;
