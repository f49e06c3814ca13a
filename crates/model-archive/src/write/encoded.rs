use std::{borrow::Cow, fmt};

use tensor_core::digest::Digest;

use crate::{
    EntryOptions, Error, Kind, Method, Result, WriteFault, write::headers::Sums,
    write::options::Plan,
};

/// An entry that is compressed and ready to be appended by
/// [`ArchiveWriter::add_encoded`](crate::ArchiveWriter::add_encoded).
///
/// It needs no archive: many can be made on several threads and then appended in order.
///
/// # Examples
///
/// ```
/// use model_archive::{ArchiveWriter, Encoded, EntryOptions};
/// use tensor_core::parallel;
///
/// let files = [("a", "first"), ("b", "second")];
/// let encoded = parallel::map(&files, parallel::available(), |(name, text)| {
///     Encoded::new(name, text.as_bytes(), &EntryOptions::default())
/// });
/// let mut archive = ArchiveWriter::new(Vec::new());
/// for entry in encoded {
///     archive.add_encoded(entry?)?;
/// }
/// let archive: Vec<u8> = archive.finish()?;
/// # Ok::<(), model_archive::Error>(())
/// ```
pub struct Encoded<'a> {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) method: Method,
    pub(crate) alignment: u32,
    pub(crate) sums: Sums,
    pub(crate) digest: Option<Digest>,
    pub(crate) stored: Cow<'a, [u8]>,
}

impl<'a> Encoded<'a> {
    /// Compresses and hashes content as the options say. Nothing is copied where it is stored as it
    /// is.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where the options cannot be followed, or the content has another size than
    /// they say; [`Error::Io`] where there is no memory to compress in. The name is looked at when
    /// the entry is appended.
    pub fn new(
        name: &str,
        content: impl Into<Cow<'a, [u8]>>,
        options: &EntryOptions,
    ) -> Result<Self> {
        let (content, refused) = (content.into(), |fault| Error::write(name, fault));
        let plan = options.plan().map_err(refused)?;
        let found = content.len() as u64;
        if let Some(expected) = options.size.filter(|&expected| expected != found) {
            return Err(refused(WriteFault::Size { found, expected }));
        }
        let digest = options.digest.map(|algorithm| algorithm.digest(&content));
        Ok(Self { digest, ..Self::planned(name, content, plan)? })
    }

    /// Compresses content by a plan, and does not hash it.
    pub(crate) fn planned(name: &str, content: Cow<'a, [u8]>, plan: Plan) -> Result<Self> {
        let crc32 = crc32fast::hash(&content);
        let size = content.len() as u64;
        let compressed = plan.compress(&content).map_err(Error::compressing)?;
        let method = compressed.as_ref().map_or(Method::Stored, |_| plan.codec.method());
        let stored = compressed.map_or(content, Cow::Owned);
        let sums = Sums { crc32, size, stored_size: stored.len() as u64 };
        let (name, kind, alignment) = (name.to_owned(), Kind::File, plan.alignment(method));
        Ok(Self { name, kind, method, alignment, sums, digest: None, stored })
    }

    /// Returns an entry that is stored as it is.
    pub(crate) fn plain(name: &str, kind: Kind, content: &'a [u8]) -> Self {
        let size = content.len() as u64;
        let sums = Sums { crc32: crc32fast::hash(content), size, stored_size: size };
        let (name, stored) = (name.to_owned(), content.into());
        Self { name, kind, method: Method::Stored, alignment: 1, sums, digest: None, stored }
    }

    /// Returns the name of the entry.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how the content is stored.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns how many bytes the content has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.sums.size
    }

    /// Returns how many bytes it takes in the archive.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        self.sums.stored_size
    }

    /// Returns the digest of the content, where the options ask for one.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }
}

impl fmt::Debug for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoded")
            .field("name", &self.name)
            .field("method", &self.method)
            .field("size", &self.sums.size)
            .field("stored_size", &self.sums.stored_size)
            .finish_non_exhaustive()
    }
}
