//! To generation 2, and back: another container, so that parts are written anew.

use std::io::{self, Write};

use tensor_core::{At, DType, Finding, Limit, Report, TensorBuf, Verify, text::Quoted};
use unicode_normalization::is_nfc;

use super::place;
use crate::{
    Attributes, Component, Coo, Csr, ElementType, Format, Generation, Object, Reader, Role,
    Storage, Tensor, Version, Writer,
    error::{Error, Result},
    v2::{
        document::{MAX_NAME, MAX_RANK},
        emit::value_v2,
    },
};

/// Writes a file of another container; nothing is written where something has no place in it.
pub(super) fn migrate<W: Write>(reader: &Reader, writer: &mut Writer<W>) -> Result<Report> {
    let mut across = Across { report: Report::default(), refused: Vec::new() };
    let attributes = reader.manifest().attributes()?.unwrap_or_default();
    across.document(reader, &attributes, writer);
    let mut tensors: Vec<Tensor<'_>> = reader.tensors().collect();
    if writer.is_canonical() {
        tensors.sort_by_key(|tensor| tensor.name());
    }
    for &tensor in &tensors {
        across.look_at(tensor, tensor.name(), writer)?;
    }
    across.refuse(writer.version())?;
    if !attributes.is_empty() {
        writer.set_attributes(&attributes);
    }
    for tensor in tensors {
        across.write(tensor, tensor.name(), writer)?;
    }
    Ok(across.report)
}

/// Copies one tensor into a file of another container, or of the canonical form.
pub(crate) fn copy<W: Write>(
    tensor: Tensor<'_>,
    name: &str,
    writer: &mut Writer<W>,
) -> Result<Report> {
    let mut across = Across { report: Report::default(), refused: Vec::new() };
    across.look_at(tensor, name, writer)?;
    across.refuse(writer.version())?;
    across.write(tensor, name, writer)?;
    Ok(across.report)
}

struct Across {
    report: Report,
    refused: Vec<String>,
}

impl Across {
    fn refuse(&mut self, version: Version) -> Result<()> {
        let problems = std::mem::take(&mut self.refused);
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::NotExpressible { version: version.text(), problems })
    }

    /// Looks for what the file as a whole says and the other container cannot.
    fn document<W: Write>(&mut self, reader: &Reader, attributes: &Attributes, writer: &Writer<W>) {
        let manifest = reader.manifest();
        for key in manifest.unknown_keys() {
            self.left_out(key, At::file());
        }
        if let Some(generator) = manifest.generator() {
            let message = format!("generator {} is left out", Quoted(generator));
            self.report.add(Finding::note("zt/migrate-generator", message));
        }
        self.attributes("the file", attributes, writer);
    }

    fn attributes<W: Write>(&mut self, of: &str, attributes: &Attributes, writer: &Writer<W>) {
        if writer.version() != Version::V2 {
            return;
        }
        for (key, value) in attributes.iter() {
            let name = name_fault(key, writer.is_canonical());
            if let Some(fault) = name.or_else(|| value_v2(value).err().map(str::to_owned)) {
                self.refused.push(format!("attribute {} of {of} {fault}", Quoted(key)));
            }
        }
    }

    fn left_out(&mut self, key: &str, at: At) {
        let message =
            format!("key {} is one that the format does not name: it is left out", Quoted(key));
        self.report.add(Finding::warning("zt/migrate-key", message).at(at));
    }

    /// Looks for what a tensor is and the other container cannot hold.
    fn look_at<W: Write>(
        &mut self,
        tensor: Tensor<'_>,
        name: &str,
        writer: &Writer<W>,
    ) -> Result<()> {
        let object = tensor.object()?;
        let to_v2 = writer.version() == Version::V2;
        let quoted = format!("tensor {}", Quoted(name));
        let mut refuse = |problem: String| self.refused.push(format!("{quoted} {problem}"));
        if !to_v2 && object.shape.elements().is_err() {
            refuse(format!("has shape {}, which 1.x does not count behind its 0", object.shape));
        }
        if to_v2 {
            if let Some(fault) = name_fault(name, writer.is_canonical()) {
                refuse(fault);
            }
            let rank = object.shape.rank();
            if rank > MAX_RANK {
                refuse(format!("has rank {rank}, expected at most {MAX_RANK}"));
            }
            if object.components.is_empty() {
                refuse("has no components".to_owned());
            }
            if matches!(object.format, Format::Dense | Format::SparseCsr | Format::SparseCoo) {
                let roles = object.format.required_roles();
                let mut extra = object.components.iter().filter(|(role, _)| !roles.contains(role));
                if let Some((role, _)) = extra.next() {
                    let role = Quoted(role.as_str());
                    refuse(format!("has component {role}, which its format does not name"));
                }
            }
        }
        for (role, part) in &object.components {
            let fault = match part.elements() {
                None if let Some(found) = part.logical_type.as_deref().filter(|_| part.is_v2) => {
                    Some(format!("is of type {}, which is not known", Quoted(found)))
                }
                None => Some(format!("has dtype {}", Quoted(part.dtype.name()))),
                Some(ElementType::Packed { name, .. })
                    if !to_v2 && object.format == Format::Dense =>
                {
                    Some(format!("is of {name}"))
                }
                _ => None,
            };
            let blob = tensor.unsized_blob(role, part);
            let encoding = blob
                .check_encoding()
                .err()
                .map(|_| format!("has encoding {}", Quoted(part.encoding.as_str())));
            let role_fault =
                to_v2.then(|| name_fault(role.as_str(), writer.is_canonical())).flatten();
            for fault in [fault, encoding, role_fault].into_iter().flatten() {
                refuse(format!("component {} {fault}", Quoted(role.as_str())));
            }
        }
        if to_v2 {
            // Only their data tell whether generation 2 has such tensors.
            let sparse = match object.format {
                Format::SparseCsr | Format::InlineCsr => sorted(tensor).map(drop),
                Format::SparseCoo | Format::InlineCoo => {
                    let limits = tensor.reader().limits();
                    let coo = tensor.coo()?;
                    let bytes = coo.values().bytes().len() as u64;
                    limits.check(Limit::DecodedBytes, "sparse values in bytes", bytes)?;
                    wide(coo.coords()).and_then(|coords| {
                        Coo::from_parts(coo.shape().clone(), coo.values().clone(), coords)?
                            .check_v2()
                            .map_err(|error| error.of(name).given())
                    })
                }
                _ => Ok(()),
            };
            match sparse {
                Ok(()) => {}
                Err(error @ (Error::Given { .. } | Error::Layout { .. })) => {
                    self.refused.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        self.attributes(&quoted, &tensor.attributes()?.unwrap_or_default(), writer);
        Ok(())
    }

    /// Writes a tensor that has a place in the other container.
    fn write<W: Write>(
        &mut self,
        tensor: Tensor<'_>,
        name: &str,
        writer: &mut Writer<W>,
    ) -> Result<()> {
        let object = tensor.object()?;
        let at = At::file().tensor(name);
        for key in object.unknown_keys() {
            self.left_out(key, at.clone());
        }
        for (role, part) in &object.components {
            part.unknown_keys().for_each(|key| self.left_out(key, place(tensor, role)));
        }
        let (to_v2, verify) = (writer.version() == Version::V2, writer.verify());
        let attributes = tensor.attributes()?.unwrap_or_default();
        let storage = writer.storage();
        let mut out = writer.object(name)?;
        if !attributes.is_empty() {
            out.set_attributes(&attributes);
        }
        match object.format {
            Format::SparseCsr | Format::InlineCsr if to_v2 => {
                verify_all(tensor, &object, verify)?;
                return out.finish_csr(&sorted(tensor)?);
            }
            Format::SparseCoo | Format::InlineCoo if to_v2 => {
                verify_all(tensor, &object, verify)?;
                let coo = tensor.coo()?;
                let coords = wide(coo.coords())?;
                let coo = Coo::from_parts(coo.shape().clone(), coo.values().clone(), coords)?;
                return out.finish_coo(&coo);
            }
            _ => {}
        }
        let format = self.format(tensor, &object, to_v2);
        let mut parts: Vec<&(Role, Component)> = object.components.iter().collect();
        if to_v2 {
            parts.sort_by_key(|(role, _)| role.as_str());
        }
        for (role, part) in parts {
            let blob = tensor.blob_of(&object, role, part)?;
            let mut elements = blob.elements()?;
            if let (false, ElementType::Packed { name, .. }) = (to_v2, elements) {
                let message = format!("elements of type {name} are written as bytes");
                let finding = Finding::warning("zt/migrate-type", message);
                self.report.add(finding.at(place(tensor, role)));
                elements = DType::U8.into();
            }
            if !to_v2 {
                out.set_storage(storage_v1(storage, part));
            }
            let mut stream =
                if verify == Verify::Never { blob.stream() } else { blob.hashed_stream() }?;
            let mut component = out.component(role.clone(), elements)?;
            let copied = io::copy(&mut stream, &mut component);
            copied.map_err(|error| match error.downcast::<Error>() {
                Ok(error) => error,
                Err(error) => blob.stream_fault(error),
            })?;
            component.finish()?;
            if verify == Verify::Never {
                blob.finish(stream)
            } else {
                blob.finish_hashed(stream).map(drop)
            }?;
        }
        out.complete(format, object.shape)
    }

    /// Returns the layout under which a tensor is kept.
    fn format(&mut self, tensor: Tensor<'_>, object: &Object, to_v2: bool) -> Format {
        let found = &object.format;
        let kept = match (found, to_v2) {
            (Format::QuantizedGroup | Format::Other(_), true)
                if tensor.reader().generation() != Generation::V2 =>
            {
                // Such names are free for anybody who has a name of their own before the dot.
                Format::Other(format!("ztensor1.{}/1", found.as_str()))
            }
            (Format::QuantGroup | Format::Mx, false) => Format::Other(found.as_str().to_owned()),
            _ => return found.clone(),
        };
        let (found, new) = (Quoted(found.as_str()), Quoted(kept.as_str()));
        let message =
            format!("format {found} has no equal, and is kept as {new} with its components");
        let finding = Finding::warning("zt/migrate-layout", message);
        self.report.add(finding.at(At::file().tensor(tensor.name())));
        kept
    }
}

/// Says what keeps a text from being a name of generation 2.
fn name_fault(name: &str, is_canonical: bool) -> Option<String> {
    if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
        let len = name.len();
        return Some(format!("has a name of {len} bytes, expected 1 to {MAX_NAME} without NUL"));
    }
    (is_canonical && !is_nfc(name))
        .then(|| "has a name that is not in normal form C, as the canonical form asks".to_owned())
}

/// Compares the digests of all parts, where that is asked for.
fn verify_all(tensor: Tensor<'_>, object: &Object, verify: Verify) -> Result<()> {
    if verify == Verify::Never {
        return Ok(());
    }
    for (role, part) in &object.components {
        let blob = tensor.unsized_blob(role, part);
        // A digest that says nothing is for `validate` to report.
        if blob.check_digest().is_ok() {
            blob.verify()?;
        }
    }
    Ok(())
}

/// Returns how a part is stored in 1.x: with a digest, where it had one.
fn storage_v1(storage: Storage, part: &Component) -> Storage {
    #[cfg(feature = "digest")]
    {
        use tensor_core::digest::Algorithm;
        let had = match part.digest.as_deref() {
            Some(digest) if digest.starts_with("sha256:") => Some(Algorithm::Sha256),
            Some(_) => Some(Algorithm::Crc32c),
            None => None,
        };
        Storage { digest: storage.digest.or(had), ..storage }
    }
    #[cfg(not(feature = "digest"))]
    {
        let _ = part;
        storage
    }
}

/// Returns a matrix whose rows are sorted and whose indices are of a type of generation 2.
fn sorted(tensor: Tensor<'_>) -> Result<Csr> {
    let csr = tensor.csr()?;
    let name = tensor.name();
    let (indices, indptr) = (wide(csr.indices())?, wide(csr.indptr())?);
    let same = indices.dtype() == indptr.dtype();
    let [indices, indptr] =
        if same { [indices, indptr] } else { [u64s(&indices)?, u64s(&indptr)?] };
    let matrix = Csr::from_parts(csr.shape().clone(), csr.values().clone(), indices, indptr)?;
    if matrix.check_v2().is_ok() {
        return Ok(matrix);
    }
    let matrix = matrix.sorted().map_err(|error| error.of(name).given())?;
    matrix.check_v2().map_err(|error| error.of(name).given())?;
    Ok(matrix)
}

/// Returns indices as they are where generation 2 has their type, or else as u64.
fn wide(indices: &TensorBuf) -> Result<TensorBuf> {
    match indices.dtype() {
        DType::U32 | DType::U64 => Ok(indices.clone()),
        _ => u64s(indices),
    }
}

fn u64s(indices: &TensorBuf) -> Result<TensorBuf> {
    let numbers = crate::tensor::sparse::to_u64s(indices).map_err(|error| error.of("").given())?;
    Ok(TensorBuf::from_slice([numbers.len() as u64], &numbers)?)
}
