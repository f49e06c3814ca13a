//! Files at addresses.

use std::{
    process,
    sync::{Mutex, PoisonError},
};

use modelcrate::{
    ReadOptions,
    remote::{Location, Remote, RemoteOptions, Stats},
};

use crate::{
    fault::{Fault, Result},
    reader::Remotely,
};

/// Opens a file at an address.
pub(crate) fn open(address: &str, options: ReadOptions) -> Result<Remotely> {
    let location = Location::parse(address).map_err(|error| Fault::of(&error))?;
    let remote = remote();
    let opened = remote.open(&location).map_err(|error| Fault::of(&error).at_address(address))?;
    let reader = remote.reader_of(&opened, &location, options)?;
    let etag = opened.etag().map(str::to_owned);
    let fault = Box::new(move || opened.fault().map(str::to_owned));
    Ok(Remotely { reader, etag, fault })
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
