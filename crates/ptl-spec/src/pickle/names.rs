//! Names that a pickle of any protocol would look up in Python, found without calling anything.

use std::io::{self, BufRead, Read as _};

use super::Global;

/// Returns the first name in a pickle that models do not need: `module.name`, or in words what is
/// known of one that is only put together while it is read. `None` where there is none before the
/// end, or before what is no opcode.
///
/// # Errors
///
/// Where the source fails.
pub(crate) fn foreign(mut source: impl BufRead) -> io::Result<Option<String>> {
    // The texts that stand last on the stack, where they are certain.
    let mut texts = [None, None];
    while let Some([opcode]) = array(&mut source)? {
        let argument = match opcode {
            b'c' | b'i' => {
                let (module, name) = (line(&mut source)?, line(&mut source)?);
                match module.zip(name) {
                    Some((module, name)) => Argument::Name(module, name),
                    None => return Ok(None),
                }
            }
            // STACK_GLOBAL
            0x93 => match std::mem::take(&mut texts) {
                [Some(module), Some(name)] => Argument::Name(module, name),
                _ => return Ok(Some("a name that is put together".to_owned())),
            },
            // EXT1, EXT2, EXT4
            0x82..=0x84 => return Ok(Some("a name by its number".to_owned())),
            b'F' | b'I' | b'L' | b'P' | b'g' | b'p' => Argument::Line,
            b'S' | b'V' => Argument::Quoted,
            b'K' | b'q' | b'h' | 0x80 => Argument::Bytes(1),
            b'M' => Argument::Bytes(2),
            b'J' | b'r' | b'j' => Argument::Bytes(4),
            b'G' | 0x95 => Argument::Bytes(8),
            0x8c => Argument::Text(1),
            b'X' => Argument::Text(4),
            0x8d => Argument::Text(8),
            b'U' | b'C' | 0x8a => Argument::Counted(1),
            b'T' | b'B' | 0x8b => Argument::Counted(4),
            0x8e | 0x96 => Argument::Counted(8),
            b'(' | b')' | b']' | b'}' | b'N' | b'0'..=b'2' | b'R' | b'b' | b'l' | b'd' => {
                Argument::Bytes(0)
            }
            b't' | b'a' | b'e' | b's' | b'u' | b'o' | b'Q' => Argument::Bytes(0),
            0x81 | 0x85..=0x89 | 0x8f..=0x92 | 0x94 | 0x97 | 0x98 => Argument::Bytes(0),
            // STOP, or none.
            _ => return Ok(None),
        };
        let is_kept = matches!(opcode, b'q' | b'r' | b'p' | 0x94 | 0x95);
        let text = match argument {
            Argument::Name(module, name) if Global::of(&module, &name).is_none() => {
                return Ok(Some(format!("{module}.{name}")));
            }
            Argument::Name(..) => None,
            Argument::Line => line(&mut source)?.and(None),
            Argument::Quoted => {
                line(&mut source)?.map(|text| text.trim_matches(['\'', '"']).to_owned())
            }
            Argument::Bytes(len) => skip(&mut source, len)?,
            Argument::Counted(width) => match number(&mut source, width)? {
                Some(len) => skip(&mut source, len)?,
                None => return Ok(None),
            },
            Argument::Text(width) => match number(&mut source, width)? {
                Some(len) if len <= LONGEST => short_text(&mut source, len)?,
                Some(len) => skip(&mut source, len)?,
                None => return Ok(None),
            },
        };
        if !is_kept {
            texts = [texts[1].take(), text];
        }
    }
    Ok(None)
}

/// What stands behind an opcode.
enum Argument {
    Name(String, String),
    Line,
    /// A line with a text in it.
    Quoted,
    /// So many bytes.
    Bytes(u64),
    /// A length of so many bytes, and bytes.
    Counted(u64),
    /// A length of so many bytes, and a text.
    Text(u64),
}

/// Reads an unsigned number of 1, 4 or 8 bytes; `None` at the end.
fn number(source: &mut impl BufRead, width: u64) -> io::Result<Option<u64>> {
    Ok(match width {
        1 => array(source)?.map(|[byte]| u64::from(byte)),
        4 => array(source)?.map(|bytes| u32::from_le_bytes(bytes).into()),
        _ => array(source)?.map(u64::from_le_bytes),
    })
}

fn array<const N: usize>(source: &mut impl BufRead) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match source.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a line without its end; `None` where it is longer than a name can be, or no text.
fn line(source: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    source.take(LONGEST).read_until(b'\n', &mut bytes)?;
    Ok(bytes.pop_if(|last| *last == b'\n').and_then(|_| String::from_utf8(bytes).ok()))
}

fn short_text(source: &mut impl BufRead, len: u64) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    source.take(len).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).ok())
}

fn skip(source: &mut impl BufRead, len: u64) -> io::Result<Option<String>> {
    io::copy(&mut source.take(len), &mut io::sink())?;
    Ok(None)
}

/// Bytes of a name at most.
const LONGEST: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> Option<String> {
        foreign(bytes).unwrap()
    }

    #[test]
    fn names_of_all_protocols() {
        let system = Some("posix.system".to_owned());
        assert_eq!(found(b"cposix\nsystem\n(S'id'\ntR."), system);
        assert_eq!(found(b"(S'id'\niposix\nsystem\n."), system);
        assert_eq!(found(b"\x80\x02K\x05q\x00cposix\nsystem\nX\x02\0\0\0id\x85R."), system);
        let protocol_4 =
            b"\x80\x04\x95\x1d\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.";
        assert_eq!(found(protocol_4), system);
        let later = [&b"\x80\x04N.\x80\x04"[..], b"cposix\nsystem\n."].concat();
        assert_eq!(found(&later), None);
        let behind =
            b"\x80\x04\x8e\x03\0\0\0\0\0\0\0abc\x8a\x01\x00G\0\0\0\0\0\0\0\0cposix\nsystem\n.";
        assert_eq!(found(behind), system);
    }

    #[test]
    fn names_that_are_not_there_as_such() {
        let words = |words: &str| Some(words.to_owned());
        assert_eq!(found(b"\x80\x04h\x00h\x01\x93."), words("a name that is put together"));
        assert_eq!(found(b"\x80\x02\x82\x01."), words("a name by its number"));
    }

    #[test]
    fn harmless_and_broken_ones() {
        for bytes in [
            &b""[..],
            b"\x80\x02]q\x00(K\x01X\x05\0\0\0posixe.",
            b"\x80\x02ccollections\nOrderedDict\n)R.",
            b"\x80\x02c__torch__\nNet\n)\x81.",
            b"\x80\x02X\xff\xff\xff\xffposix",
            b"\x80\x02\x8e\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xff\x00cposix\nsystem\n.",
            b"cposix",
        ] {
            assert_eq!(found(bytes), None, "{bytes:?}");
        }
    }
}
