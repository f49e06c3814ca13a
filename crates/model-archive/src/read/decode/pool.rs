//! Decoders of zstd between two uses.

use std::sync::{Mutex, PoisonError};

use zstd::stream::raw::Decoder;

/// Decoders that are not in use: making one costs more than decoding a small tensor.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Decoder<'static>>>);

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

impl Pool {
    pub(super) fn take(&self) -> Option<Decoder<'static>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn give_back(&self, decoder: Decoder<'static>) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(decoder);
        }
    }
}

/// More idle decoders than this are not kept.
const IDLE: usize = 16;
