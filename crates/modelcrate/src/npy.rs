//! Files of `NumPy` that hold one tensor: a magic, a version, a header in Python's notation of
//! dictionaries, elements.
//!
//! The crate `npyz` reads them too, but says nowhere at which byte a file is broken, and takes what
//! stands behind the elements.

use std::io::{self, Write};

use tensor_core::{At, DType, ErrorKind, Extent, Limit, Limits, Shape, Source, TensorBuf};

/// Why a file of `NumPy` could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file breaks its format, or holds what no tensor does.
    #[error("{reason}")]
    Malformed {
        /// What is wrong, with its place.
        reason: String,
        /// The byte that it is at.
        at: u64,
    },
    /// `NumPy` has no name for the element type, or for so many dimensions.
    #[error("npy has no {what}")]
    Unwritable {
        /// What it does not have.
        what: String,
    },
    /// A write failed.
    #[error("writing failed")]
    Write {
        /// What the system said.
        #[from]
        source: io::Error,
    },
    /// An archive of such files is broken, or cannot be written.
    #[cfg(feature = "npz")]
    #[error(transparent)]
    Archive(#[from] model_archive::Error),
    /// Bytes could not be read, or a limit is exceeded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            #[cfg(feature = "npz")]
            Self::Archive(error) => error.rule(),
            Self::Malformed { .. } => "npy/malformed",
            Self::Unwritable { .. } | Self::Write { .. } => "npy/write",
            Self::Core(error) => error.rule(),
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            #[cfg(feature = "npz")]
            Self::Archive(error) => error.kind(),
            Self::Malformed { .. } => ErrorKind::Malformed,
            Self::Unwritable { .. } => ErrorKind::Usage,
            Self::Write { .. } => ErrorKind::Io,
            Self::Core(error) => error.kind(),
        }
    }

    /// Returns where in the file the error is.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            #[cfg(feature = "npz")]
            Self::Archive(error) => error.at(),
            Self::Malformed { at, .. } => At::file().offset(*at),
            Self::Core(error) => error.at(),
            Self::Unwritable { .. } | Self::Write { .. } => At::file(),
        }
    }
}

/// The result of what reads or writes files of `NumPy`.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Writes a tensor as version 1.0: little-endian, row-major, its elements at a multiple of 64 bytes.
///
/// # Errors
///
/// [`Error::Unwritable`] where `NumPy` has no such element type; [`Error::Write`].
pub fn write(tensor: &TensorBuf, sink: &mut impl Write) -> Result<()> {
    let info = tensor.info();
    let descr = TYPES.iter().find(|(_, dtype)| *dtype == info.dtype);
    let unwritable = |what| Error::Unwritable { what };
    let (descr, _) = descr.ok_or_else(|| unwritable(format!("element type {}", info.dtype)))?;
    let dims: Vec<String> = info.shape.dims().iter().map(u64::to_string).collect();
    let shape = match dims.as_slice() {
        [dim] => format!("({dim},)"),
        dims => format!("({})", dims.join(", ")),
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let len = PREFIX.saturating_add(header.len()).saturating_add(1).next_multiple_of(ALIGNMENT);
    let padding = len.saturating_sub(PREFIX).saturating_sub(1);
    header = format!("{header:padding$}\n");
    let header_len = u16::try_from(header.len());
    let header_len = header_len.map_err(|_| unwritable("room for such a shape".to_owned()))?;
    sink.write_all(MAGIC)?;
    sink.write_all(&[1, 0])?;
    sink.write_all(&header_len.to_le_bytes())?;
    sink.write_all(header.as_bytes())?;
    Ok(sink.write_all(tensor.bytes())?)
}

/// Reads a file of version 1.0 or 2.0 that holds little-endian numbers or truth values, row-major,
/// and nothing behind them.
///
/// # Errors
///
/// [`Error::Malformed`] where it is not such a file; [`Error::Core`] where it cannot be read, or its
/// elements are over [`Limits::decoded_bytes`].
pub fn read(source: &Source, limits: &Limits) -> Result<TensorBuf> {
    let place = header_extent(source)?;
    let text = source.read(place, "npy header")?;
    let Header { dtype, shape } = Parser { rest: &text }.header().or_else(|stop| {
        let (rest, found, expected) = stop;
        let at = place.end().saturating_sub(rest.len() as u64);
        malformed(at, format!("header at byte {at} is {found}, expected {expected}"))
    })?;
    let data = Extent::between(place.end(), source.len());
    check_len(data, dtype, &shape)?;
    limits.check(Limit::DecodedBytes, "data in bytes", data.len())?;
    let bytes = source.read(data, "npy data")?;
    if dtype == DType::Bool
        && let Some(at) = bytes.iter().position(|byte| *byte > 1)
    {
        let byte = data.offset().saturating_add(at as u64);
        return malformed(byte, format!("element {at} is neither 0 nor 1, expected a truth value"));
    }
    Ok(TensorBuf::new(dtype, shape, bytes)?)
}

/// Reads what stands before the header, and returns where that is.
fn header_extent(source: &Source) -> Result<Extent> {
    let start = source.read(Extent::first(source.len().min(12)), "npy prefix")?;
    let magic = start.get(..6).unwrap_or(&start);
    if magic != MAGIC {
        let magic = magic.escape_ascii();
        return malformed(0, format!("magic at byte 0 is \"{magic}\", expected \"\\x93NUMPY\""));
    }
    let (at, len) = match start.get(6..).unwrap_or_default() {
        [1, 0, a, b, ..] => (10, u32::from(u16::from_le_bytes([*a, *b]))),
        [2, 0, a, b, c, d] => (12, u32::from_le_bytes([*a, *b, *c, *d])),
        [major, minor, ..] if (*major, *minor) != (1, 0) && (*major, *minor) != (2, 0) => {
            let found = format!("{major}.{minor}");
            return malformed(6, format!("version at byte 6 is {found}, expected 1.0 or 2.0"));
        }
        _ => {
            let len = source.len();
            return malformed(len, format!("file ends in the prefix, after {len} bytes"));
        }
    };
    if len > HEADER {
        let found = format!("{len} bytes long, expected at most {HEADER}");
        return malformed(at, format!("header at byte {at} is {found}"));
    }
    let header = Extent::new(at, len.into())?.within(source.len(), "npy header");
    header.or_else(|error| malformed(at, error.to_string()))
}

/// Compares the bytes of the elements with what type and shape need.
fn check_len(data: Extent, dtype: DType, shape: &Shape) -> Result<()> {
    let (at, found) = (data.offset(), data.len());
    let expected = shape.byte_len(dtype).or_else(|error| malformed(at, error.to_string()))?;
    if found != expected {
        let needs = format!("but {dtype} {shape} needs {expected}");
        return malformed(at, format!("data at byte {at} is {found} bytes long, {needs}"));
    }
    Ok(())
}

fn malformed<T>(at: u64, reason: String) -> Result<T> {
    Err(Error::Malformed { reason, at })
}

struct Header {
    dtype: DType,
    shape: Shape,
}

/// What is left where parsing stopped, what was found there, and what would do.
type Stop<'a> = (&'a [u8], String, &'static str);

/// Reads the one form of Python's notation that headers have.
struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn header(mut self) -> Result<Header, Stop<'a>> {
        let (mut dtype, mut order, mut shape) = (None, None, None);
        self.sign(b'{', "a dictionary")?;
        while !self.is(b'}') {
            let start = self.skipped();
            let key = self.text()?;
            self.sign(b':', "a colon")?;
            let is_first = match key {
                b"descr" => dtype.replace(self.dtype()?).is_none(),
                b"fortran_order" => order.replace(self.row_major()?).is_none(),
                b"shape" => shape.replace(self.shape()?).is_none(),
                _ => false,
            };
            if !is_first {
                return Err((start, shown(start), KEYS));
            }
            self.comma_or(b'}', "a comma or the end of the dictionary")?;
        }
        if !self.skipped().is_empty() {
            return Err(self.stop("nothing behind the dictionary"));
        }
        match (dtype, order, shape) {
            (Some(dtype), Some(()), Some(shape)) => Ok(Header { dtype, shape }),
            _ => Err(self.stop(KEYS)),
        }
    }

    /// Takes a comma, unless the end comes next.
    fn comma_or(&mut self, end: u8, expected: &'static str) -> Result<(), Stop<'a>> {
        let is_end = self.skipped().first() == Some(&end);
        if is_end || self.is(b',') { Ok(()) } else { Err(self.stop(expected)) }
    }

    fn dtype(&mut self) -> Result<DType, Stop<'a>> {
        let start = self.skipped();
        let name = self.text()?;
        let known = TYPES.iter().find(|(known, _)| known.as_bytes() == name);
        let expected = "a little-endian number or truth value, such as '<f4'";
        known.map(|(_, dtype)| *dtype).ok_or_else(|| (start, shown(start), expected))
    }

    fn row_major(&mut self) -> Result<(), Stop<'a>> {
        self.rest = self.skipped();
        match self.rest.strip_prefix(b"False") {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.stop("False: elements in the order of C")),
        }
    }

    fn shape(&mut self) -> Result<Shape, Stop<'a>> {
        let mut shape = Shape::scalar();
        self.sign(b'(', "a tuple")?;
        while !self.is(b')') {
            if shape.rank() == RANK {
                return Err(self.stop("at most 64 dimensions"));
            }
            shape.push(self.dimension()?);
            // One dimension alone needs the comma, or it is not a tuple.
            match shape.rank() {
                1 => self.sign(b',', "a comma")?,
                _ => self.comma_or(b')', "a comma")?,
            }
        }
        Ok(shape)
    }

    fn dimension(&mut self) -> Result<u64, Stop<'a>> {
        self.rest = self.skipped();
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(digits).unwrap_or_default();
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| self.stop("a dimension"))?;
        self.rest = rest;
        Ok(number)
    }

    /// Takes a text between quotes, without escapes.
    fn text(&mut self) -> Result<&'a [u8], Stop<'a>> {
        self.rest = self.skipped();
        let taken = self.rest.split_first().and_then(|(quote, rest)| {
            let end = rest.iter().position(|byte| byte == quote)?;
            let is_text = matches!(quote, b'\'' | b'"');
            Some((rest.get(..end)?, rest.get(end.saturating_add(1)..)?)).filter(|_| is_text)
        });
        let (text, rest) = taken.ok_or_else(|| self.stop("a text"))?;
        self.rest = rest;
        Ok(text)
    }

    fn sign(&mut self, sign: u8, expected: &'static str) -> Result<(), Stop<'a>> {
        if self.is(sign) { Ok(()) } else { Err(self.stop(expected)) }
    }

    /// Takes a sign, if it comes next.
    fn is(&mut self, sign: u8) -> bool {
        match self.skipped().split_first() {
            Some((first, rest)) if *first == sign => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn skipped(&self) -> &'a [u8] {
        self.rest.trim_ascii_start()
    }

    fn stop(&self, expected: &'static str) -> Stop<'a> {
        let at = self.skipped();
        (at, shown(at), expected)
    }
}

/// Shows what comes next, as far as it is worth it.
fn shown(rest: &[u8]) -> String {
    match rest.get(..rest.len().min(24)) {
        None | Some([]) => "at its end".to_owned(),
        Some(start) => format!("{:?}", String::from_utf8_lossy(start)),
    }
}

/// The names that `NumPy` has for element types. What has one byte has no order of bytes.
const TYPES: [(&str, DType); 12] = [
    ("|b1", DType::Bool),
    ("|i1", DType::I8),
    ("|u1", DType::U8),
    ("<i2", DType::I16),
    ("<u2", DType::U16),
    ("<i4", DType::I32),
    ("<u4", DType::U32),
    ("<i8", DType::I64),
    ("<u8", DType::U64),
    ("<f2", DType::F16),
    ("<f4", DType::F32),
    ("<f8", DType::F64),
];
const KEYS: &str = "'descr', 'fortran_order' and 'shape', each once";
const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes before the header, in version 1.0.
const PREFIX: usize = 10;
const ALIGNMENT: usize = 64;
/// What a header may have, in bytes.
const HEADER: u32 = 1 << 16;
const RANK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let len = u16::try_from(header.len()).unwrap().to_le_bytes();
        [MAGIC, &[1, 0], &len, header.as_bytes(), data].concat()
    }

    fn read_bytes(bytes: Vec<u8>) -> Result<TensorBuf> {
        read(&Source::from_bytes(bytes), &Limits::default())
    }

    #[track_caller]
    fn rejects(bytes: Vec<u8>, message: &str) {
        let error = read_bytes(bytes).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(error.kind().is_file_fault());
    }

    const SOUND: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";

    #[test]
    fn what_is_written_is_read() {
        for (name, dtype) in TYPES {
            for dims in [&[][..], &[3], &[2, 3], &[1, 0, 4]] {
                let shape: Shape = dims.iter().copied().collect();
                let len = shape.byte_len(dtype).unwrap();
                let tensor = TensorBuf::new(dtype, shape, vec![1; len as usize]).unwrap();
                let mut written = Vec::new();
                write(&tensor, &mut written).unwrap();
                assert_eq!((written.len() - tensor.bytes().len()) % ALIGNMENT, 0, "{name}");
                let read = read_bytes(written).unwrap();
                assert_eq!((read.info(), read.bytes()), (tensor.info(), tensor.bytes()));
            }
        }
    }

    /// The bytes are those that `numpy.save` of `NumPy` writes for `arange(2, dtype="<i2")`.
    #[test]
    fn files_are_those_of_numpy() {
        let tensor = TensorBuf::from_slice([2], &[0_i16, 1]).unwrap();
        let mut written = Vec::new();
        write(&tensor, &mut written).unwrap();
        let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
        let expected = file(&format!("{header:117}\n"), &[0, 0, 1, 0]);
        assert_eq!(written, expected);
    }

    #[test]
    fn version_two() {
        let len = u32::try_from(SOUND.len()).unwrap().to_le_bytes();
        let bytes = [MAGIC, &[2, 0], &len, SOUND.as_bytes(), &[0; 8]].concat();
        assert_eq!(read_bytes(bytes).unwrap().info().to_string(), "f32 [2]");
    }

    #[test]
    fn every_truncation() {
        let bytes = file(SOUND, &[0; 8]);
        for len in 0..bytes.len() {
            read_bytes(bytes[..len].to_vec()).expect_err("a truncated file must not open");
        }
    }

    #[test]
    fn other_headers() {
        for (header, message) in [
            (
                "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
                "header at byte 20 is \"'>f4', 'fortran_order': \", expected a little-endian number \
                 or truth value, such as '<f4'",
            ),
            (
                "{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }",
                "header at byte 44 is \"True, 'shape': (2,), }\", expected False: elements in \
                 the order of C",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }",
                "header at byte 62 is \"), }\", expected a comma",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
                "header at byte 61 is \"-2,), }\", expected a dimension",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False}",
                "header at byte 50 is at its end, expected 'descr', 'fortran_order' and 'shape', each \
                 once",
            ),
            (
                "{'descr': '<f4', 'descr': '<f4'}",
                "header at byte 27 is \"'descr': '<f4'}\", expected 'descr', 'fortran_order' and \
                 'shape', each once",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + x",
                "header at byte 66 is \"+ x\", expected nothing behind the dictionary",
            ),
            ("[]", "header at byte 10 is \"[]\", expected a dictionary"),
        ] {
            rejects(file(header, &[0; 8]), message);
        }
    }

    #[test]
    fn other_files() {
        rejects(b"NUMPY".to_vec(), "magic at byte 0 is \"NUMPY\", expected \"\\x93NUMPY\"");
        let mut later = file(SOUND, &[0; 8]);
        later[6] = 3;
        rejects(later, "version at byte 6 is 3.0, expected 1.0 or 2.0");
        let longer = file(SOUND, &[0; 9]);
        rejects(longer, "data at byte 68 is 9 bytes long, but f32 [2] needs 8");
        let bools = SOUND.replace("<f4", "|b1");
        rejects(file(&bools, &[1, 2]), "element 1 is neither 0 nor 1, expected a truth value");
        let huge = SOUND.replace("(2,)", "(18446744073709551615, 2)");
        let message = read_bytes(file(&huge, &[])).unwrap_err().to_string();
        assert!(message.contains("18446744073709551615"), "{message}");
    }
}
