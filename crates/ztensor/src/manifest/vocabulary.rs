//! The words by which a manifest says how data is laid out. Format text: Part II, section 3, and
//! Part III.

use std::fmt;

use bytes::Bytes;

use super::key::Key;

/// The order in which the bytes of an element are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// The identity of a shard, as the table of the file that needs it says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    /// Its length in bytes.
    pub size: u64,
    /// The text of the digest over the whole file.
    pub digest: String,
    pub(crate) other: Vec<(Key, Bytes)>,
}

macro_rules! vocabulary {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }
        $(#[$other_doc:meta])*
        Other
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            $(#[$other_doc])*
            Other(String),
        }

        impl $name {
            pub(crate) fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }

            /// Returns the text of the manifest.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::parse(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

vocabulary! {
    /// How the bytes of a component are stored. Format text: Part II, section 3.
    Encoding {
        /// As they are.
        Raw = "raw",
        /// As zstd frames; before generation 2.
        Zstd = "zstd",
        /// As zstd frames that stand for themselves, with a table of them; generation 2 only.
        ZstdSeekable = "zt.zstd-seekable/1",
    }
    /// In a way that is not known; only the use of that component fails.
    Other
}

vocabulary! {
    /// How the components of an object make up the tensor. Format text: Part III.
    Format {
        /// All elements in row-major order: component `data`.
        Dense = "dense",
        /// Compressed sparse rows: components `values`, `indices`, `indptr`.
        SparseCsr = "sparse_csr",
        /// A list of coordinates: components `values`, `coords`.
        SparseCoo = "sparse_coo",
        /// Packed codes with scales and zero points for groups of them: components
        /// `packed_weight`, `scales`, `zeros`.
        QuantizedGroup = "quantized_group",
        /// Generation 2: packed codes with scales, and zero points where there are any, all defined:
        /// components `data`, `scales`, `zeros`.
        QuantGroup = "zt.quant_group/1",
        /// Generation 2: elements in blocks of one scale each, a power of two: components `data`,
        /// `scales`.
        Mx = "zt.mx/1",
        /// Generation 0.1: row pointers, column indices and values in one blob `data`.
        InlineCsr = "sparsecsr",
        /// Generation 0.1: coordinates and value of each element in turn in one blob `data`.
        InlineCoo = "sparsecoo",
    }
    /// A layout that is not known: its components can be read one by one.
    Other
}

impl Format {
    /// Returns the roles that an object of this format cannot do without.
    pub(crate) const fn required_roles(&self) -> &'static [Role] {
        match self {
            Self::Dense | Self::InlineCsr | Self::InlineCoo => &[Role::Data],
            Self::SparseCsr => &[Role::Values, Role::Indices, Role::Indptr],
            Self::SparseCoo => &[Role::Values, Role::Coords],
            Self::QuantizedGroup => &[Role::PackedWeight, Role::Scales, Role::Zeros],
            Self::QuantGroup | Self::Mx => &[Role::Data, Role::Scales],
            Self::Other(_) => &[],
        }
    }

    /// Reads a name of the generations before 2.
    pub(crate) fn parse_v1(text: &str) -> Self {
        match Self::parse(text) {
            Self::QuantGroup | Self::Mx => Self::Other(text.to_owned()),
            format => format,
        }
    }

    /// Reads a name of generation 2.
    pub(crate) fn parse_v2(text: &str) -> Self {
        match text {
            "dense" => Self::Dense,
            CSR_V2 => Self::SparseCsr,
            COO_V2 => Self::SparseCoo,
            _ => match Self::parse(text) {
                format @ (Self::QuantGroup | Self::Mx) => format,
                _ => Self::Other(text.to_owned()),
            },
        }
    }

    /// Returns the name in generation 2.
    pub(crate) fn text_v2(&self) -> &str {
        match self {
            Self::SparseCsr => CSR_V2,
            Self::SparseCoo => COO_V2,
            other => other.as_str(),
        }
    }
}

impl Encoding {
    /// Reads a name of the generations before 2.
    pub(crate) fn parse_v1(text: &str) -> Self {
        match Self::parse(text) {
            Self::ZstdSeekable => Self::Other(text.to_owned()),
            encoding => encoding,
        }
    }

    /// Reads a name of generation 2.
    pub(crate) fn parse_v2(text: &str) -> Self {
        match Self::parse(text) {
            Self::ZstdSeekable => Self::ZstdSeekable,
            _ => Self::Other(text.to_owned()),
        }
    }
}

const CSR_V2: &str = "zt.sparse_csr/1";
const COO_V2: &str = "zt.sparse_coo/1";

vocabulary! {
    /// What a component is to its object. Format text: Part III.
    Role {
        /// The elements of a dense tensor.
        Data = "data",
        /// The elements of a sparse tensor that are stored.
        Values = "values",
        /// Column indices of a CSR matrix.
        Indices = "indices",
        /// Row pointers of a CSR matrix.
        Indptr = "indptr",
        /// Coordinates of a COO tensor, all of dimension 0 first.
        Coords = "coords",
        /// Quantized codes, packed into integers.
        PackedWeight = "packed_weight",
        /// The scaling factor of each group.
        Scales = "scales",
        /// The zero point of each group.
        Zeros = "zeros",
    }
    /// A role that is not known.
    Other
}
