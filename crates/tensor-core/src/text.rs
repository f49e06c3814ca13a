//! Texts from files in messages: in quotes, and cut where they are long.

use std::{borrow::Cow, fmt};

/// Returns a text as far as it is worth showing: its first 120 characters.
///
/// A file may have names of many megabytes, and as many messages about them.
#[must_use]
pub fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// A text in quotes, escaped, and cut as by [`short`].
#[derive(Clone, Copy)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", short(self.0))
    }
}

impl fmt::Debug for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text without quotes, with escapes for what cannot be seen.
#[derive(Clone, Copy)]
pub struct Plain<'a>(pub &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|found| match is_hidden(found) {
            true => write!(f, "{}", found.escape_unicode()),
            false => write!(f, "{found}"),
        })
    }
}

/// Bytes that should be ASCII, in quotes, with escapes for what is not.
#[derive(Clone, Copy)]
pub struct Ascii<'a>(pub &'a [u8]);

impl fmt::Display for Ascii<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Debug for Ascii<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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

/// Writes a number in groups of three digits.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const SHOWN: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(short("ä"), "ä");
        let long = "ä".repeat(121);
        assert_eq!(short(&long), format!("{}…", "ä".repeat(120)));
        assert_eq!(short(&long[..240]), "ä".repeat(120));
    }

    #[test]
    fn digits_are_in_groups() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(Quoted("a\n\"b\u{1b}").to_string(), r#""a\n\"b\u{1b}""#);
        assert_eq!(Ascii(b"PK\x03\xff").to_string(), r#""PK\x03\xff""#);
    }
}
