//! Drawings of boxes and arrows, as text that other programs draw.

use std::fmt::{Display, Write as _};

/// The language of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// DOT, for Graphviz.
    Dot,
    /// Mermaid, for Markdown: a flowchart.
    Mermaid,
}

/// Where arrows lead by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the top down.
    Down,
    /// From left to right.
    Right,
}

/// How a node looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A box: what does something.
    Box,
    /// An ellipse: what comes in or goes out.
    Ellipse,
    /// Text without a line around it.
    Plain,
    /// A dashed box: what should be there.
    Dashed,
}

/// A drawing that is being made. Texts may come from files: they end where they should, and hide
/// nothing.
///
/// # Examples
///
/// ```
/// use tensor_core::draw::{Direction, Drawing, Form, Language};
///
/// let mut drawing = Drawing::new(Language::Mermaid, "model", Direction::Down);
/// drawing.node("a", Form::Box, "Relu");
/// drawing.edge("a", "b", "");
/// assert_eq!(drawing.finish(), "flowchart TD\n    a[\"Relu\"]\n  a --> b\n");
/// ```
#[derive(Debug)]
pub struct Drawing {
    language: Language,
    text: String,
}

impl Drawing {
    /// Starts a drawing.
    #[must_use]
    pub fn new(language: Language, name: &str, direction: Direction) -> Self {
        let mut text = String::new();
        let _ = match (language, direction) {
            (Language::Dot, Direction::Down) => writeln!(text, "digraph {name} {{"),
            (Language::Dot, Direction::Right) => writeln!(text, "digraph {name} {{\n  rankdir=LR;"),
            (Language::Mermaid, Direction::Down) => writeln!(text, "flowchart TD"),
            (Language::Mermaid, Direction::Right) => writeln!(text, "flowchart LR"),
        };
        Self { language, text }
    }

    /// Starts a frame, which holds the nodes that follow; frames do not nest.
    pub fn frame(&mut self, id: impl Display, label: &str) {
        let label = self.quoted(label);
        let _ = match self.language {
            Language::Dot => {
                writeln!(self.text, "  subgraph cluster_{id} {{\n    label={label};")
            }
            Language::Mermaid => writeln!(self.text, "  subgraph s{id}[{label}]"),
        };
    }

    /// Ends a frame.
    pub fn end_frame(&mut self) {
        self.text.push_str(match self.language {
            Language::Dot => "  }\n",
            Language::Mermaid => "  end\n",
        });
    }

    /// Adds a node, whose label may have several lines.
    pub fn node(&mut self, id: impl Display, form: Form, label: &str) {
        let label = self.quoted(label);
        let (open, close) = match (self.language, form) {
            (Language::Dot, Form::Box) => (" [shape=box, label=", "];"),
            (Language::Dot, Form::Ellipse) => (" [shape=ellipse, label=", "];"),
            (Language::Dot, Form::Plain) => (" [shape=plaintext, label=", "];"),
            (Language::Dot, Form::Dashed) => (" [shape=box, style=dashed, label=", "];"),
            (Language::Mermaid, Form::Box) => ("[", "]"),
            (Language::Mermaid, Form::Ellipse) => ("([", "])"),
            (Language::Mermaid, Form::Plain | Form::Dashed) => (">", "]"),
        };
        let _ = writeln!(self.text, "    {id}{open}{label}{close}");
    }

    /// Adds an arrow, whose label may be empty.
    pub fn edge(&mut self, from: impl Display, to: impl Display, label: &str) {
        let quoted = self.quoted(label);
        let _ = match (self.language, label.is_empty()) {
            (Language::Dot, true) => writeln!(self.text, "  {from} -> {to};"),
            (Language::Dot, false) => writeln!(self.text, "  {from} -> {to} [label={quoted}];"),
            (Language::Mermaid, true) => writeln!(self.text, "  {from} --> {to}"),
            (Language::Mermaid, false) => writeln!(self.text, "  {from} -->|{quoted}| {to}"),
        };
    }

    /// Adds a dotted arrow.
    pub fn dotted_edge(&mut self, from: impl Display, to: impl Display) {
        let _ = match self.language {
            Language::Dot => writeln!(self.text, "  {from} -> {to} [style=dotted];"),
            Language::Mermaid => writeln!(self.text, "  {from} -.-> {to}"),
        };
    }

    /// Returns the text.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.language == Language::Dot {
            self.text.push_str("}\n");
        }
        self.text
    }

    fn quoted(&self, text: &str) -> String {
        let mut quoted = String::from("\"");
        for found in text.chars() {
            match (self.language, found) {
                (Language::Dot, '\n') => quoted.push_str("\\n"),
                (Language::Dot, '"' | '\\') => quoted.extend(['\\', found]),
                (Language::Mermaid, '\n') => quoted.push_str("<br>"),
                (Language::Mermaid, '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '|') => {
                    let _ = write!(quoted, "#{};", u32::from(found));
                }
                (_, found) if is_hidden(found) => {
                    let _ = write!(quoted, "U+{:04X}", u32::from(found));
                }
                (_, found) => quoted.push(found),
            }
        }
        quoted.push('"');
        quoted
    }
}

/// Tells whether a character moves what is around it, or cannot be seen: those of Unicode's categories
/// Cc, Zl and Zp, its property `Default_Ignorable_Code_Point`, and marks of annotations.
#[must_use]
pub fn is_hidden(found: char) -> bool {
    found.is_control()
        || matches!(
            found,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Puts two texts on lines of their own. Line ends inside them are no line ends.
#[must_use]
pub fn lines(first: &str, second: &str) -> String {
    let one_line = |text: &str| text.replace('\n', "\u{240a}");
    match (first, second) {
        ("", second) => one_line(second),
        (first, "") => one_line(first),
        (first, second) => format!("{}\n{}", one_line(first), one_line(second)),
    }
}
