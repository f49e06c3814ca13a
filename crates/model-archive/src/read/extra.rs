//! Extra fields of headers. Application note, section 4.5.

use crate::Fault;

/// What matters of the extra fields. Sections 4.5.3 and 4.6.9.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    pub(crate) size: Option<u64>,
    pub(crate) stored_size: Option<u64>,
    /// A second name.
    pub(crate) name: Option<String>,
    /// What the writer has aligned the data to, in bytes.
    pub(crate) alignment: Option<u16>,
    /// A field that stands there twice, of which readers take either.
    twice: Option<u16>,
}

impl Extra {
    /// Reads what is well formed: what is not is padding to most readers.
    pub(crate) fn parse(mut bytes: &[u8]) -> Self {
        let mut extra = Self::default();
        let mut has_zip64 = false;
        while let Some((header, rest)) = bytes.split_first_chunk::<4>() {
            let [id_low, id_high, len_low, len_high] = *header;
            let len = usize::from(u16::from_le_bytes([len_low, len_high]));
            let Some((content, rest)) = rest.split_at_checked(len) else { break };
            let id = u16::from_le_bytes([id_low, id_high]);
            match id {
                ZIP64 if has_zip64 => extra.twice = Some(id),
                UNICODE_PATH if extra.name.is_some() => extra.twice = Some(id),
                ZIP64 => {
                    has_zip64 = true;
                    let (sizes, _) = content.as_chunks::<8>();
                    extra.size = sizes.first().copied().map(u64::from_le_bytes);
                    extra.stored_size = sizes.get(1).copied().map(u64::from_le_bytes);
                }
                UNICODE_PATH => {
                    // A version and a checksum stand in front of the name.
                    let name = content.get(5..).unwrap_or_default();
                    extra.name = Some(String::from_utf8_lossy(name).into_owned());
                }
                ALIGNMENT => {
                    extra.alignment = content.first_chunk().copied().map(u16::from_le_bytes);
                }
                _ => {}
            }
            bytes = rest;
        }
        extra
    }

    /// Returns what is wrong with the fields of an entry of this name.
    pub(crate) fn fault(&self, name: &str) -> Option<Fault> {
        if let Some(id) = self.twice {
            return Some(Fault::ExtraTwice { id });
        }
        let other = self.name.clone().filter(|second| second != name)?;
        Some(Fault::SecondName { other })
    }
}

const ZIP64: u16 = 0x0001;
const UNICODE_PATH: u16 = 0x7075;
/// Id of the extra field for alignment (4.6.10): the alignment, then padding.
pub(crate) const ALIGNMENT: u16 = 0xa11e;
