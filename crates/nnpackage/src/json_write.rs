//! Values as JSON, laid out as a text that is there, or as the packaging tool does.

use std::fmt::Write as _;

use crate::{
    IoRef,
    json_edit::{indent, slice},
    json_tree::{Shape, Tree},
};

/// A value to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewValue {
    /// A number, as it is written.
    Number(String),
    /// A text and nothing that is converted to one.
    Exactly(String),
    /// A text, or what onert reads as that.
    Text(String),
    /// A text that is equal to any that onert reads as the same reference.
    Reference(IoRef),
    Array(Vec<Self>),
    Object(Vec<(&'static str, Self)>),
}

impl NewValue {
    pub(crate) fn texts<'a>(texts: impl IntoIterator<Item = &'a String>) -> Self {
        Self::Array(texts.into_iter().map(|text| Self::Text(text.clone())).collect())
    }

    pub(crate) fn references<'a>(references: impl IntoIterator<Item = &'a IoRef>) -> Self {
        Self::Array(references.into_iter().map(|reference| Self::Reference(*reference)).collect())
    }
}

/// How a text is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) newline: &'static str,
    /// What each level is indented by more.
    pub(crate) unit: String,
    /// What stands between a key and its value.
    colon: String,
    /// What stands inside of the brackets of an array on one line; `None` where items have lines.
    pub(crate) padding: Option<String>,
}

impl Default for Style {
    /// Returns that of the packaging tool.
    fn default() -> Self {
        Self { newline: "\n", unit: "  ".to_owned(), colon: ": ".to_owned(), padding: None }
    }
}

impl Style {
    pub(crate) fn of(text: &[u8], root: &Tree) -> Self {
        let mut style = Self::default();
        let line_end = text.iter().position(|byte| *byte == b'\n');
        let before = line_end.and_then(|at| at.checked_sub(1)).and_then(|at| text.get(at));
        if before == Some(&b'\r') {
            style.newline = "\r\n";
        }
        let Shape::Object(members) = &root.shape else { return style };
        let Some(first) = members.first() else { return style };
        let colon = slice(text, first.key_range.end..first.value.range.start);
        if colon.iter().all(|byte| b" \t:".contains(byte)) {
            style.colon = String::from_utf8_lossy(colon).into_owned();
        }
        let indent = indent(text, first.key_range.start);
        match &indent {
            Some(indent) if !indent.is_empty() => style.unit.clone_from(indent),
            _ => {}
        }
        let arrays = members.iter().filter_map(|member| match &member.value.shape {
            Shape::Array(items) => Some((&member.value, items.first()?)),
            _ => None,
        });
        let array = arrays.into_iter().next();
        match array {
            Some((array, item)) => {
                let inside = array.range.start.saturating_add(1)..item.range.start;
                let padding = slice(text, inside);
                if padding.iter().all(|byte| b" \t".contains(byte)) {
                    style.padding = Some(String::from_utf8_lossy(padding).into_owned());
                }
            }
            None if indent.is_none() => style.padding = Some(String::new()),
            None => {}
        }
        style
    }

    /// Writes a value; `indent` is that of the line that it starts in.
    pub(crate) fn print(&self, value: &NewValue, indent: &str, out: &mut String) {
        match value {
            NewValue::Number(number) => out.push_str(number),
            NewValue::Exactly(text) | NewValue::Text(text) => quote(text, out),
            NewValue::Reference(reference) => {
                let _ = write!(out, "\"{reference}\"");
            }
            NewValue::Array(items) => {
                self.brackets(['[', ']'], items.len(), indent, out, |index, indent, out| {
                    if let Some(item) = items.get(index) {
                        self.print(item, indent, out);
                    }
                });
            }
            NewValue::Object(members) => {
                self.brackets(['{', '}'], members.len(), indent, out, |index, indent, out| {
                    if let Some((key, value)) = members.get(index) {
                        self.member(key, value, indent, out);
                    }
                });
            }
        }
    }

    pub(crate) fn member(&self, key: &str, value: &NewValue, indent: &str, out: &mut String) {
        quote(key, out);
        out.push_str(&self.colon);
        self.print(value, indent, out);
    }

    fn brackets(
        &self,
        [open, close]: [char; 2],
        count: usize,
        indent: &str,
        out: &mut String,
        print: impl Fn(usize, &str, &mut String),
    ) {
        out.push(open);
        let inner = format!("{indent}{}", self.unit);
        for index in 0..count {
            if index > 0 {
                out.push(',');
            }
            match &self.padding {
                Some(_) if index > 0 => out.push(' '),
                Some(padding) => out.push_str(padding),
                None => {
                    let _ = write!(out, "{}{inner}", self.newline);
                }
            }
            let indent = if self.padding.is_some() { indent } else { &inner };
            print(index, indent, out);
        }
        match &self.padding {
            _ if count == 0 => {}
            Some(padding) => out.push_str(padding),
            None => {
                let _ = write!(out, "{}{indent}", self.newline);
            }
        }
        out.push(close);
    }
}

/// Writes a text as JSON does.
fn quote(text: &str, out: &mut String) {
    // A text can always be written.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}
