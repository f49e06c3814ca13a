//! Objects of other files, copied with their stored bytes as they are.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
};

use tensor_core::{Extent, Report};

use super::{ObjectWriter, Version, Writer};
use crate::{
    Component, Generation, Object, Reader, Role, Tensor,
    error::{Error, Result},
    migrate::{copy_across, translate_to_v1_1, translate_to_v1_2},
};

/// Copies a whole file: its attributes, what it says beyond the schema, and all objects in the
/// order of their blobs.
pub(crate) fn copy_all<W: Write>(reader: &Reader, writer: &mut Writer<W>) -> Result<()> {
    let manifest = reader.manifest();
    writer.set_root(Some(manifest.version().to_owned()), manifest.encoded_root());
    writer.set_shards(manifest);
    if writer.is_canonical() {
        let mut tensors: Vec<Tensor<'_>> = reader.tensors().collect();
        tensors.sort_by_key(|tensor| tensor.name());
        return tensors
            .into_iter()
            .try_for_each(|tensor| copy_across(tensor, tensor.name(), writer).map(drop));
    }
    let mut moved = Moved::default();
    for tensor in in_file_order(reader)? {
        writer.copy_as(tensor.name(), tensor, tensor.object()?, &mut moved)?;
    }
    Ok(())
}

/// Returns the objects in the order in which their blobs were written.
pub(crate) fn in_file_order(reader: &Reader) -> Result<Vec<Tensor<'_>>> {
    let mut tensors = Vec::new();
    for tensor in reader.tensors() {
        let object = tensor.object()?;
        let places = object.components.iter().map(|(_, c)| (c.offset, c.length));
        tensors.push((places.min(), tensor));
    }
    tensors.sort_by_key(|(place, _)| *place);
    Ok(tensors.into_iter().map(|(_, tensor)| tensor).collect())
}

impl<W: Write> Writer<W> {
    /// Copies an object of another file: its definition, and its stored bytes as they are.
    ///
    /// Keys, formats, roles and logical types that this crate does not know are copied as well, and
    /// so is what a build without the feature `zstd` cannot decode. Between generations 1.1 and
    /// 1.2, element types are named as the generation that is written names them; an encoded
    /// component gets `uncompressed_length` in 1.2, where its length can be told, and loses it in
    /// 1.1, where the shape tells it. Objects of generations before 1.1 are
    /// [migrated](crate::migrate) instead. To generation 2, from it, and into its canonical form,
    /// components are decoded and written as the options say.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateObject`]; [`Error::NotEditable`] for a file of an older generation;
    /// [`Error::Component`] where a blob does not lie where it may; [`Error::Layout`] where blobs
    /// overlap and are not the same; unless
    /// [`WriteOptions::verify`](crate::WriteOptions::verify) says otherwise, [`Error::Component`]
    /// where one does not match its digest and [`Error::Faulty`] where the definition has an error,
    /// an element type or an encoding that is not known among them.
    pub fn copy(&mut self, tensor: Tensor<'_>) -> Result<()> {
        self.copy_under(tensor.name(), tensor)
    }

    /// Like [`copy`](Self::copy), but under another name.
    ///
    /// # Errors
    ///
    /// As for [`copy`](Self::copy).
    pub fn copy_under(&mut self, name: &str, tensor: Tensor<'_>) -> Result<()> {
        self.options.refuse(tensor.lint())?;
        let version = self.version();
        let is_v2 = tensor.reader().generation() == Generation::V2;
        if is_v2 != (version == Version::V2) || self.is_canonical() {
            return copy_across(tensor, name, self).map(drop);
        }
        let mut object = tensor.object()?;
        match (tensor.reader().generation(), version) {
            (Generation::V1_1, Version::V1_1)
            | (Generation::V1_2, Version::V1_2)
            | (Generation::V2, Version::V2) => {}
            (Generation::V1_1, Version::V1_2) => translate_to_v1_2(tensor, &mut object),
            (Generation::V1_2, Version::V1_1) => {
                for (role, component) in &mut object.components {
                    translate_to_v1_1(&object.format, role, component);
                }
            }
            (found, _) => return Err(Error::NotEditable { found }),
        }
        self.copy_as(name, tensor, object, &mut Moved::default())
    }

    /// Like [`copy_under`](Self::copy_under), but components are decoded and stored as the options say,
    /// whatever the generations; returns what is left out: keys that the format does not name.
    ///
    /// # Errors
    ///
    /// As for [`copy_under`](Self::copy_under), and [`Error::NotExpressible`] where a component cannot
    /// be decoded.
    pub fn recode_under(&mut self, name: &str, tensor: Tensor<'_>) -> Result<Report> {
        self.options.refuse(tensor.lint())?;
        copy_across(tensor, name, self)
    }

    /// Copies the stored bytes of a tensor under a definition that may say the same otherwise.
    ///
    /// Blobs that `moved` knows are not written again. One that overlaps another without being the
    /// same is refused, so that a copy is never longer than what it is made from.
    pub(crate) fn copy_as(
        &mut self,
        name: &str,
        tensor: Tensor<'_>,
        definition: Object,
        moved: &mut Moved,
    ) -> Result<()> {
        for shard in definition.components.iter().filter_map(|(_, part)| part.shard.as_deref()) {
            self.take_shard(tensor, shard)?;
        }
        let mut object = self.object(name)?;
        object.object = Object { components: Vec::new(), ..definition.clone() };
        let mut components = definition.components;
        // Blobs keep the order that they have in the file; an empty one comes before the blob that
        // starts where it does.
        let place = |(_, component): &(Role, Component)| (component.offset, component.length);
        let mut order: Vec<usize> = (0..components.len()).collect();
        order.sort_by_key(|&index| components.get(index).map(place));
        for index in order {
            let Some((role, component)) = components.get_mut(index) else {
                continue;
            };
            object.copy_blob(tensor, role, component, moved)?;
        }
        object.object.components = components;
        object.commit()
    }
}

impl<W: Write> Writer<W> {
    /// Names the shard in which a tensor of another file lies, as that file does.
    fn take_shard(&mut self, tensor: Tensor<'_>, name: &str) -> Result<()> {
        let mut shards = tensor.reader().manifest().shards();
        let Some((_, wanted)) = shards.find(|(found, _)| *found == name) else { return Ok(()) };
        match self.root.shards.get(name) {
            Some(there) if there == wanted => Ok(()),
            Some(_) => {
                let reason = format!(
                    "object {:?} lies in a shard {name:?} that is another than the one of this file",
                    tensor.name()
                );
                Err(Error::Given { reason })
            }
            None => self.add_shard(name, wanted),
        }
    }
}

impl<W: Write> ObjectWriter<'_, W> {
    fn copy_blob(
        &mut self,
        tensor: Tensor<'_>,
        role: &Role,
        component: &mut Component,
        moved: &mut Moved,
    ) -> Result<()> {
        if component.shard.is_some() {
            return Ok(());
        }
        let blob = tensor.unsized_blob(role, component);
        let (extent, verify) = (blob.extent()?, self.writer.options.verify);
        if let Some(offset) = moved.find(extent).map_err(|problem| {
            let problem = format!("component {:?} {problem}", role.as_str());
            Error::Layout { object: tensor.name().to_owned(), problem }
        })? {
            component.offset = offset;
            // The bytes are there, but this component may have another digest.
            return match component.digest {
                Some(_) => blob.copy_stored(verify, |_| Ok(())),
                None => Ok(()),
            };
        }
        let out = &mut self.writer.out;
        component.offset = out.align(self.writer.options.grid())?;
        blob.copy_stored(verify, |stored| out.put(stored))?;
        moved.insert(extent, component.offset);
        Ok(())
    }
}

/// Where blobs of a file that is being copied have gone.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Length and new offset by offset; no two overlap.
    blobs: BTreeMap<u64, (u64, u64)>,
    /// New offsets of blobs without bytes, by offset.
    empty: HashMap<u64, u64>,
}

impl Moved {
    /// Returns where a blob has gone, or what it overlaps without being the same.
    fn find(&self, extent: Extent) -> Result<Option<u64>, String> {
        if extent.is_empty() {
            return Ok(self.empty.get(&extent.offset()).copied());
        }
        let (start, len) = (extent.offset(), extent.len());
        // None overlap, so no other before the end of this one reaches further.
        let Some((&before, &(before_len, moved))) = self.blobs.range(..extent.end()).next_back()
        else {
            return Ok(None);
        };
        if (before, before_len) == (start, len) {
            return Ok(Some(moved));
        }
        if before.saturating_add(before_len) <= start {
            return Ok(None);
        }
        Err(format!(
            "covers {len} bytes at byte {start}, which overlap {before_len} bytes at byte {before} \
             that were copied, expected the same or others"
        ))
    }

    fn insert(&mut self, extent: Extent, moved: u64) {
        if extent.is_empty() {
            self.empty.insert(extent.offset(), moved);
        } else {
            self.blobs.insert(extent.offset(), (extent.len(), moved));
        }
    }
}
