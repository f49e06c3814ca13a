//! Reading archives: the end, the directory, local headers, content.

pub(crate) mod archive;
pub(crate) mod decode;
pub(crate) mod directory;
mod end;
pub(crate) mod entry;
pub(crate) mod extra;
mod lint;
mod local;
pub(crate) mod options;
