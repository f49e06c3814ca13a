use crate::{Error, Result};

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident, $with:ident, $limit:ident: $type:ty = $default:expr;)*) => {
        /// Ceilings on what a file may make a reader do, all finite.
        ///
        /// There is no unlimited value: a caller who needs more raises the one field that an
        /// [`Error::OverLimit`](crate::Error::OverLimit) names.
        ///
        /// # Examples
        ///
        /// ```
        /// let limits = tensor_core::Limits::default().with_manifest_bytes(64 << 20);
        /// assert_eq!(limits.manifest_bytes, 64 << 20);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Limits {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Limits {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub const fn $with(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*

            /// Returns the value of one field.
            #[must_use]
            pub fn get(&self, limit: Limit) -> u64 {
                match limit {
                    $(Limit::$limit => u64::from(self.$field),)*
                }
            }
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// One field of [`Limits`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Limit {
            $(
                #[doc = concat!("[`Limits::", stringify!($field), "`].")]
                $limit,
            )*
        }

        impl Limit {
            /// Returns the name of the field.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$limit => stringify!($field),)*
                }
            }
        }
    };
}

limits! {
    /// Bytes of a format's own document (header, manifest, spec).
    manifest_bytes, with_manifest_bytes, ManifestBytes: u64 = 1 << 30;
    /// Bytes of a text document that is parsed into a tree, which takes many times its size.
    document_bytes, with_document_bytes, DocumentBytes: u64 = 16 << 20;
    /// Bytes of free-form metadata that is decoded into values at once.
    metadata_bytes, with_metadata_bytes, MetadataBytes: u64 = 64 << 20;
    /// Bytes of one file of texts that is decoded at once.
    strings_bytes, with_strings_bytes, StringsBytes: u64 = 256 << 20;
    /// Levels of nesting in a document.
    depth, with_depth, Depth: u32 = 64;
    /// Dimensions of one tensor.
    rank, with_rank, Rank: u64 = 64;
    /// Tensors in one file.
    tensors, with_tensors, Tensors: u64 = 10_000_000;
    /// Entries of one archive.
    entries, with_entries, Entries: u64 = 1_000_000;
    /// Bytes of the directory of one archive.
    directory_bytes, with_directory_bytes, DirectoryBytes: u64 = 256 << 20;
    /// Bytes of the name of one entry or file.
    name_bytes, with_name_bytes, NameBytes: u64 = 4096;
    /// Components of the name of one entry or file.
    name_components, with_name_components, NameComponents: u64 = 64;
    /// Bytes of one tensor or component that is read into memory, after decoding.
    decoded_bytes, with_decoded_bytes, DecodedBytes: u64 = 8 << 30;
    /// How many times the length of a file all that is decoded from it may have in all, where that
    /// is more than [`decoded_bytes`](Self::decoded_bytes).
    expansion, with_expansion, Expansion: u64 = 200;
    /// Stored values of one sparse tensor whose places are compared with each other: 8 bytes of
    /// memory for each.
    sparse_values, with_sparse_values, SparseValues: u64 = 8 << 20;
    /// Base-2 logarithm of the window, in bytes, that a zstd frame may ask for.
    zstd_window_log, with_zstd_window_log, ZstdWindowLog: u32 = 27;
}

impl Limits {
    /// Checks a value against one field.
    ///
    /// # Errors
    ///
    /// [`Error::OverLimit`] where `found` is more than the field allows; `what` names the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use tensor_core::{Limit, Limits};
    ///
    /// let error = Limits::default().check(Limit::Rank, "rank", 65).unwrap_err();
    /// assert_eq!(error.to_string(), "rank is 65, over the limit of 64 (Limits::rank)");
    /// ```
    pub fn check(&self, limit: Limit, what: &'static str, found: u64) -> Result<()> {
        let allowed = self.get(limit);
        if found <= allowed {
            return Ok(());
        }
        Err(Error::OverLimit { what, found, limit: allowed, field: limit.name() })
    }
}
