//! One component of an object that is being written.

use std::{
    fmt,
    io::{self, Write},
};

use tensor_core::DType;

use super::{ObjectWriter, Version, Writer, codec::Codec};
use crate::{
    Component, Encoding, Fault, Object, Role, StoredType,
    error::{Error, Result},
    manifest::dtype,
    migrate::name_as_in_v1_2,
};

impl<W: Write> ObjectWriter<'_, W> {
    /// Begins a component, whose decoded bytes are then written to it in pieces of any size,
    /// elements little-endian.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] where the role was written before, or the element type is not one of the
    /// format's; [`Error::Unfinished`] where a component was begun before and not finished;
    /// [`Error::Write`].
    pub fn component(&mut self, role: Role, dtype: DType) -> Result<ComponentWriter<'_, W>> {
        self.check_finished()?;
        let role = match role {
            Role::Other(text) => Role::parse(&text),
            named => named,
        };
        let Self { writer, storage, object, component_begun, .. } = self;
        let Writer { out, options, unfinished, .. } = &mut **writer;
        let name = unfinished.as_deref().unwrap_or_default();
        if object.component(&role).is_some() {
            let problem = format!("component {:?} is written twice", role.as_str());
            return Err(Error::Layout { object: name.to_owned(), problem }.given());
        }
        if dtype::name_of(dtype).is_none() {
            let fault = Fault::UnknownDtype { found: dtype.name().to_owned() };
            let (object, fault) = (name.to_owned(), Box::new(fault));
            return Err(Error::Component { object, role, fault }.given());
        }
        *component_begun = true;
        let offset = out.align(options.alignment)?;
        let codec = Codec::new(out, storage, options.threads)?;
        let mut component = Component::new(StoredType::Known(dtype), offset, 0);
        if options.version == Version::V1_2 {
            name_as_in_v1_2(&mut component);
        }
        let decoded = 0;
        Ok(ComponentWriter {
            name,
            codec,
            component,
            role,
            dtype,
            decoded,
            object,
            component_begun,
        })
    }

    /// Writes a whole component.
    ///
    /// # Errors
    ///
    /// As for [`component`](Self::component).
    pub fn put(&mut self, role: Role, dtype: DType, bytes: &[u8]) -> Result<()> {
        let mut component = self.component(role, dtype)?;
        component.put(bytes)?;
        component.finish()?;
        Ok(())
    }
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
    dtype: DType,
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
        let width = self.dtype.width().unwrap_or(1);
        if self.decoded.checked_rem(width) != Some(0) {
            let problem = format!(
                "component {:?} has {} bytes, expected whole elements of {width}",
                self.role.as_str(),
                self.decoded
            );
            return Err(Error::Layout { object: self.name.to_owned(), problem }.given());
        }
        let encoded = self.codec.is_encoded();
        let (length, digest) = self.codec.finish()?;
        self.component.length = length;
        self.component.digest = digest;
        if encoded {
            self.component.encoding = Encoding::Zstd;
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
            .field("dtype", &self.dtype)
            .field("decoded", &self.decoded)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Write for ComponentWriter<'_, W> {
    /// Takes the next decoded bytes; a bool that is neither 0 nor 1 is an error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.dtype == DType::Bool
            && let Some((at, &found)) = bytes.iter().enumerate().find(|(_, byte)| **byte > 1)
        {
            let index = self.decoded.saturating_add(at as u64);
            let (role, fault) = (self.role.clone(), Fault::NotABool { index, found });
            let (object, fault) = (self.name.to_owned(), Box::new(fault));
            let error = Error::Component { object, role, fault }.given();
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let taken = self.codec.write(bytes)?;
        self.decoded = self.decoded.saturating_add(taken as u64);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
