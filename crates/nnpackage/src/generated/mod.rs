//! What flatc makes of `schemas/circle.fbs` and `schemas/tflite.fbs`. Nothing of it is public: the
//! typed modules beside this one are.

#![allow(
    unsafe_code,
    dead_code,
    elided_lifetimes_in_paths,
    missing_docs,
    unreachable_pub,
    clippy::doc_markdown,
    clippy::extra_unused_lifetimes,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "flatc writes it so, and nothing outside calls its unverified constructors"
)]

pub(crate) mod circle;
pub(crate) mod tflite;
