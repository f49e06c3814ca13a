//! Strings from files, made safe to print.

use std::{borrow::Cow, fmt::Write as _};

use modelcrate::tensor_core::text::is_hidden;

/// Escapes what would move the cursor, change colours, end the line, or turn the direction of
/// writing: control characters and what cannot be seen.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Escapes a text and cuts it where it is longer than so many characters.
pub(crate) fn escape_up_to(len: usize, text: &str) -> Cow<'_, str> {
    // What is cut off is not escaped first: it may be as long as the file.
    let cut = text.char_indices().nth(len).and_then(|(at, _)| text.get(..at));
    match cut {
        Some(start) => Cow::Owned(format!("{}…", escape(start))),
        None => escape(text),
    }
}

/// Like [`escape`], but for JSON of several lines, which stays JSON of the same meaning.
pub(crate) fn escape_json(text: &str) -> Cow<'_, str> {
    let shown = |c| !is_hidden(c) || c == '\n';
    if text.chars().all(shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if shown(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_show() {
        assert_eq!(escape("\x1b]0;x\x07"), "\\u{1b}]0;x\\u{7}");
        assert_eq!(escape("a\n[ok] verified"), "a\\n[ok] verified");
        assert_eq!(escape("\u{9b}31m\u{202e}x\u{2066}"), "\\u{9b}31m\\u{202e}x\\u{2066}");
    }

    #[test]
    fn json_stays_json() {
        let text = "{\n \"a\u{202e}\u{9b}\u{e0041}b\": 1\n}";
        assert_eq!(escape_json(text), "{\n \"a\\u202e\\u009b\\udb40\\udc41b\": 1\n}");
        let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parsed(&escape_json(text)), parsed(text));
        assert!(matches!(escape_json("{\n}"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(escape_up_to(3, "héllo"), "hél…");
        assert_eq!(escape_up_to(1, "\n\n"), "\\n…");
        assert!(matches!(escape_up_to(5, "héllo"), Cow::Borrowed("héllo")));
    }

    #[test]
    fn ordinary_text_stays() {
        for text in ["layer.0/weight", "héllo", "重み", ""] {
            assert!(matches!(escape(text), Cow::Borrowed(same) if same == text));
        }
    }
}
