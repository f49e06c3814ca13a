//! Every byte of every file, against checksums and digests.

use model_archive::{Archive, Entry, Kind, Stored};
use tensor_core::{Finding, Profile, Report, parallel};

use crate::{
    Error, File, FileFault, Reader, Sums,
    sums::{self, Hex},
};

/// Something that is read whole.
#[derive(Clone, Copy)]
enum Content<'a> {
    /// An entry of the archive, in the package or beside it.
    Entry(Entry<'a>),
    /// A file of the folder.
    File(File<'a>),
}

pub(super) fn check(reader: &Reader, progress: &(impl Fn(u64) + Sync), report: &mut Report) {
    if let Some(Err(error)) = reader.archive().map(Archive::check_total) {
        // What it would decode to is more than anyone should wait for.
        return report.add(Error::from(error).finding());
    }
    let contents: Vec<_> = match (reader.archive(), reader.files()) {
        (Some(archive), _) => archive.entries().map(Content::Entry).collect(),
        (None, Ok(files)) => files.map(Content::File).collect(),
        // That has its finding already.
        (None, Err(_)) => return,
    };
    // A list that cannot be read has its finding already.
    let sums = reader.sums().ok().flatten();
    let check = |content: &Content<'_>| content.check(reader, sums, progress);
    let found = parallel::map(&contents, reader.read_options().thread_count(), check);
    report.extend(found.into_iter().flatten());
    if let Some(sums) = sums {
        compare(reader, sums, report);
    }
}

/// Compares the names of files with those in the list of digests.
fn compare(reader: &Reader, sums: &Sums, report: &mut Report) {
    for (path, _) in sums.iter().filter(|(path, _)| reader.file(path).is_none()) {
        let message = format!("is listed in {:?}, but is not in the package", Sums::PATH);
        report.add(Finding::error("nnp/digest-missing-file", message).entry(path));
    }
    let Ok(paths) = reader.paths() else { return };
    for path in paths.iter().filter(|path| *path != Sums::PATH && sums.get(path).is_none()) {
        let message = format!("is not listed in {:?}", Sums::PATH);
        report.add(Finding::error("nnp/digest-unlisted-file", message).entry(path));
    }
}

impl<'a> Content<'a> {
    /// Reads all of it, and says what is wrong with it.
    fn check(
        self,
        reader: &Reader,
        sums: Option<&Sums>,
        progress: &impl Fn(u64),
    ) -> Option<Finding> {
        let (path, content) = match self {
            Self::Entry(entry) if entry.info().kind == Kind::Folder => {
                (None, entry.verify().map(|()| None).map_err(Error::from))
            }
            Self::Entry(entry) => {
                let content = Stored::Entry(entry).reader().map(Some);
                (entry.name().strip_prefix(reader.root()), content.map_err(Error::from))
            }
            Self::File(file) => {
                let content = file.stored().and_then(|stored| Ok(stored.reader()?));
                (Some(file.path()), content.map(Some))
            }
        };
        let expected = path.zip(sums).and_then(|(path, sums)| sums.get(path));
        let found = content.and_then(|content| match content {
            Some(content) => sums::read(content, expected.is_some(), |ready| {
                progress(ready.len() as u64);
                Ok(())
            }),
            None => Ok(None),
        });
        match found {
            Ok(found) if found.as_ref() == expected => None,
            Ok(found) => {
                let [found, expected] = [found.as_ref(), expected].map(|found| found.map(Hex));
                let (found, expected) = found.zip(expected)?;
                let message = format!("hashes to {found}, but {:?} has {expected}", Sums::PATH);
                Some(Finding::error("nnp/digest", message).entry(path?))
            }
            // A link to one has its finding already.
            Err(Error::File { fault: FileFault::Folder, .. }) => None,
            Err(error) => Some(self.fault(&error, reader.read_options().profile)),
        }
    }

    fn name(self) -> &'a str {
        match self {
            Self::Entry(entry) => entry.name(),
            Self::File(file) => file.path(),
        }
    }

    /// Returns what a reader of the archive makes of an error; other errors are errors.
    fn fault(self, error: &Error, profile: Profile) -> Finding {
        let mut finding = error.finding();
        finding.at.entry.get_or_insert_with(|| self.name().to_owned());
        if let Error::Archive(model_archive::Error::Fault(found)) = error {
            finding.severity = found.fault.class().severity(profile);
        }
        finding
    }
}
