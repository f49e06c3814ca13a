//! Group-quantized tensors: sizes, and elements once the convention is stated.

use ztensor::{
    Axis, CodeOrder, Convention, Format, QuantizedGroup, Reader, Role, Writer,
    tensor_core::TensorBuf,
};

const LAST: Convention =
    Convention { axis: Axis::Last, order: CodeOrder::LowFirst, zero_offset: 0 };

/// Writes and reads a tensor of codes of so many bits in groups of a size.
fn written(
    shape: [u64; 2],
    [bits, group_size]: [i64; 2],
    [words, scales, zeros]: [&TensorBuf; 3],
) -> QuantizedGroup {
    let mut writer = Writer::new(Vec::new());
    let mut object = writer.object("q").unwrap();
    object.set_attributes(&[("bits", bits), ("group_size", group_size)].into_iter().collect());
    for (role, part) in [(Role::PackedWeight, words), (Role::Scales, scales), (Role::Zeros, zeros)]
    {
        object.put(role, part.dtype(), part.bytes()).unwrap();
    }
    object.finish(Format::QuantizedGroup, shape).unwrap();
    let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    reader.tensor("q").unwrap().quantized().unwrap()
}

/// Writes and reads a tensor of 4-bit codes in groups of 8.
fn quantized(shape: [u64; 2], words: &[u32], scales: &[f32], zeros: &TensorBuf) -> QuantizedGroup {
    let words = TensorBuf::from_slice([words.len() as u64], words).unwrap();
    written(shape, [4, 8], [&words, &floats(scales), zeros])
}

fn floats(elements: &[f32]) -> TensorBuf {
    TensorBuf::from_slice([elements.len() as u64], elements).unwrap()
}

fn dequantized(group: &QuantizedGroup, convention: Convention) -> Vec<f32> {
    group.dequantize(convention).unwrap().to_vec().unwrap()
}

#[test]
fn rows_are_packed_low_code_first() {
    let group = quantized([2, 8], &[0x7654_3210, 0xffff_ffff], &[0.5, 2.0], &floats(&[1.0, 15.0]));
    let expected = [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0];
    assert_eq!(dequantized(&group, LAST)[..8], expected);
    assert_eq!(dequantized(&group, LAST)[8..], [0.0; 8]);
}

#[test]
fn high_code_first_turns_words_round() {
    let group = quantized([1, 8], &[0x7654_3210], &[1.0], &floats(&[0.0]));
    let high = Convention { order: CodeOrder::HighFirst, ..LAST };
    assert_eq!(dequantized(&group, high), [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
}

#[test]
fn columns_are_packed_along_the_first_axis() {
    // Two columns of eight rows: word 0 is column 0, word 1 is column 1.
    let words = [0x7654_3210, 0x0123_4567];
    let group = quantized([8, 2], &words, &[1.0, 10.0], &floats(&[0.0, 0.0]));
    let first = Convention { axis: Axis::First, ..LAST };
    let expected: Vec<f32> =
        (0..8_u8).flat_map(|row| [f32::from(row), 10.0 * f32::from(7 - row)]).collect();
    assert_eq!(dequantized(&group, first), expected);
}

#[test]
fn packed_zero_points_get_the_offset() {
    // Two groups, zero points 2 and 3, each stored one too small.
    let zeros = TensorBuf::from_slice([1], &[0x21_u32]).unwrap();
    let group = quantized([2, 8], &[0, 0], &[1.0, 1.0], &zeros);
    let convention = Convention { zero_offset: 1, ..LAST };
    let elements = dequantized(&group, convention);
    assert_eq!((elements[0], elements[8]), (-2.0, -3.0));
}

#[test]
fn a_convention_that_does_not_fit_is_refused() {
    let group = quantized([2, 8], &[0, 0], &[1.0, 1.0], &floats(&[0.0, 0.0]));
    let first = Convention { axis: Axis::First, ..LAST };
    let error = group.dequantize(first).unwrap_err();
    let expected = "shape [2, 8] cannot be packed 8 and grouped 8 along its first axis";
    assert_eq!(error.to_string(), expected);
}

/// Writes and reads a tensor of zeros in words of 32 bits, with scales of zero.
fn of_zeros(shape: [u64; 2], bits: u64, group_size: u64, zeros: &TensorBuf) -> QuantizedGroup {
    let elements = shape[0] * shape[1];
    let words = (elements * bits).div_ceil(32);
    let words = TensorBuf::from_vec([words], vec![0_u32; words.try_into().unwrap()]).unwrap();
    let scales = vec![0.0; (elements / group_size).try_into().unwrap()];
    let sizes = [bits.try_into().unwrap(), group_size.try_into().unwrap()];
    written(shape, sizes, [&words, &floats(&scales), zeros])
}

#[test]
fn packed_zero_points_fit_their_words() {
    // One code of 16 bits takes two words of 8 bits; one of 3 bits lies across the border of two.
    let of_16 = of_zeros([2, 8], 16, 8, &TensorBuf::from_slice([4], &[0_u8; 4]).unwrap());
    let of_3 = of_zeros([4, 8], 3, 8, &TensorBuf::from_slice([1], &[0_u16]).unwrap());
    for (group, message) in [
        (of_16, "codes of 16 bits cross the borders of words of 8 bits"),
        (of_3, "codes of 3 bits cross the borders of words of 32 bits"),
    ] {
        let error = group.dequantize(LAST).unwrap_err();
        let expected = format!("{message}, which no convention here covers");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn rows_are_whole_words_and_groups() {
    let zeros = |count: usize| floats(&vec![0.0; count]);
    let refused = |shape: [u64; 2], group_size: u64, count: usize| {
        let group = of_zeros(shape, 4, group_size, &zeros(count));
        group.dequantize(LAST).err().map(|error| error.to_string())
    };
    // Words of 8 codes in rows of 12; groups of 16 in rows of 8.
    for (shape, group_size, count) in [([2, 12], 4, 6), ([2, 8], 16, 1)] {
        let [rows, row] = shape;
        let expected = format!(
            "shape [{rows}, {row}] cannot be packed 8 and grouped \
             {group_size} along its last axis"
        );
        assert_eq!(refused(shape, group_size, count), Some(expected));
    }
    // There is no other row that the last word could reach into.
    assert_eq!(refused([1, 12], 4, 3), None);
}

#[test]
fn sizes_must_fit_the_attributes() {
    let path = test_support::testdata("ztensor/valid/v1.1-hand/quantized_group.zt");
    let reader = Reader::open(path).unwrap();
    reader.tensor("q4").unwrap().quantized().unwrap();
    let error = reader.tensor("q4_zstd").unwrap().quantized().unwrap_err();
    let expected = "object \"q4_zstd\": packed_weight has 256 bytes, expected 512 for 1024 codes of \
                    4 bits";
    assert_eq!(error.to_string(), expected);
    let error = reader.tensor("no_attributes").unwrap().quantized().unwrap_err();
    let expected = "object \"no_attributes\": attribute \"bits\" is missing or not a whole number";
    assert_eq!(error.to_string(), expected);
}
