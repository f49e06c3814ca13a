//! Graphs as pictures.

use std::{fmt::Write as _, io};

use tensor_core::text::{is_hidden, short};

use super::{
    Graph, Node, Subgraph,
    layout::{Edge, Item, Layout, MAX_ITEMS, Placed},
    text::one_line,
};

/// Why a graph cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotDrawn {
    /// It has more nodes and edges than can be laid out.
    #[error(
        "{what} has {nodes} nodes, more than can be laid out: expected fewer, as of a part or with groups \
         collapsed", what = .index.map_or("the model".to_owned(), |index| format!("graph {index}"))
    )]
    TooLarge {
        /// The graph, as a position in [`Graph::subgraphs`]; `None` for all of them.
        index: Option<usize>,
        /// How many nodes it has.
        nodes: usize,
    },
    /// The layout failed, for lack of memory or threads.
    #[error("graph {index} cannot be laid out: {reason}")]
    Failed {
        /// The graph, as a position in [`Graph::subgraphs`].
        index: usize,
        /// What the system says.
        reason: String,
    },
}

impl Graph {
    /// Returns a picture of all graphs, one below the other, for browsers and what else shows SVG. It
    /// holds its own colours, for light and dark.
    ///
    /// # Errors
    ///
    /// Where the graphs have more nodes or edges than can be laid out: some 20,000.
    pub fn svg(&self) -> Result<String, NotDrawn> {
        let nodes = self.node_count();
        if nodes > MAX_ITEMS {
            return Err(NotDrawn::TooLarge { index: None, nodes });
        }
        let mut drawings = Vec::new();
        for index in 0..self.subgraphs.len() {
            drawings.extend(self.drawing(index)?);
        }
        let width = drawings.iter().map(|drawing| drawing.width).fold(1.0, f64::max);
        let is_titled = drawings.len() > 1;
        let title = if is_titled { TITLE } else { 0.0 };
        let height: f64 = drawings.iter().map(|drawing| drawing.height + title).sum();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}</style>\n"
        );
        let mut top = 0.0;
        for drawing in drawings {
            let _ = writeln!(svg, "<g transform=\"translate(0 {top})\">");
            if is_titled {
                let name = self.subgraphs.get(drawing.index).map_or("", |graph| &graph.name);
                let text = escape(&format!("graph {} {}", drawing.index, one_line(&short(name))));
                let _ =
                    writeln!(svg, "<text class=\"title\" x=\"16\" y=\"24\">{}</text>", text.trim());
                let _ = writeln!(svg, "<g transform=\"translate(0 {TITLE})\">");
            }
            svg.push_str(&drawing.content);
            svg.push_str(if is_titled { "</g>\n</g>\n" } else { "</g>\n" });
            top += drawing.height + title;
        }
        svg.push_str("</svg>\n");
        Ok(svg)
    }

    /// Draws one of the graphs; `None` where there is no such graph.
    ///
    /// # Errors
    ///
    /// As for [`svg`](Self::svg).
    pub fn drawing(&self, index: usize) -> Result<Option<Drawing>, NotDrawn> {
        self.marked_drawing(index, &|_| false)
    }

    /// Like [`drawing`](Self::drawing), with the class `changed` for the nodes that `is_changed` names.
    pub(crate) fn marked_drawing(
        &self,
        index: usize,
        is_changed: &dyn Fn(&Node) -> bool,
    ) -> Result<Option<Drawing>, NotDrawn> {
        let Some(graph) = self.subgraphs.get(index) else { return Ok(None) };
        let too_large = || NotDrawn::TooLarge { index: Some(index), nodes: graph.nodes.len() };
        let failed = |error: io::Error| NotDrawn::Failed { index, reason: error.to_string() };
        let layout = Layout::of(graph, |item| graph.size(item)).map_err(failed)?;
        let layout = layout.ok_or_else(too_large)?;
        let content = graph.content(&layout, is_changed);
        Ok(Some(Drawing { index, width: layout.width, height: layout.height, content }))
    }
}

/// A picture of one graph, without the element that holds it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Drawing {
    /// The graph, as a position in [`Graph::subgraphs`].
    pub index: usize,
    /// In pixels.
    pub width: f64,
    /// In pixels.
    pub height: f64,
    /// The content of an `svg` element: a group of class `edges` with a `path` of class `edge` for
    /// each value and reader, and a group of class `nodes` with a group of class `node` for each node,
    /// input and output. Classes name the [`Family`](super::Family), or `input`, `output` and
    /// `reference`; `data-node`, `data-value`, `data-from` and `data-to` are positions in the graph.
    /// Colours are left to style sheets.
    pub content: String,
}

impl Subgraph {
    fn size(&self, item: Item) -> (f64, f64) {
        let lines = self.item_lines(item);
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let widths = [BOLD].into_iter().chain(std::iter::repeat(COLUMN)).zip(&lines);
        let widths = widths.map(|(column, line)| number(line.chars().count()) * column);
        let width = (widths.fold(0.0, f64::max) + 2.0 * PADDING).max(56.0);
        (width, number(lines.len()) * LINE + PADDING)
    }

    /// Returns the lines of text of an item, cut.
    fn item_lines(&self, item: Item) -> Vec<String> {
        let mut lines: Vec<String> = match item {
            Item::Node(at) => {
                let Some(node) = self.nodes.get(at) else { return Vec::new() };
                let operator = one_line(&short(&node.operator));
                [operator].into_iter().chain(self.lines(node)).collect()
            }
            Item::Input(at) | Item::Output(at) => self.label_of(at),
            Item::Reference(at) => {
                let label = self.label_of(at).into_iter().next().unwrap_or_default();
                vec![format!("\u{2191} {label}")]
            }
        };
        lines.retain(|line| !line.is_empty());
        let columns = if matches!(item, Item::Reference(_)) { REFERENCE_COLUMNS } else { COLUMNS };
        lines.iter_mut().for_each(|line| cut(line, columns));
        lines
    }

    fn label_of(&self, value: usize) -> Vec<String> {
        let label = self.value(value).map(super::text::end_label).unwrap_or_default();
        label.split('\n').map(str::to_owned).collect()
    }

    fn content(&self, layout: &Layout, is_changed: &dyn Fn(&Node) -> bool) -> String {
        let mut text = String::from("<g class=\"edges\">\n");
        // A title may be long and stand at many edges: so it is cut, and cut once.
        let titles: Vec<String> =
            self.values.iter().map(|value| escape(&super::text::label(value))).collect();
        for edge in &layout.edges {
            let title = titles.get(edge.value).map_or("", String::as_str);
            edge.draw(layout, title, &mut text);
        }
        text.push_str("</g>\n<g class=\"nodes\">\n");
        for placed in &layout.items {
            self.draw_item(placed, is_changed, &mut text);
        }
        text.push_str("</g>\n");
        text
    }

    fn draw_item(&self, placed: &Placed, is_changed: &dyn Fn(&Node) -> bool, text: &mut String) {
        let Placed { item, at: (x, y), size: (width, height) } = *placed;
        let (class, data) = match item {
            Item::Node(at) => {
                let node = self.nodes.get(at);
                let family = node.map(|node| node.family).unwrap_or_default();
                let changed = if node.is_some_and(is_changed) { " changed" } else { "" };
                (family.as_str(), format!("{changed}\" data-node=\"{at}"))
            }
            Item::Input(at) => ("input", format!("\" data-value=\"{at}")),
            Item::Output(at) => ("output", format!("\" data-value=\"{at}")),
            Item::Reference(at) => ("reference", format!("\" data-value=\"{at}")),
        };
        let radius = if matches!(item, Item::Node(_)) { 4.0 } else { 9.0 };
        let (left, top) = ((x - width / 2.0).round(), (y - height / 2.0).round());
        let _ = write!(
            text,
            "<g class=\"node {class}{data}\"><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" \
             height=\"{height}\" rx=\"{radius}\"/>"
        );
        let (mut baseline, mut class) = (top + PADDING / 2.0 + LINE * 0.75, "operator");
        for line in self.item_lines(item) {
            let _ = write!(
                text,
                "<text class=\"{class}\" x=\"{x}\" y=\"{baseline}\">{}</text>",
                escape(&line)
            );
            baseline += LINE;
            class = "more";
        }
        text.push_str("</g>\n");
    }
}

impl Edge {
    fn draw(&self, layout: &Layout, title: &str, text: &mut String) {
        let (from, to) = self.ends;
        let (Some(start), Some(end)) = (layout.items.get(from), layout.items.get(to)) else {
            return;
        };
        let first = (start.at.0, (start.at.1 + start.size.1 / 2.0).round());
        let last = (end.at.0, (end.at.1 - end.size.1 / 2.0).round());
        let mut data = format!("data-value=\"{}\"", self.value);
        for (name, item) in [("from", start.item), ("to", end.item)] {
            if let Item::Node(at) = item {
                let _ = write!(data, " data-{name}=\"{at}\"");
            }
        }
        let _ = write!(text, "<path class=\"edge\" {data} d=\"M{} {}", first.0, first.1);
        let mut before = first;
        for (x, y) in self.points.iter().copied().chain([last]) {
            let middle = ((before.1 + y) / 2.0).round();
            let _ = write!(text, "C{} {middle} {x} {middle} {x} {y}", before.0);
            before = (x, y);
        }
        // The head of the arrow.
        let (x, y) = last;
        let _ = writeln!(
            text,
            "\"><title>{title}</title></path><path class=\"head\" d=\"M{x} {y}l-4 -7h8z\"/>"
        );
    }
}

/// Cuts a line to a number of characters.
fn cut(line: &mut String, columns: usize) {
    if let Some((at, _)) = line.char_indices().nth(columns) {
        let last = line.char_indices().nth(columns.saturating_sub(1)).map_or(at, |(last, _)| last);
        line.truncate(last);
        line.push('…');
    }
}

/// Returns a text of a file as XML has it: nothing in it is markup, and nothing hidden.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for found in text.chars() {
        match found {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            found if is_hidden(found) => {
                let _ = write!(escaped, "U+{:04X}", u32::from(found));
            }
            found => escaped.push(found),
        }
    }
    escaped
}

/// Pixels of a line of text.
const LINE: f64 = 15.0;

/// Pixels of a character, on average.
const COLUMN: f64 = 6.6;

/// The same of the first line.
const BOLD: f64 = 7.5;

/// Pixels beside a text.
const PADDING: f64 = 8.0;

/// Characters of a line in a box.
const COLUMNS: usize = 36;

/// Characters of a line in a reference.
const REFERENCE_COLUMNS: usize = 16;

/// Pixels of the title of a graph.
const TITLE: f64 = 36.0;

const STYLE: &str = include_str!("graph.css");
