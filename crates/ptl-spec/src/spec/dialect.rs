/// Whose meaning a spec has, where text and phones disagree. The crate's README lists where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// What the format's text says; what it does not allow is an error.
    #[default]
    Documented,
    /// What the runtime on Android did, quirks included, but that calls always end.
    Android,
}
