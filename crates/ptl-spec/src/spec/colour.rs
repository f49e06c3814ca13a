use std::{fmt, str::FromStr};

/// A colour of a `greyscale_norm` transform: eight bits a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Colour {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}

impl Colour {
    pub(crate) const fn from_rgb(rgb: u32) -> Self {
        let [_, red, green, blue] = rgb.to_be_bytes();
        Self { red, green, blue }
    }
}

/// A text that is not a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a colour, expected \"#RRGGBB\", \"#AARRGGBB\" or a name that Android knows")]
pub struct ParseColourError;

impl FromStr for Colour {
    type Err = ParseColourError;

    /// Reads `#RRGGBB`, `#AARRGGBB`, whose alpha does not count, or one of Android's colour words.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rgb = match text.strip_prefix('#') {
            Some(digits) => {
                let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let plain = plain && matches!(digits.len(), 6 | 8);
                plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
            }
            None => {
                let named = NAMES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
                named.map(|(_, rgb)| *rgb)
            }
        };
        rgb.map(Self::from_rgb).ok_or(ParseColourError)
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.red, self.green, self.blue)
    }
}

/// The words of Android's `Color.parseColor`.
const NAMES: [(&str, u32); 23] = [
    ("black", 0x00_00_00),
    ("darkgray", 0x44_44_44),
    ("gray", 0x88_88_88),
    ("lightgray", 0xcc_cc_cc),
    ("white", 0xff_ff_ff),
    ("red", 0xff_00_00),
    ("green", 0x00_ff_00),
    ("blue", 0x00_00_ff),
    ("yellow", 0xff_ff_00),
    ("cyan", 0x00_ff_ff),
    ("magenta", 0xff_00_ff),
    ("aqua", 0x00_ff_ff),
    ("fuchsia", 0xff_00_ff),
    ("darkgrey", 0x44_44_44),
    ("grey", 0x88_88_88),
    ("lightgrey", 0xcc_cc_cc),
    ("lime", 0x00_ff_00),
    ("maroon", 0x80_00_00),
    ("navy", 0x00_00_80),
    ("olive", 0x80_80_00),
    ("purple", 0x80_00_80),
    ("silver", 0xc0_c0_c0),
    ("teal", 0x00_80_80),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_words() {
        for (text, shown) in [
            ("#0000FF", "#0000FF"),
            ("#800000ff", "#0000FF"),
            ("Silver", "#C0C0C0"),
            ("darkGrey", "#444444"),
            ("teal", "#008080"),
        ] {
            assert_eq!(text.parse::<Colour>().map(|colour| colour.to_string()), Ok(shown.into()));
        }
        for text in ["#00F", "0000FF", "#+00000", "#0000FG", "mauve", "", "#"] {
            assert_eq!(text.parse::<Colour>(), Err(ParseColourError), "{text}");
        }
    }
}
