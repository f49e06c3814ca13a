use std::{collections::BTreeMap, num::NonZeroUsize};

use tensor_core::parallel;

/// What a conversion may do to tensors that the target does not have as they are, and how it writes.
///
/// # Examples
///
/// ```
/// use modelcrate::{AnyReader, ConvertOptions, Target, ztensor::Writer};
/// use tensor_core::TensorBuf;
///
/// let mut writer = Writer::new(Vec::new());
/// writer.add("w", &TensorBuf::from_slice([2], &[1_u8, 2])?)?;
/// let reader = AnyReader::from_bytes(writer.finish()?)?;
/// let set = reader.tensor_set()?;
///
/// let refused = set.convert_to(Target::Gguf, &ConvertOptions::default()).unwrap_err();
/// assert_eq!(
///     refused[0].to_string(),
///     "\"w\": gguf has no element type u8 (--lossy: u8 as i16, values stay)",
/// );
/// let conversion = set.convert_to(Target::Gguf, &ConvertOptions::default().lossy(true)).unwrap();
/// for file in conversion.files() {
///     let bytes = file.write(Vec::new(), |_| ())?;
///     assert_eq!((file.name(), file.byte_len()), ("model.gguf", Some(bytes.len() as u64)));
/// }
/// # Ok::<(), modelcrate::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConvertOptions {
    pub(super) densify: bool,
    pub(super) dequantize: bool,
    pub(super) lossy: bool,
    pub(super) names: BTreeMap<String, String>,
    pub(super) compression: Option<i32>,
    pub(super) shard_size: Option<u64>,
    pub(super) stem: String,
    pub(super) threads: NonZeroUsize,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            densify: false,
            dequantize: false,
            lossy: false,
            names: BTreeMap::new(),
            compression: None,
            shard_size: None,
            stem: "model".to_owned(),
            threads: parallel::available(),
        }
    }
}

impl ConvertOptions {
    /// Sets whether sparse tensors are stored with their zeros.
    #[must_use]
    pub const fn densify(mut self, densify: bool) -> Self {
        self.densify = densify;
        self
    }

    /// Sets whether quantized tensors become `f32`: those with scales and zero points, and the
    /// blocks of GGUF that [`ElementType::can_dequantize`](crate::weights::ElementType::can_dequantize)
    /// knows.
    #[must_use]
    pub const fn dequantize(mut self, dequantize: bool) -> Self {
        self.dequantize = dequantize;
        self
    }

    /// Sets whether elements of a type that the target does not have become those of the nearest that
    /// it has. Numbers are rounded; those that the other type does not have room for are refused when
    /// they are written.
    #[must_use]
    pub const fn lossy(mut self, lossy: bool) -> Self {
        self.lossy = lossy;
        self
    }

    /// Sets the new names of tensors by their old ones; others keep theirs.
    #[must_use]
    pub fn names(mut self, names: BTreeMap<String, String>) -> Self {
        self.names = names;
        self
    }

    /// Sets the level of compression: of zstd in zTensor, of DEFLATE in npz. Not at all by default.
    #[must_use]
    pub const fn compression(mut self, level: i32) -> Self {
        self.compression = Some(level);
        self
    }

    /// Sets how many bytes of tensors a file may have: more go to further files, with an index
    /// beside them. Only safetensors has such.
    #[must_use]
    pub const fn shard_size(mut self, bytes: u64) -> Self {
        self.shard_size = Some(bytes);
        self
    }

    /// Sets what the names of files start with, which an index holds; `model` by default.
    #[must_use]
    pub fn stem(mut self, stem: impl Into<String>) -> Self {
        self.stem = stem.into();
        self
    }

    /// Sets how many threads decode; as many as the system offers by default. The files do not depend
    /// on it.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }
}
