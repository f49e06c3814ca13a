//! Elements in memory, as `NumPy`, the buffer protocol and `DLPack` take them.
//!
//! The only unsafe code of the package: C interfaces that hand out addresses. What they lead to lives
//! as long as its [`Memory`], to which every one of them holds a reference, and does not move.
#![expect(unsafe_code, reason = "addresses are handed to other libraries")]

use std::{
    ffi::{CStr, c_void},
    path::Path,
    ptr::NonNull,
};

use bytes::Bytes;
use modelcrate::tensor_core::{AlignedBuf, DType, Error as Core, Shape, Source};
use pyo3::{
    exceptions::{PyAttributeError, PyBufferError},
    ffi,
    prelude::*,
    types::{PyCapsule, PyDict, PyTuple},
};

use crate::{
    exit,
    fault::{Fault, Result},
};

/// Maps a file, for callers who promise that nothing changes it meanwhile.
pub(crate) fn map(path: &Path) -> Result<Source> {
    // SAFETY: `mmap=True` is documented as this promise of the caller, and is off by default.
    Ok(unsafe { Source::map(path) }?)
}

/// Elements of a tensor, row-major, little-endian and aligned.
#[pyclass(frozen, weakref, module = "modelcrate._native")]
pub(crate) struct Memory {
    /// Keeps `start` valid; never touched again.
    _owner: Owner,
    start: NonNull<u8>,
    len: usize,
    is_writable: bool,
    /// Whether the bytes are those of a file in memory.
    is_view: bool,
    dtype: DType,
    element: Element,
    shape: Box<[isize]>,
    /// In bytes.
    strides: Box<[isize]>,
}

/// Whose the bytes are.
pub(crate) enum Owner {
    /// Those of a file, or of whoever decoded them: others may read them.
    Shared(Bytes),
    /// Nobody else's.
    Owned(AlignedBuf),
}

// SAFETY: the owner can be sent and shared, and Rust neither reads nor writes through the address.
unsafe impl Send for Memory {}
// SAFETY: as above; what Python's threads do to writable memory they do to any array.
unsafe impl Sync for Memory {}

/// What one element is to other libraries.
#[derive(Clone, Copy)]
struct Element {
    /// Of the array interface.
    typestr: &'static str,
    /// Of the module `struct`, where that has it: the order of bytes is that of the host.
    #[cfg_attr(feature = "abi3-py310", expect(dead_code, reason = "there are no buffers"))]
    format: Option<&'static CStr>,
    /// Of `DLPack`, where that has it.
    code: Option<u8>,
    /// In bytes.
    size: u8,
}

impl Element {
    /// Returns what elements of a type are; those that `NumPy` does not have are whole numbers, of their
    /// bits.
    const fn of(dtype: DType) -> Option<Self> {
        const fn of(typestr: &'static str, format: &'static CStr, code: u8, size: u8) -> Element {
            Element { typestr, format: Some(format), code: Some(code), size }
        }
        /// Bits of a float that Python does not have.
        const fn float(typestr: &'static str, code: u8, size: u8) -> Element {
            Element { typestr, format: None, code: Some(code), size }
        }
        Some(match dtype {
            DType::Bool => of("|b1", c"?", 6, 1),
            DType::I8 => of("|i1", c"b", 0, 1),
            DType::I16 => of("<i2", c"h", 0, 2),
            DType::I32 => of("<i4", c"i", 0, 4),
            DType::I64 => of("<i8", c"q", 0, 8),
            DType::U8 => of("|u1", c"B", 1, 1),
            DType::U16 => of("<u2", c"H", 1, 2),
            DType::U32 => of("<u4", c"I", 1, 4),
            DType::U64 => of("<u8", c"Q", 1, 8),
            DType::F8E4M3 => float("|u1", 10, 1),
            DType::F8E5M2 => float("|u1", 12, 1),
            DType::F16 => of("<f2", c"e", 2, 2),
            DType::BF16 => float("<u2", 4, 2),
            DType::F32 => of("<f4", c"f", 2, 4),
            DType::F64 => of("<f8", c"d", 2, 8),
            DType::C64 => of("<c8", c"Zf", 5, 8),
            DType::C128 => of("<c16", c"Zd", 5, 16),
            // Two elements a byte: the bytes are handed out.
            DType::I4 | DType::U4 => Self { typestr: "|u1", format: None, code: None, size: 1 },
            _ => return None,
        })
    }

    /// Returns what the bits of such elements are.
    const fn bits(self) -> Option<Self> {
        match self.size {
            1 => Self::of(DType::U8),
            2 => Self::of(DType::U16),
            4 => Self::of(DType::U32),
            8 => Self::of(DType::U64),
            _ => None,
        }
    }
}

impl Memory {
    /// Takes the bytes of a tensor; they are copied where they are not aligned, or where memory of
    /// their own is asked for and they have none.
    pub(crate) fn new(
        dtype: DType,
        shape: &Shape,
        owner: Owner,
        owned: bool,
        bits: bool,
    ) -> Result<Self> {
        let Some(element) = Element::of(dtype) else {
            return Err(Fault::unsupported(format!("elements of {dtype} are not numbers")));
        };
        let element = if bits { element.bits().unwrap_or(element) } else { element };
        let size = usize::from(element.size);
        let owner = match owner {
            Owner::Shared(bytes) if owned || bytes.as_ptr().addr() % alignment(size) != 0 => {
                let mut copy = AlignedBuf::with_capacity(bytes.len())?;
                copy.extend_from_slice(&bytes)?;
                Owner::Owned(copy)
            }
            owner => owner,
        };
        let bytes: &[u8] = match &owner {
            Owner::Shared(bytes) => bytes,
            Owner::Owned(bytes) => bytes,
        };
        if let (DType::Bool, Some(index)) = (dtype, bytes.iter().position(|&byte| byte > 1)) {
            let found = bytes.get(index).copied().unwrap_or_default();
            return Err(Core::NotABool { index: index as u64, found }.into());
        }
        let dims: Vec<u64> = match dtype.width() {
            Some(_) => shape.dims().to_vec(),
            None => vec![bytes.len() as u64],
        };
        let elements = dims.iter().try_fold(size as u64, |product, dim| product.checked_mul(*dim));
        // Other libraries take our word for it.
        if elements != Some(bytes.len() as u64) {
            let (expected, found) = (elements.unwrap_or(u64::MAX), bytes.len() as u64);
            return Err(Core::WrongLength { shape: shape.clone(), dtype, expected, found }.into());
        }
        let too_large = |_| Core::DimensionTooLarge { shape: shape.clone() };
        let dims = dims.into_iter().map(isize::try_from).collect::<std::result::Result<_, _>>();
        let shape: Box<[isize]> = dims.map_err(too_large)?;
        let strides = strides(&shape, element.size);
        Ok(Self::of(owner, dtype, element, shape, strides))
    }

    /// Notes whether it lies in the bytes of a file that is in memory.
    pub(crate) fn seen_in(self, file: Option<&[u8]>) -> Self {
        let start = self.start.as_ptr().cast_const();
        let is_view = file.is_some_and(|file| file.as_ptr_range().contains(&start));
        Self { is_view: is_view || self.len == 0, ..self }
    }

    fn of(
        mut owner: Owner,
        dtype: DType,
        element: Element,
        shape: Box<[isize]>,
        strides: Box<[isize]>,
    ) -> Self {
        let (start, len, is_writable) = match &mut owner {
            Owner::Shared(bytes) => (NonNull::from(&**bytes).cast(), bytes.len(), false),
            Owner::Owned(bytes) => (NonNull::from(&mut **bytes).cast(), bytes.len(), true),
        };
        Self {
            _owner: owner,
            start,
            len,
            is_writable,
            is_view: false,
            dtype,
            element,
            shape,
            strides,
        }
    }
}

/// Dimensions that every `NumPy` has.
const MAX_RANK: usize = 32;

/// Returns what elements of a size must start at a multiple of; of complex ones each half.
const fn alignment(size: usize) -> usize {
    if size > 8 { 8 } else { size }
}

/// Returns the bytes from one index to the next along each dimension.
fn strides(shape: &[isize], size: u8) -> Box<[isize]> {
    let mut strides: Vec<isize> = Vec::with_capacity(shape.len());
    let mut stride = isize::from(size);
    for dim in shape.iter().rev() {
        strides.push(stride);
        // Where a dimension is 0, nothing is reached through the others.
        stride = stride.saturating_mul((*dim).max(1));
    }
    strides.reverse();
    strides.into()
}

#[pymethods]
impl Memory {
    #[getter]
    const fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.len
    }

    #[getter]
    fn rank(&self) -> usize {
        self.shape.len()
    }

    #[getter]
    fn writable(&self) -> bool {
        self.is_writable
    }

    #[getter]
    pub(crate) const fn is_view(&self) -> bool {
        self.is_view
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.shape.len() > MAX_RANK {
            // NumPy before 2 does not check, and writes behind the end of its own memory.
            return Err(PyAttributeError::new_err("NumPy has no array of so many dimensions"));
        }
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", self.element.typestr)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (self.start.as_ptr().addr(), !self.is_writable))?;
        Ok(interface)
    }

    /// Says that it is in the memory of the host.
    #[staticmethod]
    const fn __dlpack_device__() -> (i32, i32) {
        (CPU.kind, CPU.id)
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: Bound<'py, Self>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        if copy == Some(true) {
            return refuse("a copy is asked for, expected copy=None or False");
        }
        Asked::new(stream, max_version, dl_device)?.export(slf, false)
    }

    /// Hands out the bytes with what they are.
    #[cfg(not(feature = "abi3-py310"))]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes a view to be filled.
        unsafe { fill(slf, view, flags) }
    }
}

/// How a consumer of `DLPack` asks for memory.
pub(crate) struct Asked {
    /// The latest that it takes.
    version: (u32, u32),
}

impl Asked {
    /// Takes what `__dlpack__` is called with.
    pub(crate) fn new(
        stream: Option<Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
    ) -> PyResult<Self> {
        if stream.is_some() {
            return refuse("stream is given, expected None for memory of the host");
        }
        if dl_device.is_some_and(|device| device != Memory::__dlpack_device__()) {
            return refuse("the device is another, expected that of the host, (1, 0)");
        }
        Ok(Self { version: max_version.unwrap_or_default() })
    }

    /// Tells whether the consumer learns what is read-only.
    pub(crate) const fn has_flags(&self) -> bool {
        self.version.0 >= 1
    }

    /// Hands over memory; `is_alone` says that it was read for this consumer, who may write to it.
    pub(crate) fn export<'py>(
        &self,
        memory: Bound<'py, Memory>,
        is_alone: bool,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let Memory { is_writable, dtype, .. } = *memory.get();
        if cfg!(target_endian = "big") {
            return refuse("elements are little-endian, and this host is not");
        }
        let Some(tensor) = Tensor::of(memory.get()) else {
            return refuse("DLPack has no elements of 4 bits: take tensor.numpy()");
        };
        let since = if matches!(dtype, DType::F8E4M3 | DType::F8E5M2) { (1, 1) } else { (0, 0) };
        if self.version < since {
            return refuse("DLPack has floats of 8 bits from 1.1 on: take tensor.torch()");
        }
        if self.has_flags() {
            let flags = if is_writable { 0 } else { READ_ONLY };
            let flags = if is_alone && is_writable { flags | IS_COPIED } else { flags };
            let version = Version { major: 1, minor: since.1 };
            return export(
                memory,
                |memory, tensor| Versioned { version, memory, delete: None, flags, tensor },
                tensor,
            );
        }
        if !is_writable {
            return refuse("memory is read-only, which DLPack before 1.0 cannot say");
        }
        export(memory, |memory, tensor| Unversioned { tensor, memory, delete: None }, tensor)
    }
}

pub(crate) fn refuse<T>(message: impl Into<String>) -> PyResult<T> {
    Err(PyBufferError::new_err(message.into()))
}

/// What hands out buffers without being one: they are those of the memory that its method `_memory`
/// returns.
#[pyclass(frozen, subclass, module = "modelcrate._native")]
pub(crate) struct Exporter;

#[cfg(not(feature = "abi3-py310"))]
#[pymethods]
impl Exporter {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        let memory = slf.call_method0("_memory").and_then(|memory| Ok(memory.cast_into()?));
        // SAFETY: Python passes a view to be filled.
        unsafe {
            let memory = memory.inspect_err(|_| no_buffer(view))?;
            fill(memory, view, flags)
        }
    }
}

/// `PyBUF_MAX_NDIM`.
#[cfg(not(feature = "abi3-py310"))]
const MAX_BUFFER_RANK: usize = 64;

/// Says that a view was not filled.
///
/// # Safety
///
/// `view` must be null or a view to be filled.
#[cfg(not(feature = "abi3-py310"))]
unsafe fn no_buffer(view: *mut ffi::Py_buffer) {
    // SAFETY: so the caller promises.
    if let Some(view) = unsafe { view.as_mut() } {
        view.obj = std::ptr::null_mut();
    }
}

/// Fills a view with memory.
///
/// # Safety
///
/// `view` must be null or a view to be filled.
#[cfg(not(feature = "abi3-py310"))]
unsafe fn fill(
    memory: Bound<'_, Memory>,
    view: *mut ffi::Py_buffer,
    flags: std::ffi::c_int,
) -> PyResult<()> {
    let filled = match memory.get().buffer(flags) {
        Ok(buffer) if !view.is_null() => {
            ffi::Py_buffer { obj: memory.into_any().into_ptr(), ..buffer }
        }
        refused => {
            // SAFETY: so the caller promises.
            unsafe { no_buffer(view) };
            return refused.and_then(|_| refuse("there is no view to be filled"));
        }
    };
    // SAFETY: it is a view to be filled, and not null. What it is told to point to is part of the
    // memory, to which it holds a reference; none of that moves, and Python writes to none of it but to
    // the elements of memory that is writable.
    unsafe { view.write(filled) };
    Ok(())
}

#[cfg(not(feature = "abi3-py310"))]
impl Memory {
    /// Describes it as is asked for, or refuses to, as `memoryview` does of an array like it.
    fn buffer(&self, flags: std::ffi::c_int) -> PyResult<ffi::Py_buffer> {
        let asked = |flag: std::ffi::c_int| flags & flag == flag;
        if asked(ffi::PyBUF_WRITABLE) && !self.is_writable {
            return refuse("memory is read-only");
        }
        if self.shape.len() > MAX_BUFFER_RANK {
            return refuse("buffers have at most 64 dimensions");
        }
        if cfg!(target_endian = "big") && self.element.size > 1 {
            return refuse("elements are little-endian, and this host is not");
        }
        let has_one_order = self.len == 0 || self.shape.iter().filter(|dim| **dim > 1).count() <= 1;
        if asked(ffi::PyBUF_F_CONTIGUOUS) && !has_one_order {
            return refuse("memory is row-major, and the first index is to run fastest");
        }
        let format = match self.element.format.filter(|_| asked(ffi::PyBUF_FORMAT)) {
            Some(format) => format.as_ptr().cast_mut(),
            None if asked(ffi::PyBUF_FORMAT) => {
                let name = self.dtype.name();
                return refuse(format!(
                    "buffers have no elements of {name}: take tobytes() or numpy()"
                ));
            }
            None => std::ptr::null_mut(),
        };
        let has_shape = asked(ffi::PyBUF_ND);
        if !has_shape && !format.is_null() {
            return refuse("bytes without a shape have no format");
        }
        // Of a scalar there is nothing to point to.
        let given = |of: &[isize], is_asked| {
            if is_asked && !of.is_empty() { of.as_ptr().cast_mut() } else { std::ptr::null_mut() }
        };
        Ok(ffi::Py_buffer {
            buf: self.start.as_ptr().cast(),
            obj: std::ptr::null_mut(),
            len: isize::try_from(self.len)?,
            itemsize: self.element.size.into(),
            readonly: (!self.is_writable).into(),
            ndim: if has_shape { std::ffi::c_int::try_from(self.shape.len())? } else { 1 },
            format,
            shape: given(&self.shape, has_shape),
            strides: given(&self.strides, asked(ffi::PyBUF_STRIDES)),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        })
    }
}

/// Hands over a tensor in the form of a version of `DLPack`.
fn export<'py, T: Form>(
    memory: Bound<'py, Memory>,
    form: impl FnOnce(*mut c_void, Tensor) -> T,
    mut tensor: Tensor,
) -> PyResult<Bound<'py, PyCapsule>> {
    let py = memory.py();
    let shape: Vec<i64> = memory.get().shape.iter().map(|dim| *dim as i64).collect();
    let size = i64::from(memory.get().element.size);
    let strides: Vec<i64> =
        memory.get().strides.iter().map(|stride| *stride as i64 / size).collect();
    let mut kept = Box::new(Kept { _memory: memory.unbind(), shape, strides });
    tensor.shape = kept.shape.as_mut_ptr();
    tensor.strides = kept.strides.as_mut_ptr();
    let kept = Box::into_raw(kept);
    let mut exported = form(kept.cast(), tensor);
    *exported.delete() = Some(T::drop_it);
    let exported = NonNull::from(Box::leak(Box::new(exported)));
    // SAFETY: the pointer is that of a box, which whoever consumes the capsule gives back to its
    // deleter, or else the capsule itself; that takes the interpreter wherever it runs.
    let capsule = unsafe {
        PyCapsule::new_with_pointer_and_destructor(
            py,
            exported.cast(),
            T::NAME,
            Some(unconsumed::<T>),
        )
    };
    if capsule.is_err() {
        // SAFETY: there is no capsule that would.
        unsafe { T::drop_it(exported.as_ptr()) };
    }
    capsule
}

/// Deletes what nobody has taken out of a capsule: whoever does gives it another name.
unsafe extern "C" fn unconsumed<T: Form>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule that is about to go.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) == 1 {
            let exported = ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()).cast::<T>();
            T::drop_it(exported);
        }
    }
}

/// What an exported tensor stands on.
struct Kept {
    _memory: Py<Memory>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// The two forms in which `DLPack` hands over a tensor.
trait Form: Sized {
    const NAME: &'static CStr;

    fn kept(&self) -> *mut c_void;

    fn delete(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;

    /// Frees it, and what it stands on.
    ///
    /// # Safety
    ///
    /// It must come from `export`, and nobody may use it again.
    unsafe extern "C" fn drop_it(this: *mut Self) {
        // SAFETY: `export` has made both of boxes, and the caller promises that this is the last use.
        let kept = unsafe {
            let this = Box::from_raw(this);
            Box::from_raw(this.kept().cast::<Kept>())
        };
        // Where the interpreter is gone, so is the process soon.
        let _ = exit::attach(|_| drop(kept));
    }
}

/// `DLManagedTensor`.
#[repr(C)]
struct Unversioned {
    tensor: Tensor,
    memory: *mut c_void,
    delete: Option<unsafe extern "C" fn(*mut Self)>,
}

impl Form for Unversioned {
    const NAME: &'static CStr = c"dltensor";

    fn kept(&self) -> *mut c_void {
        self.memory
    }

    fn delete(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.delete
    }
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: Version,
    memory: *mut c_void,
    delete: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: Tensor,
}

impl Form for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";

    fn kept(&self) -> *mut c_void {
        self.memory
    }

    fn delete(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.delete
    }
}

/// `DLPackVersion`.
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    /// In elements.
    strides: *mut i64,
    byte_offset: u64,
}

impl Tensor {
    /// Describes memory; shape and strides are still missing.
    fn of(memory: &Memory) -> Option<Self> {
        let Element { code, size, .. } = memory.element;
        let none = std::ptr::null_mut();
        Some(Self {
            data: memory.start.as_ptr().cast(),
            device: CPU,
            ndim: i32::try_from(memory.shape.len()).ok()?,
            dtype: DataType { code: code?, bits: size.saturating_mul(8), lanes: 1 },
            shape: none,
            strides: none,
            byte_offset: 0,
        })
    }
}

/// `DLDevice`.
#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

/// `DLDataType`.
#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `kDLCPU`.
const CPU: Device = Device { kind: 1, id: 0 };

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;

/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
const IS_COPIED: u64 = 2;
