//! Data that is the same on every run, and the files that it is put into.

use std::{
    env,
    fs::{self, File},
    hint::black_box,
    io::{self, BufRead as _, Read, Write as _},
    num::NonZeroUsize,
    path::Path,
    thread,
};

use anyhow::{Result, anyhow};
use flatbuffers::VOffsetT;
use safetensors::{Dtype, tensor::TensorView};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use ztensor::{
    Storage, WriteOptions, Writer,
    tensor_core::{self, DType, Extent, Source, output::Durability},
};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The bytes of a large tensor.
    pub large: usize,
    /// The bytes that are compressed.
    pub compressed: usize,
    /// The decoded bytes of one zstd frame, where there are several.
    pub frame: u64,
    /// The number of tensors that a file of many small ones has.
    pub tensors: usize,
}

impl Scale {
    /// What the targets are about: 1 GiB, and 100,000 tensors.
    pub const FULL: Self =
        Self { large: 1 << 30, compressed: 256 << 20, frame: 4 << 20, tensors: 100_000 };

    /// A sixteenth of the large tensors, and as many small ones.
    pub const QUICK: Self = Self { large: 64 << 20, compressed: 64 << 20, ..Self::FULL };

    /// Enough to see that everything runs, in a build without optimisation.
    pub const TEST: Self =
        Self { large: 4 << 20, compressed: 1 << 20, frame: 128 << 10, tensors: 1_000 };

    /// Returns what the arguments of the process ask for: the full scale where `cargo bench` is to
    /// measure, the small one where it is to list or to test.
    #[must_use]
    pub fn of_bench() -> Self {
        let has = |wanted: &str| env::args().any(|arg| arg == wanted);
        if has("--bench") && !has("--test") && !has("--list") { Self::FULL } else { Self::TEST }
    }
}

/// Makes a folder for the files of one topic, which is removed with its contents when dropped. It
/// is in the folder for temporary files, so `TMPDIR` says on which disk.
pub(crate) fn folder() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("benches.").tempdir()?)
}

/// A generator of numbers that are no secret: `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Puts items into another order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            // The remainder is at most `end`, so it fits.
            let other = usize::try_from(self.next() % (end as u64 + 1)).unwrap_or_default();
            items.swap(end, other);
        }
    }
}

/// Returns `len` bytes of `f32` between 0 and 1. They repeat, so they are no good to compress.
pub(crate) fn elements(len: usize) -> Vec<u8> {
    const PERIOD: usize = 1 << 20;
    let mut random = Random::new(1);
    let mut block = Vec::with_capacity(PERIOD);
    while block.len() < PERIOD.min(len) {
        // The 23 bits behind the point of a number from 1 to 2.
        let bits = 0x3f80_0000 | (random.next() >> 41) as u32;
        block.extend_from_slice(&(f32::from_bits(bits) - 1.0).to_le_bytes());
    }
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let rest = len - bytes.len();
        bytes.extend_from_slice(&block[..rest.min(block.len())]);
    }
    bytes
}

/// Returns `len` bytes of `bf16` as trained weights are: close to normally distributed around 0.
/// Compression finds the exponents, and nothing else.
pub(crate) fn weights(len: usize) -> Vec<u8> {
    let mut random = Random::new(2);
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let word = random.next();
        let parts = [word, word >> 16, word >> 32, word >> 48].map(|part| f32::from(part as u16));
        let normal = parts.iter().sum::<f32>() - 2.0 * f32::from(u16::MAX);
        let [_, _, low, high] = (normal * 1e-6).to_le_bytes();
        bytes.extend_from_slice(&[low, high]);
    }
    bytes.truncate(len);
    bytes
}

/// Returns `len` bytes in which compression finds nothing.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut random = Random::new(5);
    let mut bytes = Vec::with_capacity(len.next_multiple_of(8));
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Returns names of tensors as those of language models are.
pub(crate) fn names(count: usize) -> Vec<String> {
    const PARTS: [&str; 5] = [
        "self_attn.q_proj.weight",
        "self_attn.k_proj.weight",
        "self_attn.o_proj.weight",
        "mlp.gate_proj.weight",
        "input_layernorm.weight",
    ];
    let name = |index: usize| {
        format!("model.layers.{}.{}", index / PARTS.len(), PARTS[index % PARTS.len()])
    };
    (0..count).map(name).collect()
}

/// Writes a zTensor file of `f32` tensors into any sink.
pub(crate) fn write_ztensor<'t, W: io::Write>(
    mut writer: Writer<W>,
    shape: &[u64],
    tensors: impl IntoIterator<Item = (&'t str, &'t [u8])>,
) -> Result<W> {
    for (name, bytes) in tensors {
        writer.add_view(name, &tensor_core::TensorView::new(DType::F32, shape, bytes)?)?;
    }
    Ok(writer.finish()?)
}

/// Returns the options of files that are not forced to the disk.
pub(crate) fn unsynced(storage: Storage) -> WriteOptions {
    WriteOptions::default().durability(Durability::Cached).storage(storage)
}

/// Returns `f32` tensors of one shape as safetensors writes them.
pub(crate) fn for_safetensors<'t>(
    shape: &[usize],
    tensors: impl IntoIterator<Item = (&'t str, &'t [u8])>,
) -> Result<Vec<(&'t str, TensorView<'t>)>> {
    let view = |(name, bytes)| Ok((name, TensorView::new(Dtype::F32, shape.to_vec(), bytes)?));
    tensors.into_iter().map(view).collect()
}

/// Reads a file once, so that what follows finds it in the page cache.
pub(crate) fn warm(path: &Path) -> Result<()> {
    pieces(path, 1 << 20, |_| Ok(()))
}

/// Copies a file as a plain loop does it, in pieces of so many bytes.
pub(crate) fn copy_file(from: &Path, to: &Path, piece: usize) -> Result<()> {
    let mut to = File::create(to)?;
    pieces(from, piece, |piece| to.write_all(piece))
}

/// Hashes a file by reading it piece by piece.
pub(crate) fn hash_file(path: &Path) -> Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    pieces(path, 1 << 20, |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok(hasher.finalize().into())
}

/// Reads a file in pieces of so many bytes.
pub(crate) fn pieces(
    path: &Path,
    piece: usize,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<()> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; piece]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => take(&buffer[..read])?,
        }
    }
}

/// What the copies that others are compared with read at once, unless a case says otherwise.
pub(crate) const PIECE: usize = 256 << 10;

/// Says how much a second thread gives on this machine, where nothing but hashing is done.
pub(crate) fn hash_on_two_threads(data: &[u8]) -> Result<()> {
    let (front, back) = data.split_at(data.len() / 2);
    thread::scope(|scope| {
        let other = scope.spawn(move || black_box(Sha256::digest(back)));
        black_box(Sha256::digest(front));
        other.join().map(|_| ()).map_err(|_| anyhow!("a hashing thread died"))
    })
}

/// Hashes a file by reading its halves piece by piece, each on a thread of its own.
pub(crate) fn hash_file_on_two_threads(path: &Path) -> Result<()> {
    let source = Source::open(path)?;
    let hash = |extent| -> Result<[u8; 32]> {
        let (mut stream, mut hasher) = (source.stream(extent, "file")?, Sha256::new());
        loop {
            let ready = stream.fill_buf()?;
            if ready.is_empty() {
                return Ok(hasher.finalize().into());
            }
            hasher.update(ready);
            let len = ready.len();
            stream.consume(len);
        }
    };
    let (len, half) = (source.len(), source.len() / 2);
    thread::scope(|scope| {
        let other = scope.spawn(|| hash(Extent::between(half, len)));
        black_box(hash(Extent::first(half))?);
        other.join().map_err(|_| anyhow!("a hashing thread died"))?.map(drop)
    })
}

/// Maps a file of this process.
#[expect(unsafe_code, reason = "mapping is what is measured")]
pub(crate) fn map(path: &Path) -> Result<Source> {
    // SAFETY: it is in a folder of this process, which only appends to it while it is mapped.
    Ok(unsafe { Source::map(path)? })
}

/// Removes a file or a folder, if it is there.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

pub(crate) fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

/// Returns where the field of a number stands in the list of a FlatBuffers table.
pub(crate) const fn slot(field: VOffsetT) -> VOffsetT {
    4 + 2 * field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_between_0_and_1() {
        let bytes = elements(4 << 10);
        let (numbers, rest) = bytes.as_chunks();
        assert!(rest.is_empty());
        assert!(numbers.iter().all(|&number| (0.0..1.0).contains(&f32::from_le_bytes(number))));
    }

    #[test]
    fn weights_compress_as_those_of_models() {
        let bytes = weights(1 << 20);
        assert_eq!(bytes.len(), 1 << 20);
        let ratio = zstd::bulk::compress(&bytes, 3).unwrap().len() as f64 / bytes.len() as f64;
        assert!((0.6..0.9).contains(&ratio), "ratio {ratio}");
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<usize> = (0..100).collect();
        Random::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
