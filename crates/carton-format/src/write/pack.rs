//! Packing: a folder of a model and a description become a carton.

use std::{
    collections::BTreeMap,
    fs, io,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

use bytes::Bytes;
use model_archive::Folder;
use tensor_core::{Limit, Limits, Source, output::is_temporary};

use crate::{
    Description, Error, Finished, Links, Place, Reader, Result, Sha256, Value, Writer,
    error::{PackFault, WriteFault},
    links::check_fetchable,
    manifest::check_path,
    paths::{
        CARTON_TOML, INDEX, INDEX_BYTES, LINKS, LINKS_BYTES, MANIFEST, MANIFEST_BYTES, MISC, MODEL,
        relative,
    },
    tensor::index_writer::IndexWriter,
    write::Content,
};

/// What is to be packed: collected in any order, written sorted by path in one pass.
///
/// The bytes of the carton depend on nothing but what is packed. Access times, modes and owners of
/// files are not kept; empty folders vanish; what starts with a dot is packed.
///
/// # Examples
///
/// ```no_run
/// use carton_format::{Description, Pack, Runner, Writer};
///
/// let mut description = Description::new(Runner::new("torchscript", "=1.12.1".parse()?));
/// // Not demanded by the format's text, but by its own library.
/// description.runner.compat_version = Some(1);
/// let mut pack = Pack::new(&description)?;
/// pack.model("model_folder")?;
/// let finished = pack.write(Writer::create("model.carton")?)?;
/// println!("{}", finished.manifest.model_hash());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is written before `write`"]
pub struct Pack {
    files: BTreeMap<String, Content>,
    index: IndexWriter,
    links: Links,
}

impl Pack {
    /// Starts with a description.
    ///
    /// # Errors
    ///
    /// Where the description cannot be written.
    pub fn new(description: &Description) -> Result<Self> {
        Self::from_toml(description.to_bytes()?)
    }

    /// Starts with the text of a `carton.toml`, which is kept as it is, comments and all.
    ///
    /// # Errors
    ///
    /// [`Error::Document`] where it is not a description.
    pub fn from_toml(text: impl Into<Bytes>) -> Result<Self> {
        let text = text.into();
        Description::parse(&text, &Limits::default())?;
        let files = BTreeMap::from([(CARTON_TOML.to_owned(), Content::Memory(text))]);
        Ok(Self { files, index: IndexWriter::default(), links: Links::default() })
    }

    /// Starts with an unpacked carton: a folder with `carton.toml` and whatever else belongs to it.
    ///
    /// `MANIFEST` and `LINKS` are rewritten. What the folder's own `LINKS` stands for stays linked,
    /// and so does a symbolic link to it.
    ///
    /// # Errors
    ///
    /// [`Error::Document`] where `carton.toml` is not a description; [`Error::MissingDocument`] where
    /// there is `LINKS` without `MANIFEST`; [`Error::MissingFile`] where the folder's `MANIFEST`
    /// lists a file that is neither here nor linked; as for [`model`](Self::model).
    pub fn unpacked(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let text = folder.join(CARTON_TOML);
        let text = fs::read(&text).map_err(|error| io_fault(&text, error))?;
        let mut pack = Self::from_toml(text)?;
        let has_manifest = folder.join(MANIFEST).is_file();
        if !has_manifest && folder.join(LINKS).is_file() {
            // Without it nobody knows what is only linked.
            return Err(Error::MissingDocument { path: MANIFEST });
        }
        if has_manifest {
            let reader = Reader::open(folder)?;
            for file in reader.files() {
                match file.place() {
                    Place::Here => {}
                    Place::Linked => drop(pack.link(file.path(), file.sha256(), &[])?),
                    Place::Missing => {
                        return Err(Error::MissingFile { path: file.path().to_owned() });
                    }
                }
            }
            pack.links = reader.links().cloned().unwrap_or_default();
        }
        Walk { pack: &mut pack, folder: Folder::open(folder)?, prefix: "" }.run(folder)?;
        Ok(pack)
    }

    /// Adds all files of a folder as the model; a file alone becomes the only file of the model.
    ///
    /// A symbolic link to a file of the same folder stays a link, with a relative target. What a
    /// link from outside leads to, and whole folders behind links, are packed as if they were here.
    ///
    /// # Errors
    ///
    /// [`Error::Pack`] with the file that cannot be packed: broken links, links that lead in a
    /// circle, pipes and devices, names that are not UTF-8 or unsafe in a carton.
    pub fn model(&mut self, path: impl AsRef<Path>) -> Result<&mut Self> {
        self.folder(path.as_ref(), MODEL)
    }

    /// Adds all files of a folder as what belongs to examples, as [`model`](Self::model) does.
    ///
    /// # Errors
    ///
    /// As for [`model`](Self::model).
    pub fn misc_folder(&mut self, path: impl AsRef<Path>) -> Result<&mut Self> {
        self.folder(path.as_ref(), MISC)
    }

    /// Adds a file from memory; its path counts from the root of the carton.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where the path is unsafe, or was added before.
    pub fn file(&mut self, path: &str, content: impl Into<Bytes>) -> Result<&mut Self> {
        self.add(path, Content::Memory(content.into()))?;
        Ok(self)
    }

    /// Adds a file whose content is read, once, when the carton is written.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn stream(&mut self, path: &str, content: impl Read + Send + 'static) -> Result<&mut Self> {
        self.add(path, Content::Stream(Mutex::new(Box::new(content))))?;
        Ok(self)
    }

    /// Adds a file of the system, which is opened when the carton is written; its path counts from
    /// the root of the carton.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), and where it is not a regular file.
    pub fn file_from(&mut self, path: &str, from: impl AsRef<Path>) -> Result<&mut Self> {
        let from = from.as_ref();
        // Opened to find out whether that can be done.
        let len = Source::open(from)?.len();
        self.add(path, Content::Path { path: from.to_owned(), len })?;
        Ok(self)
    }

    /// Lists a file without its content, which can be fetched from some URLs.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), and where nothing can be fetched from a URL.
    pub fn link(&mut self, path: &str, sha256: Sha256, urls: &[String]) -> Result<&mut Self> {
        self.add(path, Content::Linked(sha256))?;
        for url in urls {
            check_fetchable(url)?;
            self.links.add(sha256, url);
        }
        Ok(self)
    }

    /// Adds a tensor, which the index will have by this name.
    ///
    /// # Errors
    ///
    /// As for [`Writer::tensor`].
    pub fn tensor(&mut self, name: &str, value: &Value) -> Result<&mut Self> {
        let prepared = self.index.prepare(name, value)?;
        for (path, _) in &prepared.files {
            self.check(path)?;
        }
        for (path, content) in self.index.add(prepared) {
            self.add(&path, Content::Memory(content))?;
        }
        Ok(self)
    }

    /// Returns how many bytes of content are known to be packed.
    #[must_use]
    pub fn content_len(&self) -> u64 {
        let lens = self.files.values().filter_map(Content::len);
        lens.fold(0, u64::saturating_add)
    }

    /// Writes everything, sorted by path, and finishes the carton.
    ///
    /// # Errors
    ///
    /// Where a file cannot be read, or has changed since it was added; as for [`Writer::finish`].
    pub fn write<W: Write>(self, writer: Writer<W>) -> Result<Finished<W>> {
        self.write_with(writer, |_| ())
    }

    /// Like [`write`](Self::write), but tells `progress` how many bytes of content were done each
    /// time some are.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn write_with<W: Write>(
        mut self,
        mut writer: Writer<W>,
        progress: impl Fn(u64) + Sync,
    ) -> Result<Finished<W>> {
        writer.links.merge(&self.links, |_| true);
        if !self.files.contains_key(INDEX) {
            let index = self.index.to_bytes();
            self.add(INDEX, Content::Memory(index.into()))?;
        } else if !self.index.is_empty() {
            let (path, fault) = (INDEX.to_owned(), WriteFault::Duplicate);
            return Err(Error::Write { path, fault });
        }
        self.check_limits(&writer.options.limits)?;
        writer.index = self.index;
        writer.files(self.files, &progress)?;
        writer.finish_packed()
    }

    /// Refuses what no reader would take by default, before anything is written.
    fn check_limits(&self, limits: &Limits) -> Result<()> {
        let lines = self.files.keys().map(|path| (path.len() as u64).saturating_add(LINE));
        let listed = (self.files.len() as u64).saturating_add(DOCUMENTS);
        let index = self.files.get(INDEX).and_then(Content::len).unwrap_or_default();
        limits.check(Limit::Entries, "number of entries", listed)?;
        limits.check(Limit::ManifestBytes, MANIFEST_BYTES, lines.fold(0, u64::saturating_add))?;
        limits.check(Limit::MetadataBytes, INDEX_BYTES, index)?;
        Ok(limits.check(Limit::MetadataBytes, LINKS_BYTES, self.links.to_bytes().len() as u64)?)
    }

    fn add(&mut self, path: &str, content: Content) -> Result<()> {
        self.check(path)?;
        self.files.insert(path.to_owned(), content);
        Ok(())
    }

    fn check(&self, path: &str) -> Result<()> {
        let refuse = |fault| Err(Error::Write { path: path.to_owned(), fault });
        if let Err(fault) = check_path(path, &Limits::default()) {
            return refuse(WriteFault::Path(fault));
        }
        if self.files.contains_key(path) {
            return refuse(WriteFault::Duplicate);
        }
        Ok(())
    }

    fn folder(&mut self, path: &Path, prefix: &'static str) -> Result<&mut Self> {
        if canonical(path)?.is_file() {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| fault(path, PackFault::NotUtf8))?;
            return self.file_from(&format!("{prefix}{name}"), path);
        }
        Walk { pack: self, folder: Folder::open(path)?, prefix }.run(path)?;
        Ok(self)
    }
}

impl std::fmt::Debug for Pack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pack").field("files", &self.files.keys()).finish_non_exhaustive()
    }
}

/// A walk over a folder, whose files are added.
struct Walk<'p> {
    pack: &'p mut Pack,
    folder: Folder,
    /// Where the folder stands in the carton, with a slash; empty for the carton's own.
    prefix: &'static str,
}

impl Walk<'_> {
    fn run(&mut self, path: &Path) -> Result<()> {
        self.inside(path, self.prefix, &mut vec![self.folder.path().to_owned()])
    }

    /// Adds the files of a folder; `above` are the folders that it lies in, itself included.
    fn inside(&mut self, folder: &Path, prefix: &str, above: &mut Vec<PathBuf>) -> Result<()> {
        if above.len() as u64 > DEPTH {
            return Err(fault(folder, PackFault::Deep(DEPTH)));
        }
        let entries = fs::read_dir(folder).map_err(|error| io_fault(folder, error))?;
        for entry in entries {
            let path = entry.map_err(|error| io_fault(folder, error))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| fault(&path, PackFault::NotUtf8))?;
            let packed = format!("{prefix}{name}");
            let is_ours = is_temporary(name.as_ref());
            if !is_ours && ![CARTON_TOML, MANIFEST, LINKS].contains(&&*packed) {
                self.entry(&path, &packed, above)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, packed: &str, above: &mut Vec<PathBuf>) -> Result<()> {
        check_path(packed, &Limits::default())
            .map_err(|found| fault(path, PackFault::Path(found)))?;
        let is_link = path.is_symlink();
        if is_link && matches!(self.pack.files.get(packed), Some(Content::Linked(_))) {
            return Ok(());
        }
        // A link that leads nowhere, or in a circle, is an error here.
        let metadata = path.metadata().map_err(|error| io_fault(path, error))?;
        if metadata.is_dir() {
            let folder = canonical(path)?;
            if above.contains(&folder) {
                return Err(fault(path, PackFault::Loop));
            }
            above.push(folder);
            self.inside(path, &format!("{packed}/"), above)?;
            above.pop();
            return Ok(());
        }
        if !metadata.is_file() {
            return Err(fault(path, PackFault::Irregular));
        }
        let inside = packed.strip_prefix(self.prefix).unwrap_or(packed);
        if is_link && let Some(target) = self.folder.target(inside) {
            return self.pack.add(packed, Content::Symlink(relative(inside, &target)));
        }
        let content = Content::Path { path: path.to_owned(), len: metadata.len() };
        self.pack.add(packed, content)
    }
}

fn fault(path: &Path, fault: PackFault) -> Error {
    Error::Pack { path: path.to_owned(), fault }
}

fn canonical(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| io_fault(path, error))
}

fn io_fault(path: &Path, error: io::Error) -> Error {
    fault(path, PackFault::Io(error))
}

/// Bytes of a line of `MANIFEST` beside the path: a sign, a digest, a line feed.
const LINE: u64 = 66;
/// Entries that are not listed: `MANIFEST` and `LINKS`.
const DOCUMENTS: u64 = 2;
/// More folders in one another than any name of an entry may have.
const DEPTH: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteOptions;

    /// Each limit by which a reader would refuse what is packed.
    #[test]
    fn what_no_reader_would_take_is_not_begun() {
        #[derive(Debug)]
        struct Untouched;

        impl Write for Untouched {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                panic!("something is written")
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let refused = |limits| {
            let mut pack = Pack::from_toml(TOML).unwrap();
            pack.file("model/a", &b"a"[..]).unwrap();
            pack.link("model/b", Sha256::digest(b"b"), &["https://a.example".to_owned()]).unwrap();
            let options = WriteOptions { limits, ..WriteOptions::default() };
            pack.write(options.write_to(Untouched)).unwrap_err().to_string()
        };
        let limits = Limits::default;
        for (limits, message) in [
            (
                limits().with_entries(5),
                "number of entries is 6, over the limit of 5 (Limits::entries)",
            ),
            (
                limits().with_manifest_bytes(310),
                "MANIFEST in bytes is 311, over the limit of 310 (Limits::manifest_bytes)",
            ),
            (
                limits().with_metadata_bytes(11),
                "tensor_data/index.toml in bytes is 12, over the limit of 11 (Limits::metadata_bytes)",
            ),
        ] {
            assert_eq!(refused(limits), message);
        }
    }

    /// What compresses too well is a bomb to every reader, though not to whoever packs it.
    #[cfg(feature = "deflate")]
    #[test]
    fn what_no_reader_would_decode_is_not_finished() {
        use crate::{repack, write::rewrite::replace_files};
        let mut pack = Pack::from_toml(TOML).unwrap();
        pack.file("model/a", vec![0; 1 << 20]).unwrap();
        let limits = Limits::default().with_decoded_bytes(1 << 10);
        let options = WriteOptions { limits, ..WriteOptions::default() };
        let options = options.compression(model_archive::Compression::Deflate { level: 6 });
        let error = pack.write(options.write_to(Vec::new())).unwrap_err();
        assert_eq!(error.kind(), tensor_core::ErrorKind::OverLimit, "{error}");
        // Nor is it made of a carton that is not so itself.
        let mut stored = Pack::from_toml(TOML).unwrap();
        stored.file("model/a", vec![0; 1 << 20]).unwrap();
        let plain = WriteOptions::default().compression(model_archive::Compression::Stored);
        let stored = stored.write(plain.write_to(Vec::new())).unwrap().sink;
        let stored = Reader::from_bytes(stored).unwrap();
        let small = Pack::from_toml(TOML).unwrap().write(plain.write_to(Vec::new())).unwrap().sink;
        let zeros = Some(Bytes::from(vec![0; 1 << 20]));
        let add = BTreeMap::from([("model/a".to_owned(), zeros)]);
        for made in [
            repack(&stored, options.write_to(Vec::new()), |_| ()),
            replace_files(&Reader::from_bytes(small).unwrap(), &add, options.write_to(Vec::new())),
        ] {
            assert_eq!(made.unwrap_err().kind(), tensor_core::ErrorKind::OverLimit);
        }
        let bomb = repack(&stored, options.unchecked().write_to(Vec::new()), |_| ()).unwrap().sink;
        let bomb = Reader::from_bytes(bomb).unwrap();
        repack(&bomb, options.write_to(Vec::new()), |_| ()).unwrap();
    }

    const TOML: &str =
        "spec_version = 1\n[runner]\nrunner_name = 'r'\nrequired_framework_version = '*'\n";
}
