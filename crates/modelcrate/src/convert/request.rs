//! What becomes of a file that is converted, and how a model is rewritten.

use std::{fmt, io};

#[cfg(feature = "circle")]
use circle_format::Schema;
use tensor_core::{Report, Source, Verify};

use super::{ConvertOptions, Product, Target};
use crate::{AnyReader, Error, Format, Result, TensorSet};

/// What a file is to become, and how.
///
/// # Examples
///
/// ```
/// use modelcrate::{AnyReader, Becoming, Product, Request, ztensor::Writer};
/// use tensor_core::TensorBuf;
///
/// let mut writer = Writer::new(Vec::new());
/// writer.add("w", &TensorBuf::from_slice([2], &[1_u8, 2])?)?;
/// let reader = AnyReader::from_bytes(writer.finish()?)?;
///
/// let refused = reader.convert(&Request::new(Product::Onnx)).unwrap_err();
/// assert!(refused.to_string().starts_with("is a zTensor file, which cannot become onnx"));
/// let Becoming::Model(model) = reader.convert(&Request::new("zt2".parse()?))? else { panic!() };
/// let mut file = Vec::new();
/// model.write(&mut file)?;
/// assert_eq!(AnyReader::from_bytes(file)?.tensor("w")?.unwrap().bytes()?, [1, 2][..]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// What the file is to become.
    pub to: Product,
    /// How tensors are chosen and changed; where that is not said, zTensor files are migrated with all
    /// layouts and stored bytes as they are.
    pub tensors: Option<ConvertOptions>,
    /// Whether digests are compared of what is copied as it is stored; once by default.
    pub verify: Verify,
    /// How `RTen` models of version 2 are laid out.
    #[cfg(feature = "rten")]
    pub rten: rten_format::WriteOptions,
    /// Whether a header is put before the model data of an `RTen` model of version 1, which keeps its
    /// bytes.
    #[cfg(feature = "rten")]
    pub wrap: bool,
}

impl Request {
    /// Asks for something as it comes without options.
    #[must_use]
    pub fn new(to: Product) -> Self {
        Self {
            to,
            tensors: None,
            verify: Verify::Once,
            #[cfg(feature = "rten")]
            rten: rten_format::WriteOptions::default(),
            #[cfg(feature = "rten")]
            wrap: false,
        }
    }
}

/// What a file becomes: whoever converts files has to do each.
#[derive(Debug)]
pub enum Becoming<'r> {
    /// Its tensors as a file of another format, as far as that holds them: [`TensorSet::convert_to`].
    Tensors(TensorSet<'r>, Target, ConvertOptions),
    /// An ONNX model, with a file of constants where it needs one.
    #[cfg(feature = "rten-onnx")]
    Onnx(rten_format::onnx::Export<'r>),
    /// Another model, or one with all layouts and stored bytes as they are.
    Model(Rewriting<'r>),
}

impl AnyReader {
    /// Finds out how it becomes what is asked for. Nothing is written.
    ///
    /// # Errors
    ///
    /// [`Error::Impossible`] where files of its format do not, and as for [`tensor_set`](Self::tensor_set).
    pub fn convert(&self, request: &Request) -> Result<Becoming<'_>> {
        let Request { to, verify, .. } = *request;
        let write: Write<'_> = match (self, to) {
            #[cfg(feature = "circle")]
            (Self::Circle(model), Product::Circle) if self.format() == Format::TfLite => {
                Box::new(|sink| circle(model, Schema::Circle, sink))
            }
            #[cfg(feature = "circle")]
            (Self::Circle(model), Product::TfLite) if self.format() == Format::Circle => {
                Box::new(|sink| circle(model, Schema::Tflite, sink))
            }
            #[cfg(feature = "rten-onnx")]
            (Self::Rten(model), Product::Onnx) => {
                return Ok(Becoming::Onnx(rten_format::onnx::Export::new(model)));
            }
            #[cfg(feature = "rten")]
            (Self::Rten(model), Product::Rten(Some(version))) => {
                let Request { rten, wrap, .. } = *request;
                Box::new(move |sink| {
                    let rewrite = rten_format::Rewrite::new(model).options(rten);
                    match version {
                        1 => rewrite.write_v1(sink)?,
                        _ if wrap => rewrite.write_wrapped(sink)?,
                        _ => rewrite.write_v2(sink)?,
                    };
                    Ok(Report::default())
                })
            }
            #[cfg(feature = "ptl")]
            (Self::Ptl(model), Product::TorchScript) => Box::new(move |sink| {
                if verify != Verify::Never {
                    // What is copied as it is stored is not compared on the way.
                    model.files()?.try_for_each(|file| file.verify().map(drop))?;
                }
                ptl_spec::torchscript(model, sink)?;
                Ok(Report::default())
            }),
            #[cfg(feature = "ztensor")]
            (
                Self::ZTensor(file),
                Product::Tensors(target @ (Target::ZTensor | Target::ZTensor2)),
            ) if request.tensors.is_none() => Box::new(move |sink| {
                let is_2 = target == Target::ZTensor2;
                let version = if is_2 { ztensor::Version::V2 } else { ztensor::Version::V1_1 };
                let options = ztensor::WriteOptions::default().version(version).verify(verify);
                let mut writer = options.write_to(sink)?;
                let changes = ztensor::migrate(file, &mut writer)?;
                writer.finish()?;
                Ok(changes)
            }),
            (reader, Product::Tensors(target)) => {
                let options = request.tensors.clone().unwrap_or_default();
                return Ok(Becoming::Tensors(reader.tensor_set()?, target, options));
            }
            (reader, to) => return Err(Error::Impossible { format: reader.format(), to }),
        };
        Ok(Becoming::Model(Rewriting { reader: self, to, verify, write }))
    }
}

#[cfg(feature = "circle")]
fn circle(
    reader: &circle_format::Reader,
    schema: Schema,
    sink: &mut dyn io::Write,
) -> Result<Report> {
    let model = reader.model().to_schema(schema)?;
    circle_format::WriteOptions::default().write_to(sink, &model).origin(reader).finish()?;
    Ok(Report::default())
}

/// A model that becomes one file, written from front to back.
pub struct Rewriting<'r> {
    reader: &'r AnyReader,
    to: Product,
    verify: Verify,
    write: Write<'r>,
}

type Write<'r> = Box<dyn Fn(&mut dyn io::Write) -> Result<Report> + 'r>;

impl Rewriting<'_> {
    /// Returns what the model becomes.
    #[must_use]
    pub const fn to(&self) -> Product {
        self.to
    }

    /// Writes the model, and returns what could not be carried over as it was.
    ///
    /// # Errors
    ///
    /// Where the model cannot be read, or has what the other format has not; where the sink fails.
    pub fn write(&self, sink: &mut dyn io::Write) -> Result<Report> {
        (self.write)(sink)
    }

    /// Returns what was found in what is written that was not in the model before, with what was not
    /// compared on the way.
    ///
    /// # Errors
    ///
    /// Where it does not open.
    pub fn check(&self, written: Source) -> Result<Report> {
        let before = self.reader.lint();
        let mut after = AnyReader::from_source(written)?.lint();
        if self.to == Product::TorchScript {
            // It is for the full runtime.
            after = after.split(|finding| finding.rule == "ptl/not-lite").1;
        } else if self.verify == Verify::Never && self.to.tensors().is_some() {
            after.extend(self.reader.validate().new_since(&before));
        }
        Ok(after.new_since(&before))
    }
}

impl fmt::Debug for Rewriting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rewriting").field("to", &self.to).finish_non_exhaustive()
    }
}
