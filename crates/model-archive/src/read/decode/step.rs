/// What one step of a codec did.
pub(super) struct Step {
    pub(super) consumed: usize,
    pub(super) produced: usize,
    /// The data ends here, if no more bytes are stored.
    pub(super) is_end: bool,
}
