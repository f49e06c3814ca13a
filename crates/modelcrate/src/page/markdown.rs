//! The page as Markdown.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use tensor_core::text::grouped;

use super::{
    Content, Page, ROWS, Suspicion, TENSORS, changes,
    html::{Found, NAME, by_rule, facts, sentence},
    text::{Plain, count, cut, dtype, float, number, shape, size, value},
};
use crate::{Port, TensorSummary, graph::Graph, rules::Rule};

/// Writes the whole page.
pub(super) fn write(page: &Page<'_>, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "# {}\n\n**{}**\n", Plain::name(&page.name), page.verdict())?;
    for (label, said) in facts(page) {
        writeln!(out, "- {label}: {}", Plain::said(&said))?;
    }
    out.write_all(changed(page).as_bytes())?;
    out.write_all(findings(page).as_bytes())?;
    if let Some(content) = &page.content {
        out.write_all(metadata(content).as_bytes())?;
        out.write_all(suspects(content).as_bytes())?;
        let summary = &content.summary;
        for (title, ports) in [("Inputs", &summary.inputs), ("Outputs", &summary.outputs)] {
            out.write_all(interface(title, ports).as_bytes())?;
        }
        out.write_all(tensors(content).as_bytes())?;
        out.write_all(graph(content).as_bytes())?;
        out.write_all(operators(content).as_bytes())?;
        out.write_all(files(content).as_bytes())?;
    }
    out.flush()
}

/// A table that is being made.
struct Table {
    text: String,
    rows: usize,
    most: usize,
    /// Whether cells are what someone says, of which more is shown than of names.
    has_sentences: bool,
}

impl Table {
    fn new(title: &str, heads: &[&str]) -> Self {
        Self::titled("##", title, heads)
    }

    fn titled(level: &str, title: &str, heads: &[&str]) -> Self {
        let mut text = format!("\n{level} {title}\n\n|");
        for head in heads {
            let _ = write!(text, " {head} |");
        }
        text.push_str("\n|");
        text.push_str(&"---|".repeat(heads.len()));
        text.push('\n');
        Self { text, rows: 0, most: ROWS, has_sentences: false }
    }

    /// Lets cells have what someone says.
    fn of_sentences(self) -> Self {
        Self { has_sentences: true, ..self }
    }

    fn row<'c>(&mut self, cells: impl IntoIterator<Item = &'c str>) {
        self.rows = self.rows.saturating_add(1);
        if self.rows > self.most {
            return;
        }
        self.text.push('|');
        for cell in cells {
            let plain = if self.has_sentences { Plain::said(cell) } else { Plain::name(cell) };
            let _ = write!(self.text, " {plain} |");
        }
        self.text.push('\n');
    }

    /// Returns the table, with how many rows are left out and which command has them; nothing where
    /// there is no row.
    fn finish(mut self, command: &str) -> String {
        let left = self.rows.saturating_sub(self.most);
        if left > 0 {
            let _ =
                writeln!(self.text, "\n… and {}: `modelcrate {command}`", count(left, "more row"));
        }
        if self.rows == 0 { String::new() } else { self.text }
    }
}

fn changed(page: &Page<'_>) -> String {
    let Some(compared) = &page.compared else { return String::new() };
    let mut out = format!(
        "\n## Changes\n\nFrom {}. {}.\n",
        Plain::name(&compared.old.name),
        Plain::said(&changes::sentence(compared))
    );
    let mut table = Table::titled("###", "Changed tensors", &["tensor", "what differs"]);
    for tensor in &compared.diff.tensors {
        table.row([tensor.name(), &changes::change(&tensor.change)]);
    }
    out.push_str(&table.finish("diff"));
    for (title, rows) in changes::tables(compared) {
        let mut table = Table::titled("###", title, &["change", "name", "old", "new"]);
        for row in rows {
            let side = |side: &Option<String>| side.clone().unwrap_or_default();
            table.row([row.mark().1, &row.name, &side(&row.old), &side(&row.new)]);
        }
        out.push_str(&table.finish("diff"));
    }
    out
}

fn findings(page: &Page<'_>) -> String {
    let table = Table::new("Findings", &["severity", "rule", "place", "message"]);
    let mut table = table.of_sentences();
    let all = by_rule(page);
    for Found { severity, rule, findings } in &all {
        for finding in findings {
            table.row([&*severity.to_string(), rule, &finding.at.to_string(), &finding.message]);
        }
    }
    let mut out = table.finish("verify -v");
    for found in all {
        if let Some(rule) = Rule::find(found.rule) {
            let _ = writeln!(out, "\n- `{}`: {}. To do: {}.", rule.id, rule.meaning, rule.remedy);
        }
    }
    out
}

fn metadata(content: &Content<'_>) -> String {
    let mut table = Table::new("Metadata", &["key", "value"]).of_sentences();
    for (key, found) in &content.summary.metadata {
        table.row([key.as_str(), &value(found)]);
    }
    table.finish("inspect")
}

fn suspects(content: &Content<'_>) -> String {
    let mut table = Table::new("Tensors to look at", &["tensor", "type", "shape", "why"]);
    let all = &content.summary.tensors;
    for suspect in &content.suspects {
        let Some(tensor) = all.get(suspect.tensor) else { continue };
        let why = suspect.suspicions.iter().map(|suspicion| match suspicion {
            Suspicion::Equal(other) => {
                let other = all.get(*other).map_or("", |other| &other.name);
                format!("the same elements as {}", cut(other, NAME).unwrap_or(other))
            }
            other => sentence(other),
        });
        let why = why.collect::<Vec<_>>().join("; ");
        table.row([&*tensor.name, &dtype(tensor), &tensor.shape.to_string(), &why]);
    }
    table.finish("inspect --stats --tensors")
}

fn interface(title: &str, ports: &[Port]) -> String {
    let table = Table::new(title, &["name", "type", "shape", "description"]);
    let mut table = table.of_sentences();
    for port in ports {
        let said = port.description.as_deref().unwrap_or_default();
        table.row([&*port.name, &port.dtype, &shape(port), said]);
    }
    table.finish("inspect")
}

fn tensors(content: &Content<'_>) -> String {
    let mut heads = vec!["name", "type", "shape", "bytes"];
    if content.has_stats {
        heads.extend(["min", "max", "mean", "deviation", "zeros", "NaN, Inf"]);
    }
    let mut table = Table { most: TENSORS, ..Table::new("Tensors", &heads) };
    for tensor in &content.summary.tensors {
        let mut cells =
            vec![tensor.name.clone(), dtype(tensor), tensor.shape.to_string(), size(tensor.bytes)];
        if content.has_stats {
            cells.extend(stats(tensor));
        }
        table.row(cells.iter().map(String::as_str));
    }
    table.finish("inspect --tensors")
}

fn stats(tensor: &TensorSummary) -> [String; 6] {
    let Some(stats) = &tensor.stats else { return Default::default() };
    [
        stats.min.map(number).unwrap_or_default(),
        stats.max.map(number).unwrap_or_default(),
        stats.mean.map(float).unwrap_or_default(),
        stats.std.map(float).unwrap_or_default(),
        grouped(stats.zeros),
        grouped(stats.nan.saturating_add(stats.infinite)),
    ]
}

/// Writes a small graph as GitHub draws it.
fn graph(content: &Content<'_>) -> String {
    match Graph::of(content.reader) {
        Ok(Some(graph)) if (1..=NODES).contains(&graph.node_count()) => {
            format!("\n## Graph\n\n```mermaid\n{}```\n", graph.mermaid())
        }
        _ => String::new(),
    }
}

fn operators(content: &Content<'_>) -> String {
    let mut table = Table::new("Operators", &["operator", "number"]);
    let graph = content.summary.graph.as_ref();
    for (name, number) in graph.iter().flat_map(|graph| &graph.by_operator) {
        table.row([name.as_str(), &grouped(*number)]);
    }
    table.finish("inspect --format json")
}

fn files(content: &Content<'_>) -> String {
    let mut table = Table::new("Files", &["file", "bytes"]);
    for file in &content.summary.files {
        table.row([&*file.path, &file.bytes.map(grouped).unwrap_or_default()]);
    }
    table.finish("inspect --files")
}

/// Nodes of a graph that is drawn: more, and nobody could read it.
const NODES: usize = 100;
