//! Pictures: what is done to them, and how they become tensors and back.

use tensor_core::TensorBuf;

use crate::{
    Call, Dialect, Error, Fault, ImageStep, PackImage, Param, Result, Value,
    call::value::ResultValue,
    image::picture::Scaled,
    spec::path::{Path, at},
};

mod crop;
mod decode;
mod normalise;
mod picture;
mod scale;

pub use picture::Image;
pub use scale::Filter;

/// Takes a picture through its transforms. Format text: type `ImageTransform`.
pub(crate) fn tensor(call: &Call<'_>, picture: &PackImage, path: &mut Path) -> Result<TensorBuf> {
    let name = at(path, picture.image.bound())?;
    let image = match call.params.get(name) {
        Some(Param::Image(image)) => Ok(image),
        Some(other) => Err(Fault::Value { found: other.described(), expected: "a picture" }),
        None => Err(Fault::MissingParam { name: name.clone() }),
    };
    let image = path.member("image", |path| at(path, image))?;
    let options = call.spec.run_options();
    let filter = options.filter.unwrap_or(match options.dialect {
        Dialect::Documented => Filter::Bilinear,
        Dialect::Android => Filter::Nearest,
    });
    path.member("transforms", |path| {
        let mut scaled: Scaled;
        let mut view = image.view();
        for (index, step) in picture.steps.iter().enumerate() {
            let result = match step {
                ImageStep::CenterCrop { width, height } => {
                    crop::size(width.as_ref(), height.as_ref())
                        .and_then(|size| crop::apply(view, size, options.dialect))
                }
                ImageStep::Scale { width, height } => {
                    let size = width.bound().and_then(|width| Ok((*width, *height.bound()?)));
                    match size.and_then(|size| scale::apply(view, size, filter)) {
                        Ok(picture) => {
                            scaled = picture;
                            Ok(scaled.view())
                        }
                        Err(fault) => Err(fault),
                    }
                }
            };
            view = path.item(index, |path| at(path, result))?;
        }
        path.item(picture.steps.len(), |path| at(path, normalise::tensor(view, &picture.tensor)))
    })
}

/// Makes a picture of a tensor `[1, 3, height, width]`: its smallest element becomes 0, its largest
/// 255.
pub(crate) fn of_tensor(output: &Value, dialect: Dialect, path: &Path) -> Result<ResultValue> {
    let expected = "a tensor [1, 3, height, width] of f32";
    let wrong = || Error::spec(path, output.fault(expected));
    let Value::Tensor(tensor) = output else { return Err(wrong()) };
    let &[1, 3, height, width] = tensor.info().shape.dims() else { return Err(wrong()) };
    let (width, height) = (u32::try_from(width), u32::try_from(height));
    let (width, height) = (width.map_err(|_| wrong())?, height.map_err(|_| wrong())?);
    let elements = at(path, output.floats())?;
    // One infinite element would make all others black.
    if dialect == Dialect::Documented && !elements.iter().all(|element| element.is_finite()) {
        let (found, expected) = ("a tensor with infinite elements or NaN".to_owned(), "numbers");
        return Err(Error::spec(path, Fault::ModelOutput { found, expected }));
    }
    let pixels = normalise::to_rgb(&elements, dialect);
    Image::from_rgb(width, height, pixels).map(ResultValue::Image).map_err(|_| wrong())
}
