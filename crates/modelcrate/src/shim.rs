//! Stands in until every format crate has these of its own, which come first then.
use tensor_core::{At, ErrorKind};

pub(crate) trait ErrorFace: std::error::Error {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
    fn at(&self) -> At {
        At::file()
    }
}
#[cfg(feature = "circle")]
impl ErrorFace for circle_format::Error {}
#[cfg(feature = "nnpackage")]
impl ErrorFace for nnpackage::Error {}
#[cfg(feature = "ptl")]
impl ErrorFace for ptl_spec::Error {}
#[cfg(feature = "rten")]
impl ErrorFace for rten_format::Error {}
#[cfg(feature = "rten-onnx")]
impl ErrorFace for rten_format::onnx::Error {}
