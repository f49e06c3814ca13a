//! The two 16-bit floats, as numbers of 32 bits. With the feature `half`, tensors of them give their
//! elements as `half::f16` and `half::bf16`.

/// Returns the value of an IEEE 754 binary16, exactly; a NaN becomes a quiet one.
#[must_use]
pub const fn f16_to_f32(bits: u16) -> f32 {
    let sign = (bits as u32 & 0x8000) << 16;
    let significand = bits as u32 & 0x3ff;
    match bits as u32 >> 10 & 0x1f {
        // Subnormal: so many times 2⁻²⁴, which is exact.
        0 => f32::from_bits((significand as f32 * SMALLEST).to_bits() | sign),
        31 if significand == 0 => f32::from_bits(sign | 0x7f80_0000),
        31 => f32::from_bits(sign | 0x7fc0_0000 | significand << 13),
        // 112 is the difference of the two biases; at most 142 comes out.
        exponent => f32::from_bits(sign | exponent.wrapping_add(112) << 23 | significand << 13),
    }
}

/// Returns the value of the upper half of a binary32, exactly; a NaN becomes a quiet one.
#[must_use]
pub const fn bf16_to_f32(bits: u16) -> f32 {
    let is_nan = bits & 0x7fff > 0x7f80;
    let quiet = if is_nan { 0x0040_0000 } else { 0 };
    f32::from_bits((bits as u32) << 16 | quiet)
}

/// The least positive binary16, 2⁻²⁴.
const SMALLEST: f32 = f32::from_bits(0x3380_0000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_as_in_half() {
        for bits in 0..=u16::MAX {
            let [ours, theirs] = [f16_to_f32(bits), half::f16::from_bits(bits).to_f32()];
            assert_eq!(ours.to_bits(), theirs.to_bits(), "f16 {bits:#06x}");
            let [ours, theirs] = [bf16_to_f32(bits), half::bf16::from_bits(bits).to_f32()];
            assert_eq!(ours.to_bits(), theirs.to_bits(), "bf16 {bits:#06x}");
        }
    }
}
