use std::fmt;

use tensor_core::{Extent, Result, Source};

/// A format that this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// zTensor (`.zt`), generations 0.1 to 1.2. Generation 2 is recognised and refused.
    ZTensor,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ZTensor => "ztensor",
        })
    }
}

/// Tells which format some bytes are, by their content alone; `None` for any other.
///
/// # Errors
///
/// Where the first bytes cannot be read.
pub fn detect(source: &Source) -> Result<Option<Format>> {
    let head = head(source)?;
    let is_ztensor = [&b"ZTEN1000"[..], b"ZTEN0001", b"\x89ZT2\r\n\x1a\n"].contains(&&head[..]);
    Ok(is_ztensor.then_some(Format::ZTensor))
}

/// Says in words what bytes of no known format look like.
pub(crate) fn looks_like(source: &Source) -> Result<String> {
    let head = head(source)?;
    let known: [(&[u8], &str); 8] = [
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x80\x02", "a pickle"),
        (b"GGUF", "a GGUF file"),
        (b"\x89HDF", "an HDF5 file"),
        (b"RTEN", "an RTen model"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"\x28\xb5\x2f\xfd", "zstd frames"),
        (b"\x1f\x8b", "gzip data"),
    ];
    let named = known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name);
    let is_safetensors = head.len() == 8 && {
        let brace = Extent::new(8, 1)?.within(source.len(), "header");
        brace.is_ok_and(|extent| source.read(extent, "header").is_ok_and(|byte| byte[..] == *b"{"))
    };
    Ok(match named {
        _ if head.is_empty() => "an empty file".to_owned(),
        Some(name) => name.to_owned(),
        None if is_safetensors => "a safetensors file".to_owned(),
        None => format!("bytes that start with \"{}\"", head.escape_ascii()),
    })
}

fn head(source: &Source) -> Result<Vec<u8>> {
    Ok(source.read(Extent::first(source.len().min(8)), "magic")?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        let source = |bytes: &'static [u8]| Source::from_bytes(bytes);
        assert_eq!(detect(&source(b"ZTEN1000 and so on")).unwrap(), Some(Format::ZTensor));
        assert_eq!(detect(&source(b"ZTEN0001")).unwrap(), Some(Format::ZTensor));
        assert_eq!(detect(&source(b"ZTEN")).unwrap(), None);
        assert_eq!(detect(&source(b"")).unwrap(), None);
    }

    #[test]
    fn other_files_are_named() {
        for (bytes, name) in [
            (&b"PK\x03\x04 and so on"[..], "a ZIP archive"),
            (b"\x08\0\0\0\0\0\0\0{\"a\":1}", "a safetensors file"),
            (b"", "an empty file"),
            (b"\x1b]0;x\x07", "bytes that start with \"\\x1b]0;x\\x07\""),
        ] {
            assert_eq!(looks_like(&Source::from_bytes(bytes)).unwrap(), name);
        }
    }
}
