//! Cartons made from cartons: links instead of files, files instead of links, other compression,
//! another description. The old carton is only read; where the files are the same, so is the model
//! hash.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use bytes::Bytes;

use crate::{
    Error, File, Finished, Links, Place, Reader, Result, Sha256, Writer, links::check_fetchable,
    paths::CARTON_TOML,
};

/// Leaves out every file whose digest is linked, and lists where it can be fetched.
///
/// The links of the carton stay, and `links` come behind them. A symbolic link to a file that is
/// left out is left out too, and becomes a file where the carton is filled. The model hash stays.
/// Format text: "LINKS".
///
/// # Errors
///
/// [`Error::Write`] where nothing can be fetched from one of the URLs; [`Error::Digest`] where what
/// is left out is not what it is said to be; [`Error::MissingFile`]
/// where a file is neither here nor linked; as for [`Writer::copy`].
///
/// # Examples
///
/// ```no_run
/// use carton_format::{Links, Reader, Writer, shrink};
///
/// let reader = Reader::open("model.carton")?;
/// let mut links = Links::default();
/// for file in reader.model() {
///     links.add(file.sha256(), format!("https://models.example.com/{}", file.sha256()));
/// }
/// shrink(&reader, &links, Writer::create("small.carton")?)?;
/// # Ok::<(), carton_format::Error>(())
/// ```
pub fn shrink<W: Write>(
    reader: &Reader,
    links: &Links,
    mut writer: Writer<W>,
) -> Result<Finished<W>> {
    keep_links(reader, &mut writer, |_| true);
    links.iter().flat_map(|(_, urls)| urls).try_for_each(|url| check_fetchable(url))?;
    writer.links.merge(links, |_| true);
    for file in reader.files() {
        let is_linked = links.urls(file.sha256()).is_some_and(|urls| !urls.is_empty());
        if file.place() == Place::Linked {
            writer.list_linked(file.path(), file.sha256())?;
        } else if is_linked {
            // It goes away: what it is replaced by has to be it.
            present(file)?.verify()?;
            writer.list_linked(file.path(), file.sha256())?;
        } else {
            writer.copy(present(file)?)?;
        }
    }
    writer.finish_same(reader)
}

/// Fetches every file that is only linked, and writes a carton without links; of `LINKS`, keys that
/// the format's text does not name stay.
///
/// `progress` is told the path of each file that is fetched. The model hash stays.
///
/// # Errors
///
/// [`Error::NotFetched`] where the reader was given nothing that fetches; [`Error::Fetch`];
/// [`Error::Digest`]; as for [`Writer::copy`].
pub fn fill<W: Write>(
    reader: &Reader,
    mut writer: Writer<W>,
    mut progress: impl FnMut(&str),
) -> Result<Finished<W>> {
    keep_links(reader, &mut writer, |_| false);
    for file in reader.files() {
        if file.place() == Place::Here {
            writer.copy(file)?;
        } else {
            progress(file.path());
            writer.encode(file)?;
        }
    }
    writer.finish_same(reader)
}

/// Writes every file again, compressed as the writer's options say; every digest is compared.
///
/// Links stay. The model hash stays.
///
/// # Errors
///
/// [`Error::MissingFile`]; [`Error::Digest`]; as for [`Writer::encode`].
pub fn repack<W: Write>(
    reader: &Reader,
    mut writer: Writer<W>,
    mut progress: impl FnMut(u64),
) -> Result<Finished<W>> {
    keep_links(reader, &mut writer, |_| true);
    for file in reader.files() {
        match file.place() {
            Place::Linked => writer.list_linked(file.path(), file.sha256())?,
            _ if file.listed_target()?.is_some() => writer.copy(file)?,
            _ => writer.encode(present(file)?)?,
        }
        progress(file.len().unwrap_or_default());
    }
    writer.finish_same(reader)
}

/// Puts another `carton.toml` into a carton; all other files are copied as they are stored.
///
/// The model hash changes with the text.
///
/// # Errors
///
/// [`Error::Document`] where the text is not a description; [`Error::Write`] where
/// [`Reader::lint`] would call something an error that it does not find in the carton;
/// [`Error::MissingFile`]; as for [`Writer::copy`].
pub fn replace_description<W: Write>(
    reader: &Reader,
    text: &[u8],
    writer: Writer<W>,
) -> Result<Finished<W>> {
    let changes = BTreeMap::from([(CARTON_TOML.to_owned(), Some(Bytes::copy_from_slice(text)))]);
    replace_files(reader, &changes, writer)
}

/// Puts files into a carton or takes them away; all other files are copied as they are stored.
pub(crate) fn replace_files<W: Write>(
    reader: &Reader,
    changes: &BTreeMap<String, Option<Bytes>>,
    mut writer: Writer<W>,
) -> Result<Finished<W>> {
    let (mut kept, mut gone) = (BTreeSet::new(), BTreeSet::new());
    let mut is_same = true;
    for file in reader.files() {
        let path = file.path();
        match changes.get(path) {
            Some(change) => {
                is_same &= change.as_ref().map(|new| Sha256::digest(new)) == Some(file.sha256());
                if let Some(new) = change {
                    writer.file(path, new)?;
                }
                gone.insert(file.sha256());
                continue;
            }
            None if file.place() == Place::Linked => writer.list_linked(path, file.sha256())?,
            None => writer.copy(present(file)?)?,
        }
        kept.insert(file.sha256());
    }
    for (path, change) in changes {
        if let Some(new) = change.as_ref().filter(|_| reader.file(path).is_none()) {
            writer.file(path, new)?;
            is_same = false;
        }
    }
    // A link that no file needs any more goes away.
    let is_kept = |sha256| is_same || kept.contains(&sha256) || !gone.contains(&sha256);
    keep_links(reader, &mut writer, is_kept);
    match is_same {
        true => writer.finish_same(reader),
        false => writer.finish_changed(reader),
    }
}

/// Keeps what a carton links, as far as `is_kept` says so, and what else its `LINKS` says.
fn keep_links<W: Write>(reader: &Reader, writer: &mut Writer<W>, is_kept: impl Fn(Sha256) -> bool) {
    if let Some(links) = reader.links() {
        writer.links.merge(links, is_kept);
    }
}

/// Refuses what is neither here nor linked.
fn present(file: File<'_>) -> Result<File<'_>> {
    if file.place() == Place::Missing {
        return Err(Error::MissingFile { path: file.path().to_owned() });
    }
    Ok(file)
}
