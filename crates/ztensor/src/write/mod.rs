//! Writing files, from the whole to one component.

mod attributes;
mod codec;
mod component;
mod copy;
mod index;
mod object;
mod options;
pub(crate) mod share;
mod writer;

pub use component::ComponentWriter;
pub(crate) use copy::{Moved, copy_all, in_file_order};
pub use object::ObjectWriter;
pub use options::{Compression, Form, Storage, Version, WriteOptions};
pub use writer::Writer;
