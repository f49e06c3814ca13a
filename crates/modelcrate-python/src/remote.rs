//! Files at addresses.

use std::{
    process,
    sync::{Mutex, PoisonError},
};

use modelcrate::{
    AnyReader, ReadOptions,
    remote::{Location, Remote, RemoteOptions, Stats},
};

use crate::fault::{Fault, Result};

/// Opens a file at an address; returns its entity tag, too, where the store has one.
pub(crate) fn open(address: &str, options: ReadOptions) -> Result<(AnyReader, Option<String>)> {
    let location = Location::parse(address).map_err(|error| Fault::of(&error))?;
    let remote = remote();
    let opened = remote.open(&location).map_err(|error| Fault::of(&error).at_address(address))?;
    let reader = remote.reader_of(&opened, &location, options)?;
    Ok((reader, opened.etag().map(str::to_owned)))
}

/// Returns what this process has asked of servers so far.
pub(crate) fn stats() -> Stats {
    remote().stats()
}

/// Returns what asks servers: one for all, so that connections are kept, but of this process alone, as
/// Python forks.
fn remote() -> Remote {
    static REMOTE: Mutex<Option<(u32, Remote)>> = Mutex::new(None);
    let mut made = REMOTE.lock().unwrap_or_else(PoisonError::into_inner);
    let here = process::id();
    match &*made {
        Some((process, remote)) if *process == here => remote.clone(),
        _ => {
            let remote = Remote::new(RemoteOptions::default());
            // One of the process that this was forked from is left as it is: its threads are not here.
            std::mem::forget(made.replace((here, remote.clone())));
            remote
        }
    }
}
