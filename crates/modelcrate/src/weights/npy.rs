//! Files of `NumPy` that hold one tensor: a magic, a version, a header in Python's notation of
//! dictionaries, elements.
//!
//! The crate `npyz` reads them too, but says nowhere at which byte a file is broken, and takes what
//! stands behind the elements.

use std::io::Write;

use tensor_core::{DType, Extent, Limit, Limits, Shape, Source, TensorBuf, TensorInfo};

use super::{
    Error, Result,
    contents::{Contents, Entry, Order, Place},
    element_type::ElementType,
};

/// Writes a tensor as version 1.0: little-endian, row-major, its elements at a multiple of 64 bytes.
///
/// # Errors
///
/// [`Error::Unwritable`] where `NumPy` has no such element type; [`Error::Write`].
pub fn write(tensor: &TensorBuf, sink: &mut impl Write) -> Result<()> {
    write_header(tensor.info(), sink)?;
    Ok(sink.write_all(tensor.bytes())?)
}

/// Writes what stands before the elements.
pub(crate) fn write_header(info: &TensorInfo, sink: &mut impl Write) -> Result<()> {
    let descr = TYPES.iter().find(|(_, dtype)| *dtype == info.dtype);
    let unwritable = |what: String| Error::Unwritable { what: format!("npy has no {what}") };
    let (name, _) = descr.ok_or_else(|| unwritable(format!("element type {}", info.dtype)))?;
    let order = if info.dtype.bits() == Some(8) { '|' } else { '<' };
    let dims: Vec<String> = info.shape.dims().iter().map(u64::to_string).collect();
    let shape = match dims.as_slice() {
        [dim] => format!("({dim},)"),
        dims => format!("({})", dims.join(", ")),
    };
    let mut header =
        format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': {shape}, }}");
    let len = PREFIX.saturating_add(header.len()).saturating_add(1).next_multiple_of(ALIGNMENT);
    let padding = len.saturating_sub(PREFIX).saturating_sub(1);
    header = format!("{header:padding$}\n");
    let header_len = u16::try_from(header.len());
    let header_len = header_len.map_err(|_| unwritable("room for such a shape".to_owned()))?;
    sink.write_all(MAGIC)?;
    sink.write_all(&[1, 0])?;
    sink.write_all(&header_len.to_le_bytes())?;
    Ok(sink.write_all(header.as_bytes())?)
}

/// Says why a tensor of a shape cannot be in a file.
pub(crate) fn refuses(shape: &Shape) -> Option<String> {
    let rank = shape.rank();
    (rank > RANK).then(|| format!("it has {rank} dimensions, and npy has at most {RANK}"))
}

/// Tells whether `NumPy` has an element type.
#[must_use]
pub fn has(dtype: DType) -> bool {
    TYPES.iter().any(|(_, known)| *known == dtype)
}

/// Reads a file of version 1.0 to 3.0 that holds numbers or truth values in any order, and nothing
/// behind them.
///
/// # Errors
///
/// [`Error::Malformed`] where it is not such a file; [`Error::Core`] where it cannot be read, or its
/// elements are over [`Limits::decoded_bytes`].
pub fn read(source: &Source, limits: &Limits) -> Result<TensorBuf> {
    let Header { dtype, shape, order, data } = Header::read(source, source.len())?;
    limits.check(Limit::DecodedBytes, "data in bytes", data.len())?;
    let bytes = source.read(data, "npy data")?;
    if dtype == DType::Bool
        && let Some(at) = bytes.iter().position(|byte| *byte > 1)
    {
        let byte = data.offset().saturating_add(at as u64);
        return malformed(byte, format!("element {at} is neither 0 nor 1, expected a truth value"));
    }
    Ok(TensorBuf::new(dtype, shape.clone(), order.apply(dtype, &shape, bytes)?)?)
}

/// Reads the header of a file that is open on its own: its tensor is called as `numpy.savez` calls the
/// first that has no name.
pub(super) fn parse(source: &Source) -> Result<Contents> {
    let Header { dtype, shape, order, data } = Header::read(source, source.len())?;
    Ok(one(dtype, shape, data, order))
}

/// Describes a file without a header.
pub(super) fn elements(dtype: DType, shape: Shape, data: Extent) -> Contents {
    one(dtype, shape, data, Order::default())
}

fn one(dtype: DType, shape: Shape, extent: Extent, order: Order) -> Contents {
    let entry = Entry {
        name: "arr_0".to_owned(),
        element_type: ElementType::Plain(dtype),
        shape,
        place: Place::File { source: 0, extent },
        order,
    };
    Contents { entries: vec![entry], ..Contents::default() }
}

impl Header {
    /// Reads the header of a file of so many bytes, of which the source has the start at least.
    pub(super) fn read(source: &Source, len: u64) -> Result<Self> {
        let place = header_extent(source)?;
        let text = source.read(place, "npy header")?;
        let (dtype, order, shape) = Parser { rest: &text }.header().or_else(|stop| {
            let (rest, found, expected) = stop;
            let at = place.end().saturating_sub(rest.len() as u64);
            malformed(at, format!("header at byte {at} is {found}, expected {expected}"))
        })?;
        let data = Extent::between(place.end(), len);
        check_len(data, dtype, &shape)?;
        Ok(Self { dtype, shape, order, data })
    }
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
        [2 | 3, 0, a, b, c, d] => (12, u32::from_le_bytes([*a, *b, *c, *d])),
        [major, minor, ..] if *minor != 0 || !(1..=3).contains(major) => {
            let found = format!("{major}.{minor}");
            return malformed(6, format!("version at byte 6 is {found}, expected 1.0, 2.0 or 3.0"));
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
    Err(Error::malformed("npy/malformed", at, reason))
}

/// What a header says.
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) order: Order,
    /// Where the elements are: the rest of the file.
    pub(super) data: Extent,
}

/// What is left where parsing stopped, what was found there, and what would do.
type Stop<'a> = (&'a [u8], String, &'static str);

/// Reads the one form of Python's notation that headers have.
struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn header(mut self) -> Result<(DType, Order, Shape), Stop<'a>> {
        let (mut dtype, mut columns_first, mut shape) = (None, None, None);
        self.sign(b'{', "a dictionary")?;
        while !self.is(b'}') {
            let start = self.skipped();
            let key = self.text()?;
            self.sign(b':', "a colon")?;
            let is_first = match key {
                b"descr" => dtype.replace(self.dtype()?).is_none(),
                b"fortran_order" => columns_first.replace(self.truth()?).is_none(),
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
        match (dtype, columns_first, shape) {
            (Some((dtype, big_endian)), Some(columns_first), Some(shape)) => {
                Ok((dtype, Order { big_endian, columns_first }, shape))
            }
            _ => Err(self.stop(KEYS)),
        }
    }

    /// Takes a comma, unless the end comes next.
    fn comma_or(&mut self, end: u8, expected: &'static str) -> Result<(), Stop<'a>> {
        let is_end = self.skipped().first() == Some(&end);
        if is_end || self.is(b',') { Ok(()) } else { Err(self.stop(expected)) }
    }

    /// Takes an element type, and tells whether it is big-endian.
    fn dtype(&mut self) -> Result<(DType, bool), Stop<'a>> {
        let start = self.skipped();
        let (order, name) = self.text()?.split_first().unwrap_or((&b' ', &[]));
        let known = TYPES.iter().find(|(known, _)| known.as_bytes() == name);
        let dtype = known.map(|(_, dtype)| *dtype).filter(|dtype| match order {
            b'<' | b'>' => true,
            b'|' => dtype.bits() == Some(8),
            _ => false,
        });
        let expected = "a number or truth value, such as '<f4'";
        dtype.map(|dtype| (dtype, *order == b'>')).ok_or_else(|| (start, shown(start), expected))
    }

    fn truth(&mut self) -> Result<bool, Stop<'a>> {
        self.rest = self.skipped();
        for (word, value) in [(&b"False"[..], false), (b"True", true)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.stop("True or False"))
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

/// The names that `NumPy` has for element types, behind a sign for the order of bytes.
const TYPES: [(&str, DType); 14] = [
    ("b1", DType::Bool),
    ("i1", DType::I8),
    ("u1", DType::U8),
    ("i2", DType::I16),
    ("u2", DType::U16),
    ("i4", DType::I32),
    ("u4", DType::U32),
    ("i8", DType::I64),
    ("u8", DType::U64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::C64),
    ("c16", DType::C128),
];
const KEYS: &str = "'descr', 'fortran_order' and 'shape', each once";
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
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
    fn later_versions() {
        let len = u32::try_from(SOUND.len()).unwrap().to_le_bytes();
        for version in [2, 3] {
            let bytes = [MAGIC, &[version, 0], &len, SOUND.as_bytes(), &[0; 8]].concat();
            assert_eq!(read_bytes(bytes).unwrap().info().to_string(), "f32 [2]");
        }
    }

    /// As `numpy.asfortranarray(numpy.arange(6).reshape(1, 2, 3))` stores its elements.
    #[test]
    fn other_orders() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (1, 2, 3), }";
        let stored = [0_i16, 3, 1, 4, 2, 5].map(i16::to_be_bytes);
        let read = read_bytes(file(header, stored.as_flattened())).unwrap();
        assert_eq!(read.as_slice::<i16>().unwrap(), [0, 1, 2, 3, 4, 5]);
        let header = "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }";
        let read = read_bytes(file(header, [1.0_f32, -2.0].map(f32::to_be_bytes).as_flattened()));
        assert_eq!(
            read.unwrap().bytes()[..],
            *[1.0_f32, -2.0].map(f32::to_le_bytes).as_flattened()
        );
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
                "{'descr': '|f4', 'fortran_order': False, 'shape': (2,), }",
                "header at byte 20 is \"'|f4', 'fortran_order': \", expected a number or truth value, \
                 such as '<f4'",
            ),
            (
                "{'descr': '<f4', 'fortran_order': None, 'shape': (2,), }",
                "header at byte 44 is \"None, 'shape': (2,), }\", expected True or False",
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
        later[6] = 4;
        rejects(later, "version at byte 6 is 4.0, expected 1.0, 2.0 or 3.0");
        let longer = file(SOUND, &[0; 9]);
        rejects(longer, "data at byte 68 is 9 bytes long, but f32 [2] needs 8");
        let bools = SOUND.replace("<f4", "|b1");
        rejects(file(&bools, &[1, 2]), "element 1 is neither 0 nor 1, expected a truth value");
        let huge = SOUND.replace("(2,)", "(18446744073709551615, 2)");
        let message = read_bytes(file(&huge, &[])).unwrap_err().to_string();
        assert!(message.contains("18446744073709551615"), "{message}");
    }
}
