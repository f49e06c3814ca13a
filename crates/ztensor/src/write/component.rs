//! One component of an object that is being written.

use std::{
    fmt,
    io::{self, Write},
};

use tensor_core::DType;

use super::{
    Compression, ObjectWriter, Version, Writer,
    codec::{Codec, Stored},
    share::Pending,
};
use crate::{
    Component, ElementType, Encoding, Fault, Object, Role, StoredType,
    error::{Error, Result},
    manifest::dtype,
    migrate::name_as_in_v1_2,
    v2::document,
};

impl<W: Write> ObjectWriter<'_, W> {
    /// Begins a component, whose decoded bytes are then written to it in pieces of any size,
    /// elements little-endian.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] where the role was written before, the element type is not one of the
    /// format's, or roles are not in the order of the canonical form; [`Error::Unfinished`] where a component was begun before and not finished;
    /// [`Error::Write`].
    pub fn component(
        &mut self,
        role: Role,
        elements: impl Into<ElementType>,
    ) -> Result<ComponentWriter<'_, W>> {
        let (role, component) = self.begin(role, elements.into())?;
        let Self { writer, storage, object, component_begun, .. } = self;
        let Writer { out, options, unfinished, blobs, read_back, .. } = &mut **writer;
        let name = unfinished.as_deref().unwrap_or_default();
        *component_begun = true;
        let is_shared = options.is_canonical() && storage.compression == Compression::None;
        let (codec, offset) = if is_shared {
            let wants_sha256 = storage.wants_sha256();
            let sharing = options.sharing(*read_back);
            let pending = Pending::new(out, blobs, sharing, options.grid(), wants_sha256);
            (Codec::Shared(Box::new(pending), wants_sha256), 0)
        } else {
            let offset = out.align(options.grid())?;
            (Codec::new(out, storage, options.version, options.threads)?, offset)
        };
        let component = Component { offset, ..component };
        let decoded = 0;
        Ok(ComponentWriter { name, codec, component, role, decoded, object, component_begun })
    }

    /// Proves that a component may be written, and returns its definition without a place.
    fn begin(&mut self, role: Role, elements: ElementType) -> Result<(Role, Component)> {
        self.check_finished()?;
        self.writer.options.check_storage(&self.storage)?;
        let role = match role {
            Role::Other(text) => Role::parse(&text),
            named => named,
        };
        let Self { writer, object, .. } = self;
        let Writer { options, unfinished, .. } = &**writer;
        let name = unfinished.as_deref().unwrap_or_default();
        if object.component(&role).is_some() {
            let problem = format!("component {:?} is written twice", role.as_str());
            return Err(Error::Layout { object: name.to_owned(), problem }.given());
        }
        let is_v2 = options.version == Version::V2;
        let known = match (elements, is_v2) {
            (elements, true) => elements.as_in_v2(),
            (ElementType::Plain(dtype), false) => dtype::name_of(dtype).map(|_| (dtype, None)),
            (ElementType::Packed { .. }, false) => None,
        };
        let Some((stored, logical)) = known else {
            let fault = Fault::UnknownDtype { found: elements.to_string() };
            let (object, fault) = (name.to_owned(), Box::new(fault));
            return Err(Error::Component { object, role, fault }.given());
        };
        let mut component = Component::new(StoredType::Known(stored), 0, 0);
        if options.version == Version::V1_2 {
            name_as_in_v1_2(&mut component);
        }
        if is_v2 {
            component.is_v2 = true;
            component.logical_type = logical.map(str::to_owned);
            document::check_new_name(role.as_str(), options.is_canonical())?;
            let last = object.components.last().map(|(last, _)| last.as_str());
            if options.is_canonical() && last >= Some(role.as_str()) {
                let reason = format!(
                    "component {:?} of object {name:?} comes after {:?}, expected them in the order of \
                     the canonical form",
                    role.as_str(),
                    last.unwrap_or_default()
                );
                return Err(Error::Given { reason });
            }
        }
        Ok((role, component))
    }

    /// Writes a whole component.
    ///
    /// # Errors
    ///
    /// As for [`component`](Self::component).
    pub fn put(
        &mut self,
        role: Role,
        elements: impl Into<ElementType>,
        bytes: &[u8],
    ) -> Result<()> {
        let elements = elements.into();
        if self.writer.options.version == Version::V2
            && self.storage.compression == Compression::None
        {
            return self.put_whole(role, elements, bytes);
        }
        let mut component = self.component(role, elements)?;
        component.put(bytes)?;
        component.finish()?;
        Ok(())
    }

    /// Writes a whole component of generation 2, unless there is a blob of the same bytes.
    fn put_whole(&mut self, role: Role, elements: ElementType, bytes: &[u8]) -> Result<()> {
        let (role, mut component) = self.begin(role, elements)?;
        check_bools(self.writer.unfinished.as_deref(), &role, &component, 0, bytes)?;
        let Self { writer, storage, object, component_begun, .. } = self;
        let Writer { out, options, blobs, read_back, .. } = &mut **writer;
        *component_begun = true;
        let wants_sha256 = storage.wants_sha256();
        let sharing = options.sharing(*read_back);
        let pending = Pending::new(out, blobs, sharing, options.grid(), wants_sha256);
        let placed = pending.whole(bytes, wants_sha256)?;
        (component.offset, component.length) = (placed.offset, placed.length);
        component.digest = Some(placed.digest);
        component.uncompressed_length = Some(placed.length);
        object.components.push((role, component));
        *component_begun = false;
        Ok(())
    }
}

/// Refuses bools that are neither 0 nor 1; `before` elements came before these bytes.
fn check_bools(
    object: Option<&str>,
    role: &Role,
    component: &Component,
    before: u64,
    bytes: &[u8],
) -> Result<()> {
    if component.element_type() != Some(DType::Bool) {
        return Ok(());
    }
    let Some((at, &found)) = bytes.iter().enumerate().find(|(_, byte)| **byte > 1) else {
        return Ok(());
    };
    let fault = Fault::NotABool { index: before.saturating_add(at as u64), found };
    let (object, role) = (object.unwrap_or_default().to_owned(), role.clone());
    Err(Error::Component { object, role, fault: Box::new(fault) }.given())
}

/// A component in the making, made by [`ObjectWriter::component`]: a sink for its decoded bytes.
///
/// Dropped before [`finish`](Self::finish), it leaves an object that refuses to go on.
#[must_use = "a component that is not finished makes its object unusable"]
pub struct ComponentWriter<'o, W: Write> {
    /// The name of the object.
    name: &'o str,
    codec: Codec<'o, W>,
    component: Component,
    role: Role,
    decoded: u64,
    object: &'o mut Object,
    component_begun: &'o mut bool,
}

impl<W: Write> ComponentWriter<'_, W> {
    /// Ends the component and returns how many bytes were written to it.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; [`Error::Given`] where the bytes are not a whole number of elements.
    pub fn finish(mut self) -> Result<u64> {
        let width = self.component.element_type().and_then(DType::width).unwrap_or(1);
        if self.decoded.checked_rem(width) != Some(0) {
            let problem = format!(
                "component {:?} has {} bytes, expected whole elements of {width}",
                self.role.as_str(),
                self.decoded
            );
            return Err(Error::Layout { object: self.name.to_owned(), problem }.given());
        }
        let encoded = self.codec.is_encoded();
        let Stored { offset, length, digest } = self.codec.finish()?;
        self.component.offset = offset.unwrap_or(self.component.offset);
        self.component.length = length;
        self.component.digest = digest;
        if encoded {
            let is_v2 = self.component.is_v2;
            self.component.encoding = if is_v2 { Encoding::ZstdSeekable } else { Encoding::Zstd };
        }
        // Proved against the shape when the object is finished, and then kept or not.
        self.component.uncompressed_length = Some(self.decoded);
        self.object.components.push((self.role, self.component));
        *self.component_begun = false;
        Ok(self.decoded)
    }

    /// Writes all of some bytes.
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(source) => Error::Write { offset: self.codec.position(), source },
        })
    }
}

impl<W: Write> fmt::Debug for ComponentWriter<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComponentWriter")
            .field("role", &self.role)
            .field("dtype", &self.component.dtype)
            .field("decoded", &self.decoded)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Write for ComponentWriter<'_, W> {
    /// Takes the next decoded bytes; a bool that is neither 0 nor 1 is an error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_bools(Some(self.name), &self.role, &self.component, self.decoded, bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let taken = self.codec.write(bytes)?;
        self.decoded = self.decoded.saturating_add(taken as u64);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
