//! Constants of texts: how many there are, where each starts and the last one ends, then their bytes.
//!
//! ```text
//! 0   count of texts         u32
//! 4   where each starts      u32 each, from the start of the constant
//!     where the last ends    u32
//!     bytes of the texts
//! ```

use std::io::{BufReader, Read};

use tensor_core::Extent;

use crate::{Result, Tensor};

/// Finds out what is wrong with how texts are stored; `None` where nothing is.
pub(super) fn fault(constant: Tensor<'_>, elements: u64) -> Result<Option<String>> {
    let (source, extent) = (constant.source(), constant.stored_extent()?);
    let len = extent.len();
    if len < WORD {
        return Ok(Some(format!("has {len} bytes, expected a count of texts in {WORD}")));
    }
    let mut bytes = [0; 4];
    source.read_into(Extent::new(extent.offset(), WORD)?, &mut bytes, "count of texts")?;
    let count = u64::from(u32::from_le_bytes(bytes));
    if count != elements {
        return Ok(Some(format!("has {count} texts, expected {elements}")));
    }
    let start = count.saturating_add(2).saturating_mul(WORD);
    if start > len {
        return Ok(Some(format!("has {len} bytes, expected {start} before its {count} texts")));
    }
    let places = Extent::between(
        extent.offset().saturating_add(WORD),
        extent.offset().saturating_add(start),
    );
    let mut places = BufReader::new(source.stream(places, "places of texts")?);
    let mut before = start;
    for index in 0..=count {
        places.read_exact(&mut bytes).map_err(|source| tensor_core::Error::Read {
            what: "places of texts",
            offset: extent.offset(),
            source,
        })?;
        let place = u64::from(u32::from_le_bytes(bytes));
        if place < before || place > len {
            let what = match index {
                0 => "its first text at byte".to_owned(),
                _ => format!("the end of text {} at byte", index.saturating_sub(1)),
            };
            return Ok(Some(format!("has {what} {place}, expected {before} to {len}")));
        }
        before = place;
    }
    Ok(None)
}

/// Bytes of a number.
const WORD: u64 = 4;
