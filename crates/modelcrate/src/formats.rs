//! What the formats have for each other's questions: a file each, with functions of the same names.

#[cfg(feature = "carton")]
pub(crate) mod carton;
#[cfg(feature = "nnpackage")]
pub(crate) mod nnpackage;
#[cfg(feature = "ptl")]
pub(crate) mod ptl;
#[cfg(feature = "rten")]
pub(crate) mod rten;
#[cfg(feature = "ztensor")]
pub(crate) mod ztensor;
