//! References to inputs and outputs of the models of a package.

use std::{fmt, str::FromStr};

/// An input or output of one graph of one model: `model:subgraph:position`, all from 0.
///
/// In `pkg-inputs` and `to` it names an input, in `pkg-outputs` and `from` an output. The position
/// is that in the inputs or outputs of the graph, not that of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IoRef {
    /// The position of the model in the manifest.
    pub model: u16,
    /// The position of the graph in the model.
    pub subgraph: u16,
    /// The position of the input or output in the graph.
    pub io: u32,
}

impl IoRef {
    /// Joins three numbers.
    #[must_use]
    pub const fn new(model: u16, subgraph: u16, io: u32) -> Self {
        Self { model, subgraph, io }
    }
}

impl fmt::Display for IoRef {
    /// Writes it as a manifest has it, such as `0:0:1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}:{}", self.model, self.subgraph, self.io))
    }
}

impl FromStr for IoRef {
    type Err = IoRefFault;

    /// Reads it as onert does: numbers may have blanks before and anything behind.
    fn from_str(text: &str) -> Result<Self, IoRefFault> {
        let parts: Vec<&str> = text.split(':').collect();
        let [model, subgraph, io] = parts[..] else {
            return Err(IoRefFault::Parts { found: parts.len() });
        };
        let [model, subgraph, io] = [leading(model)?, leading(subgraph)?, leading(io)?];
        let short = |number: i32, what| {
            u16::try_from(number).map_err(|_| IoRefFault::Range { what, found: number })
        };
        Ok(Self {
            model: short(model, "model")?,
            subgraph: short(subgraph, "subgraph")?,
            io: u32::try_from(io).map_err(|_| IoRefFault::Range { what: "position", found: io })?,
        })
    }
}

/// Tells whether a text is exactly what [`IoRef`] writes.
pub(crate) fn is_exact(text: &str) -> bool {
    text.parse().is_ok_and(|reference: IoRef| reference.to_string() == text)
}

/// Reads the number that a text starts with, as `stoi` does.
fn leading(text: &str) -> Result<i32, IoRefFault> {
    let start = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits = start.strip_prefix(['+', '-']).unwrap_or(start);
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    let number = start.get(..start.len().saturating_sub(digits.len()).saturating_add(len));
    let number = number.filter(|_| len > 0).ok_or(IoRefFault::Number)?;
    number.parse().map_err(|_| IoRefFault::Number)
}

/// Reads a whole number as onert does, by `stoi`.
pub(crate) fn stoi(text: &str) -> Option<i32> {
    leading(text).ok()
}

/// Why a text is not a reference. It reads on from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IoRefFault {
    /// It does not have three parts.
    #[error("has {found} parts, expected \"model:subgraph:position\"")]
    Parts {
        /// How many it has.
        found: usize,
    },
    /// A part is not a number of 32 bits.
    #[error("has a part that is not a number, expected \"model:subgraph:position\"")]
    Number,
    /// A number is negative, or larger than onert can hold.
    #[error("has the {what} {found}, expected a number that a package can have")]
    Range {
        /// The part.
        what: &'static str,
        /// The number.
        found: i32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_stoi_does() {
        for (text, number) in [
            ("3", Some(3)),
            (" \t+3x", Some(3)),
            ("-1", Some(-1)),
            ("3.9", Some(3)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("", None),
            ("-", None),
            ("a", None),
            ("é", None),
            ("+é", None),
        ] {
            assert_eq!(stoi(text), number, "{text:?}");
        }
    }

    #[test]
    fn references() {
        assert_eq!("1:0:2".parse(), Ok(IoRef::new(1, 0, 2)));
        assert_eq!(" 1:0x: 2 ".parse(), Ok(IoRef::new(1, 0, 2)));
        assert_eq!("1:0".parse::<IoRef>(), Err(IoRefFault::Parts { found: 2 }));
        assert_eq!("1:0:0:0".parse::<IoRef>(), Err(IoRefFault::Parts { found: 4 }));
        assert_eq!("a:0:0".parse::<IoRef>(), Err(IoRefFault::Number));
        let range = |what, found| Err(IoRefFault::Range { what, found });
        assert_eq!("-1:0:0".parse::<IoRef>(), range("model", -1));
        assert_eq!("0:65536:0".parse::<IoRef>(), range("subgraph", 65536));
        assert_eq!("0:0:-7".parse::<IoRef>(), range("position", -7));
        assert!(is_exact("0:0:0") && !is_exact("0:0:0 ") && !is_exact("00:0:0"));
    }
}
