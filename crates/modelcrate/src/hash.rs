//! Digests of what a file holds, whatever it is stored in.

use std::num::NonZeroUsize;

use tensor_core::{
    digest::{Algorithm, Digest, Hasher},
    parallel,
};

use crate::{NamedTensor, Result, TensorSet};

/// The digest of a set of tensors, and those of the tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentHash {
    /// Over all tensors.
    pub digest: Digest,
    /// Of each tensor, by its name, in the order of names.
    pub tensors: Vec<(String, Digest)>,
}

impl TensorSet<'_> {
    /// Computes the digest of the tensors: the same for every file that has the same tensors under the
    /// same names, whatever its format, the order of the tensors and how they are stored. Metadata do
    /// not count.
    ///
    /// It is the SHA-256 of this text, a line for each tensor in the order of the bytes of their
    /// names: the SHA-256 of the elements, little-endian and row-major, in 64 hex digits; a space; the
    /// element type, such as `f32`; a space; the shape, such as `[2, 3]`; a space; the name as a JSON
    /// string; a line feed.
    ///
    /// # Errors
    ///
    /// Where a tensor cannot be read, or is not one of dense elements.
    pub fn content_hash(
        &self,
        threads: NonZeroUsize,
        progress: impl Fn(u64) + Sync,
    ) -> Result<ContentHash> {
        let mut tensors: Vec<&NamedTensor<'_>> = self.tensors().iter().collect();
        tensors.sort_unstable_by_key(|tensor| tensor.name());
        let digests = parallel::map(&tensors, threads, |tensor| {
            let bytes = tensor.bytes()?;
            let digest = Algorithm::Sha256.digest(&bytes);
            progress(bytes.len() as u64);
            Ok(digest)
        });
        let digests = digests.into_iter().collect::<Result<Vec<Digest>>>()?;
        let mut whole = Hasher::new(Algorithm::Sha256);
        for (tensor, digest) in tensors.iter().zip(&digests) {
            // What has bytes has elements.
            let Ok((element_type, shape)) = tensor.elements() else { continue };
            let (digits, name) = (hex(digest), serde_json::Value::from(tensor.name()));
            whole.update(format!("{digits} {element_type} {shape} {name}\n").as_bytes());
        }
        let names = tensors.iter().map(|tensor| tensor.name().to_owned());
        Ok(ContentHash { digest: whole.finish(), tensors: names.zip(digests).collect() })
    }
}

/// Returns the digits of a digest without the name of its algorithm.
fn hex(digest: &Digest) -> String {
    let text = digest.to_string();
    text.rsplit_once(':').map_or_else(|| text.clone(), |(_, digits)| digits.to_owned())
}
