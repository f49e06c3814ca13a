//! Circle and TFLite models, read, checked, changed and written.

mod codes;
mod common;
mod everything;
mod findings;
mod fuzz_corpus;
mod hostile;
mod lazy;
mod onert;
mod reject;
mod training;
mod unread;
mod write;
