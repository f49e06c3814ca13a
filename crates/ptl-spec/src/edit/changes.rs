//! Changes of extra files, which both containers make.

use bytes::Bytes;
use model_archive::name;
use tensor_core::Limits;

use crate::{Error, Result};

/// What is to become of extra files: new content, or `None` for one that goes away.
pub(crate) type Changes = Vec<(String, Option<Bytes>)>;

/// Refuses names and contents that extra files cannot have.
pub(super) fn check(name: &str, content: &Bytes) -> Result<()> {
    let fault = name::check(name, &Limits::default()).err();
    let fault = fault.or_else(|| name.ends_with('/').then_some(name::NameFault::EmptyComponent));
    if let Some(fault) = fault {
        return Err(Error::FileName { name: name.to_owned(), fault });
    }
    if content.len() as u64 > i32::MAX as u64 {
        let reason = "an extra file of 2 GiB or more does not fit";
        return Err(Error::NotEditable { reason });
    }
    Ok(())
}
