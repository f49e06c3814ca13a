//! What is in tensors: digests, statistics and first elements, alike for all formats.

use std::{collections::HashSet, mem};

use serde_json::{Value, json};
use tensor_core::{
    Budget, Chain, DType, F8E4M3, F8E5M2, Finding, Limits, Shape,
    digest::{Algorithm, Hasher},
    float16::{bf16_to_f32, f16_to_f32},
};

use crate::{
    AnyReader, AnyTensor, Content, Error, Result, Summary, SummaryOptions, TensorSummary,
    each::each,
    hash::{digest, hex},
    quantization::{self, Affine},
    stats::{Running, Tables},
    stream::Stream,
    weights,
};

impl AnyReader {
    /// Leaves out what is not asked for, and adds what is asked of the rest.
    pub(crate) fn add_contents(&self, options: &SummaryOptions, summary: &mut Summary) {
        let tensors = match self.tensors() {
            Ok(tensors) if options.reads() => tensors,
            // Where the list cannot be read, a finding says so already.
            _ => {
                summary.tensors.retain(|tensor| options.is_meant(&tensor.name));
                return;
            }
        };
        let budget = Budget::sharing(READ, self.limits(), self.byte_len());
        let (verified, chunk, tables) = (HashSet::new(), vec![0; CHUNK], Tables::default());
        let mut reader = Contents { options, budget, verified, chunk, tables };
        let mut kept = Vec::new();
        for (mut described, tensor) in mem::take(&mut summary.tensors).into_iter().zip(tensors) {
            if !options.is_meant(&described.name) {
                continue;
            }
            if let Err(error) = reader.add(tensor, &mut described) {
                summary.findings.add(finding(tensor, &described.name, &error));
            }
            kept.push(described);
        }
        summary.tensors = kept;
    }

    fn limits(&self) -> &Limits {
        each!(AnyReader: self, reader => reader.limits())
    }
}

fn finding(tensor: AnyTensor<'_>, name: &str, error: &Error) -> Finding {
    let path: Option<String> = match tensor {
        #[cfg(feature = "circle")]
        AnyTensor::Circle(tensor) => Some(tensor.path()),
        #[cfg(feature = "rten")]
        AnyTensor::Rten(tensor) => Some(tensor.path()),
        #[allow(unreachable_patterns, reason = "without other formats")]
        _ => None,
    };
    let message = Chain(error).to_string();
    // The place is not said again.
    let bare = path.as_deref().and_then(|path| message.strip_prefix(path));
    let bare = bare.map_or(message.as_str(), str::trim_start).to_owned();
    let at = match path {
        Some(path) => error.at().path(path),
        None => error.at().tensor(name),
    };
    Finding::error(error.rule(), bare).at(at)
}

/// What is asked of the tensors of a file.
struct Contents<'o> {
    options: &'o SummaryOptions,
    budget: Budget,
    /// Records of storage that were compared with their checksums: tensors share them.
    verified: HashSet<String>,
    /// A piece of a tensor, and what its elements are counted in.
    chunk: Vec<u8>,
    tables: Tables,
}

impl Contents<'_> {
    fn add(&mut self, tensor: AnyTensor<'_>, summary: &mut TensorSummary) -> Result<()> {
        #[cfg(feature = "carton")]
        if let AnyTensor::Carton(tensor) = tensor
            && tensor.file()?.is_none_or(|file| file.place() != carton_format::Place::Here)
        {
            return Ok(());
        }
        let (content, shape) = tensor.content()?;
        let is_shared = match tensor {
            // Each has a file of its own, or is decoded within limits of its own.
            #[cfg(feature = "carton")]
            AnyTensor::Carton(_) => false,
            #[cfg(feature = "ztensor")]
            AnyTensor::ZTensor(_) => false,
            _ => true,
        };
        if is_shared {
            self.budget.take(summary.bytes)?;
        }
        if self.options.digests && !summary.components.is_empty() {
            self.add_digests(tensor, summary)?;
        }
        #[cfg(feature = "ztensor")]
        if let AnyTensor::ZTensor(packed) = tensor
            && quantization::is_packed(&packed.object()?.format)
        {
            if self.options.stats {
                self.add_packed(packed, summary)?;
            }
            return self.verify(tensor);
        }
        if let [(name, stream)] = tensor.parts()?.as_mut_slice()
            && name.is_empty()
        {
            self.read(tensor, stream, (&content, &shape), summary)?;
        } else if self.options.stats {
            summary.stats_of = Some(match content {
                Content::Elements(_) => "nothing: it cannot be made dense".to_owned(),
                Content::Layout(layout) => format!("nothing: it is {layout}"),
            });
        }
        self.verify(tensor)
    }

    /// Computes statistics of numbers that are stored as packed codes.
    #[cfg(feature = "ztensor")]
    fn add_packed(
        &mut self,
        tensor: ztensor::Tensor<'_>,
        summary: &mut TensorSummary,
    ) -> Result<()> {
        let numbers = match quantization::packed(tensor) {
            Err(Error::Weights(weights::Error::Unsupported { what })) => {
                summary.stats_of = Some(format!("nothing: {what}"));
                return Ok(());
            }
            numbers => numbers?,
        };
        let mut running = Running::new(DType::F32, tensor.object()?.elements()?, &mut self.tables);
        let mut piece = Vec::with_capacity(CHUNK);
        for number in numbers.into_iter().flatten() {
            piece.extend_from_slice(&number?.to_le_bytes());
            if piece.len() >= CHUNK {
                running.iter_mut().for_each(|running| running.add(&piece));
                piece.clear();
            }
        }
        running.iter_mut().for_each(|running| running.add(&piece));
        summary.stats_of = Some("dequantized".to_owned());
        summary.stats = running.map(Running::finish);
        Ok(())
    }

    /// Computes the digests of the parts that a summary lists.
    fn add_digests(&self, tensor: AnyTensor<'_>, summary: &mut TensorSummary) -> Result<()> {
        for (name, stream) in &mut tensor.stored_parts()? {
            let component = summary.components.iter_mut().find(|part| part.role == *name);
            if let Some(component) = component {
                component.sha256 = Some(hex(&digest(stream, &|_| ())?));
            }
        }
        Ok(())
    }

    /// Reads a tensor once, for all that is asked of it.
    fn read(
        &mut self,
        tensor: AnyTensor<'_>,
        stream: &mut Stream<'_>,
        (content, shape): (&Content, &Shape),
        summary: &mut TensorSummary,
    ) -> Result<()> {
        let elements = shape.elements()?;
        let dtype = content.dtype();
        let wants_digest = self.options.digests && summary.components.is_empty();
        let mut hasher = wants_digest.then(|| Hasher::new(Algorithm::Sha256));
        let mut affine = match self.options.stats {
            true => Affine::find(tensor)?,
            false => None,
        };
        let of = affine.as_ref().map_or(dtype, |_| Some(DType::F64));
        let wanted = of.filter(|_| self.options.stats);
        let mut running = wanted.and_then(|dtype| Running::new(dtype, elements, &mut self.tables));
        let mut first = Vec::new();
        let len = dtype.and_then(|dtype| dtype.byte_len(elements.min(self.options.values)));
        let mut missing = len.and_then(|len| usize::try_from(len).ok()).unwrap_or_default();
        let mut real = Vec::new();
        while hasher.is_some() || running.is_some() || missing > 0 {
            let filled = stream.fill(&mut self.chunk)?;
            let bytes = self.chunk.get(..filled).unwrap_or_default();
            hasher.iter_mut().for_each(|hasher| hasher.update(bytes));
            match (&mut running, &mut affine) {
                (Some(running), Some(affine)) => {
                    real.clear();
                    affine.apply(bytes, |value| real.extend_from_slice(&value.to_le_bytes()));
                    running.add(&real);
                }
                (Some(running), None) => running.add(bytes),
                (None, _) => {}
            }
            let next = bytes.get(..missing.min(filled)).unwrap_or_default();
            first.extend_from_slice(next);
            missing = missing.saturating_sub(next.len());
            if filled < self.chunk.len() {
                break;
            }
        }
        summary.sha256 = hasher.map(|hasher| hex(&hasher.finish())).or(summary.sha256.take());
        if self.options.stats {
            summary.stats_of = described(content, affine.is_some());
            summary.stats = running.map(Running::finish);
        }
        if let Some(dtype) = dtype.filter(|_| self.options.values > 0) {
            summary.values = match dtype {
                DType::Str => strings(tensor, self.options.values)?,
                dtype => values(dtype, &first, elements.min(self.options.values)),
            };
        }
        Ok(())
    }

    /// Compares a tensor with the digest that the file has for it, where reading did not.
    fn verify(&mut self, tensor: AnyTensor<'_>) -> Result<()> {
        match tensor {
            #[cfg(feature = "ztensor")]
            AnyTensor::ZTensor(tensor) => {
                tensor.verify()?;
            }
            #[cfg(feature = "ptl")]
            AnyTensor::Ptl(tensor) => {
                let record = tensor.record().unwrap_or_default();
                if self.verified.insert(record.to_owned()) {
                    tensor.verify()?;
                }
            }
            // Cartons compare while they are read; others have none.
            _ => {}
        }
        Ok(())
    }
}

/// Says what statistics are of, where that is not simply all elements.
fn described(content: &Content, is_dequantized: bool) -> Option<String> {
    match content.dtype() {
        _ if is_dequantized => Some("dequantized".to_owned()),
        Some(DType::C64 | DType::C128) => Some("magnitudes".to_owned()),
        Some(DType::Str) => Some("nothing: elements are texts".to_owned()),
        None => Some(format!("nothing: elements are {content}")),
        Some(_) => None,
    }
}

/// Returns the first texts of a tensor.
fn strings(tensor: AnyTensor<'_>, most: u64) -> Result<Vec<Value>> {
    match tensor {
        #[cfg(feature = "carton")]
        AnyTensor::Carton(tensor) => {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Ok(tensor.strings()?.into_iter().take(most).map(Value::from).collect())
        }
        #[allow(unreachable_patterns, reason = "without other formats")]
        _ => Ok(Vec::new()),
    }
}

/// Returns elements as JSON has them, each exactly: texts for the numbers that it lacks, pairs for
/// complex ones.
fn values(dtype: DType, bytes: &[u8], elements: u64) -> Vec<Value> {
    let most = usize::try_from(elements).unwrap_or(usize::MAX);
    let halves = || bytes.iter().flat_map(|byte| [byte << 4, byte & 0xf0]);
    macro_rules! each {
        ($bytes:expr, $value:expr) => {
            $bytes.iter().copied().map($value).take(most).collect()
        };
    }
    match dtype {
        DType::Bool => each!(bytes, |byte| match byte {
            0 | 1 => json!(byte == 1),
            other => json!(other),
        }),
        DType::U4 => halves().map(|half| json!(half >> 4)).take(most).collect(),
        DType::I4 => halves().map(|half| json!(half.cast_signed() >> 4)).take(most).collect(),
        DType::U8 => each!(bytes, |byte| json!(byte)),
        DType::I8 => each!(bytes, |byte| json!(byte.cast_signed())),
        DType::F8E4M3 => each!(bytes, |byte| float(f32::from(F8E4M3::from_bits(byte)))),
        DType::F8E5M2 => each!(bytes, |byte| float(f32::from(F8E5M2::from_bits(byte)))),
        DType::I16 => each!(bytes.as_chunks().0, |b| json!(i16::from_le_bytes(b))),
        DType::U16 => each!(bytes.as_chunks().0, |b| json!(u16::from_le_bytes(b))),
        DType::F16 => each!(bytes.as_chunks().0, |b| float(f16_to_f32(u16::from_le_bytes(b)))),
        DType::BF16 => each!(bytes.as_chunks().0, |b| float(bf16_to_f32(u16::from_le_bytes(b)))),
        DType::I32 => each!(bytes.as_chunks().0, |b| json!(i32::from_le_bytes(b))),
        DType::U32 => each!(bytes.as_chunks().0, |b| json!(u32::from_le_bytes(b))),
        DType::F32 => each!(bytes.as_chunks().0, |b| float(f32::from_le_bytes(b))),
        DType::I64 => each!(bytes.as_chunks().0, |b| json!(i64::from_le_bytes(b))),
        DType::U64 => each!(bytes.as_chunks().0, |b| json!(u64::from_le_bytes(b))),
        DType::F64 => each!(bytes.as_chunks().0, |b| double(f64::from_le_bytes(b))),
        DType::C64 => pairs(&values(DType::F32, bytes, elements.saturating_mul(2))),
        DType::C128 => pairs(&values(DType::F64, bytes, elements.saturating_mul(2))),
        _ => Vec::new(),
    }
}

fn pairs(halves: &[Value]) -> Vec<Value> {
    halves.as_chunks::<2>().0.iter().map(|pair| json!(pair)).collect()
}

fn float(value: f32) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

fn double(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

/// What a limit on reading is about.
const READ: &str = "bytes of all tensors";

/// Bytes that are read at a time: a multiple of the width of every element type, and as many as streams
/// hold, so that these are read into place.
const CHUNK: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_exact() {
        for (dtype, bytes, expected) in [
            (DType::F32, 0.1_f32.to_le_bytes().to_vec(), json!([0.1_f32])),
            (DType::F32, f32::NAN.to_le_bytes().to_vec(), json!(["NaN"])),
            (DType::F64, f64::NEG_INFINITY.to_le_bytes().to_vec(), json!(["-inf"])),
            (DType::U64, u64::MAX.to_le_bytes().to_vec(), json!([u64::MAX])),
            (DType::Bool, vec![1, 0], json!([true, false])),
            (DType::I4, vec![0xf1, 0x08], json!([1, -1, -8])),
            (DType::U4, vec![0xf1, 0x08], json!([1, 15, 8])),
            (DType::F16, vec![0x00, 0x3c], json!([1.0])),
        ] {
            let elements = expected.as_array().unwrap().len() as u64;
            assert_eq!(json!(values(dtype, &bytes, elements)), expected, "{dtype}");
        }
        let complex = [1.0_f32, -2.0].map(f32::to_le_bytes).concat();
        assert_eq!(json!(values(DType::C64, &complex, 1)), json!([[1.0, -2.0]]));
    }
}
