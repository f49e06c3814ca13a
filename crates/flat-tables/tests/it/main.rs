//! Tests of the public interface.

mod read;
mod sample;
mod unknown;
mod verify;
