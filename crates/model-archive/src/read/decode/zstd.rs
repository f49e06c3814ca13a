//! Frames of zstd, one behind another.

use std::{io, sync::Arc};

use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use super::{pool::Pool, step::Step};

/// A decoder of all frames of one entry.
pub(crate) struct Frames {
    pool: Arc<Pool>,
    decoder: Option<Decoder<'static>>,
    count: u64,
    /// Whether the next byte starts a frame.
    between: bool,
    /// Bytes that were decoded.
    produced: u64,
}

impl Frames {
    pub(crate) fn new(pool: &Arc<Pool>, window_log: u32) -> io::Result<Self> {
        let mut decoder = match pool.take() {
            Some(decoder) => decoder,
            None => Decoder::new()?,
        };
        decoder.reinit()?;
        decoder.set_parameter(DParameter::WindowLogMax(window_log))?;
        let (pool, decoder) = (Arc::clone(pool), Some(decoder));
        Ok(Self { pool, decoder, count: 0, between: true, produced: 0 })
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Step> {
        // The decoder is there until this is dropped.
        let Some(decoder) = self.decoder.as_mut() else { return Err(io::ErrorKind::Other.into()) };
        if input.is_empty() && self.between {
            return Ok(Step { consumed: 0, produced: 0, is_end: self.count > 0 });
        }
        let status = decoder.run_on_buffers(input, output)?;
        self.between = status.remaining == 0;
        self.produced = self.produced.saturating_add(status.bytes_written as u64);
        if self.between {
            self.count = self.count.saturating_add(1);
        }
        Ok(Step { consumed: status.bytes_read, produced: status.bytes_written, is_end: false })
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let Some(decoder) = self.decoder.take()
            && self.produced <= SMALL
        {
            self.pool.give_back(decoder);
        }
    }
}

/// A decoder keeps the window that it has filled: it is only kept where that is small, in bytes.
const SMALL: u64 = 1 << 20;
