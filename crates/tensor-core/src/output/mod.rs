//! Files that appear whole or not at all, and files that are changed in place.

mod append;
mod aside;
mod blocks;
mod hidden;
mod keep;
mod locked;
mod new_file;
mod options;
#[cfg(unix)]
mod remove;
mod space;
mod unfinished;

pub use append::{Append, WriteAt};
pub use aside::Aside;
pub use hidden::{Hidden, is_temporary, leads_to, sweep};
pub use keep::keep_metadata;
pub use locked::LockedFile;
pub use new_file::NewFile;
pub use options::{Durability, Edited, Existing, Output};
pub use space::check_space;
pub use unfinished::abandon;
