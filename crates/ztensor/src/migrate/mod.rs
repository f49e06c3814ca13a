//! Bringing files of any generation to another.

mod across;
mod translate;

pub(crate) use across::copy as copy_across;
pub(crate) use translate::{name_as_in_v1_2, translate_to_v1_1, translate_to_v1_2};

use std::io::Write;

use bytes::Bytes;
use tensor_core::{At, Finding, Report, text::Quoted};

use self::translate::{LATER_KEYS, V1_2_KEYS, drop_keys};
use crate::{
    Attributes, Blob, ByteOrder, Coo, Csr, Format, Generation, Object, Reader, Role, Storage,
    Tensor, Value, Version, Writer,
    error::Result,
    manifest::emit::Emitter,
    write::{Moved, in_file_order},
};
#[cfg(feature = "zstd")]
use crate::{Compression, Encoding};

/// Writes everything that a file holds as a file of generation 1.1, or of 1.2 or 2 where the writer
/// makes such; returns what could not be carried over as it was.
///
/// That is a [`Report`], and not what an edit returns: the writer may write to anything, and what it
/// has done is known when it is finished.
///
/// Stored bytes, encodings and digests are copied, in the order of the file, and the digests are
/// compared: see [`WriteOptions::verify`](crate::WriteOptions::verify). What changes:
///
/// | from | what | becomes |
/// |---|---|---|
/// | 0.1 | big-endian data | little-endian, with a new digest of the same algorithm |
/// | 0.1 | keys that the format did not name | attributes of the object |
/// | 0.1 | inline sparse data | components, where it can be taken apart |
/// | 1.0 | `generator` | an attribute of the file, or a key of the manifest where there is such an attribute |
/// | 1.0 | keys that the format did not name and now does | left out |
/// | 1.2 | `type` of 8-bit floats and complex numbers | their `dtype`, in 1.1 |
///
/// Generation 2 is another container: to it and from it, parts are decoded and stored as the writer's
/// options say, with new digests. Nothing is written before it is known that all of the file has a
/// place. What changes:
///
/// | from | what | becomes |
/// |---|---|---|
/// | 1.x | bools, 8-bit floats, complex numbers | a `type` beside the `dtype` that stores them |
/// | 1.x | sparse indices of other types than `u32` and `u64`; unsorted rows | `u64`; sorted rows |
/// | 1.x | `quantized_group` and formats that are not known | `ztensor1.…/1`, as 1.x defines no order of codes |
/// | 2 | `zt.quant_group/1`, `zt.mx/1` and others | formats of these names, which readers of 1.x open part by part |
/// | both | keys that the format does not name, the version | left out |
///
/// The writer is not finished, so that more can be added.
///
/// # Errors
///
/// As for reading the objects and writing them; [`Error::NotExpressible`](crate::Error::NotExpressible)
/// between 1.x and 2. The writer is of no use afterwards.
///
/// # Examples
///
/// ```no_run
/// use ztensor::{Reader, Writer};
///
/// let mut writer = Writer::create("new.zt")?;
/// let report = ztensor::migrate(&Reader::open("old.zt")?, &mut writer)?;
/// writer.finish()?;
/// # Ok::<(), ztensor::Error>(())
/// ```
pub fn migrate<W: Write>(reader: &Reader, writer: &mut Writer<W>) -> Result<Report> {
    if reader.generation() == Generation::V2 || writer.version() == Version::V2 {
        return across::migrate(reader, writer);
    }
    let mut migration = Migration { writer, report: Report::default(), moved: Moved::default() };
    migration.document(reader)?;
    for tensor in in_file_order(reader)? {
        migration.object(tensor)?;
    }
    Ok(migration.report)
}

struct Migration<'w, W: Write> {
    writer: &'w mut Writer<W>,
    report: Report,
    moved: Moved,
}

impl<W: Write> Migration<'_, W> {
    fn document(&mut self, reader: &Reader) -> Result<()> {
        let manifest = reader.manifest();
        let (attributes, mut other) = manifest.encoded_root();
        let before = other.len();
        other.retain(|(key, _)| key.as_str() != "objects");
        if other.len() != before {
            self.left_out("objects", At::file());
        }
        let decoded = manifest.attributes()?;
        let mut added = None;
        if let Some(generator) = manifest.generator() {
            let mut attributes = decoded.clone().unwrap_or_default();
            let message = if attributes.get("generator").is_some() {
                other.push(("generator".into(), encoded_text(generator)));
                "generator stays a key of the manifest: there is an attribute of that name"
            } else {
                attributes.insert("generator", generator);
                added = Some(attributes);
                "generator became an attribute of the file"
            };
            self.report.add(Finding::note("zt/migrate-generator", message));
        }
        self.writer.set_root(None, (attributes, other));
        added.iter().for_each(|attributes| self.writer.set_attributes(attributes));
        for (key, value) in decoded.iter().flat_map(Attributes::iter) {
            if !matches!(value, Value::Text(_)) {
                let message = format!(
                    "attribute {key:?} is not text, so the reference implementation of 1.1 will \
                     refuse the file"
                );
                let at = At::file().path("attributes");
                self.report.add(Finding::warning("zt/migrate-attribute", message).at(at));
            }
        }
        Ok(())
    }

    fn object(&mut self, tensor: Tensor<'_>) -> Result<()> {
        let mut object = tensor.object()?;
        let dropped: &[&str] = match (tensor.reader().generation(), self.writer.version()) {
            (Generation::V1_0, _) => &LATER_KEYS,
            (_, Version::V1_2) => &V1_2_KEYS,
            (_, Version::V1_1 | Version::V2) => &[],
        };
        for (role, component) in &mut object.components {
            for key in drop_keys(component, dropped) {
                self.left_out(&key, place(tensor, role));
            }
        }
        match object.format {
            Format::InlineCsr | Format::InlineCoo => return self.inline(tensor, object),
            Format::Dense if has_big_endian(&object) => return self.swapped(tensor, &object),
            _ => {}
        }
        if self.writer.version() == Version::V1_2 {
            translate_to_v1_2(tensor, &mut object);
            return self.writer.copy_as(tensor.name(), tensor, object, &mut self.moved);
        }
        for (role, component) in &mut object.components {
            let place = place(tensor, role);
            let from = component.dtype.name().to_owned();
            let typed = component.logical_type.is_some();
            translate_to_v1_1(&object.format, role, component);
            if component.logical_type_is_unknown() {
                let message = format!(
                    "type {:?} has no dtype in generation 1.1 and stays as a key that it ignores",
                    component.logical_type.as_deref().unwrap_or_default()
                );
                self.report.add(Finding::warning("zt/migrate-type", message).at(place));
            } else if typed && component.logical_type.is_none() {
                let message =
                    format!("dtype {from:?} and its type became {:?}", component.dtype.name());
                self.report.add(Finding::note("zt/migrate-type", message).at(place));
            }
        }
        self.writer.copy_as(tensor.name(), tensor, object, &mut self.moved)
    }

    /// Reports a key that would be read as something else.
    fn left_out(&mut self, key: &str, at: At) {
        let (key, version) = (Quoted(key), self.writer.version().text());
        let message =
            format!("key {key} means something else in version {version}: it is left out");
        self.report.add(Finding::warning("zt/migrate-key", message).at(at));
    }

    /// Writes dense data whose elements are big-endian.
    fn swapped(&mut self, tensor: Tensor<'_>, object: &Object) -> Result<()> {
        let data = tensor.required(object, &Role::Data)?;
        data.copy_stored(self.writer.verify(), |_| Ok(()))?;
        let elements = tensor.read()?;
        let at = At::file().tensor(tensor.name());
        let message = "big-endian elements became little-endian".to_owned();
        self.report.add(Finding::note("zt/migrate-byte-order", message).at(at));
        let mut out = self.writer.object(tensor.name())?;
        out.set_storage(storage_of(&data));
        out.set_encoded_attributes(object.attributes.clone());
        out.put(Role::Data, elements.dtype(), elements.bytes())?;
        out.finish(Format::Dense, object.shape.clone())
    }

    /// Writes the parts of inline sparse data, or the one blob as it is where it has no parts.
    fn inline(&mut self, tensor: Tensor<'_>, object: Object) -> Result<()> {
        let at = At::file().tensor(tensor.name());
        let data = tensor.blob(&Role::Data)?;
        if let Some(data) = &data {
            data.copy_stored(self.writer.verify(), |_| Ok(()))?;
        }
        let (format, parts) = match object.format {
            Format::InlineCsr => (Format::SparseCsr, tensor.csr().map(Csr::into_parts)),
            _ => (Format::SparseCoo, tensor.coo().map(Coo::into_parts)),
        };
        let parts = match parts {
            Ok(parts) => parts,
            Err(error) => {
                let found = object.format.clone();
                let message = format!("format {found} is kept, with its one component: {error}");
                self.report.add(Finding::warning("zt/migrate-sparse", message).at(at));
                return self.writer.copy_as(tensor.name(), tensor, object, &mut self.moved);
            }
        };
        let storage = data.map(|data| storage_of(&data)).unwrap_or_default();
        let message = format!("inline {} became {format}", object.format);
        self.report.add(Finding::note("zt/migrate-sparse", message).at(at));
        let mut out = self.writer.object(tensor.name())?;
        out.set_storage(storage);
        out.set_encoded_attributes(object.attributes);
        for (role, part) in parts {
            out.put(role, part.dtype(), part.bytes())?;
        }
        out.complete(format, object.shape)
    }
}

fn place(tensor: Tensor<'_>, role: &Role) -> At {
    At::file().tensor(tensor.name()).path(format!("components.{:?}", role.as_str()))
}

fn encoded_text(text: &str) -> Bytes {
    let mut encoded = Vec::new();
    Emitter::new(&mut encoded).text(text);
    encoded.into()
}

fn has_big_endian(object: &Object) -> bool {
    object.components.iter().any(|(_, component)| component.byte_order == ByteOrder::Big)
}

/// Returns how a component is stored, for writing one like it.
#[cfg_attr(
    not(any(feature = "digest", feature = "zstd")),
    expect(unused_mut, unused_variables, reason = "there is one way to store then")
)]
fn storage_of(blob: &Blob<'_>) -> Storage {
    let mut storage = Storage::default();
    #[cfg(feature = "zstd")]
    if blob.component().encoding == Encoding::Zstd {
        storage.compression = Compression::Zstd { level: 3, frame: None };
    }
    #[cfg(feature = "digest")]
    {
        storage.digest = blob.digest_algorithm();
    }
    storage
}
