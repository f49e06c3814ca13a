//! What this crate adds to the readers of the formats: a file each.

use std::collections::BTreeMap;

use crate::{AnyTensor, Result, Summary};

#[cfg(feature = "carton")]
pub(crate) mod carton;
#[cfg(feature = "circle")]
pub(crate) mod circle;
#[cfg(feature = "nnpackage")]
pub(crate) mod nnpackage;
#[cfg(feature = "ptl")]
pub(crate) mod ptl;
#[cfg(feature = "ptl")]
pub(crate) mod ptl_spec;
#[cfg(feature = "rten")]
pub(crate) mod rten;
pub(crate) mod weights;
#[cfg(feature = "ztensor")]
pub(crate) mod ztensor;

/// The tensors of a file.
pub(crate) type Tensors<'a> = Box<dyn Iterator<Item = AnyTensor<'a>> + 'a>;

/// What this crate adds to the reader of a format.
pub(crate) trait Described {
    fn summary(&self) -> Summary;

    fn metadata_of(&self) -> BTreeMap<String, serde_json::Value>;

    fn any_tensors(&self) -> Result<Tensors<'_>>;

    fn any_tensor(&self, name: &str) -> Result<Option<AnyTensor<'_>>>;
}

/// Says that a reader is [`Described`] by the functions `summary` and `metadata_of` of its file; `?` where the list of
/// its tensors can be broken.
macro_rules! described {
    ($Variant:ident $($fallible:tt)?) => {
        impl $crate::formats::Described for Reader {
            fn summary(&self) -> $crate::Summary {
                summary(self)
            }

            fn metadata_of(&self) -> std::collections::BTreeMap<String, serde_json::Value> {
                metadata_of(self)
            }

            fn any_tensors(&self) -> $crate::Result<$crate::formats::Tensors<'_>> {
                Ok(Box::new(self.tensors()$($fallible)?.map($crate::AnyTensor::$Variant)))
            }

            fn any_tensor(&self, name: &str) -> $crate::Result<Option<$crate::AnyTensor<'_>>> {
                Ok(self.tensor(name)$($fallible)?.map($crate::AnyTensor::$Variant))
            }
        }
    };
}
pub(crate) use described;
