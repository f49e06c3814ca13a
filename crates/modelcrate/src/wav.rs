//! Sound in WAV files: chunks with an id and a length, in a RIFF file.
//!
//! The crate `hound` reads them too, but says nowhere at which byte a file is broken.

use tensor_core::{At, ErrorKind};

/// What is wrong with a file that should hold sound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct Error {
    /// What is wrong, with its place.
    pub reason: String,
    /// The byte that it is at.
    pub at: u64,
}

impl Error {
    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        "wav/malformed"
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }

    /// Returns where in the file the error is.
    #[must_use]
    pub fn at(&self) -> At {
        At::file().offset(self.at)
    }
}

/// Returns the samples of a file with one channel of 16-bit PCM.
///
/// # Errors
///
/// Where it is not such a file.
pub fn samples(file: &[u8]) -> Result<Vec<i16>, Error> {
    if !file.starts_with(b"RIFF") || file.get(8..12) != Some(b"WAVE") {
        return malformed(
            0,
            "is not sound in WAV: expected \"RIFF\" at byte 0 and \"WAVE\" at byte 8",
        );
    }
    let (mut at, mut has_format) = (12_usize, false);
    while let Some((id, body)) = chunk(file, at)? {
        match id {
            b"fmt " => {
                check_format(body, at)?;
                has_format = true;
            }
            b"data" if has_format => return data(body, at),
            b"data" => return malformed(at, format!("data at byte {at} stands before its format")),
            _ => {}
        }
        // A chunk of odd length has a byte behind it.
        at = at.saturating_add(8).saturating_add(body.len().next_multiple_of(2));
    }
    malformed(file.len(), "has no data")
}

/// The name and the content of a chunk.
type Chunk<'a> = (&'a [u8; 4], &'a [u8]);

/// Returns id and content of the chunk at a byte; `None` at the end.
fn chunk(file: &[u8], at: usize) -> Result<Option<Chunk<'_>>, Error> {
    let rest = file.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(None);
    }
    let whole = rest.split_first_chunk::<4>().and_then(|(id, rest)| {
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
        Some((id, rest.get(..len)?))
    });
    match whole {
        Some(chunk) => Ok(Some(chunk)),
        None => malformed(at, format!("chunk at byte {at} does not fit the file")),
    }
}

fn data(body: &[u8], at: usize) -> Result<Vec<i16>, Error> {
    let (pairs, rest) = body.as_chunks::<2>();
    if !rest.is_empty() {
        return malformed(at, format!("data at byte {at} ends in half a sample"));
    }
    Ok(pairs.iter().copied().map(i16::from_le_bytes).collect())
}

fn check_format(body: &[u8], at: usize) -> Result<(), Error> {
    let field = |at: usize| {
        let bytes = body.get(at..).and_then(|rest| rest.first_chunk::<2>());
        bytes.map(|bytes| u16::from_le_bytes(*bytes))
    };
    let (Some(encoding), Some(channels), Some(bits)) = (field(0), field(2), field(14)) else {
        let len = body.len();
        return malformed(
            at,
            format!("format at byte {at} is {len} bytes long, expected 16 or more"),
        );
    };
    if (encoding, channels, bits) == (PCM, 1, 16) {
        return Ok(());
    }
    malformed(
        at,
        format!(
            "format at byte {at} is encoding {encoding}, channels: {channels}, bits: {bits}, \
         expected PCM (1), one channel, 16 bits"
        ),
    )
}

fn malformed<T>(at: usize, reason: impl Into<String>) -> Result<T, Error> {
    Err(Error { reason: reason.into(), at: at as u64 })
}

const PCM: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn format(encoding: u16, channels: u16, bits: u16) -> Vec<u8> {
        let fields = [encoding, channels, 16_000, 0, 32_000, 0, 2, bits];
        chunk_of(b"fmt ", &fields.map(u16::to_le_bytes).concat())
    }

    fn chunk_of(id: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let padding = vec![0; body.len() % 2];
        [&id[..], &u32::try_from(body.len()).unwrap().to_le_bytes(), body, &padding].concat()
    }

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        let body = [&b"WAVE"[..], &chunks.concat()].concat();
        chunk_of(b"RIFF", &body)
    }

    #[test]
    fn samples_are_read() {
        let odd = chunk_of(b"LIST", &[1, 2, 3]);
        let data = chunk_of(b"data", &[1, 0, 0xff, 0xff]);
        assert_eq!(samples(&file(&[format(1, 1, 16), odd, data])).unwrap(), [1, -1]);
    }

    #[test]
    fn other_sound() {
        let data = || chunk_of(b"data", &[1, 0]);
        for (bytes, message) in [
            (
                b"OggS".to_vec(),
                "is not sound in WAV: expected \"RIFF\" at byte 0 and \"WAVE\" at byte 8",
            ),
            (file(&[data()]), "data at byte 12 stands before its format"),
            (file(&[format(1, 1, 16)]), "has no data"),
            (
                file(&[format(1, 2, 16), data()]),
                "format at byte 12 is encoding 1, channels: 2, bits: 16, expected PCM (1), one \
                 channel, 16 bits",
            ),
            (
                file(&[chunk_of(b"fmt ", &[1, 0]), data()]),
                "format at byte 12 is 2 bytes long, expected 16 or more",
            ),
            (
                file(&[format(1, 1, 16), data()[..8].to_vec()]),
                "chunk at byte 36 does not fit the file",
            ),
        ] {
            let error = samples(&bytes).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.kind().is_file_fault());
        }
    }

    #[test]
    fn every_truncation() {
        let bytes = file(&[format(1, 1, 16), chunk_of(b"data", &[1, 0])]);
        for len in 0..bytes.len() {
            samples(&bytes[..len]).expect_err("a truncated file must not be read");
        }
    }
}
