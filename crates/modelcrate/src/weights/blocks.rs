//! The numbers that blocks of GGML stand for.
//!
//! Those of the other types are left as they are: `q2_k`, `q3_k`, `q8_1` and `q8_k`, all that start
//! with `iq` and `tq`, `mxfp4`, `nvfp4` and `q1_0`.

use tensor_core::{DType, Error as Core, Limit, TensorBuf, float16::f16_to_f32};

use super::{ElementType, Error, Result, Tensor};

/// Appends the numbers of blocks.
type Decode = fn(&[u8], &mut Vec<f32>);

impl ElementType {
    /// Tells whether [`Tensor::dequantize`] knows the blocks: `q4_0`, `q4_1`, `q5_0`, `q5_1`, `q8_0`,
    /// `q4_k`, `q5_k` and `q6_k`.
    #[must_use]
    pub fn can_dequantize(self) -> bool {
        self.decoder().is_some()
    }

    fn decoder(self) -> Option<Decode> {
        let Self::Blocks { name, .. } = self else { return None };
        Some(match name {
            "q4_0" => |bytes, out| each(bytes, out, q4_0),
            "q4_1" => |bytes, out| each(bytes, out, q4_1),
            "q5_0" => |bytes, out| each(bytes, out, q5_0),
            "q5_1" => |bytes, out| each(bytes, out, q5_1),
            "q8_0" => |bytes, out| each(bytes, out, q8_0),
            "q4_k" => |bytes, out| each(bytes, out, q4_k),
            "q5_k" => |bytes, out| each(bytes, out, q5_k),
            "q6_k" => |bytes, out| each(bytes, out, q6_k),
            _ => return None,
        })
    }
}

impl Tensor<'_> {
    /// Computes the numbers that its blocks stand for, as GGML does.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where these are [not known](ElementType::can_dequantize); where it
    /// cannot be read, or is over [`Limits::decoded_bytes`](tensor_core::Limits) then.
    pub fn dequantize(self) -> Result<TensorBuf> {
        let Some(decode) = self.element_type().decoder() else {
            let (name, found) = (self.name(), self.element_type());
            let what = format!("tensor {name:?} is of {found}, which cannot be dequantized");
            return Err(Error::Unsupported { what });
        };
        let len = self.shape().byte_len(DType::F32)?;
        self.reader().limits().check(Limit::DecodedBytes, "dequantized size in bytes", len)?;
        let mut values = reserve(self.shape().elements()?)?;
        decode(&self.stored_bytes()?, &mut values);
        Ok(TensorBuf::from_vec(self.shape().clone(), values)?)
    }
}

/// Makes room for numbers.
pub(crate) fn reserve(elements: u64) -> Result<Vec<f32>, Core> {
    let mut values = Vec::new();
    let out_of_memory = || Core::OutOfMemory { bytes: elements.saturating_mul(4) };
    let elements = usize::try_from(elements).map_err(|_| out_of_memory())?;
    values.try_reserve_exact(elements).map_err(|_| out_of_memory())?;
    Ok(values)
}

fn each<const N: usize>(bytes: &[u8], out: &mut Vec<f32>, decode: fn(&[u8; N], &mut Vec<f32>)) {
    bytes.as_chunks().0.iter().for_each(|block| decode(block, out));
}

/// ```text
/// scale f16, codes 4 bits [32]: the first half in the low bits of 16 bytes
/// ```
fn q4_0(block: &[u8; 18], out: &mut Vec<f32>) {
    let [a, b, codes @ ..] = block;
    let scale = half([*a, *b]);
    out.extend(nibbles(codes).map(|code| (f32::from(code) - 8.0) * scale));
}

/// ```text
/// scale f16, least f16, codes 4 bits [32]
/// ```
fn q4_1(block: &[u8; 20], out: &mut Vec<f32>) {
    let [a, b, c, d, codes @ ..] = block;
    let (scale, least) = (half([*a, *b]), half([*c, *d]));
    out.extend(nibbles(codes).map(|code| f32::from(code) * scale + least));
}

/// ```text
/// scale f16, fifth bits u32, codes 4 bits [32]
/// ```
fn q5_0(block: &[u8; 22], out: &mut Vec<f32>) {
    let [a, b, bits @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = block;
    let (scale, codes) = (half([*a, *b]), block.last_chunk::<16>().unwrap_or(&[0; 16]));
    out.extend(fives(*bits, codes).map(|code| (f32::from(code) - 16.0) * scale));
}

/// ```text
/// scale f16, least f16, fifth bits u32, codes 4 bits [32]
/// ```
fn q5_1(block: &[u8; 24], out: &mut Vec<f32>) {
    let [a, b, c, d, bits @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = block;
    let (scale, least) = (half([*a, *b]), half([*c, *d]));
    let codes = block.last_chunk::<16>().unwrap_or(&[0; 16]);
    out.extend(fives(*bits, codes).map(|code| f32::from(code) * scale + least));
}

/// ```text
/// scale f16, codes i8 [32]
/// ```
fn q8_0(block: &[u8; 34], out: &mut Vec<f32>) {
    let [a, b, codes @ ..] = block;
    let scale = half([*a, *b]);
    out.extend(codes.iter().map(|code| f32::from(code.cast_signed()) * scale));
}

/// ```text
/// scale f16, least f16, scales and leasts 6 bits [8, 2], codes 4 bits [256]
/// ```
fn q4_k(block: &[u8; 144], out: &mut Vec<f32>) {
    let (head, codes) = block.split_at(16);
    let (scales, codes) = (k_scales(head), codes.as_chunks::<32>().0);
    for ([(scale, least), (next_scale, next_least)], codes) in
        scales.as_chunks().0.iter().zip(codes)
    {
        out.extend(codes.iter().map(|code| scale * f32::from(code & 15) - least));
        out.extend(codes.iter().map(|code| next_scale * f32::from(code >> 4) - next_least));
    }
}

/// ```text
/// scale f16, least f16, scales and leasts 6 bits [8, 2], fifth bits [32] of 8, codes 4 bits [256]
/// ```
fn q5_k(block: &[u8; 176], out: &mut Vec<f32>) {
    let (head, rest) = block.split_at(16);
    let (bits, codes) = rest.split_at(32);
    let (scales, codes) = (k_scales(head), codes.as_chunks::<32>().0);
    let pairs = scales.as_chunks().0.iter().zip(codes).zip((0_u32..8).step_by(2));
    for (([(scale, least), (next_scale, next_least)], codes), shift) in pairs {
        let fives = codes.iter().zip(bits);
        let fifth = move |bits: &u8, shift: u32| (bits >> shift & 1) << 4;
        out.extend(
            fives
                .clone()
                .map(|(code, bits)| scale * f32::from(code & 15 | fifth(bits, shift)) - least),
        );
        out.extend(fives.map(|(code, bits)| {
            next_scale * f32::from(code >> 4 | fifth(bits, shift | 1)) - next_least
        }));
    }
}

/// ```text
/// low codes 4 bits [2, 2, 2, 32], high codes 2 bits [2, 4, 32], scales i8 [16], scale f16
/// ```
fn q6_k(block: &[u8; 210], out: &mut Vec<f32>) {
    let (low, rest) = block.split_at(128);
    let (high, rest) = rest.split_at(64);
    let (scales, scale) = rest.split_at(16);
    let scale = half(scale.first_chunk().copied().unwrap_or_default());
    let halves = low.as_chunks::<64>().0.iter().zip(high.as_chunks::<32>().0);
    for ((low, high), scales) in halves.zip(scales.as_chunks::<8>().0) {
        let rows = low.as_chunks::<32>().0.iter().cycle().zip([0, 0, 4, 4]);
        let parts = rows.zip([0, 2, 4, 6]).zip(scales.as_chunks::<2>().0);
        for (((low, low_shift), high_shift), scales) in parts {
            let codes = low
                .iter()
                .zip(high)
                .map(move |(low, high)| low >> low_shift & 15 | (high >> high_shift & 3) << 4);
            let scales = scales.iter().flat_map(|one| std::iter::repeat_n(one.cast_signed(), 16));
            out.extend(
                scales
                    .zip(codes)
                    .map(|(one, code)| scale * f32::from(one) * (f32::from(code) - 32.0)),
            );
        }
    }
}

/// Returns the scales and the leasts of the eight parts of a block of 256.
fn k_scales(head: &[u8]) -> [(f32, f32); 8] {
    let mut parts = [(0.0, 0.0); 8];
    let [a, b, c, d, packed @ ..] = head else { return parts };
    let (scale, least) = (half([*a, *b]), half([*c, *d]));
    let [first, second, third] = packed.as_chunks::<4>().0 else { return parts };
    let packed = || first.iter().zip(second).zip(third);
    let low = packed().map(|((first, second), _)| (first & 63, second & 63));
    let high = packed().map(|((first, second), third)| {
        (third & 15 | first >> 6 << 4, third >> 4 | second >> 6 << 4)
    });
    for (part, (of_scale, of_least)) in parts.iter_mut().zip(low.chain(high)) {
        *part = (scale * f32::from(of_scale), least * f32::from(of_least));
    }
    parts
}

/// Iterates over codes of 4 bits, the first half of which are the low ones.
fn nibbles(codes: &[u8; 16]) -> impl Iterator<Item = u8> + '_ {
    codes.iter().map(|code| code & 15).chain(codes.iter().map(|code| code >> 4))
}

/// Iterates over codes of 5 bits, of which the fifth are elsewhere.
fn fives(bits: [u8; 4], codes: &[u8; 16]) -> impl Iterator<Item = u8> + '_ {
    let bits = u32::from_le_bytes(bits);
    let fifth = move |at: u32| if bits >> at & 1 == 1 { 16 } else { 0 };
    nibbles(codes).zip(0..).map(move |(code, at)| code | fifth(at))
}

const fn half(bytes: [u8; 2]) -> f32 {
    f16_to_f32(u16::from_le_bytes(bytes))
}
