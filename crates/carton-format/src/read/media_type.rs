use std::fmt;

/// The kinds of files that systems which show cartons are to understand. Format text: "`misc`".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MediaType {
    /// A picture in PNG.
    Png,
    /// A picture in JPEG.
    Jpeg,
    /// Sound in MPEG audio, layer III.
    Mp3,
    /// A film, or sound alone, in the container of ISO 14496-14.
    Mp4,
}

impl MediaType {
    /// How many of the first bytes tell the kind.
    pub(crate) const HEAD: u64 = 16;

    /// Tells the kind by the first 16 bytes, or as many as there are.
    #[must_use]
    pub fn sniff(head: &[u8]) -> Option<Self> {
        match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'I', b'D', b'3', ..] => Some(Self::Mp3),
            // A frame header: sync bits, a version and layer III, a bit rate and a sample rate.
            [0xff, second, third, ..] if is_layer_3(*second, *third) => Some(Self::Mp3),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(Self::Mp4),
            _ => None,
        }
    }

    /// Returns the name as in the header `Content-Type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Mp3 => "audio/mpeg",
            Self::Mp4 => "video/mp4",
        }
    }
}

/// ISO 11172-3, section 2.4.2.3.
const fn is_layer_3(second: u8, third: u8) -> bool {
    let is_synced = second >> 5 == 0b111 && (second >> 3) & 0b11 != 0b01;
    let is_layer_3 = (second >> 1) & 0b11 == 0b01;
    is_synced && is_layer_3 && third >> 4 != 0b1111 && (third >> 2) & 0b11 != 0b11
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        for (head, expected) in [
            (&b"\x89PNG\r\n\x1a\n"[..], Some(MediaType::Png)),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some(MediaType::Jpeg)),
            (b"ID3\x04", Some(MediaType::Mp3)),
            (b"\xff\xfb\x90\x64", Some(MediaType::Mp3)),
            (b"\0\0\0\x18ftypmp42", Some(MediaType::Mp4)),
            (b"\xff\xf1\x50\x80", None),
            (b"\xff\xfe\0\0", None),
            (b"\x89PNG", None),
            (b"", None),
        ] {
            assert_eq!(MediaType::sniff(head), expected, "{head:?}");
        }
    }
}
