//! The encoding of manifests: the deterministic CBOR of RFC 8949, section 4.2.1, proved before
//! anything else is read from it.

use super::{Broken, Rule};

/// Proves that some bytes are one item, encoded in the only way that is allowed.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Broken> {
    let mut checker = Checker { bytes, at: 0 };
    checker.value(0)?;
    match bytes.len().saturating_sub(checker.at) {
        0 => Ok(()),
        more => {
            Err(syntax(checker.at, format!("is followed by {more} more bytes, expected its end")))
        }
    }
}

struct Checker<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Checker<'_> {
    /// Checks the next item; `depth` containers lie around it.
    fn value(&mut self, depth: u32) -> Result<(), Broken> {
        let at = self.at;
        if depth > MAX_DEPTH {
            let problem = format!("is nested {depth} levels deep, expected at most {MAX_DEPTH}");
            return Err(Broken::new(Rule::CborDepth, at, problem));
        }
        let Some(&initial) = self.bytes.get(at) else {
            return Err(syntax(at, "ends within an item"));
        };
        self.at = at.saturating_add(1);
        let (major, info) = (initial >> 5, initial & 0x1f);
        match major {
            6 => return Err(syntax(at, "has a tag, expected none")),
            7 => return self.simple(at, info),
            _ => {}
        }
        let argument = if info < 24 { u64::from(info) } else { self.argument(at, info)? };
        let inner = depth.saturating_add(1);
        match major {
            0 | 1 => Ok(()),
            2 => self.take(argument).map(drop),
            3 => {
                let text = self.take(argument)?;
                if text.is_ascii() || std::str::from_utf8(text).is_ok() {
                    return Ok(());
                }
                Err(syntax(at, "is text of other bytes, expected UTF-8"))
            }
            4 => {
                self.room(at, argument, 1)?;
                (0..argument).try_for_each(|_| self.value(inner))
            }
            _ => {
                self.room(at, argument, 2)?;
                let mut last: Option<&[u8]> = None;
                for _ in 0..argument {
                    let start = self.at;
                    self.value(inner)?;
                    let key = self.bytes.get(start..self.at).unwrap_or_default();
                    if let Some(last) = last
                        && last >= key
                    {
                        return Err(if last == key {
                            Broken::new(
                                Rule::CborDuplicateKey,
                                start,
                                "is the same key as the one before it, expected each once",
                            )
                        } else {
                            let problem = "is a key behind one that sorts after it, expected the order of their encoded bytes";
                            Broken::new(Rule::CborDeterminism, start, problem)
                        });
                    }
                    last = Some(key);
                    self.value(inner)?;
                }
                Ok(())
            }
        }
    }

    /// Checks that as many items can follow as a head announces.
    fn room(&self, at: usize, items: u64, least: u64) -> Result<(), Broken> {
        let room = self.bytes.len().saturating_sub(self.at) as u64;
        if items.saturating_mul(least) <= room {
            return Ok(());
        }
        Err(syntax(at, format!("announces {items} items, but {room} bytes remain")))
    }

    /// Reads the argument that follows an initial byte: 1, 2, 4 or 8 bytes, big-endian.
    fn argument(&mut self, at: usize, info: u8) -> Result<u64, Broken> {
        let (width, least) = match info {
            24 => (1, 24),
            25 => (2, 1 << 8),
            26 => (4, 1 << 16),
            27 => (8, 1 << 32),
            31 => return Err(syntax(at, "leaves a length open, expected a definite one")),
            _ => {
                return Err(syntax(
                    at,
                    format!(
                        "starts with byte {:02x}, expected one that starts an item",
                        self.bytes.get(at).copied().unwrap_or_default()
                    ),
                ));
            }
        };
        let value = self.bits(width)?;
        if value < least {
            let problem = format!("takes {width} bytes for {value}, expected the shortest form");
            return Err(Broken::new(Rule::CborDeterminism, at, problem));
        }
        Ok(value)
    }

    fn simple(&mut self, at: usize, info: u8) -> Result<(), Broken> {
        let (bytes, is_nan, is_shortest) = match info {
            20..=22 => return Ok(()),
            25 => {
                let bits = self.bits(2)?;
                (2, bits != NAN && is_nan(bits, 10, 5), true)
            }
            26 => {
                let bits = self.bits(4)?;
                let value = f32::from_bits(u32::try_from(bits).unwrap_or_default());
                (4, value.is_nan(), !fits_half(value))
            }
            27 => {
                let value = f64::from_bits(self.bits(8)?);
                #[expect(clippy::cast_possible_truncation, reason = "what is lost is looked at")]
                let single = value as f32;
                (8, value.is_nan(), f64::from(single).to_bits() != value.to_bits())
            }
            _ => {
                return Err(syntax(
                    at,
                    "is a simple value of another kind, expected false, true or null",
                ));
            }
        };
        let problem = match (is_nan, is_shortest) {
            (true, _) => format!("is a NaN of other bits in {bytes} bytes, expected f97e00"),
            (false, false) => {
                format!("is a float of {bytes} bytes that fewer hold, expected the shortest form")
            }
            (false, true) => return Ok(()),
        };
        Err(Broken::new(Rule::CborDeterminism, at, problem))
    }

    fn bits(&mut self, width: u64) -> Result<u64, Broken> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn take(&mut self, len: u64) -> Result<&[u8], Broken> {
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            let room = self.bytes.len().saturating_sub(self.at);
            return Err(syntax(self.at, format!("needs {len} bytes, but {room} remain")));
        };
        self.at = self.at.saturating_add(taken.len());
        Ok(taken)
    }
}

fn syntax(at: usize, problem: impl Into<String>) -> Broken {
    Broken::new(Rule::CborSyntax, at, problem)
}

/// Tells whether the bits of a float, its significand first, are those of a NaN.
const fn is_nan(bits: u64, significand: u32, exponent: u32) -> bool {
    let ones = (1_u64 << exponent).wrapping_sub(1);
    bits >> significand & ones == ones && bits & (1_u64 << significand).wrapping_sub(1) != 0
}

/// Tells whether a binary16 holds a value.
fn fits_half(value: f32) -> bool {
    let bits = value.to_bits();
    let (exponent, significand) =
        (i32::try_from(bits >> 23 & 0xff).unwrap_or_default(), bits & 0x007f_ffff);
    match exponent {
        0xff => true,
        0 => significand == 0,
        _ => {
            // Bits of the significand that a binary16 drops: 13, and one more for each step below
            // its least exponent.
            let exponent = exponent.saturating_sub(127);
            let dropped = match exponent {
                -14..=15 => 13,
                -24..-14 => u32::try_from((-1_i32).saturating_sub(exponent)).unwrap_or(u32::MAX),
                _ => return false,
            };
            let whole = significand | 0x0080_0000;
            whole.trailing_zeros() >= dropped
        }
    }
}

/// The deepest level that an item may lie on; the root is on level 0.
const MAX_DEPTH: u32 = 32;
/// The bits of the only NaN.
const NAN: u64 = 0x7e00;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn rule(bytes: &[u8]) -> Option<Rule> {
        check(bytes).err().map(|broken| broken.rule)
    }

    #[test]
    fn one_encoding_of_each_item() {
        for (bytes, expected) in [
            (&b"\xa2\x61b\x01\x62aa\x02"[..], None),
            (b"\xa2\x62aa\x01\x61b\x02", Some(Rule::CborDeterminism)),
            (b"\xa2\x61a\x01\x61a\x02", Some(Rule::CborDuplicateKey)),
            (b"\x18\x18", None),
            (b"\x18\x17", Some(Rule::CborDeterminism)),
            (b"\x19\x00\xff", Some(Rule::CborDeterminism)),
            (b"\x1a\x00\x00\xff\xff", Some(Rule::CborDeterminism)),
            (b"\x1b\x00\x00\x00\x00\xff\xff\xff\xff", Some(Rule::CborDeterminism)),
            (b"\x9f\xff", Some(Rule::CborSyntax)),
            (b"\xc1\x01", Some(Rule::CborSyntax)),
            (b"\xf7", Some(Rule::CborSyntax)),
            (b"\xf8\xff", Some(Rule::CborSyntax)),
            (b"\xff", Some(Rule::CborSyntax)),
            (b"\x61\xff", Some(Rule::CborSyntax)),
            (b"\x01\x01", Some(Rule::CborSyntax)),
            (b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", Some(Rule::CborSyntax)),
            (b"\x1c", Some(Rule::CborSyntax)),
            (b"", Some(Rule::CborSyntax)),
        ] {
            assert_eq!(rule(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn floats_are_as_short_as_they_can_be() {
        for (bytes, expected) in [
            (&b"\xf9\x3c\x00"[..], None),
            (b"\xf9\x7e\x00", None),
            (b"\xf9\x7e\x01", Some(Rule::CborDeterminism)),
            (b"\xf9\xfe\x00", Some(Rule::CborDeterminism)),
            (b"\xfa\x47\xc3\x50\x00", None),
            (b"\xfa\x3f\x80\x00\x00", Some(Rule::CborDeterminism)),
            (b"\xfa\x7f\x80\x00\x00", Some(Rule::CborDeterminism)),
            (b"\xfa\x7f\xc0\x00\x00", Some(Rule::CborDeterminism)),
            (b"\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", None),
            (b"\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00", Some(Rule::CborDeterminism)),
            // -0.0
            (b"\xf9\x80\x00", None),
            (b"\xfa\x80\x00\x00\x00", Some(Rule::CborDeterminism)),
        ] {
            assert_eq!(rule(bytes), expected, "{}", bytes.escape_ascii());
        }
        // Every binary16 is refused as a binary32, and the next value beside it is not.
        for half in 0..=u16::MAX {
            let value = tensor_core::float16::f16_to_f32(half);
            if value.is_nan() {
                continue;
            }
            assert!(fits_half(value), "{half:04x}");
            if value.is_finite() {
                assert!(!fits_half(f32::from_bits(value.to_bits() ^ 1)), "{half:04x}");
            }
        }
    }

    #[test]
    fn thirty_two_levels() {
        let nested = |levels: usize| [vec![0x81; levels], vec![0x01]].concat();
        assert_eq!(rule(&nested(32)), None);
        assert_eq!(rule(&nested(33)), Some(Rule::CborDepth));
        assert_eq!(rule(&nested(100_000)), Some(Rule::CborDepth));
    }
}
