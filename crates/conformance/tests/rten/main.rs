//! RTen files, ours and those of its converter, in the runtime that they are for.

mod runtime;
