//! What may be taken out of a model file.

/// What is taken out of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strip {
    /// The records that lead from instructions back to source: they hold lines of the author's
    /// Python and paths of the author's machine. Every runtime works without.
    DebugRecords,
    /// Those, and the source of the model's classes. The lite interpreter works without, the full
    /// runtime does not.
    Code,
}

impl Strip {
    /// Tells whether a record goes away, by its name without the root folder.
    #[must_use]
    pub fn removes(self, record: &str) -> bool {
        let record = record.to_ascii_lowercase();
        let is_debug = record.ends_with(".debug_pkl")
            || record == "mobile_debug_handles.pkl"
            || record == "callstack_debug_map.pkl";
        is_debug || self == Self::Code && record.starts_with("code/")
    }
}
