//! One object of a file that is being written.

use std::io::Write;

use tensor_core::{Limit, Limits, Shape, TensorBuf};

use super::{Storage, Version, Writer, attributes::encode_attributes};
use crate::{
    Attributes, Coo, Csr, Encoding, Fault, Format, Object, Role,
    error::{Error, Result},
    manifest::{Encoded, emit::Emitter},
    tensor::{GroupLayout, Part},
    v2::{
        document::{self, Entry},
        profile::{self, Remark},
    },
};

impl<W: Write> Writer<W> {
    /// Writes a sparse matrix in compressed rows.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn add_csr(&mut self, name: &str, matrix: &Csr) -> Result<()> {
        self.object(name)?.finish_csr(matrix)
    }

    /// Writes a sparse tensor as a list of coordinates.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn add_coo(&mut self, name: &str, tensor: &Coo) -> Result<()> {
        self.object(name)?.finish_coo(tensor)
    }

    /// Begins an object of any format, whose components are written one after another.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateObject`]; [`Error::Unfinished`] where another object was begun and not
    /// finished.
    pub fn object(&mut self, name: &str) -> Result<ObjectWriter<'_, W>> {
        self.check_finished()?;
        self.index.free(name)?;
        self.check_name(name)?;
        self.unfinished = Some(name.to_owned());
        let storage = self.options.storage;
        let object = Object::new(Shape::scalar(), Format::Dense);
        let (attributes, refused, component_begun) = (None, None, false);
        Ok(ObjectWriter { writer: self, storage, object, attributes, refused, component_begun })
    }
}

/// An object in the making: its components are written, then its shape and format are named.
///
/// Dropped before [`finish`](Self::finish), it leaves a writer that refuses to go on.
#[derive(Debug)]
#[must_use = "an object that is not finished makes the file unusable"]
pub struct ObjectWriter<'w, W: Write> {
    pub(super) writer: &'w mut Writer<W>,
    pub(super) storage: Storage,
    pub(super) object: Object,
    attributes: Option<Attributes>,
    /// Why the attributes that were set cannot be written.
    refused: Option<Error>,
    /// A component was begun and not finished: what it wrote belongs to nothing.
    pub(super) component_begun: bool,
}

impl<W: Write> ObjectWriter<'_, W> {
    /// Sets how the components that follow are stored, in place of the writer's option.
    pub fn set_storage(&mut self, storage: Storage) {
        self.storage = storage;
    }

    /// Sets the attributes of the object, in place of any that were set before.
    ///
    /// [`finish`](Self::finish) refuses those that [`Writer::set_attributes`] cannot take.
    pub fn set_attributes(&mut self, attributes: &Attributes) {
        if self.is_v2() && attributes.is_empty() {
            (self.object.attributes, self.attributes, self.refused) = (None, None, None);
            return;
        }
        match encode_attributes(&self.name(), attributes, self.writer.options.version) {
            Ok(encoded) => {
                self.object.attributes = Some(encoded);
                (self.attributes, self.refused) = (Some(attributes.clone()), None);
            }
            Err(error) => self.refused = Some(error),
        }
    }

    pub(crate) fn set_encoded_attributes(&mut self, attributes: Option<Encoded>) {
        self.object.attributes = attributes;
    }

    fn put_tensor(&mut self, role: Role, tensor: &TensorBuf) -> Result<()> {
        self.put(role, tensor.dtype(), tensor.bytes())
    }

    /// Ends the object: all its components are written.
    ///
    /// Sparse tensors end with [`finish_csr`](Self::finish_csr) and
    /// [`finish_coo`](Self::finish_coo), which take parts that are proved to fit together.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] where the format requires another component, the data of a dense tensor is
    /// not as long as its shape needs, sizes do not fit the attributes of a quantized tensor, or the
    /// format is one of generation 0.1; [`Error::Unfinished`] where a component was begun and not
    /// finished; where the rank is over 65,536; where the attributes cannot be written, see
    /// [`Writer::set_attributes`].
    pub fn finish(self, format: Format, shape: impl Into<Shape>) -> Result<()> {
        let format = match format {
            Format::Other(text) if self.is_v2() => Format::parse_v2(&text),
            Format::Other(text) => Format::parse_v1(&text),
            named => named,
        };
        let problem = match format {
            Format::SparseCsr | Format::SparseCoo => "is written by finish_csr and finish_coo",
            Format::InlineCsr | Format::InlineCoo => "is one of generation 0.1, expected a later",
            Format::QuantGroup | Format::Mx if !self.is_v2() => "is one of generation 2",
            Format::QuantizedGroup if self.is_v2() => "is one of the generations before 2",
            _ => {
                let shape = shape.into();
                self.refuse_unchecked(&format, &shape)?;
                return self.complete(format, shape);
            }
        };
        let problem = format!("format {format} {problem}");
        Err(Error::Layout { object: self.name(), problem }.given())
    }

    /// Writes the parts of a sparse matrix in compressed rows, and ends the object.
    ///
    /// # Errors
    ///
    /// As for [`Writer::add`].
    pub fn finish_csr(mut self, matrix: &Csr) -> Result<()> {
        if self.is_v2() {
            matrix.check_v2().map_err(|error| error.of(&self.name()).given())?;
            // In the order of their roles.
            self.put_tensor(Role::Indices, matrix.indices())?;
            self.put_tensor(Role::Indptr, matrix.indptr())?;
            self.put_tensor(Role::Values, matrix.values())?;
            return self.complete(Format::SparseCsr, matrix.shape().clone());
        }
        self.put_tensor(Role::Values, matrix.values())?;
        self.put_tensor(Role::Indices, matrix.indices())?;
        self.put_tensor(Role::Indptr, matrix.indptr())?;
        self.complete(Format::SparseCsr, matrix.shape().clone())
    }

    /// Writes the parts of a sparse tensor as a list of coordinates, and ends the object.
    ///
    /// # Errors
    ///
    /// As for [`Writer::add`].
    pub fn finish_coo(mut self, tensor: &Coo) -> Result<()> {
        if self.is_v2() {
            tensor.check_v2().map_err(|error| error.of(&self.name()).given())?;
            self.put_tensor(Role::Coords, tensor.coords())?;
            self.put_tensor(Role::Values, tensor.values())?;
            return self.complete(Format::SparseCoo, tensor.shape().clone());
        }
        self.put_tensor(Role::Values, tensor.values())?;
        self.put_tensor(Role::Coords, tensor.coords())?;
        self.complete(Format::SparseCoo, tensor.shape().clone())
    }

    pub(crate) fn complete(mut self, format: Format, shape: Shape) -> Result<()> {
        self.check_finished()?;
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let rank = if self.is_v2() { document::MAX_RANK as u64 } else { MAX_RANK };
        let limits = Limits::default().with_rank(rank);
        limits.check(Limit::Rank, "rank", shape.rank() as u64)?;
        (self.object.format, self.object.shape) = (format, shape);
        for role in self.object.format.required_roles() {
            if self.object.component(role).is_none() {
                let (format, role) = (self.object.format.clone(), role.clone());
                return Err(Error::MissingComponent { object: self.name(), format, role }.given());
            }
        }
        self.object.elements()?;
        self.check_lengths()?;
        let keeps_lengths = self.writer.options.version != Version::V1_1;
        if self.is_v2() {
            self.check_profile()?;
        }
        for (_, component) in &mut self.object.components {
            if !keeps_lengths || component.encoding == Encoding::Raw {
                component.uncompressed_length = None;
            }
        }
        self.commit()
    }

    /// Proves that the parts are those of their layout in generation 2.
    fn check_profile(&self) -> Result<()> {
        let mut body = Vec::new();
        self.object.encode_v2(&mut Emitter::new(&mut body));
        let given = |problem: String| Error::Layout { object: self.name(), problem }.given();
        Entry::check_layout(&body).map_err(|broken| given(broken.into_problem()))?;
        let attributes = self.attributes.clone().unwrap_or_default();
        match profile::check(&self.object, &attributes) {
            Err(Remark::Broken(problem)) => Err(given(problem)),
            Err(Remark::Unchecked(_)) | Ok(()) => Ok(()),
        }
    }

    /// Refuses a layout of generation 2 whose attributes do not tell sizes, though files in the field
    /// have such, and copies of them may.
    fn refuse_unchecked(&self, format: &Format, shape: &Shape) -> Result<()> {
        if !self.is_v2() {
            return Ok(());
        }
        let (format, shape) = (format.clone(), shape.clone());
        let object = Object { format, shape, ..self.object.clone() };
        let attributes = self.attributes.clone().unwrap_or_default();
        match profile::check(&object, &attributes) {
            Err(Remark::Unchecked(problem)) => {
                Err(Error::Layout { object: self.name(), problem }.given())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_v2(&self) -> bool {
        self.writer.options.version == Version::V2
    }

    pub(super) fn check_finished(&self) -> Result<()> {
        if self.component_begun {
            return Err(Error::Unfinished { name: self.name() });
        }
        Ok(())
    }

    /// Proves that components are as long as shape and attributes need.
    fn check_lengths(&self) -> Result<()> {
        match self.object.format {
            Format::Dense => self.check_dense(),
            Format::QuantizedGroup => self.check_quantized(),
            _ => Ok(()),
        }
    }

    fn check_dense(&self) -> Result<()> {
        let object = &self.object;
        let data = object.component(&Role::Data);
        // What lies beyond element types is for generation 2, which checks all layouts.
        let Some((data, dtype)) = data.and_then(|data| Some((data, data.element_type()?))) else {
            return Ok(());
        };
        let expected = object.byte_len(dtype.into())?;
        let found = data.uncompressed_length.unwrap_or_default();
        if found == expected {
            return Ok(());
        }
        let (offset, shape) = (data.offset, object.shape.clone());
        let fault = Fault::WrongLength { offset, found, expected, dtype, shape };
        let (object, fault) = (self.name(), Box::new(fault));
        Err(Error::Component { object, role: Role::Data, fault }.given())
    }

    fn check_quantized(&self) -> Result<()> {
        let part = |role: Role| {
            let component = self.object.component(&role)?;
            let (dtype, len) = (component.element_type()?, component.uncompressed_length?);
            Some(Part { dtype, len })
        };
        let [Some(packed_weight), Some(scales), Some(zeros)] =
            [Role::PackedWeight, Role::Scales, Role::Zeros].map(part)
        else {
            return Ok(());
        };
        let attributes = self.attributes.clone().unwrap_or_default();
        GroupLayout::parse(&self.object.shape, &attributes)
            .and_then(|layout| layout.check(packed_weight, scales, zeros))
            .map_err(|error| error.of(&self.name()).given())
    }

    /// Adds the object to the manifest.
    pub(super) fn commit(self) -> Result<()> {
        let Self { writer, object, .. } = self;
        let name = writer.unfinished.take().unwrap_or_default();
        writer.out.begin()?;
        writer.index.push_object(&name, &object)
    }

    pub(super) fn name(&self) -> String {
        self.writer.unfinished.clone().unwrap_or_default()
    }
}

/// What a reader takes with its default options.
pub(super) const MAX_RANK: u64 = 1 << 16;
