use std::fmt;

/// A generation of the format, as the container and the manifest tell them apart.
///
/// ```text
///        header    footer                   document
/// 0.1    ZTEN0001  size u64                 array of tensors
/// 1.0    ZTEN1000  size u64                 map with "tensors"
/// 1.1    ZTEN1000  size u64, "ZTEN1000"     map with "objects"
/// 1.2    ZTEN1000  size u64, "ZTEN1000"     the same; components may have a "type"
/// 2      89 "ZT2"  40 bytes, the same magic deterministic CBOR with "objects"
/// ```
///
/// Generation 1.2 is a container of 1.1 whose version text starts with `1.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// 0.1, whose writers named no version.
    V0_1,
    /// 1.0.
    V1_0,
    /// 1.1.
    V1_1,
    /// 1.2.
    V1_2,
    /// 2, which is another container.
    V2,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V0_1 => "0.1",
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
            Self::V2 => "2",
        })
    }
}
