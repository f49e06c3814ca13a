use std::{io, path::Path};

use bytes::Bytes;
use tensor_core::{Extent, ReadAt, Result, Source};

#[cfg(feature = "archive")]
use crate::archive;
use crate::{Format, ReadOptions, formats, weights};

/// Tells which format some bytes are, by their content alone; `None` where this build reads none
/// such.
///
/// Reads the first 64 bytes and, where they do not tell, the directory of an archive; a JSON object
/// is searched for the keys of a spec.
///
/// # Errors
///
/// Where the bytes cannot be read.
pub fn detect(source: &Source) -> crate::Result<Option<Format>> {
    Ok(Found::look(source, ReadOptions::default())?.format)
}

/// What was found out about some bytes.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) format: Option<Format>,
    /// The archive that they are, where looking meant to open it.
    #[cfg(feature = "archive")]
    pub(crate) archive: Option<model_archive::Archive>,
    /// Why they cannot be opened as the archive that they start as.
    #[cfg(feature = "archive")]
    pub(crate) refused: Option<model_archive::Error>,
}

impl Found {
    /// Looks no further than it has to: at the start, then at what may be an archive.
    pub(crate) fn look(source: &Source, options: ReadOptions) -> crate::Result<Self> {
        let start = Start::read(source)?;
        let is_zip = start.bytes.starts_with(b"PK\x03\x04");
        if !is_zip && let Some(format) = sniff(&start.source())? {
            return Ok(format.into());
        }
        #[cfg(feature = "archive")]
        return archive::look(source, is_zip, options);
        #[cfg(not(feature = "archive"))]
        Ok(Self::default())
    }
}

impl From<Format> for Found {
    fn from(format: Format) -> Self {
        Self {
            format: Some(format),
            #[cfg(feature = "archive")]
            archive: None,
            #[cfg(feature = "archive")]
            refused: None,
        }
    }
}

/// Tells which format some bytes are, archives apart.
fn sniff(source: &Source) -> crate::Result<Option<Format>> {
    #[cfg(feature = "ztensor")]
    if ztensor::sniff(source)? {
        return Ok(Some(Format::ZTensor));
    }
    if let Some(format) = weights::sniff(source)? {
        return Ok(Some(format));
    }
    #[cfg(feature = "circle")]
    if let Some(schema) = circle_format::sniff(source)? {
        return Ok(Some(formats::circle::format_of(schema)));
    }
    #[cfg(feature = "ptl")]
    if ptl_spec::sniff(source)? {
        return Ok(Some(Format::Ptl));
    }
    #[cfg(feature = "rten")]
    if rten_format::sniff(source)? {
        return Ok(Some(Format::Rten));
    }
    #[cfg(feature = "ptl")]
    if ptl_spec::Spec::sniff(source)? {
        return Ok(Some(Format::PtlSpec));
    }
    Ok(None)
}

/// The first bytes of a source, read once for all who look at them.
#[derive(Clone)]
struct Start {
    bytes: Bytes,
    rest: Source,
}

impl Start {
    fn read(source: &Source) -> Result<Self> {
        let bytes = source.read(Extent::first(source.len().min(LOOK)), "start of the file")?;
        Ok(Self { bytes, rest: source.clone() })
    }

    /// Returns a source that reads the first bytes no second time.
    fn source(&self) -> Source {
        Source::from_read_at(self.clone())
    }
}

impl ReadAt for Start {
    fn len(&self) -> u64 {
        self.rest.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let extent = Extent::new(offset, buffer.len() as u64).map_err(io::Error::other)?;
        let start = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..));
        match start.and_then(|start| start.get(..buffer.len())) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => self.rest.read_into(extent, buffer, "file").map_err(io::Error::other)?,
        }
        Ok(())
    }
}

/// What is looked at to tell most formats, in bytes.
const LOOK: u64 = 64;

/// Tells whether a folder is a model of a format that this crate knows.
#[must_use]
pub fn is_model_folder(path: &Path) -> bool {
    model_folder(path).is_some()
}

/// Tells which format a folder is a model of.
pub(crate) fn model_folder(path: &Path) -> Option<Format> {
    // One of the two is enough: a folder that has lost the other is a broken carton.
    if path.join("MANIFEST").is_file() || path.join("carton.toml").is_file() {
        return Some(Format::Carton);
    }
    path.join("metadata/MANIFEST").is_file().then_some(Format::NnPackage)
}

/// Says in words what bytes of no known format look like.
pub(crate) fn looks_like(source: &Source) -> Result<String> {
    let start = Start::read(source)?.bytes;
    let known: [(usize, &[u8], &str); 13] = [
        (0, b"PK\x03\x04", "a ZIP archive"),
        (0, b"\x80\x02", "a pickle"),
        (0, b"\x89HDF", "an HDF5 file"),
        (0, b"\x93NUMPY", "a NumPy array"),
        (0, b"\x28\xb5\x2f\xfd", "zstd frames"),
        (0, b"\x1f\x8b", "gzip data"),
        // Those that a build without their features does not read.
        (0, b"ZTEN1000", "a zTensor file"),
        (0, b"ZTEN0001", "a zTensor file"),
        (0, b"\x89ZT2", "a zTensor file"),
        (0, b"RTEN", "an RTen model"),
        (4, b"CIR0", "a Circle model"),
        (4, b"TFL3", "a TFLite model"),
        (4, b"PTMF", "a PyTorch Live model"),
    ];
    let is_at = |at: usize, magic| start.get(at..).is_some_and(|rest| rest.starts_with(magic));
    let named = known.iter().find(|(at, magic, _)| is_at(*at, magic));
    Ok(match named {
        _ if start.is_empty() => "an empty file".to_owned(),
        Some((_, _, name)) => (*name).to_owned(),
        None => {
            let shown = start.get(..8).unwrap_or(&start);
            format!("bytes that start with \"{}\"", shown.escape_ascii())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        let source = |bytes: &'static [u8]| Source::from_bytes(bytes);
        assert_eq!(detect(&source(b"ZTEN1000 and so on")).unwrap(), Some(Format::ZTensor));
        assert_eq!(detect(&source(b"ZTEN0001")).unwrap(), Some(Format::ZTensor));
        assert_eq!(detect(&source(b"ZTEN")).unwrap(), None);
        assert_eq!(detect(&source(b"")).unwrap(), None);
    }

    #[test]
    fn sound_files_are_what_they_are() {
        for (folder, extension, format) in [
            ("carton/valid", "carton", Format::Carton),
            ("nnpackage/valid", "circle", Format::Circle),
            ("nnpackage/valid", "tflite", Format::TfLite),
            ("nnpackage/valid", "zip", Format::NnPackage),
            ("ptl/valid/torch113", "ptl", Format::Ptl),
            ("ptl/valid/torch251", "ptl", Format::Ptl),
            ("rten/valid", "rten", Format::Rten),
        ] {
            for path in test_support::files(folder, extension) {
                let found = detect(&Source::open(&path).unwrap()).unwrap();
                assert_eq!(found, Some(format), "{path:?}");
            }
        }
    }

    #[test]
    fn models_of_rten_need_no_magic() {
        let model = std::fs::read(test_support::testdata("rten/valid/mlp.v1.rten")).unwrap();
        test_support::truncations(&model[..64], |bytes| {
            detect(&Source::from_bytes(bytes.to_vec())).unwrap();
        });
        for other in [&b"\x04\0\0\0"[..], &[0; 64], b"\xff\0\0\0\0\0\0\xff{\"a\":1}"] {
            assert_eq!(detect(&Source::from_bytes(other.to_vec())).unwrap(), None);
        }
    }

    #[test]
    fn files_of_named_tensors() {
        for (start, format) in [
            (&b"GGUF\x03\0\0\0"[..], Format::Gguf),
            (b"\x08\0\0\0\0\0\0\0{\"a\":1}", Format::Safetensors),
            (b"{ \"weight_map\" : {\"a\": \"b\"}}", Format::Safetensors),
        ] {
            assert_eq!(detect(&Source::from_bytes(start.to_vec())).unwrap(), Some(format));
        }
    }

    #[test]
    fn cartons_are_told_from_other_archives() {
        let carton = test_support::testdata("carton/valid/ref_minimal.carton");
        let carton = std::fs::read(carton).unwrap();
        let cut_off = Source::from_bytes(carton[..carton.len() - 30].to_vec());
        assert_eq!(detect(&cut_off).unwrap(), Some(Format::Carton));
        let archive = test_support::zip::Zip::of(&[("inner.carton", &carton)]).to_bytes();
        assert_eq!(detect(&Source::from_bytes(archive)).unwrap(), None);
        // Without its start nothing tells which format it is, but it is an archive still.
        let error = crate::AnyReader::from_bytes(carton[10..].to_vec()).unwrap_err();
        assert!(error.rule().starts_with("zip/"), "{} {error}", error.rule());
    }

    #[test]
    fn other_files_are_named() {
        for (bytes, name) in [
            (&b"PK\x03\x04 and so on"[..], "a ZIP archive"),
            (b"", "an empty file"),
            (b"\x1b]0;x\x07", "bytes that start with \"\\x1b]0;x\\x07\""),
        ] {
            assert_eq!(looks_like(&Source::from_bytes(bytes)).unwrap(), name);
        }
    }
}
