//! Writing packages: into an archive, front to back, or into a folder that appears whole.

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Write},
    path::Path,
};

use model_archive::{
    Archive, ArchiveWriter, Compression, EntryOptions, Kind, Method, NewFolder, Raw,
};
use tensor_core::{
    Limit, Limits,
    digest::Algorithm,
    output::{Durability, Existing, NewFile, Output, check_space},
    parallel,
};

use crate::{
    Error, ReadOptions, Reader, Result, Sums,
    layout::{DOCUMENT_BYTES, SUMS},
    read::{body::Body, storage::entry},
    sums,
};

/// How a package is written.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    alignment: u32,
    level: i32,
    pub(crate) is_unchecked: bool,
    pub(crate) output: Output,
}

impl WriteOptions {
    /// Sets what models start at a multiple of in an archive, in bytes: a power of two up to 32,768.
    /// The default is 4096, so that a mapped archive has models where a mapped file has them.
    #[must_use]
    pub const fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment;
        self
    }

    /// Sets how hard everything but models is compressed by DEFLATE, where that saves a twentieth: 1
    /// for speed to 9 for size, 0 for not at all. The default is 6.
    #[must_use]
    pub const fn level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// Sets how finished files take their places.
    #[must_use]
    pub const fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets whether finished files are forced to the disk; they are by default, but for those of a
    /// new folder.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.output.durability = durability;
        self
    }

    /// Sets what happens to a file that is there already; it is replaced by default. Folders are
    /// never replaced.
    #[must_use]
    pub const fn existing(mut self, existing: Existing) -> Self {
        self.output.existing = existing;
        self
    }

    /// Lets an [`Editor`](crate::Editor) also write what [`Reader::lint`] calls an error, and what the
    /// package has not: for callers that look at the result themselves.
    #[must_use]
    pub const fn unchecked(mut self) -> Self {
        self.is_unchecked = true;
        self
    }

    /// Starts an archive that will stand at `path` once it is finished; a failure before leaves what
    /// was there.
    ///
    /// # Errors
    ///
    /// Where the folder does not let a file be created.
    pub fn create<'p>(
        self,
        path: impl AsRef<Path>,
        package: &'p dyn Package,
    ) -> Result<Writer<'p, NewFile>> {
        let sink = self.output.create(path)?;
        let commit = |file: &mut NewFile, output: Output| file.commit(output.existing);
        Ok(Writer { sink, package, options: self, commit })
    }

    /// Starts an archive in any sink; nothing is sought.
    pub fn write_to<W: Write>(self, sink: W, package: &dyn Package) -> Writer<'_, W> {
        Writer { sink, package, options: self, commit: |_, _| Ok(()) }
    }

    /// Writes a folder, which must not be there before, or be empty, and appears once it is whole.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`].
    pub fn create_folder(self, path: impl AsRef<Path>, package: &dyn Package) -> Result<()> {
        Ok(self.start_folder(path, package)?.commit()?)
    }

    /// Like [`create_folder`](Self::create_folder), but for the last step: the folder has everything in
    /// it, and appears once it is committed.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`].
    pub fn start_folder(self, path: impl AsRef<Path>, package: &dyn Package) -> Result<NewFolder> {
        package.plan()?.start_folder(path.as_ref())
    }

    /// Like [`create_folder`](Self::create_folder), but what would be written is thrown away.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`].
    pub fn try_folder(self, path: impl AsRef<Path>, package: &dyn Package) -> Result<()> {
        package.plan()?.fill(path.as_ref(), None)
    }
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { alignment: 4096, level: 6, is_unchecked: false, output: Output::default() }
    }
}

/// Writes the archive of a package front to back. One that is not finished is none.
///
/// # Examples
///
/// ```no_run
/// use nnpackage::{Builder, Writer};
///
/// let mut builder = Builder::default();
/// builder.model_from("add.circle", "models/add.circle")?;
/// Writer::options().alignment(64).create("add.zip", &builder)?.finish()?;
/// # Ok::<(), nnpackage::Error>(())
/// ```
#[must_use = "a package that is not finished is none"]
pub struct Writer<'p, W> {
    sink: W,
    package: &'p dyn Package,
    options: WriteOptions,
    /// Makes a finished file take its place.
    commit: fn(&mut W, Output) -> tensor_core::Result<()>,
}

impl<'p> Writer<'p, NewFile> {
    /// Starts an archive that will stand at `path` once it is finished, with the default options.
    ///
    /// # Errors
    ///
    /// As for [`WriteOptions::create`].
    pub fn create(path: impl AsRef<Path>, package: &'p dyn Package) -> Result<Self> {
        WriteOptions::default().create(path, package)
    }

    /// Returns the options of writing, to be set and written with.
    #[must_use]
    pub fn options() -> WriteOptions {
        WriteOptions::default()
    }
}

impl<'p, W: Write> Writer<'p, W> {
    /// Starts an archive in any sink, with the default options.
    pub fn new(sink: W, package: &'p dyn Package) -> Self {
        WriteOptions::default().write_to(sink, package)
    }

    /// Writes everything, and returns the sink. A file takes its place.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where a file that a model needs is missing; [`Error::Edit`] where the
    /// manifest cannot be written, as without a model; where a file cannot be read, or the sink
    /// fails.
    pub fn finish(self) -> Result<W> {
        let mut sink = self.package.plan()?.write_to(self.sink, &self.options)?;
        (self.commit)(&mut sink, self.options.output)?;
        Ok(sink)
    }
}

impl<W: fmt::Debug> fmt::Debug for Writer<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sink, options, .. } = self;
        f.debug_struct("Writer")
            .field("sink", sink)
            .field("options", options)
            .finish_non_exhaustive()
    }
}

/// What can be written as a package: a [`Builder`](crate::Builder) or an [`Edit`](crate::Edit).
pub trait Package: sealed::Plans {}

impl<P: sealed::Plans> Package for P {}

pub(crate) mod sealed {
    /// What can say what is where.
    pub trait Plans {
        fn plan(&self) -> crate::Result<super::Plan>;
    }
}

/// How a file is used, which says how an archive stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Read where it lies: stored as it is, and aligned.
    InPlace,
    /// Read whole: compressed where that pays.
    Whole,
    /// An entry that stays as it is stored.
    Kept,
}

/// A file of a package that is to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry {
    /// From the root of the package.
    pub(crate) path: String,
    pub(crate) body: Body,
    pub(crate) used: Use,
}

/// A package that is to be written: what is where.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The folder in the archive that is the package: empty, or with a slash at its end.
    pub(crate) root: String,
    /// Files in the order of the archive, without the list of digests.
    pub(crate) files: Vec<NewEntry>,
    /// Folders that have entries of their own, by path from the root of the package.
    pub(crate) folders: Vec<String>,
    /// Entries of the archive outside of the package, by their whole names.
    pub(crate) outside: Vec<NewEntry>,
    /// Digests that are known already, where a list is written.
    pub(crate) sums: Option<Sums>,
    /// Files that stay out of that list.
    pub(crate) unlisted: BTreeSet<String>,
}

impl Plan {
    /// Opens what is going to be written.
    pub(crate) fn preview(self, options: ReadOptions) -> Result<Reader> {
        let files = self.files.into_iter().map(|file| (file.path, file.body));
        options.preview(files.collect())
    }

    /// Writes an archive to any sink.
    pub(crate) fn write_to<W: Write>(&self, sink: W, options: &WriteOptions) -> Result<W> {
        let mut writer =
            Entries { archive: ArchiveWriter::new(sink), options, sums: self.sums.clone() };
        // Folders of their own are kept where they were: an empty one is nothing without its entry.
        for folder in &self.folders {
            writer.archive.add_folder(&format!("{}{folder}", self.root))?;
        }
        for file in &self.files {
            let wants_digest = self.wants_digest(&file.path);
            writer.file(&format!("{}{}", self.root, file.path), file, wants_digest)?;
        }
        for file in &self.outside {
            writer.file(&file.path, file, false)?;
        }
        if let Some(sums) = writer.sums.take() {
            let options = writer.options_of(Use::Whole);
            let name = format!("{}{}", self.root, SUMS);
            writer.archive.add(&name, &document(&sums)?, &options)?;
        }
        Ok(writer.archive.finish()?)
    }

    /// Writes a folder that appears once it is committed.
    pub(crate) fn start_folder(&self, path: &Path) -> Result<NewFolder> {
        let folder = NewFolder::create(path)?;
        self.fill(path, Some(&folder))?;
        Ok(folder)
    }

    /// Writes everything into a folder that is to stand at `path`, or nowhere.
    pub(crate) fn fill(&self, path: &Path, folder: Option<&NewFolder>) -> Result<()> {
        let create = |path: &str| -> Result<Box<dyn Write>> {
            Ok(match folder {
                Some(folder) => Box::new(folder.file(path)?),
                None => NewFolder::check(path).map(|()| Box::new(io::sink()))?,
            })
        };
        let mut needed = 0_u64;
        for file in &self.files {
            needed = needed.saturating_add(file.body.open()?.0);
        }
        check_space(path, needed)?;
        let mut sums = self.sums.clone();
        for path in &self.folders {
            folder.map_or_else(|| NewFolder::check(path), |folder| folder.folder(path))?;
        }
        for file in &self.files {
            let mut out = create(&file.path)?;
            let digest = copy(file, &mut out, self.wants_digest(&file.path))?;
            if let Some((sums, digest)) = sums.as_mut().zip(digest) {
                sums.insert(&file.path, digest);
            }
        }
        if let Some(sums) = sums {
            let written = create(SUMS)?.write_all(&document(&sums)?);
            written.map_err(|source| Error::Write { path: SUMS.to_owned(), source })?;
        }
        Ok(())
    }

    /// Tells whether the digest of a file has to be found out.
    pub(crate) fn wants_digest(&self, path: &str) -> bool {
        let is_known = self.sums.as_ref().is_none_or(|sums| sums.get(path).is_some());
        !is_known && !self.unlisted.contains(path)
    }
}

/// Returns the text of a list of digests, where it is one that readers take.
pub(crate) fn document(sums: &Sums) -> Result<Vec<u8>> {
    let text = sums.to_bytes();
    check_document("SHA256SUMS in bytes", &text)?;
    Ok(text)
}

/// Refuses to write a document that readers do not take by default.
pub(crate) fn check_document(what: &'static str, text: &[u8]) -> Result<()> {
    let limits = Limits::default().with_document_bytes(DOCUMENT_BYTES);
    Ok(limits.check(Limit::DocumentBytes, what, text.len() as u64)?)
}

/// Copies a file to the disk, and returns its digest where that is wanted.
pub(crate) fn copy(
    file: &NewEntry,
    out: &mut impl Write,
    wants_digest: bool,
) -> Result<Option<[u8; 32]>> {
    let (len, content) = file.body.open()?;
    let mut copied = 0_u64;
    let digest = sums::read(content, wants_digest, |ready| {
        copied = copied.saturating_add(ready.len() as u64);
        out.write_all(ready).map_err(|source| {
            let path = file.path.clone();
            Error::Write { path, source }
        })
    })?;
    if copied != len {
        let (what, offset) = ("file", 0);
        let changed =
            tensor_core::Error::OutOfBounds { what, offset, needed: len, remaining: copied };
        return Err(changed.into());
    }
    Ok(digest)
}

struct Entries<'a, W: Write> {
    archive: ArchiveWriter<W>,
    options: &'a WriteOptions,
    sums: Option<Sums>,
}

impl<W: Write> Entries<'_, W> {
    fn options_of(&self, used: Use) -> EntryOptions {
        let options = EntryOptions::default();
        match used {
            Use::InPlace => options.alignment(self.options.alignment),
            Use::Whole | Use::Kept if self.options.level == 0 => options,
            Use::Whole | Use::Kept => {
                let level = self.options.level;
                options.compression(Compression::DeflateIfSmaller { level })
            }
        }
    }

    fn file(&mut self, name: &str, file: &NewEntry, wants_digest: bool) -> Result<()> {
        let digest = match &file.body {
            Body::Entry { archive, name: from } if is_fit(archive, from, file.used)? => {
                self.copy_raw(name, archive, from, file.used)?;
                wants_digest.then(|| sums::digest(file.body.open()?.1)).transpose()?
            }
            body => {
                let (len, content) = body.open()?;
                let options = self.options_of(file.used).size(len);
                let options =
                    if wants_digest { options.digest(Algorithm::Sha256) } else { options };
                let threads = parallel::available();
                let written = self.archive.stream_from(name, content, &options, threads);
                written.map_err(of_content)?.digest.map(sums::sha256)
            }
        };
        if let (Some(digest), Some(sums)) = (digest, &mut self.sums) {
            sums.insert(&file.path, digest);
        }
        Ok(())
    }

    /// Copies an entry as it is stored.
    fn copy_raw(&mut self, name: &str, archive: &Archive, from: &str, used: Use) -> Result<()> {
        let entry = entry(archive, from)?;
        let info = entry.info();
        let raw = Raw { kind: Kind::File, ..Raw::from(info) };
        let alignment = match (info.method, used) {
            (Method::Stored, Use::InPlace) => self.options.alignment.max(entry.alignment()?),
            (Method::Stored, _) => entry.alignment()?,
            _ => 1,
        };
        self.archive.copy_raw(name, raw, alignment, entry.stored_reader()?)?;
        Ok(())
    }
}

/// Tells whether an entry is stored in a way that will do.
fn is_fit(archive: &Archive, name: &str, used: Use) -> Result<bool> {
    let method = entry(archive, name)?.info().method;
    Ok(used != Use::InPlace || method == Method::Stored)
}

/// Returns what is wrong with the content of an entry where that, and not the sink, has failed.
fn of_content(error: model_archive::Error) -> Error {
    match error {
        model_archive::Error::Io { what, source } => {
            match source.downcast::<model_archive::Error>() {
                Ok(error) => error.into(),
                Err(source) => model_archive::Error::Io { what, source }.into(),
            }
        }
        error => error.into(),
    }
}
