//! Folders that lead elsewhere: nothing outside is read, and nothing waits.
#![cfg(unix)]

use std::{
    fs,
    io::Read as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use model_archive::{
    Archive, ArchiveWriter, Compression, EntryOptions, Error, FileFault, Folder, ReadOptions,
    Storage, Symlinks,
};
use tempfile::TempDir;
use tensor_core::{Extent, Limits, Source};

/// A folder with a few files, and a file beside it that is none of its business.
struct Case {
    outer: TempDir,
}

impl Case {
    fn new() -> Self {
        let case = Self { outer: tempfile::tempdir().unwrap() };
        fs::create_dir_all(case.root().join("model/empty")).unwrap();
        fs::create_dir(case.outer.path().join("other")).unwrap();
        fs::write(case.outer.path().join("other/m"), "secret").unwrap();
        fs::write(case.outer.path().join("secret"), "secret").unwrap();
        fs::write(case.root().join("model/m"), "content").unwrap();
        fs::write(case.root().join("text"), "text").unwrap();
        case
    }

    fn root(&self) -> PathBuf {
        self.outer.path().join("root")
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.root().join(path)).unwrap();
    }

    fn folder(&self) -> Folder {
        Folder::open(self.root()).unwrap()
    }

    #[track_caller]
    fn reads(&self, path: &str) -> String {
        let source = self.folder().file(path).unwrap().unwrap();
        let bytes = source.read(Extent::first(source.len()), "file").unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[track_caller]
    fn refuses(&self, path: &str, message: &str) {
        let folder = self.folder();
        assert_eq!(folder.file(path).unwrap_err().to_string(), format!("{path:?} {message}"));
        assert_eq!(folder.disk_path(path).unwrap_err().to_string(), format!("{path:?} {message}"));
        assert!(!folder.has(path));
    }
}

#[test]
fn files_of_a_folder() {
    let case = Case::new();
    let folder = case.folder();
    assert_eq!(case.reads("model/m"), "content");
    assert_eq!(folder.paths().unwrap(), ["model/m", "text"]);
    assert_eq!(folder.path(), case.root().canonicalize().unwrap());
    assert_eq!(folder.disk_path("text").unwrap(), Some(folder.path().join("text")));
    assert!(folder.has("text") && folder.is_folder("model") && !folder.is_folder("text"));
    for none in ["model/n", "n/m", "text/m"] {
        assert!(folder.file(none).unwrap().is_none(), "{none}");
        assert!(!folder.has(none) && !folder.is_folder(none));
    }
}

#[test]
fn paths_that_are_not_names() {
    let case = Case::new();
    for (path, message) in [
        ("../secret", r#"has a component "." or "..""#),
        ("model/../text", r#"has a component "." or "..""#),
        ("./text", r#"has a component "." or "..""#),
        ("model//m", "has an empty component"),
        ("", "is empty"),
        ("/etc/passwd", "is absolute, expected a relative path"),
        ("model\\m", "has the character '\\\\'"),
        ("c:text", "has the character ':'"),
        ("a\0b", "has the character '\\0'"),
    ] {
        case.refuses(path, message);
        assert!(!case.folder().is_folder(path) && case.folder().target(path).is_none());
    }
    let limits = Limits::default().with_name_bytes(3);
    let error = case.folder().limits(limits).file("text").unwrap_err();
    assert!(error.to_string().contains("is 4 bytes long, over the limit of 3"), "{error}");
}

#[test]
fn links_that_lead_out() {
    let case = Case::new();
    case.link("relative", "../secret");
    case.link("absolute", "/etc/passwd");
    case.link("model/other", "../../other");
    case.link("twice", "relative");
    for path in ["relative", "absolute", "model/other/m", "twice"] {
        case.refuses(path, "leads out of the folder");
        assert!(!case.folder().is_folder(path));
    }
    assert!(!case.folder().is_folder("model/other"));
    for path in ["relative", "absolute", "model/other", "model/other/m"] {
        assert_eq!(case.folder().target(path), None, "{path}");
    }
    // A name that only starts with that of the folder is another folder.
    fs::create_dir(case.outer.path().join("root2")).unwrap();
    fs::write(case.outer.path().join("root2/m"), "secret").unwrap();
    case.link("near", "../root2/m");
    case.refuses("near", "leads out of the folder");
}

#[test]
fn links_inside_are_followed() {
    let case = Case::new();
    case.link("model/l", "m");
    case.link("folder", "model");
    case.link("absolute", case.root().join("text"));
    case.link("around", "../root/text");
    assert_eq!(case.reads("model/l"), "content");
    assert_eq!(case.reads("folder/m"), "content");
    assert_eq!(case.reads("absolute"), "text");
    assert_eq!(case.reads("around"), "text");
    let folder = case.folder();
    assert_eq!(folder.target("model/l").as_deref(), Some("model/m"));
    assert_eq!(folder.target("folder/l").as_deref(), Some("model/m"));
    assert_eq!(folder.target("text"), None);
    // Links are listed, what is in linked folders is not.
    assert_eq!(
        folder.paths().unwrap(),
        ["absolute", "around", "folder", "model/l", "model/m", "text"]
    );
}

#[test]
fn links_that_lead_nowhere() {
    let case = Case::new();
    case.link("none", "nothing");
    assert!(case.folder().file("none").unwrap().is_none());
    case.link("loop", "loop");
    let error = case.folder().file("loop").unwrap_err();
    assert!(matches!(error, Error::File { fault: FileFault::Io(_), .. }), "{error}");
    assert!(!case.folder().has("loop"));
}

#[test]
fn what_is_not_a_file() {
    let case = Case::new();
    case.refuses("model", "is a folder, expected a file");
    case.link("folder", "model");
    case.refuses("folder", "is a folder, expected a file");
    let path = case.root().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if made.is_ok_and(|status| status.success()) {
        case.refuses("pipe", "is not a regular file");
        assert!(case.folder().paths().unwrap().contains(&"pipe".to_owned()));
    }
    let socket = std::os::unix::net::UnixListener::bind(case.root().join("socket"));
    if socket.is_ok() {
        case.refuses("socket", "is not a regular file");
    }
}

#[test]
fn what_is_no_folder() {
    let case = Case::new();
    let open = |path: &str| Folder::open(case.root().join(path)).unwrap_err().to_string();
    for path in ["text", "none"] {
        assert_eq!(open(path), format!("{:?}: opening failed", case.root().join(path)));
    }
}

#[test]
fn folders_with_more_than_the_limits() {
    let case = Case::new();
    let folder = case.folder().limits(Limits::default().with_entries(3));
    let error = folder.paths().unwrap_err().to_string();
    assert!(error.contains("number of files and folders is 4, over the limit of 3"), "{error}");
    let folder = case.folder().limits(Limits::default().with_name_components(1));
    let error = folder.paths().unwrap_err().to_string();
    assert!(error.contains(r#""model/empty" has 2 components, over the limit of 1"#), "{error}");
}

/// The same files in an archive, in a folder of one and in a folder answer alike.
#[test]
fn storages_are_alike() {
    let case = Case::new();
    case.link("l", "model/m");
    let zipped = |root: &str| {
        let mut writer = ArchiveWriter::new(Vec::new());
        writer.add(&format!("{root}text"), b"text", &EntryOptions::default()).unwrap();
        let deflate = EntryOptions::default().compression(Compression::Deflate { level: 6 });
        let options = if cfg!(feature = "deflate") { deflate } else { EntryOptions::default() };
        writer.add(&format!("{root}model/m"), b"content", &options).unwrap();
        writer.add_folder(&format!("{root}model/empty")).unwrap();
        writer.add_symlink(&format!("{root}l"), "model/m").unwrap();
        let options = Archive::options().symlinks(Symlinks::Kept);
        options.from_source(Source::from_bytes(writer.finish().unwrap())).unwrap()
    };
    let folder = Storage::open(case.root(), ReadOptions::default()).unwrap();
    assert!(folder.archive().is_none() && folder.folder().is_some());
    let storages = [
        folder.below("ignored"),
        Storage::from(zipped("")),
        Storage::from(zipped("a/b/")).below("a/b"),
        Storage::from(zipped("a/b/")).below("a/b/"),
    ];
    for storage in &storages {
        assert_eq!(storage.paths().unwrap(), ["l", "model/m", "text"]);
        for path in ["l", "model/m"] {
            let stored = storage.file(path).unwrap().unwrap();
            assert_eq!((stored.len(), stored.is_empty()), (7, false));
            assert_eq!(stored.bytes().unwrap(), "content");
            assert_eq!(stored.checked_bytes().unwrap(), "content");
            assert_eq!(stored.start(3).unwrap(), "con");
            assert_eq!(stored.start(30).unwrap(), "content");
            let source = stored.source().unwrap();
            assert_eq!(source.read(Extent::first(source.len()), "").unwrap(), "content");
            let mut buffer = [0; 7];
            stored.read_into(&mut buffer).unwrap();
            assert_eq!(&buffer, b"content");
            let mut text = String::new();
            stored.reader().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "content");
            stored.verify().unwrap();
        }
        assert!(storage.has("text") && !storage.has("model") && !storage.has("none"));
        assert!(storage.is_folder("model") && storage.is_folder("model/empty/"));
        assert!(!storage.is_folder("text") && !storage.is_folder("none"));
        assert!(storage.file("none").unwrap().is_none());
        for (path, message) in [
            ("model", r#""model" is a folder, expected a file"#),
            ("model/empty", r#""model/empty" is a folder, expected a file"#),
            ("../text", r#""../text" has a component "." or "..""#),
        ] {
            assert_eq!(storage.file(path).unwrap_err().to_string(), message);
        }
        let on_disk = storage.disk_path("text").unwrap();
        assert_eq!(on_disk.is_some(), storage.folder().is_some());
    }
    assert_eq!(storages[2].root(), "a/b/");
    assert_eq!(storages[2].folders(), ["model/empty"]);
    assert!(storages[1].file("text").unwrap().unwrap().extent().unwrap().is_some());
    assert!(storages[0].file("text").unwrap().unwrap().extent().unwrap().is_none());
}
