/// How much a reader tolerates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What breaks a format's text, or what readers may disagree about, is refused.
    #[default]
    Strict,
    /// Whatever is not unsafe to read is read, for looking at broken files: one whose end is
    /// missing is read as the last complete one inside it. Checks still report all of it.
    Lenient,
}

/// When the digests that a file holds are compared with what is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// At the first read of a part by a reader and its clones.
    Once,
    /// At every read.
    Always,
    /// Only by checks that were asked for: a mapped part is then not read before it is used.
    #[default]
    Never,
}

/// What comparing the bytes of a tensor or a file with their digest has proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verified {
    /// Nothing: there is no digest. What could be checked without one is sound.
    NoDigest,
    /// Nothing: the algorithm of the digest is not known.
    UnknownAlgorithm,
    /// The bytes are those that the digest was computed from.
    Digest,
}
