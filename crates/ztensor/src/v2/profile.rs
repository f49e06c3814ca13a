//! What the other layouts ask of an object, which opening lets pass as readers may not know them.

use tensor_core::{DType, Shape};

use crate::{
    Attributes, Component, ElementType, Format, Object, Role, Value, manifest::dtype::is_storage,
};

/// What is found to be wrong: whether the text of a layout is broken, or nothing can be checked.
#[derive(Debug)]
pub(crate) enum Remark {
    /// A rule of the layout is broken.
    Broken(String),
    /// Attributes that the sizes depend on are missing or of another type.
    Unchecked(String),
}

type Checked<T> = Result<T, Remark>;

/// Checks the parts of an object against its layout.
pub(crate) fn check(object: &Object, attributes: &Attributes) -> Result<(), Remark> {
    match &object.format {
        Format::SparseCoo => coo(object),
        Format::QuantGroup => quant_group(object, attributes),
        Format::Mx => mx(object, attributes),
        Format::Other(layout) if blocks(layout) => gguf(object, attributes),
        _ => Ok(()),
    }
}

/// Tells whether a layout is one of the ggml blocks that the format names.
pub(crate) fn blocks(layout: &str) -> bool {
    let name = layout.strip_prefix("gguf.").and_then(|rest| rest.strip_suffix("/1"));
    name.is_some_and(|name| GGUF.contains(&name))
}

fn coo(object: &Object) -> Checked<()> {
    let [values, coords] = parts(object, [&Role::Values, &Role::Coords], None)?;
    let rank = object.shape.rank() as u64;
    if rank == 0 {
        return broken("has rank 0, expected 1 or more");
    }
    let width = match (coords.element_type(), &coords.logical_type) {
        (Some(DType::U32), None) => 4_u64,
        (Some(DType::U64), None) => 8,
        _ => return broken("has coords of another type than u32 and u64"),
    };
    let (found, cell) = (decoded(coords), width.saturating_mul(rank));
    if found.checked_rem(cell) != Some(0) {
        return broken(format!("has {found} bytes of coords, expected whole ones of {cell}"));
    }
    size(values, "values", found.checked_div(cell))
}

/// ```text
/// along = shape[axis], groups = along / group_size, or along where that is 0, lanes = elements / along
/// data     elements / per_word words
/// scales   groups × lanes
/// zeros    groups × lanes, or as many codes in words
/// ```
fn quant_group(object: &Object, attributes: &Attributes) -> Checked<()> {
    let bits = integer(attributes, "bits")?;
    let group_size = integer(attributes, "group_size")?;
    let (along, lanes) = axis(&object.shape, attributes, None)?;
    if !matches!(bits, 2..=6 | 8) {
        return broken(format!("has bits {bits}, expected 2 to 6, or 8"));
    }
    let packing = map(attributes, "packing")?;
    let word = text(&packing, "word")?;
    let Some((word, word_bits)) =
        WORDS.into_iter().find(|(_, name, _)| *name == word).map(|(d, _, b)| (d, b))
    else {
        return broken(format!(
            "has packing.word {word:?}, expected \"u8\", \"u16\", \"u32\" or \"u64\""
        ));
    };
    let order = text(&packing, "order")?;
    if !matches!(order, "lsb_first" | "msb_first") {
        return broken(format!(
            "has packing.order {order:?}, expected \"lsb_first\" or \"msb_first\""
        ));
    }
    let per_word = integer(&packing, "per_word")?;
    if whole(word_bits, bits) != Some(per_word) {
        return broken(format!(
            "has packing.per_word {per_word} for {bits} bits in words of {word_bits}"
        ));
    }
    let groups = match group_size {
        0 => Some(along),
        size => whole(along, size),
    };
    let Some(groups) = groups else {
        return broken(format!("has group_size {group_size}, which does not divide {along}"));
    };
    let zero = map(attributes, "zero_point")?;
    let form = text(&zero, "form")?;
    let has_zeros = match form {
        "none" => false,
        "implied" => integer_of(&zero, "value").map(|_| false)?,
        "tensor" => true,
        form => {
            return broken(format!(
                "has zero_point.form {form:?}, expected none, implied or tensor"
            ));
        }
    };
    let zeros = has_zeros.then_some(&Role::Zeros);
    let [data, scales] = parts(object, [&Role::Data, &Role::Scales], zeros)?;
    if data.element_type().and_then(unsigned_of) != Some(word) {
        return broken(format!("has data of another type than its packing.word {:?}", word.name()));
    }
    let elements = along.checked_mul(lanes);
    let words = elements.and_then(|elements| whole(elements, per_word));
    let Some(words) = words else {
        return broken(format!("has elements that do not fill words of {per_word}"));
    };
    size(data, "data", Some(words))?;
    let all = groups.checked_mul(lanes);
    let is_float = |dtype: Option<DType>| {
        matches!(dtype, Some(DType::F16 | DType::BF16 | DType::F32 | DType::F64))
    };
    let fits = match text(attributes, "scale_form")? {
        "f32_factors" => is_float(scales.element_type()),
        "f16_factors" => scales.element_type() == Some(DType::F16),
        "e8m0_exponent" => is_exponent(scales),
        form => return broken(format!("has scale_form {form:?}, expected one of the layout's")),
    };
    if !fits {
        return broken("has scales of another type than its scale_form asks for");
    }
    size(scales, "scales", all)?;
    if let (true, Some(zeros)) = (has_zeros, object.component(&Role::Zeros)) {
        let count = match text(&zero, "packing")? {
            "plain" => all,
            "same_as_data" => all.and_then(|all| whole(all, per_word)),
            found => {
                return broken(format!(
                    "has zero_point.packing {found:?}, expected \"plain\" or \"same_as_data\""
                ));
            }
        };
        size(zeros, "zeros", count)?;
    }
    Ok(())
}

fn mx(object: &Object, attributes: &Attributes) -> Checked<()> {
    let [data, scales] = parts(object, [&Role::Data, &Role::Scales], None)?;
    let block = integer(attributes, "block_size")?;
    let last = object.shape.rank().checked_sub(1).map(|last| last as u64);
    let (along, lanes) = axis(&object.shape, attributes, last)?;
    let Some(blocks) = whole(along, block).filter(|_| block >= 2) else {
        return broken(format!("has block_size {block}, expected 2 or more that divide {along}"));
    };
    if text(attributes, "scale_form")? != "e8m0_exponent" || !is_exponent(scales) {
        return broken("has scales other than u8 of type f8_e8m0, or another scale_form");
    }
    let known = match data.elements() {
        Some(ElementType::Plain(dtype)) => {
            matches!(dtype, DType::F8E4M3 | DType::F8E5M2 | DType::I8)
        }
        Some(ElementType::Packed { name, .. }) => name == "f4_e2m1",
        None => false,
    };
    if !known {
        return broken("has data of another type than f4_e2m1, f8_e4m3fn, f8_e5m2 and i8");
    }
    size(data, "data", along.checked_mul(lanes))?;
    size(scales, "scales", blocks.checked_mul(lanes))
}

fn gguf(object: &Object, attributes: &Attributes) -> Checked<()> {
    let [data] = parts(object, [&Role::Data], None)?;
    if data.element_type() != Some(DType::U8) || data.logical_type.is_some() {
        return broken("has data of another type than u8");
    }
    let elements = integer(attributes, "elems_per_block")?;
    let bytes = integer(attributes, "block_bytes")?;
    let all = object.shape.elements().unwrap_or_default();
    let Some(blocks) = whole(all, elements).filter(|_| bytes > 0) else {
        return broken(format!(
            "has blocks of {elements} elements and {bytes} bytes for {all} elements"
        ));
    };
    size(data, "data", blocks.checked_mul(bytes))
}

/// Returns the components of some roles, once it is proved that there is no other but `more`.
fn parts<'o, const N: usize>(
    object: &'o Object,
    roles: [&Role; N],
    more: Option<&Role>,
) -> Checked<[&'o Component; N]> {
    let found: Vec<&Component> = roles.iter().filter_map(|role| object.component(role)).collect();
    let others = more.is_some_and(|role| object.component(role).is_some());
    let expected = N.saturating_add(more.is_some().into());
    let all = found.len().saturating_add(others.into());
    match found.try_into() {
        Ok(parts) if all == expected && object.components.len() == expected => Ok(parts),
        _ => broken("has other parts than its layout asks for"),
    }
}

/// Proves that a part holds a number of elements.
fn size(part: &Component, role: &str, elements: Option<u64>) -> Checked<()> {
    let found = decoded(part);
    let Some(types) = part.elements() else { return Ok(()) };
    match elements.and_then(|elements| types.byte_len(elements)) {
        Some(needed) if needed == found => Ok(()),
        needed => {
            let needed = needed.map_or("another number".to_owned(), |needed| needed.to_string());
            broken(format!("has {found} bytes of {role}, expected {needed}"))
        }
    }
}

/// Returns how many times one number is in another; `None` where that is not a whole number.
fn whole(all: u64, part: u64) -> Option<u64> {
    all.checked_div(part).filter(|_| all.is_multiple_of(part))
}

fn decoded(part: &Component) -> u64 {
    part.uncompressed_length.unwrap_or(part.length)
}

fn is_exponent(part: &Component) -> bool {
    matches!(part.elements(), Some(ElementType::Packed { name: "f8_e8m0", .. }))
}

/// Returns the length of the axis that attributes name, and how many elements are beside each of its.
fn axis(shape: &Shape, attributes: &Attributes, default: Option<u64>) -> Checked<(u64, u64)> {
    let axis = match (attributes.get("axis"), default) {
        (None, Some(axis)) => axis,
        _ => integer(attributes, "axis")?,
    };
    let along = usize::try_from(axis).ok().and_then(|axis| shape.dims().get(axis).copied());
    let Some(along) = along else {
        return broken(format!("has axis {axis}, but shape {shape}"));
    };
    let lanes = shape.elements().unwrap_or_default().checked_div(along);
    Ok((along, lanes.unwrap_or_default()))
}

fn integer(attributes: &Attributes, key: &str) -> Checked<u64> {
    let value = u64::try_from(integer_of(attributes, key)?);
    value.map_err(|_| Remark::Broken(format!("has {key} below 0 or over 64 bits")))
}

fn integer_of(attributes: &Attributes, key: &str) -> Checked<i128> {
    match attributes.get(key) {
        Some(Value::Integer(value)) => Ok(*value),
        _ => unchecked(format!("attribute {key:?} is not an integer")),
    }
}

fn text<'a>(attributes: &'a Attributes, key: &str) -> Checked<&'a str> {
    match attributes.get(key) {
        Some(Value::Text(text)) => Ok(text),
        _ => unchecked(format!("attribute {key:?} is not text")),
    }
}

fn map(attributes: &Attributes, key: &str) -> Checked<Attributes> {
    let Some(Value::Map(pairs)) = attributes.get(key) else {
        return unchecked(format!("attribute {key:?} is not a map"));
    };
    let named = pairs.iter().filter_map(|(key, value)| match key {
        Value::Text(key) => Some((key.clone(), value.clone())),
        _ => None,
    });
    Ok(named.collect())
}

fn unsigned_of(dtype: DType) -> Option<DType> {
    let width = dtype.width().filter(|_| dtype.is_integer() && is_storage(dtype))?;
    WORDS.into_iter().find(|(.., bits)| *bits == width.saturating_mul(8)).map(|(word, ..)| word)
}

fn broken<T>(problem: impl Into<String>) -> Checked<T> {
    Err(Remark::Broken(problem.into()))
}

fn unchecked<T>(problem: impl Into<String>) -> Checked<T> {
    Err(Remark::Unchecked(problem.into()))
}

const WORDS: [(DType, &str, u64); 4] = [
    (DType::U8, "u8", 8),
    (DType::U16, "u16", 16),
    (DType::U32, "u32", 32),
    (DType::U64, "u64", 64),
];

/// The blocks of ggml that have a layout of their own.
const GGUF: [&str; 22] = [
    "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q8_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_k",
    "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs",
    "mxfp4",
];
