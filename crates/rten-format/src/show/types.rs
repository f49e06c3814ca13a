//! Types of values and constants in words.

use crate::{Constant, ConstantData, Dim, Value};

/// Returns element type and shape, such as `Float [batch, 10]`.
pub(crate) fn value_type(value: &Value) -> String {
    let dtype = value.dtype.map_or_else(String::new, |dtype| dtype.to_string());
    let Some(dims) = &value.shape else { return dtype };
    let dims: Vec<String> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Fixed(elements) => elements.to_string(),
            Dim::Symbol(symbol) => symbol.clone(),
        })
        .collect();
    format!("{dtype} [{}]", dims.join(", ")).trim_start().to_owned()
}

/// Returns element type and shape, such as `f32 [8, 4]`.
pub(crate) fn constant_type(constant: &Constant) -> String {
    let inline = constant.data.as_ref().filter(|_| constant.data_offset.is_none());
    let dtype = match inline {
        Some(data) => data.dtype(),
        None => constant.dtype.and_then(crate::ConstantDataType::dtype),
    };
    let dims: Vec<String> = constant.shape.iter().map(u32::to_string).collect();
    let dtype = dtype.map_or_else(
        || match inline {
            Some(ConstantData::Unknown(table)) => format!("unknown {}", table.tag()),
            _ => "unknown".to_owned(),
        },
        |dtype| dtype.to_string(),
    );
    format!("{dtype} [{}]", dims.join(", "))
}
