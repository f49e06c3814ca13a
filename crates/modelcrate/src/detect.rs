use std::{fmt, path::Path};

use bytes::Bytes;
use tensor_core::{Extent, Result, Source};

/// A format that this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// Carton (`.carton`): a ZIP archive, or a folder, with `MANIFEST` and `carton.toml`.
    Carton,
    /// nnpackage: a ZIP archive, or a folder, with `metadata/MANIFEST`.
    NnPackage,
    /// A Circle model (`.circle`).
    Circle,
    /// A TFLite model (`.tflite`).
    TfLite,
    /// PyTorch Live (`.ptl`): a ZIP archive of one folder, or a FlatBuffer.
    Ptl,
    /// A PyTorch Live spec in a file of its own (`.live.spec.json`).
    #[serde(rename = "ptl-spec")]
    PtlSpec,
    /// RTen (`.rten`), version 1, which has no magic, or 2.
    Rten,
    /// zTensor (`.zt`), generations 0.1 to 1.2. Generation 2 is recognised and refused.
    ZTensor,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Carton => "carton",
            Self::NnPackage => "nnpackage",
            Self::Circle => "circle",
            Self::TfLite => "tflite",
            Self::Ptl => "ptl",
            Self::PtlSpec => "ptl-spec",
            Self::Rten => "rten",
            Self::ZTensor => "ztensor",
        })
    }
}

/// Tells which format some bytes are, by their content alone; `None` for any other.
///
/// # Errors
///
/// Where the first bytes cannot be read.
pub fn detect(source: &Source) -> Result<Option<Format>> {
    let head = head(source)?;
    if [&b"ZTEN1000"[..], b"ZTEN0001", b"\x89ZT2\r\n\x1a\n"].contains(&&head[..]) {
        return Ok(Some(Format::ZTensor));
    }
    match head.get(4..8) {
        Some(b"CIR0") => return Ok(Some(Format::Circle)),
        Some(b"TFL3") => return Ok(Some(Format::TfLite)),
        Some(b"PTMF") => return Ok(Some(Format::Ptl)),
        _ => {}
    }
    if head.starts_with(b"RTEN") || is_rten_1(source, &head)? {
        return Ok(Some(Format::Rten));
    }
    if is_spec(source)? {
        return Ok(Some(Format::PtlSpec));
    }
    archive(source)
}

/// Tells whether a text looks like a JSON object with the two keys that every spec has.
fn is_spec(source: &Source) -> Result<bool> {
    let text = source.read(Extent::first(source.len().min(SPEC)), "spec")?;
    let object = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).trim_ascii_start();
    let has = |key: &[u8]| object.windows(key.len()).any(|window| window == key);
    Ok(object.starts_with(b"{") && has(b"\"pack\"") && has(b"\"unpack\""))
}

/// A spec is a page or two; more of it is not searched.
const SPEC: u64 = 1 << 20;

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

/// Looks for the root table of an RTen model of version 1: a FlatBuffer without a magic, whose
/// first field is 1 and whose second one refers to a table.
fn is_rten_1(source: &Source, head: &[u8]) -> Result<bool> {
    let Some(root) = head.first_chunk().map(|root| u64::from(u32::from_le_bytes(*root))) else {
        return Ok(false);
    };
    let part = |offset: Option<u64>, len| -> Result<Option<Bytes>> {
        let extent = offset.and_then(|offset| Extent::new(offset, len).ok());
        let inside = extent.filter(|extent| extent.end() <= source.len());
        inside.map(|extent| source.read(extent, "root table")).transpose()
    };
    let Some(distance) = part(Some(root), 4)?.and_then(|bytes| bytes.first_chunk().copied()) else {
        return Ok(false);
    };
    // From the table back to the list of the places of its fields.
    let list = root.checked_sub_signed(i32::from_le_bytes(distance).into());
    let Some(list) = part(list, 8)? else { return Ok(false) };
    let [len, _, version, graph] =
        [0, 2, 4, 6].map(|at| list.get(at..).and_then(<[u8]>::first_chunk).copied());
    let [len, version, graph] =
        [len, version, graph].map(|field| field.map_or(0, u16::from_le_bytes));
    if !root.is_multiple_of(4) || len < 8 || version < 4 || graph < 4 {
        return Ok(false);
    }
    let field = |at: u16| part(root.checked_add(at.into()), 4);
    let (version, graph) = (field(version)?, field(graph)?);
    Ok(version.is_some_and(|version| version[..] == [1, 0, 0, 0]) && graph.is_some())
}

/// Looks for names that tell in the directory of a ZIP archive.
///
/// The archive need not be sound: damage does not hide what it is.
fn archive(source: &Source) -> Result<Option<Format>> {
    let start = source.len().saturating_sub(TAIL);
    let tail = source.read(Extent::between(start, source.len()), "end record")?;
    let Some(end) = tail.windows(4).rposition(|window| window == b"PK\x05\x06") else {
        return Ok(starts_as_carton(source)?.then_some(Format::Carton));
    };
    let number = |at: usize| tail.get(end.saturating_add(at)..)?.first_chunk::<4>().copied();
    let [len, offset] = [12, 16].map(|at| number(at).map_or(u32::MAX, u32::from_le_bytes));
    let directory = Extent::new(offset.into(), u64::from(len).min(DIRECTORY))?;
    if let Ok(directory) = directory.within(source.len(), "directory") {
        let directory = source.read(directory, "directory")?;
        if directory.starts_with(CENTRAL_HEADER) {
            return Ok(named_format(&directory));
        }
    }
    // Where the end record does not tell, the directory is what stands before it.
    Ok(named_format(tail.get(..end).unwrap_or_default()))
}

/// Tells whether the first entry of an archive that was cut off is one of a carton.
fn starts_as_carton(source: &Source) -> Result<bool> {
    let head = source.read(Extent::first(source.len().min(64)), "local header")?;
    let Some(name) = head.strip_prefix(b"PK\x03\x04").and_then(|rest| rest.get(26..)) else {
        return Ok(false);
    };
    let starts = [&b"carton.toml"[..], b"MANIFEST", b"model/", b"misc/", b"tensor_data/"];
    Ok(starts.iter().any(|start| name.starts_with(start)))
}

/// Tells which format the names in a directory are of.
fn named_format(bytes: &[u8]) -> Option<Format> {
    let headers = bytes.windows(4).enumerate().filter(|(_, window)| *window == CENTRAL_HEADER);
    headers.map(|(start, _)| format_of(name(bytes.get(start..).unwrap_or_default()))).fold(
        None,
        |found, format| match (found, format) {
            // A package or a model may hold what is called as a part of another.
            (Some(Format::Carton), _) | (_, Some(Format::Carton)) => Some(Format::Carton),
            (Some(Format::NnPackage), _) | (_, Some(Format::NnPackage)) => Some(Format::NnPackage),
            (found, format) => found.or(format),
        },
    )
}

/// Returns the name in a header of a directory.
fn name(header: &[u8]) -> &[u8] {
    let len = header.get(28..30).and_then(<[u8]>::first_chunk::<2>).copied();
    let len = usize::from(u16::from_le_bytes(len.unwrap_or_default()));
    header.get(46..).and_then(|rest| rest.get(..len)).unwrap_or_default()
}

/// Returns the format that has a file of this name.
fn format_of(name: &[u8]) -> Option<Format> {
    if matches!(name, b"carton.toml" | b"MANIFEST") {
        return Some(Format::Carton);
    }
    let mut parts = name.rsplit(|byte| *byte == b'/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(b"MANIFEST"), Some(b"metadata"), _, None) => Some(Format::NnPackage),
        (Some(b"data.pkl" | b"bytecode.pkl"), Some(_), None, _) => Some(Format::Ptl),
        _ => None,
    }
}

// ZIP application note, section 4.3.12.
const CENTRAL_HEADER: &[u8] = b"PK\x01\x02";
/// The end record, the longest comment, and a directory of hundreds of files.
const TAIL: u64 = 128 << 10;
/// More of a directory is not searched.
const DIRECTORY: u64 = 16 << 20;

/// Says in words what bytes of no known format look like.
pub(crate) fn looks_like(source: &Source) -> Result<String> {
    let head = head(source)?;
    let known: [(&[u8], &str); 7] = [
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x80\x02", "a pickle"),
        (b"GGUF", "a GGUF file"),
        (b"\x89HDF", "an HDF5 file"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"\x28\xb5\x2f\xfd", "zstd frames"),
        (b"\x1f\x8b", "gzip data"),
    ];
    let named = known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name);
    let is_safetensors = head.len() == 8 && {
        let brace = Extent::new(8, 1)?.within(source.len(), "header");
        brace.is_ok_and(|extent| source.read(extent, "header").is_ok_and(|byte| byte[..] == *b"{"))
    };
    Ok(match named {
        _ if head.is_empty() => "an empty file".to_owned(),
        Some(name) => name.to_owned(),
        None if is_safetensors => "a safetensors file".to_owned(),
        None => format!("bytes that start with \"{}\"", head.escape_ascii()),
    })
}

fn head(source: &Source) -> Result<Vec<u8>> {
    Ok(source.read(Extent::first(source.len().min(8)), "magic")?.to_vec())
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
    fn models_of_rten_need_no_magic() {
        for path in test_support::files("rten/valid", "rten") {
            let source = Source::open(&path).unwrap();
            assert_eq!(detect(&source).unwrap(), Some(Format::Rten), "{path:?}");
        }
        let model = test_support::testdata("rten/valid/mlp.v1.rten");
        let model = std::fs::read(model).unwrap();
        test_support::truncations(&model[..64], |bytes| {
            detect(&Source::from_bytes(bytes.to_vec())).unwrap();
        });
        for other in [&b"\x04\0\0\0"[..], &[0; 64], b"\x08\0\0\0\0\0\0\0{\"a\":1}"] {
            assert_eq!(detect(&Source::from_bytes(other.to_vec())).unwrap(), None);
        }
    }

    #[test]
    fn packages_and_models_are_told() {
        let detected = |path: &Path| detect(&Source::open(path).unwrap()).unwrap();
        for (folder, extension, format) in [
            ("ptl/valid/torch113", "ptl", Format::Ptl),
            ("ptl/valid/torch251", "ptl", Format::Ptl),
            ("nnpackage/valid", "circle", Format::Circle),
            ("nnpackage/valid", "tflite", Format::TfLite),
            ("nnpackage/valid", "zip", Format::NnPackage),
        ] {
            if !test_support::testdata(folder).is_dir() {
                continue;
            }
            for path in test_support::files(folder, extension) {
                assert_eq!(detected(&path), Some(format), "{path:?}");
            }
        }
        let spec = br#"{"pack": {"type": "x"}, "unpack": {}}"#;
        assert_eq!(detect(&Source::from_bytes(&spec[..])).unwrap(), Some(Format::PtlSpec));
        assert_eq!(detect(&Source::from_bytes(&b"{\"pack\": 1}"[..])).unwrap(), None);
    }

    #[test]
    fn cartons_are_told_from_other_archives() {
        for path in test_support::files("carton/valid", "carton") {
            assert_eq!(detect(&Source::open(path).unwrap()).unwrap(), Some(Format::Carton));
        }
        let carton = std::fs::read(test_support::testdata("carton/valid/ref_minimal.carton"));
        let carton = carton.unwrap();
        let cut_off = Source::from_bytes(carton[..carton.len() - 30].to_vec());
        assert_eq!(detect(&cut_off).unwrap(), Some(Format::Carton));
        let archive = test_support::zip::Zip::of(&[("inner.carton", &carton)]).to_bytes();
        assert_eq!(detect(&Source::from_bytes(archive)).unwrap(), None);
    }

    #[test]
    fn other_files_are_named() {
        for (bytes, name) in [
            (&b"PK\x03\x04 and so on"[..], "a ZIP archive"),
            (b"\x08\0\0\0\0\0\0\0{\"a\":1}", "a safetensors file"),
            (b"", "an empty file"),
            (b"\x1b]0;x\x07", "bytes that start with \"\\x1b]0;x\\x07\""),
        ] {
            assert_eq!(looks_like(&Source::from_bytes(bytes)).unwrap(), name);
        }
    }
}
