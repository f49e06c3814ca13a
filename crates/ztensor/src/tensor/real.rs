//! Numbers that are stored as codes with scales, as generation 2 defines them.

use std::fmt;

use tensor_core::{
    DType, F8E4M3, F8E5M2,
    float16::{bf16_to_f32, f16_to_f32},
};

use super::{Blob, BlobReader, Tensor};
use crate::{
    ElementType, Format, Object, Role,
    error::{Error, Result},
    v2::profile::{self, Blocks, Group, Remark, Zero},
};

impl<'a> Tensor<'a> {
    /// Returns the real numbers of a tensor of generation 2 that is stored as `zt.quant_group/1` or
    /// `zt.mx/1`, row-major; they are decoded as they are asked for, in memory that does not grow with
    /// their number.
    ///
    /// ```text
    /// zt.quant_group/1   (code - zero point) × scale; codes that fill signed words are signed
    /// zt.mx/1            element × 2^(scale - 127), NaN where the scale is 255; of i8, 64ths
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::WrongFormat`] for other layouts; [`Error::Layout`] where the parts are not those of
    /// the layout; [`Error::Given`] where neighbours along another axis than the innermost share a
    /// scale, as the format does not say in which order these come; else as for [`Blob::stream`].
    pub fn dequantized(self) -> Result<Dequantized<'a>> {
        let object = self.object()?;
        let attributes = self.attributes()?.unwrap_or_default();
        let broken = |remark| {
            let (Remark::Broken(problem) | Remark::Unchecked(problem)) = remark;
            Error::Layout { object: self.name().to_owned(), problem }
        };
        let part = |role| self.required(&object, &role);
        let (size, axis, codes, zeros) = match object.format {
            Format::QuantGroup => {
                let group = profile::quant_group(&object, &attributes).map_err(broken)?;
                let zeros = match group.zero {
                    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
                    Zero::Implied(zero) => Zeros::All(zero as f64),
                    Zero::Plain => Zeros::Each(Box::new(Numbers::of(part(Role::Zeros)?)?)),
                    Zero::Packed => {
                        Zeros::Each(Box::new(Numbers::packed(part(Role::Zeros)?, &group)?))
                    }
                };
                (group.size, group.axis, Numbers::packed(part(Role::Data)?, &group)?, zeros)
            }
            Format::Mx => {
                let Blocks { size, axis } = profile::mx(&object, &attributes).map_err(broken)?;
                let mut elements = Numbers::of(part(Role::Data)?)?;
                if elements.blob.elements()? == ElementType::Plain(DType::I8) {
                    // OCP Microscaling: those of MXINT8 have six bits behind the point.
                    elements.decode = |bits| signed(bits, 8) / 64.0;
                }
                (size, axis, elements, Zeros::All(0.0))
            }
            found => {
                let (object, expected) = (self.name().to_owned(), "zt.quant_group/1 or zt.mx/1");
                return Err(Error::WrongFormat { object, found, expected });
            }
        };
        if axis.stride > 1 && size > 1 {
            return Err(self.unordered(&object, axis.axis));
        }
        let scales = Numbers::of(part(Role::Scales)?)?;
        let left = object.elements()?;
        Ok(Dequantized { codes, scales, zeros, size, shared: 0, scale: 0.0, zero: 0.0, left })
    }

    fn unordered(self, object: &Object, axis: u64) -> Error {
        let reason = format!(
            "object {:?} has scales along axis {axis} of shape {}, whose order the format defines for \
             the innermost axis alone",
            self.name(),
            object.shape
        );
        Error::Given { reason }
    }
}

/// The real numbers of a quantized tensor, made by [`Tensor::dequantized`].
#[derive(Debug)]
pub struct Dequantized<'a> {
    codes: Numbers<'a>,
    scales: Numbers<'a>,
    zeros: Zeros<'a>,
    /// How many numbers share a scale, and how many more share the last one.
    size: u64,
    shared: u64,
    scale: f64,
    zero: f64,
    left: u64,
}

/// What is subtracted from codes.
#[derive(Debug)]
enum Zeros<'a> {
    All(f64),
    /// One for each scale.
    Each(Box<Numbers<'a>>),
}

impl Dequantized<'_> {
    fn number(&mut self) -> Result<f32> {
        if self.shared == 0 {
            self.scale = self.scales.number()?;
            self.zero = match &mut self.zeros {
                Zeros::All(zero) => *zero,
                Zeros::Each(zeros) => zeros.number()?,
            };
            self.shared = self.size;
        }
        self.shared = self.shared.saturating_sub(1);
        let real = (self.codes.number()? - self.zero) * self.scale;
        #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
        Ok(real as f32)
    }
}

impl Iterator for Dequantized<'_> {
    type Item = Result<f32>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let number = self.number();
        if number.is_err() {
            self.left = 0;
        }
        Some(number)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// The numbers of a part, one after another.
struct Numbers<'a> {
    blob: Blob<'a>,
    stream: BlobReader,
    /// Bytes of a word, bits of a code in it, and where its first code is.
    width: usize,
    bits: u32,
    is_high_first: bool,
    decode: fn(u64) -> f64,
    /// Decoded bytes, and where the next word is in them.
    ready: Vec<u8>,
    at: usize,
    /// The last word, and how many bits of it are left.
    word: u64,
    left: u32,
}

impl<'a> Numbers<'a> {
    /// Reads elements.
    fn of(blob: Blob<'a>) -> Result<Self> {
        let decode: fn(u64) -> f64 = match blob.elements()? {
            ElementType::Packed { name: "f4_e2m1", .. } => f4,
            ElementType::Packed { name: "f8_e8m0", .. } => f8_e8m0,
            ElementType::Plain(DType::I8) => |bits| signed(bits, 8),
            ElementType::Plain(DType::I16) => |bits| signed(bits, 16),
            ElementType::Plain(DType::I32) => |bits| signed(bits, 32),
            ElementType::Plain(DType::I64) => |bits| signed(bits, 64),
            ElementType::Plain(DType::U8 | DType::U16 | DType::U32 | DType::U64) => unsigned,
            ElementType::Plain(DType::F8E4M3) => {
                |bits| F8E4M3::from_bits(low(bits)).to_f32().into()
            }
            ElementType::Plain(DType::F8E5M2) => {
                |bits| F8E5M2::from_bits(low(bits)).to_f32().into()
            }
            ElementType::Plain(DType::F16) => |bits| f16_to_f32(low16(bits)).into(),
            ElementType::Plain(DType::BF16) => |bits| bf16_to_f32(low16(bits)).into(),
            ElementType::Plain(DType::F32) => |bits| f32::from_bits(low32(bits)).into(),
            ElementType::Plain(DType::F64) => f64::from_bits,
            other => {
                let problem = format!("has {} of {other}, expected numbers", blob.role());
                return Err(Error::Layout { object: blob.object().to_owned(), problem });
            }
        };
        let bits = match blob.elements()? {
            ElementType::Plain(dtype) => dtype.bits().unwrap_or(8),
            ElementType::Packed { bits, .. } => bits,
        };
        Self::new(blob, bits.div_ceil(8), bits, false, decode)
    }

    /// Reads codes that are packed into words.
    fn packed(blob: Blob<'a>, group: &Group) -> Result<Self> {
        let dtype = blob.element_type()?;
        let word = dtype.bits().unwrap_or_default();
        if !dtype.is_integer() || Some(word) != group.word.bits() {
            let (role, expected) = (blob.role(), group.word);
            let problem = format!("has {role} of {dtype}, expected words of {expected}");
            return Err(Error::Layout { object: blob.object().to_owned(), problem });
        }
        let bits = u32::try_from(group.bits).unwrap_or(word);
        if bits == word {
            return Self::of(blob);
        }
        Self::new(blob, word / 8, bits, group.is_high_first, unsigned)
    }

    fn new(
        blob: Blob<'a>,
        width: u32,
        bits: u32,
        is_high_first: bool,
        decode: fn(u64) -> f64,
    ) -> Result<Self> {
        let stream = blob.stream()?;
        // At most 8 bytes.
        let width = usize::try_from(width).unwrap_or(8);
        let (ready, at, word, left) = (Vec::new(), 0, 0, 0);
        Ok(Self { blob, stream, width, bits, is_high_first, decode, ready, at, word, left })
    }

    fn number(&mut self) -> Result<f64> {
        if self.left == 0 {
            self.word = self.next_word()?;
            self.left = u32::try_from(self.width).unwrap_or_default().saturating_mul(8);
        }
        let after = self.left.saturating_sub(self.bits);
        let mask = u64::MAX.checked_shr(64_u32.saturating_sub(self.bits)).unwrap_or_default();
        let all = u32::try_from(self.width).unwrap_or_default().saturating_mul(8);
        let shift = if self.is_high_first { after } else { all.saturating_sub(self.left) };
        self.left = after;
        Ok((self.decode)(self.word.checked_shr(shift).unwrap_or_default() & mask))
    }

    fn next_word(&mut self) -> Result<u64> {
        if self.at >= self.ready.len() {
            self.ready.resize(CHUNK, 0);
            let filled = self.stream.fill(&mut self.ready);
            let filled = filled.map_err(|error| self.blob.stream_fault(error))?;
            self.ready.truncate(filled);
            self.at = 0;
        }
        let end = self.at.saturating_add(self.width);
        let Some(bytes) = self.ready.get(self.at..end) else {
            let problem = format!("has too few {} for its shape", self.blob.role());
            return Err(Error::Layout { object: self.blob.object().to_owned(), problem });
        };
        self.at = end;
        Ok(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }
}

impl fmt::Debug for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Numbers").field("blob", &self.blob).finish_non_exhaustive()
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
const fn unsigned(bits: u64) -> f64 {
    bits as f64
}

/// Reads the lowest `width` bits as a number with a sign.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn signed(bits: u64, width: u32) -> f64 {
    let above = 64_u32.saturating_sub(width);
    bits.checked_shl(above).unwrap_or_default().cast_signed().checked_shr(above).unwrap_or_default()
        as f64
}

/// A sign, two bits of exponent and one behind the point.
fn f4(bits: u64) -> f64 {
    let magnitude = match bits & 7 {
        0 => 0.0,
        1 => 0.5,
        2 => 1.0,
        3 => 1.5,
        4 => 2.0,
        5 => 3.0,
        6 => 4.0,
        _ => 6.0,
    };
    if bits & 8 == 0 { magnitude } else { -magnitude }
}

/// Nothing but an exponent.
const fn f8_e8m0(bits: u64) -> f64 {
    match bits & 0xff {
        0xff => f64::NAN,
        // What binary64 adds to exponents is 1023, and here it is 127.
        exponent => f64::from_bits(exponent.saturating_add(1023 - 127) << 52),
    }
}

fn low(bits: u64) -> u8 {
    u8::try_from(bits & 0xff).unwrap_or_default()
}

fn low16(bits: u64) -> u16 {
    u16::try_from(bits & 0xffff).unwrap_or_default()
}

fn low32(bits: u64) -> u32 {
    u32::try_from(bits & 0xffff_ffff).unwrap_or_default()
}

/// How much is decoded at once, in bytes: whole words of every width.
const CHUNK: usize = 64 << 10;
