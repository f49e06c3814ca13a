//! What stands in for pictures where the crate is built without them.

use tensor_core::TensorBuf;

use crate::{
    Call, Dialect, Error, Fault, PackImage, Result, Value, call::value::ResultValue,
    spec::path::Path,
};

pub(crate) fn tensor(_: &Call<'_>, _: &PackImage, path: &Path) -> Result<TensorBuf> {
    Err(Error::spec(path, Fault::Feature { feature: "image" }))
}

pub(crate) fn of_tensor(_: &Value, _: Dialect, path: &Path) -> Result<ResultValue> {
    Err(Error::spec(path, Fault::Feature { feature: "image" }))
}
