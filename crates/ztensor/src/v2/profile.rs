//! What the other layouts ask of an object, which opening lets pass as readers may not know them.

use tensor_core::DType;

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
        Format::QuantGroup => quant_group(object, attributes).map(drop),
        Format::Mx => mx(object, attributes).map(drop),
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
        _ => return broken(format!("has coords of {}, expected u32 or u64", said(coords))),
    };
    let (found, cell) = (decoded(coords), width.saturating_mul(rank));
    if found.checked_rem(cell) != Some(0) {
        return broken(format!("has {found} bytes of coords, expected whole ones of {cell}"));
    }
    size_of(values, "values", found.checked_div(cell))
}

/// How codes with scales stand for real numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// Bits of a code.
    pub(crate) bits: u64,
    /// The type of the words that hold codes, the first in the highest bits or in the lowest.
    pub(crate) word: DType,
    pub(crate) is_high_first: bool,
    /// How many neighbours along the axis share a scale.
    pub(crate) size: u64,
    pub(crate) axis: Axis,
    pub(crate) zero: Zero,
}

/// What is subtracted from codes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Zero {
    Implied(i128),
    /// A number of the part `zeros` for each scale.
    Plain,
    /// A code for each scale, in words as those of the data.
    Packed,
}

/// ```text
/// along = shape[axis], groups = along / group_size, or along where that is 0, lanes = elements / along
/// data     elements / per_word words
/// scales   groups × lanes
/// zeros    groups × lanes, or as many codes in words
/// ```
pub(crate) fn quant_group(object: &Object, attributes: &Attributes) -> Checked<Group> {
    let bits = integer(attributes, "bits")?;
    let group_size = integer(attributes, "group_size")?;
    let axis = axis(object, attributes, None)?;
    let Axis { along, lanes, .. } = axis;
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
    let is_high_first = match text(&packing, "order")? {
        "lsb_first" => false,
        "msb_first" => true,
        order => {
            return broken(format!(
                "has packing.order {order:?}, expected \"lsb_first\" or \"msb_first\""
            ));
        }
    };
    let per_word = integer(&packing, "per_word")?;
    if whole(word_bits, bits) != Some(per_word) {
        let expected = match whole(word_bits, bits) {
            Some(codes) => format!("expected {codes}"),
            None => format!("expected words that codes of {bits} bits fill"),
        };
        return broken(format!(
            "has packing.per_word {per_word} for {bits} bits in words of {word_bits}, {expected}"
        ));
    }
    let size = group_size.max(1);
    let Some(groups) = whole(along, size) else {
        return broken(format!(
            "has group_size {group_size}, expected 0 or a divisor of the {along} elements along \
             axis {}",
            axis.axis
        ));
    };
    let zero = map(attributes, "zero_point")?;
    let zero = match text(&zero, "form")? {
        "none" => Zero::Implied(0),
        "implied" => Zero::Implied(integer_of(&zero, "value")?),
        "tensor" => match text(&zero, "packing")? {
            "plain" => Zero::Plain,
            "same_as_data" => Zero::Packed,
            found => {
                return broken(format!(
                    "has zero_point.packing {found:?}, expected \"plain\" or \"same_as_data\""
                ));
            }
        },
        form => {
            return broken(format!(
                "has zero_point.form {form:?}, expected \"none\", \"implied\" or \"tensor\""
            ));
        }
    };
    let zeros = matches!(zero, Zero::Plain | Zero::Packed).then_some(&Role::Zeros);
    let [data, scales] = parts(object, [&Role::Data, &Role::Scales], zeros)?;
    if data.element_type().and_then(unsigned_of) != Some(word) {
        return broken(format!(
            "has data of {}, expected its packing.word {:?}",
            said(data),
            word.name()
        ));
    }
    let elements = along.checked_mul(lanes);
    let words = elements.and_then(|elements| whole(elements, per_word));
    let Some(words) = words else {
        let elements = elements.unwrap_or(u64::MAX);
        return broken(format!("has {elements} elements, expected whole words of {per_word}"));
    };
    size_of(data, "data", Some(words))?;
    let all = groups.checked_mul(lanes);
    let is_float = |dtype: Option<DType>| {
        matches!(dtype, Some(DType::F16 | DType::BF16 | DType::F32 | DType::F64))
    };
    let form = text(attributes, "scale_form")?;
    let (fits, expected) = match form {
        "f32_factors" | "f16_factors" => (is_float(scales.element_type()), "floats"),
        "e8m0_exponent" => (is_exponent(scales), "f8_e8m0"),
        form => {
            return broken(format!(
                "has scale_form {form:?}, expected \"f32_factors\", \"f16_factors\" or \
                 \"e8m0_exponent\""
            ));
        }
    };
    if !fits {
        return broken(format!(
            "has scales of {} and scale_form {form:?}, expected {expected}",
            said(scales)
        ));
    }
    size_of(scales, "scales", all)?;
    if let Some(zeros) = zeros.and_then(|role| object.component(role)) {
        let count = match zero {
            Zero::Packed => all.and_then(|all| whole(all, per_word)),
            Zero::Implied(_) | Zero::Plain => all,
        };
        size_of(zeros, "zeros", count)?;
    }
    Ok(Group { bits, word, is_high_first, size, axis, zero })
}

/// Elements in blocks of one scale each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    /// How many neighbours along the axis share a scale.
    pub(crate) size: u64,
    pub(crate) axis: Axis,
}

pub(crate) fn mx(object: &Object, attributes: &Attributes) -> Checked<Blocks> {
    let [data, scales] = parts(object, [&Role::Data, &Role::Scales], None)?;
    let size = integer(attributes, "block_size")?;
    let last = object.shape.rank().checked_sub(1).map(|last| last as u64);
    let axis = axis(object, attributes, last)?;
    let Axis { along, lanes, .. } = axis;
    let Some(blocks) = whole(along, size).filter(|_| size >= 2) else {
        return broken(format!(
            "has block_size {size}, expected 2 or more that divide the {along} elements along axis {}",
            axis.axis
        ));
    };
    let form = text(attributes, "scale_form")?;
    if form != "e8m0_exponent" || !is_exponent(scales) {
        return broken(format!(
            "has scales of {} and scale_form {form:?}, expected f8_e8m0 and \"e8m0_exponent\"",
            said(scales)
        ));
    }
    let known = match data.elements() {
        Some(ElementType::Plain(dtype)) => {
            matches!(dtype, DType::F8E4M3 | DType::F8E5M2 | DType::I8)
        }
        Some(ElementType::Packed { name, .. }) => name == "f4_e2m1",
        None => false,
    };
    if !known {
        return broken(format!(
            "has data of {}, expected f4_e2m1, f8_e4m3fn, f8_e5m2 or i8",
            said(data)
        ));
    }
    size_of(data, "data", along.checked_mul(lanes))?;
    size_of(scales, "scales", blocks.checked_mul(lanes))?;
    Ok(Blocks { size, axis })
}

fn gguf(object: &Object, attributes: &Attributes) -> Checked<()> {
    let [data] = parts(object, [&Role::Data], None)?;
    if data.element_type() != Some(DType::U8) || data.logical_type.is_some() {
        return broken(format!("has data of {}, expected u8", said(data)));
    }
    let elements = integer(attributes, "elems_per_block")?;
    let bytes = integer(attributes, "block_bytes")?;
    let all = object.elements().unwrap_or_default();
    let Some(blocks) = whole(all, elements).filter(|_| bytes > 0) else {
        return broken(format!(
            "has elems_per_block {elements} and block_bytes {bytes}, expected a divisor of {all} \
             elements, and 1 or more"
        ));
    };
    size_of(data, "data", blocks.checked_mul(bytes))
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
        _ => {
            let names = |roles: &mut dyn Iterator<Item = &Role>| {
                roles.map(Role::as_str).collect::<Vec<_>>().join(", ")
            };
            let found = names(&mut object.components.iter().map(|(role, _)| role));
            let expected = names(&mut roles.into_iter().chain(more));
            broken(format!("has the parts {found}, expected {expected}"))
        }
    }
}

/// Proves that a part holds a number of elements.
fn size_of(part: &Component, role: &str, elements: Option<u64>) -> Checked<()> {
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

/// The axis that attributes name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) axis: u64,
    /// Its length.
    pub(crate) along: u64,
    /// How many elements are beside each of its.
    pub(crate) lanes: u64,
    /// How far apart its elements are, where these come row by row.
    pub(crate) stride: u64,
}

fn axis(object: &Object, attributes: &Attributes, default: Option<u64>) -> Checked<Axis> {
    let axis = match (attributes.get("axis"), default) {
        (None, Some(axis)) => axis,
        _ => integer(attributes, "axis")?,
    };
    let dims = object.shape.dims();
    let behind = usize::try_from(axis).ok().and_then(|axis| dims.get(axis..));
    let Some([along, behind @ ..]) = behind else {
        return broken(format!(
            "has axis {axis}, expected one of the {} of shape {}",
            dims.len(),
            object.shape
        ));
    };
    let lanes = object.elements().unwrap_or_default().checked_div(*along).unwrap_or_default();
    let stride = behind.iter().copied().fold(1, u64::saturating_mul);
    Ok(Axis { axis, along: *along, lanes, stride })
}

/// Names the elements of a part.
fn said(part: &Component) -> String {
    match part.elements() {
        Some(elements) => elements.to_string(),
        None => format!("type {:?}", part.logical_type.as_deref().unwrap_or_default()),
    }
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
