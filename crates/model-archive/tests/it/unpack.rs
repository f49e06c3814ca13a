//! What unpacking makes, and that it makes nothing else.

use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use model_archive::{
    Archive, ArchiveWriter, EntryOptions, Error, FileFault, Symlinks, UnpackOptions,
};
use tensor_core::{Chain, Profile, Source};
use test_support::{SmallDisk, zip::Zip};

fn archive(write: impl FnOnce(&mut ArchiveWriter<Vec<u8>>)) -> Archive {
    let mut archive = ArchiveWriter::new(Vec::new());
    write(&mut archive);
    open(archive.finish().unwrap())
}

fn open(bytes: Vec<u8>) -> Archive {
    let options = Archive::options().symlinks(Symlinks::Kept);
    options.from_source(Source::from_bytes(bytes)).unwrap()
}

/// Returns the paths of all that is below a folder, sorted.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(folder).unwrap().to_owned());
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Unpacks into a folder of a temporary folder, which must fail and leave that as it was.
#[track_caller]
fn fails(archive: &Archive, options: &UnpackOptions) -> Error {
    let outer = tempfile::tempdir().unwrap();
    fs::create_dir(outer.path().join("etc")).unwrap();
    fs::write(outer.path().join("etc/passwd"), b"old").unwrap();
    fs::create_dir(outer.path().join("inner")).unwrap();
    let before = walk(outer.path());
    let error = archive.unpack(outer.path().join("inner/model"), options).unwrap_err();
    assert_eq!(walk(outer.path()), before);
    assert_eq!(fs::read(outer.path().join("etc/passwd")).unwrap(), b"old");
    error
}

#[test]
fn everything_is_there_afterwards() {
    let large = vec![7; 3_000_000];
    let archive = archive(|archive| {
        let options = EntryOptions::default();
        archive.add("model/deep/er/file", b"first", &options).unwrap();
        archive.add("large", &large, &options).unwrap();
        archive.add("empty", b"", &options).unwrap();
        archive.add_folder("folder").unwrap();
        for index in 0..50 {
            archive.add(&format!("many/{index}"), &[index], &options).unwrap();
        }
    });
    for threads in [1, 4] {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("out");
        archive
            .unpack(&folder, &UnpackOptions::default().threads(NonZeroUsize::new(threads).unwrap()))
            .unwrap();
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
        assert_eq!(walk(&folder).len(), 58);
        assert_eq!(fs::read(folder.join("model/deep/er/file")).unwrap(), b"first");
        assert!(fs::read(folder.join("large")).unwrap() == large);
        assert_eq!(fs::read(folder.join("empty")).unwrap(), b"");
        assert!(folder.join("folder").is_dir());
        assert_eq!(fs::read(folder.join("many/49")).unwrap(), [49]);
    }
}

#[cfg(unix)]
#[test]
fn modes_are_those_of_new_files() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let outer = tempfile::tempdir().unwrap();
    let mut zip = Zip::of(&[("a/b", b"x")]);
    // A program that runs as its owner.
    zip.entries[0].listing.external = 0o104_777 << 16;
    open(zip.to_bytes()).unpack(outer.path().join("out"), &UnpackOptions::default()).unwrap();
    fs::create_dir(outer.path().join("folder")).unwrap();
    fs::write(outer.path().join("file"), b"").unwrap();
    let folder = mode(outer.path().join("folder")) & 0o755;
    assert_eq!(mode(outer.path().join("out")), folder);
    assert_eq!(mode(outer.path().join("out/a")), folder);
    assert_eq!(mode(outer.path().join("out/a/b")), mode(outer.path().join("file")) & 0o644);
}

#[cfg(unix)]
#[test]
fn links_lead_to_files_of_the_archive() {
    let archive = archive(|archive| {
        archive.add_symlink("a/link", "../b/file").unwrap();
        archive.add("b/file", b"content", &EntryOptions::default()).unwrap();
        archive.add_symlink("again", "a/link").unwrap();
    });
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("out");
    archive.unpack(&folder, &UnpackOptions::default()).unwrap();
    assert_eq!(fs::read_link(folder.join("a/link")).unwrap(), Path::new("../b/file"));
    assert_eq!(fs::read(folder.join("again")).unwrap(), b"content");
}

/// They would be swept.
#[test]
fn hidden_names_are_refused() {
    for name in [".x.abcdef.modelcrate", ".x.abcdef.modelcrate/a", "a/.x.abcdef.modelcrate/"] {
        let archive = archive(|archive| match name.strip_suffix('/') {
            Some(folder) => archive.add_folder(folder).map(drop).unwrap(),
            None => archive.add(name, b"notes", &EntryOptions::default()).map(drop).unwrap(),
        });
        let error = fails(&archive, &UnpackOptions::default());
        assert!(matches!(error, Error::File { fault: FileFault::Temporary, .. }), "{error}");
    }
}

#[test]
fn an_empty_folder_is_taken() {
    let archive = archive(|archive| {
        archive.add("a", b"x", &EntryOptions::default()).unwrap();
    });
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("out");
    fs::create_dir(&folder).unwrap();
    archive.unpack(&folder, &UnpackOptions::default()).unwrap();
    assert_eq!(walk(outer.path()), [Path::new("out"), Path::new("out/a")]);
}

#[test]
fn what_is_there_stays() {
    let archive = archive(|archive| {
        archive.add("a", b"new", &EntryOptions::default()).unwrap();
    });
    let outer = tempfile::tempdir().unwrap();
    let [folder, file, none] = ["folder", "file", "none/out"].map(|name| outer.path().join(name));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a"), b"old").unwrap();
    fs::write(&file, b"old").unwrap();
    let before = walk(outer.path());
    for (path, reason) in
        [(&folder, "it is not empty"), (&file, "Not a directory"), (&none, "No such file")]
    {
        let error = archive.unpack(path, &UnpackOptions::default()).unwrap_err();
        let expected = format!("{path:?} cannot be unpacked: {reason}");
        let found = Chain(&error).to_string();
        #[cfg(unix)]
        assert!(found.starts_with(&expected), "{found}");
        #[cfg(not(unix))]
        assert!(found.len() > expected.len() - reason.len(), "{found}");
    }
    assert_eq!(walk(outer.path()), before);
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"old");
    assert_eq!(fs::read(file).unwrap(), b"old");
}

#[test]
fn a_failure_leaves_nothing() {
    let mut zip = Zip::of(&[("a/b", b"hello"), ("c", b"world"), ("d/e/f", b"more")]);
    zip.entries[2].data[0] ^= 1;
    let archive = open(zip.to_bytes());
    for threads in [1, 3] {
        let options = UnpackOptions::default().threads(NonZeroUsize::new(threads).unwrap());
        let error = fails(&archive, &options);
        assert_eq!(error.rule(), "zip/crc");
        assert_eq!(error.at().entry.as_deref(), Some("d/e/f"));
    }
}

#[test]
fn links_that_lead_elsewhere() {
    for (target, reason) in [
        ("../../etc", "leads out of the archive"),
        ("/etc/passwd", "is absolute, expected a path relative to the link"),
        ("b", "is not in the archive"),
        ("a", "leads back to itself or over more than 40 links"),
        ("../folder", "is a folder, expected a file"),
    ] {
        let mut zip = Zip::of(&[("model/a", target.as_bytes()), ("folder/x", b"x")]);
        zip.entries[0].listing.external = 0o120_777 << 16;
        let error = fails(&open(zip.to_bytes()), &UnpackOptions::default());
        assert!(error.to_string().ends_with(reason), "{target:?}: {error}");
    }
}

#[test]
fn files_behind_links_do_not_open() {
    let mut zip = Zip::of(&[("model/a", b"../../etc"), ("model/a/passwd", b"new")]);
    zip.entries[0].listing.external = 0o120_777 << 16;
    let bytes = zip.to_bytes();
    for profile in [Profile::Strict, Profile::Lenient] {
        let options = Archive::options().symlinks(Symlinks::Kept).profile(profile);
        let error = options.from_source(Source::from_bytes(bytes.clone())).unwrap_err();
        assert_eq!(error.rule(), "zip/file-and-folder");
    }
}

#[test]
fn a_full_disk_is_noticed_before() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path(), 4 << 20) else { return };
    let archive = |len: usize| {
        archive(|archive| {
            archive.add("a", &vec![0; len], &EntryOptions::default()).unwrap();
        })
    };
    let place = disk.path().join("model");
    let error = archive(3 << 20).unpack(&place, &UnpackOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Core(tensor_core::Error::DiskFull { .. })), "{error}");
    assert_eq!(walk(disk.path()), Vec::<PathBuf>::new());
    archive(2 << 20).unpack(&place, &UnpackOptions::default()).unwrap();
}

/// What is in it gets what it passes on, such as its group.
#[cfg(unix)]
#[test]
fn an_empty_folder_keeps_what_it_has() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("private");
    fs::create_dir(&folder).unwrap();
    let may_give = chown(&folder, Some(1000), Some(1001)).is_ok();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o2700)).unwrap();
    let archive = open(Zip::of(&[("a", b"content"), ("b/c", b"")]).to_bytes());
    archive.unpack(&folder, &UnpackOptions::default()).unwrap();
    let found = folder.metadata().unwrap();
    assert_eq!(found.mode() & 0o7777, 0o2700);
    if may_give {
        assert_eq!((found.uid(), found.gid()), (1000, 1001));
        assert_eq!(folder.join("b/c").metadata().unwrap().gid(), 1001);
    }
}
