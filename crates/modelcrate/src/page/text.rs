//! Texts and numbers as a page shows them.

use std::fmt::{self, Write as _};

use serde_json::Value;
use tensor_core::text::{grouped, is_hidden};

use crate::{Number, Port, QuantizationSummary, TensorSummary};

/// A text as HTML, in an element or in an attribute with double quotes.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|found| character(f, found))
    }
}

/// Like [`Text`], with its line ends.
pub(super) struct Lines<'a>(pub(super) &'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|found| match found {
            '\n' | '\t' => f.write_char(found),
            found => character(f, found),
        })
    }
}

fn character(f: &mut fmt::Formatter<'_>, found: char) -> fmt::Result {
    match found {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        found if is_hidden(found) => write!(f, "U+{:04X}", u32::from(found)),
        found => f.write_char(found),
    }
}

/// A text of a file as HTML: cut where it is long, with more of it where a pointer rests.
pub(super) struct Cut<'a>(pub(super) &'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match cut(self.0, SHOWN) {
            None => Text(self.0).fmt(f),
            Some(start) => {
                let title = cut(self.0, TITLE).unwrap_or(self.0);
                write!(f, "<span title=\"{}\">{}…</span>", Text(title), Text(start))
            }
        }
    }
}

/// Returns the first characters of a text; `None` where it has no more.
pub(super) fn cut(text: &str, most: usize) -> Option<&str> {
    text.char_indices().nth(most).and_then(|(at, _)| text.get(..at))
}

/// A text of a file in a line of Markdown: no part of it is markup, and it is cut where it is long.
pub(super) struct Plain<'a> {
    text: &'a str,
    most: usize,
}

impl<'a> Plain<'a> {
    /// Writes as much as of a name.
    pub(super) const fn name(text: &'a str) -> Self {
        Self { text, most: SHOWN }
    }

    /// Writes as much as of what is said.
    pub(super) const fn said(text: &'a str) -> Self {
        Self { text, most: LONG }
    }
}

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = cut(self.text, self.most);
        let mut before = ' ';
        for found in start.unwrap_or(self.text).chars() {
            match found {
                '*' | '_' | '[' | ']' | '~' | '#' | '!' | '$' => write!(f, "\\{found}")?,
                // A backslash would do for these, but not in every table.
                '&' | '<' | '>' | '|' | '\\' | '`' => write!(f, "&#{};", u32::from(found))?,
                // What begins like an address is no link.
                ':' | '@' => write!(f, "&#{};", u32::from(found))?,
                '.' if before == 'w' || before == 'W' => f.write_str("&#46;")?,
                found if is_hidden(found) => write!(f, "U+{:04X}", u32::from(found))?,
                found => f.write_char(found)?,
            }
            before = found;
        }
        if start.is_some() { f.write_str("…") } else { Ok(()) }
    }
}

/// Writes JSON so that it ends where its element does, and hides nothing in it.
pub(super) fn for_script(json: &Value) -> String {
    let mut text = String::new();
    for found in json.to_string().chars() {
        match found {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(found));
            }
            found if is_hidden(found) => {
                for unit in found.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            found => text.push(found),
        }
    }
    text
}

/// Writes a number of bytes for people.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    let mut units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let mut unit = "B";
    while amount >= 1000.0 {
        let Some(next) = units.next() else { break };
        (amount, unit) = (amount / 1024.0, next);
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ if amount < 10.0 => format!("{amount:.2} {unit}"),
        _ if amount < 100.0 => format!("{amount:.1} {unit}"),
        _ => format!("{amount:.0} {unit}"),
    }
}

/// Writes a number of things with their name.
pub(super) fn count(number: usize, one: &str) -> String {
    format!("{} {one}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

/// Writes an integer with all its digits, and another number with four or more.
pub(super) fn number(value: Number) -> String {
    match value {
        Number::Integer(integer) => integer.to_string(),
        Number::Float(value) => float(value),
    }
}

pub(super) fn float(value: f64) -> String {
    let text = match value.abs() {
        0.0 => "0".to_owned(),
        0.001..0.01 => format!("{value:.6}"),
        0.01..0.1 => format!("{value:.5}"),
        0.1..1e6 => format!("{value:.4}"),
        _ => return format!("{value:.3e}"),
    };
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes the shape of an input or output.
pub(super) fn shape(port: &Port) -> String {
    match &port.shape {
        Value::String(symbol) => symbol.clone(),
        shape => shape.to_string().replace('"', "").replace(',', ", "),
    }
}

/// Writes a value of metadata: a text as it is, anything else as JSON.
pub(super) fn value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Writes what the elements of a tensor are.
pub(super) fn dtype(tensor: &TensorSummary) -> String {
    let known = tensor.dtype.map(|dtype| dtype.to_string());
    known.or_else(|| tensor.logical_type.clone()).unwrap_or_else(|| "?".to_owned())
}

/// Writes how whole numbers stand for real ones.
pub(super) fn quantization(found: &QuantizationSummary) -> String {
    let QuantizationSummary { scale, zero_point, axis, scheme, .. } = found;
    let mut parts: Vec<String> = scheme.iter().cloned().collect();
    match (scale.as_slice(), zero_point.as_slice()) {
        ([], _) => {}
        ([scale], []) => parts.push(format!("scale {scale}")),
        ([scale], [zero, ..]) => parts.push(format!("scale {scale}, zero point {zero}")),
        (scales, _) => parts.push(format!("{} scales", scales.len())),
    }
    parts.extend(axis.map(|axis| format!("axis {axis}")));
    parts.join(", ")
}

/// Characters of a text that are shown.
const SHOWN: usize = 120;

/// Characters that are shown where a pointer rests.
const TITLE: usize = 300;

/// Characters of what is said.
pub(super) const LONG: usize = 4000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        let text = Text("</script><img src=x onerror=\"a('&')\">").to_string();
        let escaped = "&lt;/script&gt;&lt;img src=x onerror=&quot;a(&#39;&amp;&#39;)&quot;&gt;";
        assert_eq!(text, escaped);
        assert_eq!(Text("a\u{202e}b\n\u{0}").to_string(), "aU+202EbU+000AU+0000");
        assert_eq!(Lines("a\n\tb\r<").to_string(), "a\n\tbU+000D&lt;");
        assert_eq!(
            Plain::name("[a](javascript:x)|`b`\n<i>").to_string(),
            "\\[a\\](javascript&#58;x)&#124;&#96;b&#96;U+000A&#60;i&#62;"
        );
    }

    #[test]
    fn json_stays_in_its_element() {
        let json = serde_json::json!({ "</script>\u{202e}": "<!--&\n\u{e0041}" });
        let text = for_script(&json);
        assert_eq!(text, r#"{"\u003c/script\u003e\u202e":"\u003c!--\u0026\n\udb40\udc41"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json);
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "é<".repeat(2000);
        let shown = Cut(&long).to_string();
        assert!(shown.starts_with("<span title=\"é&lt;é&lt;") && shown.ends_with("é&lt;…</span>"));
        assert_eq!(shown.matches('é').count(), 60 + 150);
        assert_eq!(Cut("short").to_string(), "short");
        assert_eq!(Plain::name(&long).to_string().matches('é').count(), 60);
        assert_eq!(Plain::said(&long).to_string().matches('é').count(), 2000);
    }

    #[test]
    fn numbers_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1536, "1.50 KiB"),
            (200 << 20, "200 MiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-0.25, "-0.25"),
            (1e-9, "1.000e-9"),
            (0.001_49, "0.00149"),
            (-0.012_345_678, "-0.01235"),
            (100.0, "100"),
        ] {
            assert_eq!(float(value), text);
        }
    }
}
