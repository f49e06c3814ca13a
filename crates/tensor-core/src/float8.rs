//! The two 8-bit floats of the OCP specification "8-bit Floating Point" (OFP8), revision 1.0.
//!
//! ```text
//!          sign  exponent  significand  bias  infinities  NaN codes           largest
//! E4M3     1     4         3            7     none        0x7f, 0xff          448
//! E5M2     1     5         2            15    0x7c, 0xfc  0x7d–0x7f, 0xfd–ff  57344
//! ```
//!
//! Both have subnormals. E5M2 is the upper byte of an IEEE 754 binary16; E4M3 gives the codes that
//! would be infinities to numbers, so that a value that is too large becomes NaN.

use std::{cmp::Ordering, fmt};

/// An OCP 8-bit float with 4 exponent bits, `float8_e4m3fn` elsewhere.
///
/// Values compare as floats do: NaN is unequal to itself, and -0 equals 0.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F8E4M3(u8);

impl F8E4M3 {
    /// The largest value, 448.
    pub const MAX: Self = Self(0x7e);
    /// The smallest positive normal value, 2⁻⁶.
    pub const MIN_POSITIVE: Self = Self(0x08);
    /// The NaN of positive sign.
    pub const NAN: Self = Self(0x7f);

    /// Rounds to the nearest value, to the even one of two that are equally near.
    ///
    /// What rounds beyond 448 (that is, lies above 464) becomes NaN, as do the infinities: the
    /// non-saturating conversion of OFP8.
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        Self(E4M3.encode(value, Self::NAN.0))
    }

    /// Rounds as [`from_f32`](Self::from_f32) does, but to 448 where that would be too large.
    ///
    /// Infinities become 448 of their sign, NaN stays NaN: the saturating conversion of OFP8.
    #[must_use]
    pub const fn from_f32_saturating(value: f32) -> Self {
        Self(E4M3.encode(value, Self::MAX.0))
    }

    /// Returns the value, exactly.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "every u8 lies within the 256 entries")]
    pub const fn to_f32(self) -> f32 {
        E4M3_VALUES[self.0 as usize]
    }
}

/// An OCP 8-bit float with 5 exponent bits, the upper byte of an IEEE 754 binary16.
///
/// Values compare as floats do: NaN is unequal to itself, and -0 equals 0.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F8E5M2(u8);

impl F8E5M2 {
    /// The largest finite value, 57344.
    pub const MAX: Self = Self(0x7b);
    /// The smallest positive normal value, 2⁻¹⁴.
    pub const MIN_POSITIVE: Self = Self(0x04);
    /// Positive infinity.
    pub const INFINITY: Self = Self(0x7c);
    /// A quiet NaN of positive sign.
    pub const NAN: Self = Self(0x7e);

    /// Rounds to the nearest value, to the even one of two that are equally near.
    ///
    /// What rounds beyond 57344 (that is, 61440 and more) becomes infinite: the non-saturating
    /// conversion of OFP8.
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        Self(E5M2.encode(value, Self::INFINITY.0))
    }

    /// Rounds as [`from_f32`](Self::from_f32) does, but to 57344 where that would be infinite.
    ///
    /// Infinities become 57344 of their sign, NaN stays NaN: the saturating conversion of OFP8.
    #[must_use]
    pub const fn from_f32_saturating(value: f32) -> Self {
        Self(E5M2.encode(value, Self::MAX.0))
    }

    /// Returns the value, exactly.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "every u8 lies within the 256 entries")]
    pub const fn to_f32(self) -> f32 {
        E5M2_VALUES[self.0 as usize]
    }
}

macro_rules! float8 {
    ($($name:ident),*) => {
        $(
            impl $name {
                /// Takes the stored code as it is.
                #[must_use]
                pub const fn from_bits(bits: u8) -> Self {
                    Self(bits)
                }

                /// Returns the stored code.
                #[must_use]
                pub const fn to_bits(self) -> u8 {
                    self.0
                }

                /// Tells whether it is not a number.
                #[must_use]
                pub const fn is_nan(self) -> bool {
                    self.to_f32().is_nan()
                }
            }

            impl PartialEq for $name {
                fn eq(&self, other: &Self) -> bool {
                    self.to_f32() == other.to_f32()
                }
            }

            impl PartialOrd for $name {
                fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                    self.to_f32().partial_cmp(&other.to_f32())
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(&self.to_f32(), f)
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Display::fmt(&self.to_f32(), f)
                }
            }

            impl From<$name> for f32 {
                fn from(value: $name) -> Self {
                    value.to_f32()
                }
            }

            impl From<$name> for f64 {
                fn from(value: $name) -> Self {
                    Self::from(value.to_f32())
                }
            }
        )*
    };
}

float8!(F8E4M3, F8E5M2);

/// How one of the two types lays out its bits. Codes are without the sign.
struct Layout {
    /// The smallest normal value.
    min_normal: f32,
    /// The value, a power of two, whose last significand bit as an `f32` is worth as much as the
    /// smallest subnormal here.
    subnormal: f32,
    /// 2^(127 - bias): what the code, shifted to where an `f32` has these bits, is multiplied by.
    rebias: f32,
    /// How many significand bits an `f32` has more.
    dropped: u32,
    /// The greatest number that `dropped` bits hold below one half of the last bit kept.
    below_half: u32,
    /// The code of the largest finite value.
    max: u8,
    /// The code of infinity, where there is one.
    infinity: Option<u8>,
    /// The code that NaN is given.
    nan: u8,
}

impl Layout {
    /// Returns the code of the nearest value; `beyond` is what follows the largest.
    const fn encode(&self, value: f32, beyond: u8) -> u8 {
        let magnitude = value.abs();
        let code = if magnitude.is_nan() {
            self.nan
        } else if magnitude < self.min_normal {
            // The sum has no room for what is below the smallest subnormal, so that the processor
            // rounds it, to even; the code is what then stands in the last bits.
            let [code, ..] = (magnitude + self.subnormal).to_bits().to_le_bytes();
            code
        } else {
            let bits = (magnitude / self.rebias).to_bits();
            let odd = (bits >> self.dropped) & 1;
            // An f32 without its sign leaves the uppermost bit free for the carry.
            let rounded = bits.wrapping_add(self.below_half).wrapping_add(odd) >> self.dropped;
            let [code, ..] = rounded.to_le_bytes();
            if rounded > self.max as u32 { beyond } else { code }
        };
        if value.is_sign_negative() { code | SIGN } else { code }
    }

    const fn decode(&self, code: u8) -> f32 {
        let magnitude = code & !SIGN;
        let value = if magnitude <= self.max {
            f32::from_bits((magnitude as u32) << self.dropped) * self.rebias
        } else if let Some(infinity) = self.infinity
            && magnitude == infinity
        {
            f32::INFINITY
        } else {
            f32::NAN
        };
        if code & SIGN == 0 { value } else { -value }
    }

    #[expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        reason = "the code counts to 256"
    )]
    const fn decode_all(&self) -> [f32; 256] {
        let mut values = [0.0; 256];
        let mut code = 0;
        while code < values.len() {
            values[code] = self.decode(code as u8);
            code += 1;
        }
        values
    }
}

const E4M3: Layout = Layout {
    min_normal: 1.0 / 64.0,
    subnormal: 16384.0,
    rebias: f32::from_bits((127 + 120) << 23),
    dropped: 20,
    below_half: 0x0007_ffff,
    max: F8E4M3::MAX.0,
    infinity: None,
    nan: F8E4M3::NAN.0,
};

const E5M2: Layout = Layout {
    min_normal: 1.0 / 16384.0,
    subnormal: 128.0,
    rebias: f32::from_bits((127 + 112) << 23),
    dropped: 21,
    below_half: 0x000f_ffff,
    max: F8E5M2::MAX.0,
    infinity: Some(F8E5M2::INFINITY.0),
    nan: F8E5M2::NAN.0,
};

static E4M3_VALUES: [f32; 256] = E4M3.decode_all();
static E5M2_VALUES: [f32; 256] = E5M2.decode_all();

const SIGN: u8 = 0x80;

macro_rules! plain_bytes {
    ($($float:ty),*) => {
        $(
            // SAFETY: a transparent u8, of which 0 is a value.
            #[expect(unsafe_code, reason = "a promise about the layout of the type above")]
            unsafe impl bytemuck::Zeroable for $float {}

            // SAFETY: a transparent u8, without padding, of which every value is one.
            #[expect(unsafe_code, reason = "a promise about the layout of the type above")]
            unsafe impl bytemuck::Pod for $float {}
        )*
    };
}

plain_bytes!(F8E4M3, F8E5M2);

#[cfg(test)]
mod tests {
    use half::f16;
    use proptest::prelude::*;

    use super::*;

    /// The finite values of positive sign, ascending, with their codes.
    fn finite(max: u8, value: fn(u8) -> f32) -> Vec<(u8, f32)> {
        (0..=max).map(|code| (code, value(code))).collect()
    }

    fn e4m3(code: u8) -> f32 {
        F8E4M3::from_bits(code).to_f32()
    }

    fn e5m2(code: u8) -> f32 {
        F8E5M2::from_bits(code).to_f32()
    }

    /// Checks each pair of neighbours: their midpoint goes to the even code, a bit less or more to
    /// the nearer one.
    #[track_caller]
    fn rounds_to_nearest_even(values: &[(u8, f32)], encode: fn(f32) -> u8) {
        for pair in values.windows(2) {
            let [(low, below), (high, above)] = [pair[0], pair[1]];
            assert!(below < above, "code {high:#x} is not above its neighbour");
            let middle = f32::midpoint(below, above);
            let even = if low % 2 == 0 { low } else { high };
            for (value, code) in
                [(middle.next_down(), low), (middle, even), (middle.next_up(), high)]
            {
                assert_eq!(encode(value), code, "{value:e}");
                assert_eq!(encode(-value), code | SIGN, "{:e}", -value);
            }
        }
    }

    #[test]
    fn every_code_reads_back() {
        for code in 0..=u8::MAX {
            let value = F8E4M3::from_bits(code);
            assert_eq!(F8E4M3::from_f32(value.to_f32()).to_bits(), code, "E4M3 {value}");
            let value = F8E5M2::from_bits(code);
            // NaN has one code per sign; its other bits are not kept.
            let expected = if value.is_nan() { F8E5M2::NAN.0 | code & SIGN } else { code };
            assert_eq!(F8E5M2::from_f32(value.to_f32()).to_bits(), expected, "E5M2 {value}");
        }
    }

    /// From the table of exponent parameters and extreme values in OFP8.
    #[test]
    fn named_values() {
        assert_eq!(F8E4M3::MAX.to_f32(), 448.0);
        assert_eq!(F8E4M3::MIN_POSITIVE.to_f32(), 0.015_625);
        assert_eq!(e4m3(0x01), 1.0 / 512.0);
        assert_eq!(e4m3(0x38), 1.0);
        assert_eq!(e4m3(0x80).to_bits(), (-0.0_f32).to_bits());
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        assert_eq!(F8E5M2::MAX.to_f32(), 57344.0);
        assert_eq!(F8E5M2::MIN_POSITIVE.to_f32(), 1.0 / 16384.0);
        assert_eq!(e5m2(0x01), 1.0 / 65536.0);
        assert_eq!(F8E5M2::INFINITY.to_f32(), f32::INFINITY);
        assert!(F8E5M2::NAN.is_nan() && e5m2(0xfd).is_nan());
    }

    #[test]
    fn e5m2_is_the_upper_byte_of_binary16() {
        for code in 0..=u8::MAX {
            let expected = f16::from_le_bytes([0, code]).to_f32();
            let found = e5m2(code);
            assert!(found == expected || found.is_nan() && expected.is_nan(), "code {code:#x}");
            assert_eq!(found.is_sign_negative(), code >= SIGN, "sign of code {code:#x}");
        }
    }

    #[test]
    fn midpoints_go_to_even() {
        rounds_to_nearest_even(&finite(F8E4M3::MAX.0, e4m3), |value| F8E4M3::from_f32(value).0);
        rounds_to_nearest_even(&finite(F8E5M2::MAX.0, e5m2), |value| F8E5M2::from_f32(value).0);
    }

    #[test]
    fn too_large_values() {
        let large = [464.0_f32.next_up(), 480.0, f32::MAX, f32::INFINITY];
        assert_eq!(F8E4M3::from_f32(464.0), F8E4M3::MAX);
        for value in large {
            assert_eq!(F8E4M3::from_f32(value).to_bits(), 0x7f, "{value}");
            assert_eq!(F8E4M3::from_f32(-value).to_bits(), 0xff, "{value}");
            assert_eq!(F8E4M3::from_f32_saturating(value).to_bits(), 0x7e, "{value}");
            assert_eq!(F8E4M3::from_f32_saturating(-value).to_bits(), 0xfe, "{value}");
        }
        assert_eq!(F8E5M2::from_f32(61440.0_f32.next_down()), F8E5M2::MAX);
        for value in [61440.0, f32::MAX, f32::INFINITY] {
            assert_eq!(F8E5M2::from_f32(value).to_bits(), 0x7c, "{value}");
            assert_eq!(F8E5M2::from_f32(-value).to_bits(), 0xfc, "{value}");
            assert_eq!(F8E5M2::from_f32_saturating(value).to_bits(), 0x7b, "{value}");
            assert_eq!(F8E5M2::from_f32_saturating(-value).to_bits(), 0xfb, "{value}");
        }
    }

    #[test]
    fn nan_stays_nan() {
        for value in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)] {
            assert!(F8E4M3::from_f32(value).is_nan(), "{:#x}", value.to_bits());
            assert!(F8E4M3::from_f32_saturating(value).is_nan(), "{:#x}", value.to_bits());
            assert!(F8E5M2::from_f32(value).is_nan(), "{:#x}", value.to_bits());
            assert!(F8E5M2::from_f32_saturating(value).is_nan(), "{:#x}", value.to_bits());
        }
    }

    #[test]
    fn values_compare_as_floats() {
        assert_ne!(F8E4M3::NAN, F8E4M3::NAN);
        assert_eq!(F8E4M3::from_bits(0x80), F8E4M3::from_bits(0));
        assert!(F8E5M2::from_bits(0xfb) < F8E5M2::from_bits(0x80));
        assert_eq!(F8E5M2::NAN.partial_cmp(&F8E5M2::MAX), None);
    }

    #[test]
    fn shown_as_numbers() {
        let value = F8E4M3::from_f32(1.5);
        assert_eq!(format!("{value} {value:?} {value:.2}"), "1.5 1.5 1.50");
        assert_eq!(format!("{} {:?}", F8E5M2::MAX, F8E5M2::INFINITY), "57344 inf");
    }

    proptest! {
        #[test]
        fn encoding_is_monotone(a in any::<f32>(), b in any::<f32>()) {
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            let saturating = F8E4M3::from_f32_saturating;
            prop_assert!(saturating(low) <= saturating(high), "E4M3 of {low} and {high}");
            prop_assert!(F8E5M2::from_f32(low) <= F8E5M2::from_f32(high), "E5M2 of {low}, {high}");
        }

        #[test]
        fn nothing_is_nearer(value in -500.0..500.0_f32) {
            let found = f64::from(F8E4M3::from_f32_saturating(value));
            for (_, other) in finite(F8E4M3::MAX.0, e4m3) {
                let other = f64::from(other.copysign(value));
                let distance = (found - f64::from(value)).abs();
                prop_assert!(distance <= (other - f64::from(value)).abs(), "{value}: {other}");
            }
        }
    }
}
