use std::num::NonZeroUsize;

use super::{
    metadata::{self, Carried},
    options::ConvertOptions,
    plan::{self, Item},
    refusal::{Note, Refusal},
    shards,
    target::Target,
    write::ConvertedFile,
};
use crate::set::TensorSet;

/// A conversion that was found to be possible, before anything is written.
#[derive(Debug)]
pub struct Conversion<'s, 'a> {
    pub(super) target: Target,
    pub(super) items: Vec<Item<'s, 'a>>,
    pub(super) metadata: Carried,
    files: Vec<shards::Planned>,
    notes: Vec<Note>,
    pub(super) compression: Option<i32>,
    pub(super) threads: NonZeroUsize,
}

impl<'a> TensorSet<'a> {
    /// Finds out whether all tensors can be in a file of another format, or in shards.
    ///
    /// # Errors
    ///
    /// Every tensor that cannot, each with the option that would make it possible, if there is one.
    pub fn convert_to(
        &self,
        target: Target,
        options: &ConvertOptions,
    ) -> Result<Conversion<'_, 'a>, Vec<Refusal>> {
        let (items, notes, mut refused) = plan::items(self, target, options);
        refused.extend(target.refuses_options(options, self.tensors().len()));
        if !refused.is_empty() {
            return Err(refused);
        }
        let metadata = metadata::carry(self, target);
        let files = shards::plan(target, &items, &metadata, options)
            .map_err(|error| vec![Refusal::file(error)])?;
        let (compression, threads) = (options.compression, options.threads);
        Ok(Conversion { target, items, metadata, files, notes, compression, threads })
    }
}

impl Target {
    /// Says what of the options files of this format do not have.
    fn refuses_options(self, options: &ConvertOptions, tensors: usize) -> Vec<Refusal> {
        let compresses = match self {
            #[cfg(feature = "archive")]
            Self::Npz => options.compression.is_none_or(|level| (1..=9).contains(&level)),
            #[cfg(feature = "ztensor")]
            Self::ZTensor | Self::ZTensor2 => options.compression.is_none_or(|level| level <= 22),
            _ => options.compression.is_none(),
        };
        let level = options.compression.unwrap_or_default();
        let mut reasons = Vec::new();
        if !compresses {
            reasons.push(format!("{self} has no compression of level {level}"));
        }
        if options.shard_size.is_some() && self != Self::Safetensors {
            reasons.push(format!("{self} has no shards, expected safetensors"));
        }
        if self == Self::Npy && tensors != 1 {
            reasons.push(format!("npy has one tensor, but there are {tensors}"));
        }
        #[cfg(feature = "archive")]
        if self == Self::Npz && tensors == 0 {
            // An empty archive says nothing of what it is one of.
            reasons.push("npz has one tensor at least, but there is none".to_owned());
        }
        reasons.into_iter().map(Refusal::file).collect()
    }
}

impl<'s, 'a> Conversion<'s, 'a> {
    /// Returns the files that it makes, to be written beside each other in this order: one, or shards
    /// and then their index.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn files(&self) -> impl ExactSizeIterator<Item = ConvertedFile<'_, 's, 'a>> {
        self.files.iter().map(|file| ConvertedFile::new(self, file))
    }

    /// Returns what is to be written.
    #[must_use]
    pub const fn target(&self) -> Target {
        self.target
    }

    /// Returns what becomes of tensors that are not written as they are.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the keys of the metadata that the files will not have.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.metadata.left_out
    }

    /// Returns how many bytes of elements the files will have.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        self.items.iter().map(|item| item.byte_len).fold(0, u64::saturating_add)
    }
}
