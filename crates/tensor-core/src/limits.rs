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
    /// Bytes of a format's own document (header, manifest, spec).
    pub manifest_bytes: u64,
    /// Bytes of a text document that is parsed into a tree, which takes many times its size.
    pub document_bytes: u64,
    /// Bytes of free-form metadata that is decoded into values at once.
    pub metadata_bytes: u64,
    /// Bytes of one file of texts that is decoded at once.
    pub strings_bytes: u64,
    /// Levels of nesting in a document.
    pub depth: u32,
    /// Dimensions of one tensor.
    pub rank: u64,
    /// Tensors in one file.
    pub tensors: u64,
    /// Entries of one archive.
    pub entries: u64,
    /// Bytes of the directory of one archive.
    pub directory_bytes: u64,
    /// Bytes of the name of one entry or file.
    pub name_bytes: u64,
    /// Components of the name of one entry or file.
    pub name_components: u64,
    /// Bytes of one tensor or component that is read into memory, after decoding.
    pub decoded_bytes: u64,
    /// How many times the length of a file all that is decoded from it may have in all, where that
    /// is more than [`decoded_bytes`](Self::decoded_bytes).
    pub expansion: u64,
    /// Base-2 logarithm of the window, in bytes, that a zstd frame may ask for.
    pub zstd_window_log: u32,
}

impl Limits {
    /// Sets [`manifest_bytes`](Self::manifest_bytes).
    #[must_use]
    pub const fn with_manifest_bytes(mut self, bytes: u64) -> Self {
        self.manifest_bytes = bytes;
        self
    }

    /// Sets [`document_bytes`](Self::document_bytes).
    #[must_use]
    pub const fn with_document_bytes(mut self, bytes: u64) -> Self {
        self.document_bytes = bytes;
        self
    }

    /// Sets [`metadata_bytes`](Self::metadata_bytes).
    #[must_use]
    pub const fn with_metadata_bytes(mut self, bytes: u64) -> Self {
        self.metadata_bytes = bytes;
        self
    }

    /// Sets [`strings_bytes`](Self::strings_bytes).
    #[must_use]
    pub const fn with_strings_bytes(mut self, bytes: u64) -> Self {
        self.strings_bytes = bytes;
        self
    }

    /// Sets [`depth`](Self::depth).
    #[must_use]
    pub const fn with_depth(mut self, levels: u32) -> Self {
        self.depth = levels;
        self
    }

    /// Sets [`rank`](Self::rank).
    #[must_use]
    pub const fn with_rank(mut self, dimensions: u64) -> Self {
        self.rank = dimensions;
        self
    }

    /// Sets [`tensors`](Self::tensors).
    #[must_use]
    pub const fn with_tensors(mut self, tensors: u64) -> Self {
        self.tensors = tensors;
        self
    }

    /// Sets [`entries`](Self::entries).
    #[must_use]
    pub const fn with_entries(mut self, entries: u64) -> Self {
        self.entries = entries;
        self
    }

    /// Sets [`directory_bytes`](Self::directory_bytes).
    #[must_use]
    pub const fn with_directory_bytes(mut self, bytes: u64) -> Self {
        self.directory_bytes = bytes;
        self
    }

    /// Sets [`name_bytes`](Self::name_bytes).
    #[must_use]
    pub const fn with_name_bytes(mut self, bytes: u64) -> Self {
        self.name_bytes = bytes;
        self
    }

    /// Sets [`name_components`](Self::name_components).
    #[must_use]
    pub const fn with_name_components(mut self, components: u64) -> Self {
        self.name_components = components;
        self
    }

    /// Sets [`decoded_bytes`](Self::decoded_bytes).
    #[must_use]
    pub const fn with_decoded_bytes(mut self, bytes: u64) -> Self {
        self.decoded_bytes = bytes;
        self
    }

    /// Sets [`expansion`](Self::expansion).
    #[must_use]
    pub const fn with_expansion(mut self, times: u64) -> Self {
        self.expansion = times;
        self
    }

    /// Sets [`zstd_window_log`](Self::zstd_window_log).
    #[must_use]
    pub const fn with_zstd_window_log(mut self, log: u32) -> Self {
        self.zstd_window_log = log;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            manifest_bytes: 1 << 30,
            document_bytes: 16 << 20,
            metadata_bytes: 64 << 20,
            strings_bytes: 256 << 20,
            depth: 64,
            rank: 64,
            tensors: 10_000_000,
            entries: 1_000_000,
            directory_bytes: 256 << 20,
            name_bytes: 4096,
            name_components: 64,
            decoded_bytes: 8 << 30,
            expansion: 200,
            zstd_window_log: 27,
        }
    }
}
