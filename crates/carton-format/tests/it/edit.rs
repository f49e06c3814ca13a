//! Cartons that are changed in place, one editor at a time.

use std::{
    fs,
    path::{Path, PathBuf},
};

use carton_format::{
    Change, Description, Editor, Links, NewValue, Place, Reader, Runner, Sha256, WriteOptions,
    Writer, model_archive::Compression, shrink, sniff, sniff_archive,
};
use tempfile::TempDir;
use tensor_core::{
    ErrorKind, Source,
    output::{Edited, Output},
};
use test_support::testdata;

fn carton() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.carton");
    let mut writer = Writer::create(&path).unwrap();
    let mut runner = Runner::new("noop", "=1".parse().unwrap());
    runner.compat_version = Some(1);
    writer.description(&Description::new(runner)).unwrap();
    writer.file("model/a", &[7; 100_000]).unwrap();
    writer.file("model/b", b"b").unwrap();
    writer.symlink("model/link", "b").unwrap();
    writer.finish().unwrap();
    (folder, path)
}

fn set(path: &str, value: &str) -> [Change; 1] {
    [Change::set(path, NewValue::guess(value))]
}

fn is_sound(path: &Path) -> Reader {
    let reader = Reader::open(path).unwrap();
    let report = reader.validate();
    assert!(report.is_empty(), "{report:?}");
    reader
}

#[test]
fn files_are_put_and_removed() {
    let (_folder, path) = carton();
    let before = fs::metadata(&path).unwrap().len();
    let mut editor = Editor::open(&path).unwrap();
    editor.change(&set("license", "MIT")).unwrap().put("model/b", "new").unwrap();
    editor.put("misc/x", "x").unwrap().remove("model/a").unwrap();
    let edited = editor.commit().unwrap();
    assert_eq!(edited, Edited::Replaced { before, after: fs::metadata(&path).unwrap().len() });
    let reader = is_sound(&path);
    assert_eq!(reader.description().unwrap().license.as_deref(), Some("MIT"));
    let paths: Vec<_> = reader.files().map(carton_format::File::path).collect();
    let index = "tensor_data/index.toml";
    assert_eq!(paths, ["carton.toml", "misc/x", "model/b", "model/link", index]);
    // A link leads to what stands there now.
    assert_eq!(reader.file("model/link").unwrap().bytes().unwrap(), "new");
}

#[test]
fn nothing_changes_where_nothing_differs() {
    let (_folder, path) = carton();
    let before = fs::read(&path).unwrap();
    assert_eq!(Editor::open(&path).unwrap().commit().unwrap(), Edited::Unchanged);
    let mut editor = Editor::open(&path).unwrap();
    let text = editor.carton_toml().unwrap();
    editor.put("carton.toml", text).unwrap().put("model/b", "b").unwrap();
    editor.put("misc/x", "x").unwrap().remove("misc/x").unwrap();
    assert_eq!(editor.commit().unwrap(), Edited::Unchanged);
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// What is linked or damaged is put into the carton though its digest is the one of `MANIFEST`.
#[test]
fn content_that_is_not_there_is_put() {
    let (_folder, path) = carton();
    let reader = Reader::open(&path).unwrap();
    let (hash, file) = (reader.model_hash(), reader.file("model/b").unwrap());
    let at = file.entry().unwrap().extent().unwrap().offset() as usize;
    let mut damaged = fs::read(&path).unwrap();
    damaged[at] ^= 1;
    let mut links = Links::default();
    links.add(file.sha256(), "https://a.example/b");
    shrink(&reader, &links, Writer::create(&path).unwrap()).unwrap();
    let linked = fs::read(&path).unwrap();
    for bytes in [linked, damaged] {
        fs::write(&path, bytes).unwrap();
        let mut editor = Editor::open(&path).unwrap();
        editor.put("model/b", "b").unwrap();
        assert!(editor.commit().unwrap().has_changed());
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.file("model/b").unwrap().bytes().unwrap(), "b");
        assert_eq!(reader.model_hash(), hash);
    }
}

#[test]
fn changes_add_up() {
    let (_folder, path) = carton();
    let mut editor = Editor::open(&path).unwrap();
    editor.change(&set("license", "MIT")).unwrap().change(&set("model_name", "m")).unwrap();
    assert!(editor.carton_toml().unwrap().ends_with(b"\n"));
    editor.commit().unwrap();
    let description = is_sound(&path).description().unwrap().clone();
    assert_eq!(
        description.license.zip(description.model_name).unwrap(),
        ("MIT".into(), "m".into())
    );
}

#[test]
fn dry_runs_say_what_the_real_run_does() {
    let (_folder, path) = carton();
    let before = fs::read(&path).unwrap();
    let options = WriteOptions::default().compression(Compression::Deflate { level: 9 });
    let change = |mut editor: Editor| {
        editor.put("model/a", vec![1; 5000]).unwrap();
        editor.commit().unwrap()
    };
    let dry = change(Editor::dry_run(&path, options).unwrap());
    assert_eq!(fs::read(&path).unwrap(), before);
    let real = change(Editor::open_with(&path, options).unwrap());
    assert_eq!(dry, real);
    assert!(real.has_changed());
}

/// Two editors do not lose what the other did: the second is told that there is a first.
#[test]
fn one_editor_at_a_time() {
    let (_folder, path) = carton();
    let first = Editor::open(&path).unwrap();
    for second in [Editor::open(&path), Editor::dry_run(&path, WriteOptions::default())] {
        assert_eq!(second.unwrap_err().kind(), ErrorKind::Busy);
    }
    drop(first);
    // A dry run keeps nobody out.
    let dry = Editor::dry_run(&path, WriteOptions::default()).unwrap();
    let first = Editor::open(&path).unwrap();
    drop(dry);
    let output = Output { wait: std::time::Duration::from_millis(20), ..Output::default() };
    let options = WriteOptions::default().output(output);
    assert_eq!(Editor::open_with(&path, options).unwrap_err().kind(), ErrorKind::Busy);
    // A reader that outlives the editor does not hold the lock.
    let reader = first.reader().clone();
    drop(first);
    assert_eq!(Editor::open(&path).unwrap().commit().unwrap(), Edited::Unchanged);
    drop(reader);
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let path = path.clone();
            std::thread::spawn(move || {
                let output =
                    Output { wait: std::time::Duration::from_secs(60), ..Output::default() };
                let options = WriteOptions::default().output(output);
                let mut editor = Editor::open_with(&path, options).unwrap();
                editor.put(&format!("misc/{number}"), number.to_string()).unwrap();
                editor.commit().unwrap()
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().unwrap().has_changed());
    }
    assert_eq!(is_sound(&path).misc().count(), 4);
}

#[cfg(unix)]
#[test]
fn what_took_the_place_of_the_carton_stays() {
    let (folder, path) = carton();
    let mut editor = Editor::open(&path).unwrap();
    editor.put("misc/x", "x").unwrap();
    let other = folder.path().join("other");
    fs::write(&other, "other").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(editor.commit().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(fs::read(&path).unwrap(), b"other");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn changes_that_cannot_be_made() {
    let (_folder, path) = carton();
    let before = fs::read(&path).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    for (found, message) in [
        (
            editor.remove("model/none").unwrap_err(),
            r#""model/none" cannot be written: it is not in the carton"#,
        ),
        (
            editor.put("MANIFEST", "").unwrap_err(),
            r#""MANIFEST" cannot be written: "MANIFEST" is listed, which it never is"#,
        ),
        (editor.put("carton.toml", "a = 1").unwrap_err(), "carton.toml: spec_version is missing"),
    ] {
        assert_eq!(found.to_string(), message);
    }
    editor.remove("model/b").unwrap();
    assert_eq!(
        editor.commit().unwrap_err().to_string(),
        r#""model/link" cannot be written: it links to "b", which is not in the archive"#
    );
    let mut editor = Editor::open(&path).unwrap();
    editor.remove("carton.toml").unwrap();
    assert_eq!(editor.commit().unwrap_err().to_string(), "carton has no carton.toml");
    assert_eq!(fs::read(&path).unwrap(), before);
    let folder = Editor::open(path.parent().unwrap()).unwrap_err();
    assert_eq!(folder.kind(), ErrorKind::Usage);
}

#[test]
fn links_that_no_file_needs_go_away() {
    let (_folder, path) = carton();
    let reader = Reader::open(&path).unwrap();
    let mut links = Links::default();
    for name in ["model/a", "model/b"] {
        links.add(reader.file(name).unwrap().sha256(), format!("https://a.example/{name}"));
    }
    // Whoever put a link there that no file ever needed has a reason.
    let unused = Sha256::digest(b"of no file");
    links.add(unused, "https://a.example/unused");
    shrink(&reader, &links, Writer::create(&path).unwrap()).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.put("model/a", "here").unwrap();
    editor.commit().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.file("model/a").unwrap().place(), Place::Here);
    assert_eq!(reader.file("model/b").unwrap().place(), Place::Linked);
    let mut left: Vec<_> = reader.links().unwrap().iter().map(|(sha256, _)| sha256).collect();
    left.sort();
    let mut expected = [Sha256::digest(b"b"), unused];
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn cartons_are_told_from_other_files() {
    let sniffs = |bytes: Vec<u8>| sniff(&Source::from_bytes(bytes)).unwrap();
    let bytes = fs::read(testdata("carton/valid/ref_minimal.carton")).unwrap();
    assert!(sniff_archive(Reader::from_bytes(bytes.clone()).unwrap().archive().unwrap()));
    assert!(sniffs(bytes[..bytes.len() - 30].to_vec()));
    let other = test_support::zip::Zip::of(&[("inner.carton", &bytes)]).to_bytes();
    assert!(!sniffs(other) && !sniffs(Vec::new()) && !sniffs(b"PK\x03\x04".to_vec()));
    assert!(sniffs(bytes));
}
