//! Connections as text and for drawing programs.

use std::{collections::BTreeSet, fmt::Write as _};

use modelcrate::nnpackage::IoRef;

use super::wiring::{Side, Wiring, quoted};

/// Writes one line for each model and each connection.
pub(super) fn text(wiring: &Wiring) -> String {
    let mut text = String::new();
    for (index, part) in wiring.models.iter().enumerate() {
        let _ = writeln!(text, "  model {index}  {}", quoted(&part.path));
    }
    let arrows: Vec<_> = arrows(wiring).collect();
    if !arrows.is_empty() {
        text.push('\n');
    } else if wiring.models.len() > 1 {
        text.push_str("  not connected\n");
    }
    for Arrow { from, to } in arrows {
        let (from, to) = (from.text(wiring, Side::Output), to.text(wiring, Side::Input));
        let _ = writeln!(text, "  {from} -> {to}");
    }
    for name in &wiring.missing {
        let _ = writeln!(text, "  {} is made by no part, and no input of the source", quoted(name));
    }
    text
}

/// Writes a graph for Graphviz.
pub(super) fn dot(wiring: &Wiring) -> String {
    let mut text = String::from("digraph wiring {\n  rankdir=LR;\n  node [shape=box];\n");
    for (index, part) in wiring.models.iter().enumerate() {
        let label = dot_label([format!("model {index}"), quoted(&part.path)]);
        let _ = writeln!(text, "  m{index} [label={label}];");
    }
    for index in absent(wiring) {
        let label = dot_label([format!("model {index}, which there is not")]);
        let _ = writeln!(text, "  m{index} [style=dashed, label={label}];");
    }
    for end in ends(wiring) {
        let (node, label) = (end.node(), dot_label([end.text(wiring, Side::Input)]));
        let _ = writeln!(text, "  {node} [shape=ellipse, label={label}];");
    }
    for arrow in arrows(wiring) {
        let label = dot_label(arrow.labels(wiring));
        let _ = writeln!(text, "  {} -> {} [label={label}];", arrow.from.node(), arrow.to.node());
    }
    text.push_str("}\n");
    text
}

/// Writes a graph for Mermaid.
pub(super) fn mermaid(wiring: &Wiring) -> String {
    let mut text = String::from("flowchart LR\n");
    for (index, part) in wiring.models.iter().enumerate() {
        let label = mermaid_label([format!("model {index}"), quoted(&part.path)]);
        let _ = writeln!(text, "  m{index}[{label}]");
    }
    for index in absent(wiring) {
        let label = mermaid_label([format!("model {index}, which there is not")]);
        let _ = writeln!(text, "  m{index}>{label}]");
    }
    for end in ends(wiring) {
        let label = mermaid_label([end.text(wiring, Side::Input)]);
        let _ = writeln!(text, "  {}([{label}])", end.node());
    }
    for arrow in arrows(wiring) {
        let label = mermaid_label(arrow.labels(wiring));
        let _ = writeln!(text, "  {} -->|{label}| {}", arrow.from.node(), arrow.to.node());
    }
    text
}

/// One connection.
#[derive(Clone, Copy)]
struct Arrow {
    from: End,
    to: End,
}

/// Where a connection starts or ends.
#[derive(Clone, Copy)]
enum End {
    /// An input of the package, by its position.
    Input(usize),
    /// An output of the package, by its position.
    Output(usize),
    Model(IoRef),
}

impl Arrow {
    /// Returns the lines that are written at it.
    fn labels(self, wiring: &Wiring) -> Vec<String> {
        let is_model = |end: End| matches!(end, End::Model(_));
        let from = is_model(self.from).then(|| self.from.text(wiring, Side::Output));
        let to = is_model(self.to).then(|| self.to.text(wiring, Side::Input));
        from.into_iter().chain(to).collect()
    }
}

impl End {
    /// Says what it is; where it is a model's, on which side.
    fn text(self, wiring: &Wiring, side: Side) -> String {
        match self {
            Self::Input(index) => format!("input {index}"),
            Self::Output(index) => format!("output {index}"),
            Self::Model(reference) => wiring.port(reference, side),
        }
    }

    /// Returns the name of its node in a drawing.
    fn node(self) -> String {
        match self {
            Self::Input(index) => format!("i{index}"),
            Self::Output(index) => format!("o{index}"),
            Self::Model(reference) => format!("m{}", reference.model),
        }
    }
}

/// Returns every connection: of inputs, between models, of outputs, each in their order.
fn arrows(wiring: &Wiring) -> impl Iterator<Item = Arrow> {
    let inputs = wiring.inputs.iter().enumerate();
    let inputs = inputs.map(|(at, &to)| Arrow { from: End::Input(at), to: End::Model(to) });
    let edges = wiring.edges();
    let edges = edges.map(|(from, to)| Arrow { from: End::Model(from), to: End::Model(to) });
    let outputs = wiring.outputs.iter().enumerate();
    let outputs = outputs.map(|(at, &from)| Arrow { from: End::Model(from), to: End::Output(at) });
    inputs.chain(edges).chain(outputs)
}

/// Returns the inputs and outputs of the package.
fn ends(wiring: &Wiring) -> impl Iterator<Item = End> {
    let inputs = (0..wiring.inputs.len()).map(End::Input);
    inputs.chain((0..wiring.outputs.len()).map(End::Output))
}

/// Returns the positions of models that connections name and that there are not.
fn absent(wiring: &Wiring) -> BTreeSet<u16> {
    let ends = arrows(wiring).flat_map(|arrow| [arrow.from, arrow.to]);
    let models = ends.filter_map(|end| match end {
        End::Model(reference) => Some(reference.model),
        _ => None,
    });
    models.filter(|&model| usize::from(model) >= wiring.models.len()).collect()
}

/// Quotes lines for DOT, where a text ends at a quotation mark.
fn dot_label<I: IntoIterator<Item = String>>(lines: I) -> String {
    let escape = |line: String| line.replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<_> = lines.into_iter().map(escape).collect();
    format!("\"{}\"", lines.join("\\n"))
}

/// Quotes lines for Mermaid, which takes much for a sign of its own.
fn mermaid_label<I: IntoIterator<Item = String>>(lines: I) -> String {
    let lines: Vec<_> = lines.into_iter().map(|line| mermaid_line(&line)).collect();
    format!("\"{}\"", lines.join("<br>"))
}

fn mermaid_line(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for found in line.chars() {
        match found {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '|' => {
                let _ = write!(text, "#{};", u32::from(found));
            }
            _ => text.push(found),
        }
    }
    text
}
