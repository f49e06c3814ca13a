//! Runs a whole pipeline with a small model of our own: a picture in, the brightest channel out.
//!
//! ```sh
//! cargo run -p ptl-spec --example pipeline -- photo.jpg
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{env, error::Error, fs};

use ptl_spec::{
    Image, Params, Spec, Value,
    tensor_core::{TensorBuf, TensorView},
};

/// A spec as it would lie in a `.ptl` file; `ptl_spec::Reader::find_spec` finds it there.
const SPEC: &str = r#"{
    "pack": {
        "type": "tensor_from_image",
        "image": "photo",
        "transforms": [
            {"type": "image_to_image", "name": "center_crop"},
            {"type": "image_to_image", "name": "scale", "width": "$side", "height": "$side"},
            {"type": "image_to_tensor", "name": "rgb_norm",
             "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
        ]
    },
    "unpack": {"type": "argmax", "dtype": "float", "key": "channel", "valueKey": "confidence"}
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let photo = match env::args().nth(1) {
        Some(path) => Image::decode(&fs::read(path)?)?,
        None => Image::from_rgb(2, 2, vec![200, 20, 20, 180, 40, 10, 220, 10, 30, 190, 25, 5])?,
    };
    let spec = Spec::parse(SPEC)?;
    println!("{}", spec.signature());
    let params = Params::new().with("photo", photo).with("side", 224);
    let results = ptl_spec::run(&spec, &params, &means)?;
    println!("{results}");
    Ok(())
}

/// The model: the mean of each channel. A real one would be given to a runtime here.
fn means(input: &Value) -> Result<Value, Box<dyn Error + Send + Sync>> {
    let Value::Tensor(tensor) = input else { return Err("expected a tensor".into()) };
    let view: TensorView<'_> = tensor.view();
    let elements = view.to_vec::<f32>()?;
    let plane = (elements.len() / 3).max(1);
    let means: Vec<f32> = elements
        .chunks(plane)
        .map(|plane| plane.iter().sum::<f32>() / plane.len() as f32)
        .collect();
    Ok(Value::Tensor(TensorBuf::from_slice([1, 3], &means)?))
}
