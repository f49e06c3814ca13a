//! Catalogues of files of all kinds, made, and made again.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use modelcrate::catalog::{
    Catalog, CatalogOptions, Counts, Entry, FileRow, TensorRow, tensors_path,
};
use test_support::testdata;

/// A folder with some models, one of them broken.
fn models() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("a.safetensors", "weights/model.safetensors"),
        ("b.zt", "ztensor/invalid/digest_crc_wrong.zt"),
        ("c.rten", "rten/valid/mlp.v2.rten"),
        ("d.carton", "carton/valid/ref_full.carton"),
        ("e.txt", "weights/README.md"),
    ];
    let copied = files.map(|(name, from)| {
        let path = folder.path().join(name);
        fs::copy(testdata(from), &path).unwrap();
        path
    });
    (folder, copied.to_vec())
}

fn make(
    output: &Path,
    old: Option<&Path>,
    options: CatalogOptions,
    files: &[PathBuf],
) -> Result<Counts, String> {
    let make = || {
        let mut catalog = Catalog::create(output, options)?;
        if let Some(old) = old {
            catalog.update_from(old)?;
        }
        catalog.run(files.iter().map(Entry::at_path).collect(), |_, _| ())
    };
    make().map_err(|error| tensor_core::Chain(&error).to_string())
}

fn rows<T: serde::de::DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_row_for_each_file_and_tensor() {
    let (folder, mut files) = models();
    files.push(folder.path().join("none.zt"));
    let output = folder.path().join("c.jsonl");
    let options = CatalogOptions::default().tensors(true).hash(true).stats(true).verify(true);
    // Neither the order nor a repetition counts.
    files.reverse();
    files.push(files[0].clone());
    let counts = make(&output, None, options, &files).unwrap();
    let found = (counts.files, counts.unchanged, counts.invalid, counts.unread);
    assert_eq!(found, (6, 0, 2, 1));
    let files: Vec<FileRow> = rows(&output);
    let name = |row: &FileRow| row.path.rsplit('/').next().unwrap().to_owned();
    let names: Vec<_> = files.iter().map(name).collect();
    assert_eq!(names, ["a.safetensors", "b.zt", "c.rten", "d.carton", "e.txt", "none.zt"]);
    let verdicts: Vec<&str> = files.iter().map(|row| &*row.verdict).collect();
    assert_eq!(verdicts, ["valid", "invalid", "valid", "warnings", "invalid", "unread"]);
    let [a, b, c, d, e, none] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!((a.tensors, a.weight_bytes, a.errors), (Some(3), Some(36), 0));
    assert_eq!(
        a.hash.as_deref(),
        Some("tensors-v1:95717f39fe6f3b9c028aad6b9ab11fe9390c7a699de35f5bd57a377a56cb2055")
    );
    assert_eq!((b.rules.as_slice(), b.errors), (&["zt/digest-mismatch".to_owned()][..], 1));
    assert!(b.verified && b.error.as_deref().unwrap().contains("0x05152CBE"), "{b:?}");
    assert!(!c.inputs.is_empty() && c.inputs[0].shape.starts_with('['), "{c:?}");
    assert_eq!(d.license.as_deref(), Some("Apache-2.0"));
    assert_eq!((e.format.as_ref(), &*e.rules[0]), (None, "file/unknown-format"));
    assert!(none.bytes.is_none() && none.error.as_deref().unwrap().contains("No such file"));
    let tensors: Vec<TensorRow> = rows(&tensors_path(&output));
    assert_eq!(tensors.len() as u64, counts.tensors);
    let half = tensors.iter().find(|row| row.path == a.path && row.name == "half").unwrap();
    assert_eq!((half.dtype.as_deref(), &*half.shape, half.bytes), (Some("f16"), &[2, 3][..], 12));
    assert!(half.sha256.is_some() && half.min.is_some() && half.zeros.is_some());
}

#[test]
fn the_same_files_make_the_same_catalogue() {
    let (folder, files) = models();
    let (one, two) = (folder.path().join("1.jsonl"), folder.path().join("2.jsonl"));
    let options = CatalogOptions::default().tensors(true);
    let single = options.threads(std::num::NonZeroUsize::MIN);
    make(&one, None, single, &files).unwrap();
    make(&two, None, options, &files).unwrap();
    assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
    assert_eq!(fs::read(tensors_path(&one)).unwrap(), fs::read(tensors_path(&two)).unwrap());
}

#[test]
fn unchanged_files_are_not_read_again() {
    let (folder, files) = models();
    let output = folder.path().join("c.jsonl");
    let options = CatalogOptions::default().tensors(true);
    let unchanged = |options| make(&output, Some(&output), options, &files).unwrap().unchanged;
    make(&output, None, options, &files).unwrap();
    let before = fs::read(&output).unwrap();
    // Other bytes of the same length and time: it would show if it was read.
    let modified = files[0].metadata().unwrap().modified().unwrap();
    fs::write(&files[0], vec![0; fs::read(&files[0]).unwrap().len()]).unwrap();
    let set = |path: &Path, time| {
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    set(&files[0], modified);
    assert_eq!(unchanged(options), 5);
    assert_eq!(fs::read(&output).unwrap(), before);
    // A later time.
    set(&files[0], SystemTime::now() + Duration::from_secs(5));
    assert_eq!(unchanged(options), 4);
    let rows: Vec<FileRow> = rows(&output);
    assert_eq!((&*rows[0].verdict, rows[0].tensors), ("invalid", None));
    // More is asked for than the old one has; what does not open stays as it is.
    assert_eq!(unchanged(options.hash(true)), 2);
    assert_eq!(unchanged(options.hash(true)), 5);
    assert_eq!(unchanged(options.hash(true).verify(true)), 2);
    // Less is asked for.
    assert_eq!(unchanged(options), 5);
    // Its tensors are lost.
    fs::remove_file(tensors_path(&output)).unwrap();
    assert_eq!(unchanged(options), 2);
}

#[test]
fn old_catalogues_that_are_none() {
    let (folder, files) = models();
    let (output, old) = (folder.path().join("c.jsonl"), folder.path().join("old.jsonl"));
    let options = CatalogOptions::default();
    make(&old, None, options, &files).unwrap();
    let text = fs::read_to_string(&old).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (content, reason) in [
        ("{\n".to_owned(), "row 1 of the old catalogue is malformed: "),
        (
            text.replacen("\"schema\":1", "\"schema\":2", 1),
            "row 1 of the old catalogue has schema 2, expected 1",
        ),
        (format!("{}\n{}\n", lines[1], lines[0]), "row 2 of the old catalogue is of "),
    ] {
        fs::write(&old, content).unwrap();
        let error = make(&output, Some(&old), options, &files).unwrap_err();
        assert!(error.contains(reason), "{error}");
        assert!(!output.exists());
    }
    let error = make(&folder.path().join("c.csv"), None, options, &files).unwrap_err();
    assert!(error.contains("ends in \"csv\", expected \"jsonl\""), "{error}");
}

#[test]
fn a_catalogue_that_fails_changes_nothing() {
    let (folder, files) = models();
    let output = folder.path().join("c.jsonl");
    fs::write(&output, "no catalogue").unwrap();
    let options = CatalogOptions::default();
    make(&output, Some(&output), options, &files).unwrap_err();
    assert_eq!(fs::read(&output).unwrap(), b"no catalogue");
    let left = test_support::names(folder.path());
    assert_eq!(left.len(), 6, "{left:?}");
}

#[cfg(feature = "parquet")]
#[test]
fn columns_hold_what_lines_do() {
    let (folder, files) = models();
    let path = |name: &str| folder.path().join(name);
    let options = CatalogOptions::default().tensors(true).hash(true).stats(true);
    let (lines, columns, again) = (path("c.jsonl"), path("c.parquet"), path("again.jsonl"));
    make(&lines, None, options, &files).unwrap();
    make(&columns, None, options, &files).unwrap();
    let first = fs::read(&columns).unwrap();
    // All rows are taken from the columns.
    assert_eq!(make(&again, Some(&columns), options, &files).unwrap().unchanged, 5);
    assert_eq!(fs::read(&again).unwrap(), fs::read(&lines).unwrap());
    assert_eq!(fs::read(tensors_path(&again)).unwrap(), fs::read(tensors_path(&lines)).unwrap());
    make(&columns, Some(&columns), options, &files).unwrap();
    assert_eq!(fs::read(&columns).unwrap(), first, "the same bytes");
    fs::write(&columns, b"PAR1 and so on").unwrap();
    let error = make(&again, Some(&columns), options, &files).unwrap_err();
    assert!(error.contains("old catalogue is malformed"), "{error}");
}
