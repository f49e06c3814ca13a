//! Writes TOML 1.0.

use std::fmt::{self, Display, Write as _};

use toml::de::DeValue;

use crate::text::{Escaped, Key};

/// A document that is being written, front to back.
#[derive(Debug, Default)]
pub(crate) struct Emitter {
    out: String,
}

impl Emitter {
    /// Starts a table.
    pub(crate) fn table(&mut self, path: &str) -> &mut Self {
        self.line(format_args!("[{path}]"))
    }

    /// Starts the next item of an array of tables.
    pub(crate) fn item(&mut self, path: &str) -> &mut Self {
        self.line(format_args!("[[{path}]]"))
    }

    /// Writes a key and what is TOML already.
    pub(crate) fn pair(&mut self, key: &str, value: impl Display) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{} = {value}", Key(key));
        self
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) -> &mut Self {
        self.pair(key, Text(text))
    }

    pub(crate) fn optional_text(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out.into_bytes()
    }

    fn line(&mut self, header: fmt::Arguments<'_>) -> &mut Self {
        let gap = if self.out.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.out, "{gap}{header}");
        self
    }
}

/// A string; one with several lines is written with several lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains('\n') {
            return Basic(self.0).fmt(f);
        }
        f.write_str("\"\"\"")?;
        for line in self.0.split('\n') {
            write!(f, "\n{}", Escaped(line))?;
        }
        f.write_str("\"\"\"")
    }
}

/// A string on one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basic<'a>(pub(crate) &'a str);

impl Display for Basic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", Escaped(self.0))
    }
}

/// An array on one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<I>(pub(crate) I);

impl<I: IntoIterator<Item: Display> + Clone> Display for List<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (index, item) in self.0.clone().into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{item}")?;
        }
        f.write_char(']')
    }
}

/// A table on one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inline<I>(pub(crate) I);

impl<'a, I: IntoIterator<Item = (&'a str, V)> + Clone, V: Display> Display for Inline<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        let mut end = "";
        for (index, (key, value)) in self.0.clone().into_iter().enumerate() {
            let separator = if index == 0 { " " } else { ", " };
            write!(f, "{separator}{} = {value}", Key(key))?;
            end = " ";
        }
        write!(f, "{end}}}")
    }
}

/// A value of a document that was parsed, on one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parsed<'a>(pub(crate) &'a DeValue<'a>);

impl Display for Parsed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DeValue::String(text) => Basic(text).fmt(f),
            DeValue::Integer(integer) => integer.fmt(f),
            DeValue::Float(float) => float.fmt(f),
            DeValue::Boolean(boolean) => boolean.fmt(f),
            DeValue::Datetime(time) => time.fmt(f),
            DeValue::Array(items) => List(items.iter().map(|item| Parsed(item.get_ref()))).fmt(f),
            DeValue::Table(table) => {
                let pairs = table.iter().map(|(key, value)| (&**key.get_ref(), value.get_ref()));
                let pairs: Vec<_> = pairs.map(|(key, value)| (key, Parsed(value))).collect();
                Inline(pairs.iter().copied()).fmt(f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_read_as_written() {
        let mut emitter = Emitter::default();
        emitter
            .text("a", "x\t\"\\\u{1b}\u{7f}\u{202e}é")
            .pair("b", List(["1", "2"]))
            .pair("c", List([""; 0]));
        emitter.item("t").text("d", "\n\"\"\"\r\n  e\n").pair("e", Inline([("f g", 1), ("h", 2)]));
        emitter.item("t").pair("e", Inline([("", 0); 0]));
        emitter.table("u.v").pair("''", true);
        let expected = [
            r#"a = "x\t\"\\\u001B\u007F\u202Eé""#,
            "b = [1, 2]",
            "c = []",
            "",
            "[[t]]",
            "d = \"\"\"",
            "",
            r#"\"\"\"\r"#,
            "  e",
            "\"\"\"",
            r#"e = { "f g" = 1, h = 2 }"#,
            "",
            "[[t]]",
            "e = {}",
            "",
            "[u.v]",
            r#""''" = true"#,
            "",
        ];
        assert_eq!(String::from_utf8(emitter.finish()).unwrap(), expected.join("\n"));
    }
}
