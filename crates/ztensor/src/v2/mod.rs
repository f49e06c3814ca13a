//! Generation 2, which shares an extension with the others and nothing else of its container.
//!
//! ```text
//! 0          8                4096 …                                        -40
//! [magic][zeros …][blob][zeros][blob][zeros … ][manifest, a blob like others][footer]
//!
//! footer   manifest offset u64, manifest length u64, XXH3-64 of the manifest u64,
//!          version u32 = 2, reserved u32, magic
//! ```
//!
//! What opening proves, it proves in the order in which the format's text lists its rules, so that
//! every reader refuses a file for the same reason: the footer, the manifest's hash, its encoding
//! ([`cbor`]), its schema ([`document`]), names, shapes, blobs and layouts ([`layout`]), and last that
//! no two blobs overlap.

pub(crate) mod cbor;
pub(crate) mod container;
pub(crate) mod document;
pub(crate) mod emit;
mod identity;
pub(crate) mod layout;
pub(crate) mod profile;
mod rule;
pub(crate) mod walk;

pub use document::is_canonical_name;
pub(crate) use rule::Broken;
pub use rule::Rule;

/// The first and the last bytes of a file.
pub(crate) const MAGIC: &[u8; 8] = b"\x89ZT2\r\n\x1a\n";
/// Where blobs may start, and what each of them starts at a multiple of, in bytes.
pub(crate) const FLOOR: u64 = 4096;
/// Where the blobs of a canonical file start, and what each of them starts at a multiple of, in bytes.
pub(crate) const CANONICAL: u64 = 1 << 16;
/// The length of the footer in bytes.
pub(crate) const FOOTER: u64 = 40;
/// The shortest file: magic and footer.
pub(crate) const SMALLEST: u64 = 48;
