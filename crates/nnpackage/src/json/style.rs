//! Values as JSON, laid out as a text that is there, or as the packaging tool does.

use std::ops::Range;

use crate::{
    IoRef,
    json::{Node, Value},
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

    /// Tells whether onert reads a value as this one.
    pub(crate) fn is_read_from(&self, node: &Node) -> bool {
        let text = || node.value.to_text();
        match (self, &node.value) {
            (Self::Number(expected), Value::Number(found))
            | (Self::Exactly(expected), Value::Text(found)) => found == expected,
            (Self::Number(_) | Self::Exactly(_), _) => false,
            (Self::Text(expected), _) => text().is_some_and(|found| found == *expected),
            (Self::Reference(expected), _) => text()
                .is_some_and(|found| found.parse().is_ok_and(|found: IoRef| found == *expected)),
            (Self::Array(values), Value::Array(items)) => {
                items.len() == values.len()
                    && items.iter().zip(values).all(|(item, value)| value.is_read_from(item))
            }
            (Self::Object(members), Value::Object(_)) => members.iter().all(|(key, value)| {
                node.member(key).is_some_and(|member| value.is_read_from(&member.value))
            }),
            _ => false,
        }
    }
}

/// How a text is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) newline: &'static str,
    /// What each level is indented by more.
    unit: String,
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
    pub(crate) fn of(text: &[u8], root: &Node) -> Self {
        let mut style = Self::default();
        let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if first_line.len() < text.len() && first_line.ends_with(b"\r") {
            style.newline = "\r\n";
        }
        let Value::Object(members) = &root.value else { return style };
        let Some(first) = members.first() else { return style };
        let between = |range: Range<usize>, allowed: &[u8]| {
            let part = text.get(range)?;
            let is_plain = part.iter().all(|byte| allowed.contains(byte));
            is_plain.then(|| String::from_utf8_lossy(part).into_owned())
        };
        if let Some(colon) = between(first.key_range.end..first.value.range.start, b" \t:") {
            style.colon = colon;
        }
        let indent = indent(text, first.key_range.start);
        match &indent {
            Some(indent) if !indent.is_empty() => style.unit.clone_from(indent),
            _ => {}
        }
        let mut arrays = members.iter().filter_map(|member| match &member.value.value {
            Value::Array(items) => Some((&member.value, items.first()?)),
            _ => None,
        });
        style.padding = match arrays.next() {
            Some((array, item)) => {
                between(array.range.start.saturating_add(1)..item.range.start, b" \t")
            }
            None => indent.is_none().then(String::new),
        };
        style
    }

    /// Returns the same with every item on a line.
    pub(crate) fn on_lines(&self) -> Self {
        Self { padding: None, ..self.clone() }
    }

    /// Returns a value as text; `indent` is that of the line that it starts in.
    pub(crate) fn print(&self, value: &NewValue, indent: &str) -> String {
        let inner = self.inner(indent);
        match value {
            NewValue::Number(number) => number.clone(),
            NewValue::Exactly(text) | NewValue::Text(text) => quote(text),
            NewValue::Reference(reference) => format!("\"{reference}\""),
            NewValue::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| self.print(item, &inner)).collect();
                format!("[{}]", self.list(&items, indent))
            }
            NewValue::Object(members) => {
                let members = members.iter().map(|(key, value)| self.member(key, value, &inner));
                format!("{{{}}}", self.list(&members.collect::<Vec<_>>(), indent))
            }
        }
    }

    pub(crate) fn member(&self, key: &str, value: &NewValue, indent: &str) -> String {
        format!("{}{}{}", quote(key), self.colon, self.print(value, indent))
    }

    /// Returns the indent of what is in brackets on a line of an indent.
    pub(crate) fn inner(&self, indent: &str) -> String {
        let unit = if self.padding.is_some() { "" } else { &self.unit };
        format!("{indent}{unit}")
    }

    /// Returns what stands between brackets.
    pub(crate) fn list(&self, items: &[String], indent: &str) -> String {
        if items.is_empty() {
            return String::new();
        }
        match &self.padding {
            Some(padding) => format!("{padding}{}{padding}", items.join(", ")),
            None => {
                let gap = format!("{}{}", self.newline, self.inner(indent));
                let items = items.join(&format!(",{gap}"));
                format!("{gap}{items}{}{indent}", self.newline)
            }
        }
    }
}

/// Returns a text as JSON has it.
fn quote(text: &str) -> String {
    // A text can always be written.
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns what stands in front of a byte in its line, where that is only blanks; `None` elsewhere,
/// and in the first line.
pub(crate) fn indent(text: &[u8], at: usize) -> Option<String> {
    let start = blanks_start(text, at);
    let is_line = text.get(..start)?.ends_with(b"\n");
    is_line.then(|| String::from_utf8_lossy(text.get(start..at).unwrap_or_default()).into_owned())
}

/// Returns where the blanks in front of a byte start.
pub(crate) fn blanks_start(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default().iter().rev();
    at.saturating_sub(before.take_while(|byte| b" \t".contains(byte)).count())
}
