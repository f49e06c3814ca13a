//! What the tests of this workspace share: where the data files are, how bytes are compared,
//! broken systematically, and how reads are counted.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tensor_core::{Extent, ReadAt, Source};

pub mod bucket;
pub mod cases;
mod corpus;
pub mod flatc;
pub mod killed;
pub mod memory;
mod recorded;
pub mod server;
mod small_disk;
pub mod zip;

pub use corpus::replay;
pub use recorded::Recorded;
pub use small_disk::SmallDisk;

/// Returns the root of the workspace.
#[must_use]
pub fn workspace() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).unwrap_or(Path::new(".")).to_owned()
}

/// Returns the path of a file or folder in `testdata/`.
#[must_use]
pub fn testdata(name: &str) -> PathBuf {
    workspace().join("testdata").join(name)
}

/// Returns the path of a file or folder beside the workspace that is not part of it; `None`, with
/// a line that says so, where it is absent.
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = workspace().join("../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: ../shared/{name} is absent");
    None
}

/// Returns the files of a folder in `testdata/` that end in `.extension`, sorted by name.
///
/// # Panics
///
/// Where there are none: a test over no files proves nothing.
#[must_use]
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = testdata(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{folder:?}: {error}")).path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    assert!(!files.is_empty(), "no .{extension} file in {folder:?}");
    files.sort();
    files
}

/// Returns the names of all that is in a folder, sorted: what is left over shows.
///
/// # Panics
///
/// Where they cannot be read.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let name = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        entry.file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Returns bytes that no method makes much shorter, the same each time.
#[must_use]
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(|_| next()).take(len).collect()
}

/// Asserts that bytes are equal; shows the offset of the first difference and both sides there.
///
/// # Panics
///
/// Where they differ.
#[track_caller]
pub fn assert_bytes(found: &[u8], expected: &[u8], what: &str) {
    if let Some(difference) = difference(found, expected) {
        panic!("{what}: {difference}");
    }
}

/// Describes the first difference between two byte strings, as rows of hex; `None` where they are
/// equal.
#[must_use]
pub fn difference(found: &[u8], expected: &[u8]) -> Option<String> {
    if found == expected {
        return None;
    }
    let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let row = same / 16 * 16;
    let mut text = format!(
        "first difference at byte {same} ({same:#x}); {} bytes found, {} expected",
        found.len(),
        expected.len()
    );
    for (name, bytes) in [("found", found), ("expected", expected)] {
        let shown = bytes.get(row..).unwrap_or_default();
        let shown = shown.get(..32).unwrap_or(shown);
        let _ = write!(text, "\n{name:>8} {row:#06x}: {}", hex(shown));
    }
    Some(text)
}

/// Returns bytes as lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads hex digits.
///
/// # Panics
///
/// Where the text is anything else.
#[must_use]
pub fn unhex(text: &str) -> Vec<u8> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    assert!(rest.is_empty(), "odd number of hex digits");
    let digit =
        |digit: u8| char::from(digit).to_digit(16).map_or_else(|| panic!("{text}"), |d| d as u8);
    pairs.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

/// Calls `check` with every proper beginning of `bytes`.
pub fn truncations(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    for len in 0..bytes.len() {
        check(bytes.get(..len).unwrap_or_default());
    }
}

/// Calls `check` with `bytes` changed in one place: every byte to a few values that tend to
/// matter, and every 8 bytes to numbers at the edges of their range.
pub fn mutations(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    let mut changed = bytes.to_vec();
    for at in 0..bytes.len() {
        let old = bytes[at];
        for new in [old ^ 1, old ^ 0x20, old ^ 0x80, 0, 0xff, old.wrapping_add(1)] {
            if new != old {
                changed[at] = new;
                check(&changed);
            }
        }
        changed[at] = old;
    }
    for at in (0..bytes.len().saturating_sub(7)).step_by(8) {
        for number in [0, 1, 1 << 31, u64::from(u32::MAX), 1 << 63, u64::MAX] {
            changed[at..at + 8].copy_from_slice(&number.to_le_bytes());
            check(&changed);
        }
        changed[at..at + 8].copy_from_slice(&bytes[at..at + 8]);
    }
}

/// A store in memory that notes which extents are read from it.
#[derive(Clone, Debug)]
pub struct CountingSource {
    bytes: Arc<[u8]>,
    /// How many bytes of 0 are behind them.
    zeros: u64,
    reads: Arc<Mutex<Vec<Extent>>>,
    total: Arc<AtomicU64>,
}

impl CountingSource {
    /// Holds these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self::with_zeros(bytes, 0)
    }

    /// Holds these bytes and as many zeros behind them, which take no memory.
    #[must_use]
    pub fn with_zeros(bytes: &[u8], zeros: u64) -> Self {
        Self { bytes: bytes.into(), zeros, reads: Arc::default(), total: Arc::default() }
    }

    /// Returns a source that reads from this store.
    #[must_use]
    pub fn source(&self) -> Source {
        Source::from_read_at(self.clone())
    }

    /// Returns the extents read since the last call, in order.
    #[must_use]
    pub fn take_reads(&self) -> Vec<Extent> {
        std::mem::take(&mut self.reads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the bytes read in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

impl ReadAt for CountingSource {
    fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.zeros
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let extent = Extent::new(offset, buffer.len() as u64).map_err(io::Error::other)?;
        if extent.end() > self.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let held = &self.bytes[start..];
        let held = &held[..held.len().min(buffer.len())];
        buffer[..held.len()].copy_from_slice(held);
        buffer[held.len()..].fill(0);
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(extent);
        self.total.fetch_add(extent.len(), Ordering::Relaxed);
        Ok(())
    }
}
