//! Drawings of boxes and arrows, as text that other programs draw.

use std::fmt::{Display, Write as _};

use crate::text::is_hidden;

/// The language of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// DOT, for Graphviz.
    Dot,
    /// Mermaid, for Markdown: a flowchart.
    Mermaid,
}

/// How a node looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A box: what does something.
    Box,
    /// An ellipse: what comes in or goes out.
    Ellipse,
}

/// A drawing that is being made. Texts may come from files: they end where they should, and hide
/// nothing.
///
/// # Examples
///
/// ```
/// use tensor_core::draw::{Drawing, Form, Language};
///
/// let mut drawing = Drawing::new(Language::Mermaid, "model");
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
    pub fn new(language: Language, name: &str) -> Self {
        let text = match language {
            Language::Dot => format!("digraph {name} {{\n"),
            Language::Mermaid => "flowchart TD\n".to_owned(),
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
            (Language::Mermaid, Form::Box) => ("[", "]"),
            (Language::Mermaid, Form::Ellipse) => ("([", "])"),
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
        // Mermaid has no empty texts.
        quoted.push_str(if text.is_empty() && self.language == Language::Mermaid {
            " "
        } else {
            ""
        });
        for (at, found) in text.char_indices() {
            match (self.language, found) {
                (Language::Dot, '\n') => quoted.push_str("\\n"),
                (Language::Dot, '"' | '\\') => quoted.extend(['\\', found]),
                (Language::Dot, '&') => quoted.push_str("&amp;"),
                (Language::Mermaid, '\n') => quoted.push_str("<br>"),
                // Between `%%{` and `}%%` stands how to draw, between `$$` a formula, and `fa:fa-` is a sign.
                (Language::Mermaid, ':')
                    if text.get(at..).is_some_and(|rest| rest.starts_with(":fa-")) =>
                {
                    quoted.push_str("#58;");
                }
                (Language::Mermaid, '"' | '#' | '$' | '%' | '&' | '<' | '>' | '`' | '\\' | '|') => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_orders() {
        let drawn = |language, text| {
            let mut drawing = Drawing::new(language, "model");
            drawing.frame(0, text);
            drawing.end_frame();
            drawing.finish()
        };
        let text = "%%{init: {'theme':'dark'}}%% &amp; \"";
        let others = drawn(Language::Mermaid, "$$x$$ fa:fa-ban a::b");
        assert!(others.contains("\"#36;#36;x#36;#36; fa#58;fa-ban a::b\""), "{others}");
        assert_eq!(
            drawn(Language::Mermaid, text),
            "flowchart TD\n  subgraph s0[\"#37;#37;{init: {'theme':'dark'}}#37;#37; #38;amp; #34;\"]\n  end\n"
        );
        assert_eq!(
            drawn(Language::Dot, text),
            "digraph model {\n  subgraph cluster_0 {\n    label=\"%%{init: {'theme':'dark'}}%% &amp;amp; \\\"\";\n  }\n}\n"
        );
        assert_eq!(drawn(Language::Mermaid, ""), "flowchart TD\n  subgraph s0[\" \"]\n  end\n");
    }
}
