//! Tensors and names that are worth exchanging.

use ztensor::{
    Coo, Csr,
    tensor_core::{DType, Shape, TensorBuf},
};

/// The element types of zTensor 1.1 that its reference implementation reads.
pub const DTYPES: [DType; 13] = [
    DType::F64,
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool,
];

/// Names that a careless reader or writer changes, in no order.
#[must_use]
pub fn names() -> Vec<String> {
    let odd = [
        "plain",
        "",
        " ",
        "a\0b",
        "line\nbreak",
        "quote\"back\\slash",
        "model.layers.0/weight",
        "../up",
        "ü",
        "u\u{308}",
        "重み",
        "🦀",
        "\u{feff}",
        "\u{10ffff}",
        // Shorter, but sorted behind by its bytes, unlike in canonical CBOR.
        "b",
        "aa",
    ];
    let mut names: Vec<String> = odd.map(str::to_owned).into();
    // The lengths at which the head of a CBOR text grows.
    names.extend([23, 24, 255, 256, 65_535, 65_536].map(|len| "n".repeat(len)));
    names
}

/// Returns a tensor whose bytes differ from element to element and are always the same.
///
/// The floats among them include infinities, subnormal numbers and numbers that are none.
///
/// # Panics
///
/// Where the shape needs more memory than there is.
#[must_use]
pub fn tensor(dtype: DType, shape: impl Into<Shape>) -> TensorBuf {
    let shape = shape.into();
    let len = usize::try_from(shape.byte_len(dtype).expect("a sample is small"));
    let mut bytes = bytes(len.expect("a sample is small"));
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte %= 2);
    }
    TensorBuf::new(dtype, shape, bytes).expect("as many bytes as the shape needs")
}

/// Returns bytes that look random half of the time, so that zstd has something to do.
#[must_use]
pub fn bytes(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = |at: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = state.to_be_bytes()[0];
        if (at / 64).is_multiple_of(2) { noise } else { noise & 3 }
    };
    (0..len).map(&mut byte).collect()
}

/// Returns the matrix
///
/// ```text
/// . a b
/// . . .
/// c . d
/// ```
///
/// in compressed rows, with indices of the only type that the reference implementation reads.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn csr(dtype: DType) -> Csr {
    let indices = u64s(&[1, 2, 0, 2]);
    let indptr = u64s(&[0, 2, 2, 4]);
    Csr::from_parts([3, 3], tensor(dtype, [4]), indices, indptr).expect("the parts fit")
}

/// Returns a tensor of three dimensions as a list of coordinates.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn coo(dtype: DType) -> Coo {
    // Three elements: (0, 2, 1), (1, 0, 3), (1, 2, 0).
    let coords = u64s(&[0, 1, 1, 2, 0, 2, 1, 3, 0]);
    Coo::from_parts([2, 3, 4], tensor(dtype, [3]), coords).expect("the parts fit")
}

/// Returns a tensor of one dimension.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn u64s(numbers: &[u64]) -> TensorBuf {
    TensorBuf::from_slice([numbers.len() as u64], numbers).expect("one dimension of that length")
}
