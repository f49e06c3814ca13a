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
            text[..text.len() - 9].to_owned(),
            "row 5 of the old catalogue has no end: the file is truncated, or no catalogue",
        ),
        ("ZTEN1000\0\n".to_owned(), "row 1 of the old catalogue is malformed: "),
        (
            text.replacen("\"parts\":[],", "", 1),
            "row 1 of the old catalogue is malformed: missing field `parts`",
        ),
        (
            text.replacen("\"schema\":1", &format!("\"schema\":\"{}\"", "x".repeat(1000)), 1),
            "row 1 of the old catalogue is malformed: invalid type: string \"xxx",
        ),
        (
            text.replacen("\"schema\":1", "\"schema\":2", 1),
            "row 1 of the old catalogue has schema 2, expected 1",
        ),
        (format!("{}\n{}\n", lines[1], lines[0]), "row 2 of the old catalogue is of "),
    ] {
        fs::write(&old, content).unwrap();
        let error = make(&output, Some(&old), options, &files).unwrap_err();
        assert!(error.contains(reason) && error.len() < 400, "{error}");
        assert!(!output.exists() && !part(&output).exists());
    }
    // A line without end is not read to its end.
    let endless = fs::File::create(&old).unwrap();
    endless.set_len(1 << 40).unwrap();
    let error = make(&output, Some(&old), options, &files).unwrap_err();
    assert!(
        error.contains("row 1 of the old catalogue is over the limit of 67108864 bytes"),
        "{error}"
    );
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

/// Returns where what was found is until the catalogue is whole.
fn part(catalog: &Path) -> PathBuf {
    catalog.with_extension("jsonl.part")
}

#[test]
fn shards_that_change_are_noticed() {
    let (folder, output) = (tempfile::tempdir().unwrap(), "c.jsonl");
    let names = [
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ];
    let [index, _, shard] = names.map(|name| {
        let path = folder.path().join(name);
        fs::copy(testdata(&format!("weights/{name}")), &path).unwrap();
        path
    });
    let (output, files) = (folder.path().join(output), [index]);
    let again = || {
        let old = Some(&*output).filter(|output| output.exists());
        make(&output, old, CatalogOptions::default().hash(true), &files).unwrap().unchanged
    };
    let row = || rows::<FileRow>(&output).remove(0);
    assert_eq!((again(), again()), (0, 1));
    let parts: Vec<_> = row().parts.into_iter().map(|part| (part.name, part.bytes)).collect();
    let len = |name: &str| folder.path().join(name).metadata().ok().map(|file| file.len());
    assert_eq!(
        parts,
        names[1..].iter().map(|name| ((*name).to_owned(), len(name))).collect::<Vec<_>>()
    );
    let before = row().hash;
    // One other element, and nothing else.
    let mut bytes = fs::read(&shard).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&shard, bytes).unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    fs::File::options().write(true).open(&shard).unwrap().set_modified(later).unwrap();
    assert_eq!((again(), again()), (0, 1));
    assert!(before.is_some() && row().hash.is_some() && row().hash != before);
    // One that is away, and there again.
    let away = folder.path().join("away");
    fs::rename(&shard, &away).unwrap();
    assert_eq!((again(), &*row().verdict), (0, "unread"));
    fs::rename(&away, &shard).unwrap();
    assert_eq!((again(), &*row().verdict, again()), (0, "valid", 1));
}

#[test]
fn shards_of_ztensor_files_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let path = folder.path().join(name);
        fs::copy(testdata(&format!("ztensor/v2/valid/{name}")), &path).unwrap();
        path
    };
    let (output, files) = (folder.path().join("c.jsonl"), [copy("shards.zt")]);
    let again = || {
        let old = Some(&*output).filter(|output| output.exists());
        let unchanged = make(&output, old, CatalogOptions::default(), &files).unwrap().unchanged;
        (unchanged, rows::<FileRow>(&output).remove(0))
    };
    let (_, row) = again();
    assert_eq!((row.parts[0].name.as_str(), row.parts[0].bytes), ("shards-00001.zt", None));
    assert!(row.rules.contains(&"zt2/shard-missing".to_owned()), "{row:?}");
    copy("shards-00001.zt");
    let (unchanged, row) = again();
    assert!(unchanged == 0 && row.rules.is_empty() && row.parts[0].bytes.is_some(), "{row:?}");
    assert_eq!(again(), (1, row));
}

#[test]
fn verdicts_do_not_depend_on_what_else_is_asked_for() {
    let (folder, files) = models();
    let verdicts = |name: &str, options| {
        let output = folder.path().join(name);
        make(&output, None, options, &files).unwrap();
        let rows: Vec<FileRow> = rows(&output);
        let verdict = |row: FileRow| (row.verdict, row.rules, row.errors, row.warnings);
        rows.into_iter().map(verdict).collect::<Vec<_>>()
    };
    let options = CatalogOptions::default();
    let plain = verdicts("plain.jsonl", options);
    // A digest of b.zt is wrong, which nothing but reading tells.
    assert_eq!(plain[1].0, "valid");
    assert_eq!(verdicts("hash.jsonl", options.hash(true)), plain);
    let all = options.tensors(true).hash(true).stats(true);
    assert_eq!(verdicts("all.jsonl", all), plain);
}

#[test]
fn a_catalogue_made_again_is_as_a_fresh_one() {
    let (folder, mut files) = models();
    // Errors that keep tensors from being read, and such as do not.
    for (folder, end) in
        [("ztensor/invalid", "zt"), ("ztensor/v2/valid", "zt"), ("weights", "json")]
    {
        files.extend(test_support::files(folder, end));
    }
    let (old, fresh) = (folder.path().join("old.jsonl"), folder.path().join("fresh.jsonl"));
    let options = CatalogOptions::default();
    for (first, then) in [
        (options, options.hash(true)),
        (options.verify(true), options.verify(true).hash(true)),
        (options.hash(true), options.hash(true).tensors(true).stats(true)),
        (options.tensors(true), options.tensors(true).hash(true).verify(true)),
    ] {
        make(&old, None, first, &files).unwrap();
        make(&old, Some(&old), then, &files).unwrap();
        make(&fresh, None, then, &files).unwrap();
        let [old, fresh] = [&old, &fresh].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(old, fresh);
    }
}

#[test]
fn what_a_killed_run_found_is_kept() {
    let (folder, files) = models();
    let (output, whole) = (folder.path().join("c.jsonl"), folder.path().join("whole.jsonl"));
    let options = CatalogOptions::default().tensors(true);
    make(&whole, None, options, &files).unwrap();
    // As a run leaves it that was killed while it wrote the third row.
    let journal = part(&output);
    let (files_of, tensors_of) =
        (rows::<serde_json::Value>(&whole), rows::<serde_json::Value>(&tensors_path(&whole)));
    let lines = files_of.iter().map(|file| {
        let tensors: Vec<_> = tensors_of.iter().filter(|row| row["path"] == file["path"]).collect();
        format!("{}\n", serde_json::json!({ "file": file, "tensors": tensors }))
    });
    let lines: Vec<String> = lines.collect();
    let torn = &lines[2][..lines[2].len() / 2];
    fs::write(&journal, format!("{}{}{torn}", lines[0], lines[1])).unwrap();
    let counts = make(&output, None, options, &files).unwrap();
    assert_eq!((counts.files, counts.unchanged), (5, 2));
    assert_eq!(fs::read(&output).unwrap(), fs::read(&whole).unwrap());
    assert_eq!(fs::read(tensors_path(&output)).unwrap(), fs::read(tensors_path(&whole)).unwrap());
    assert!(!journal.exists(), "it is whole");
    // A row whose file has changed since is not taken.
    fs::write(&journal, lines[0].replacen("\"bytes\":", "\"bytes\":1", 1)).unwrap();
    assert_eq!(make(&output, None, options, &files).unwrap().unchanged, 0);
    fs::write(&journal, "what somebody else wrote\n").unwrap();
    let error = make(&output, None, options, &files).unwrap_err();
    assert!(error.contains("c.jsonl.part\": row 1 of the old catalogue is malformed"), "{error}");
    assert_eq!(fs::read_to_string(&journal).unwrap(), "what somebody else wrote\n");
}

#[test]
fn one_process_makes_a_catalogue() {
    let (folder, files) = models();
    let output = folder.path().join("c.jsonl");
    let first = Catalog::create(&output, CatalogOptions::default()).unwrap();
    let error = make(&output, None, CatalogOptions::default(), &files).unwrap_err();
    assert!(error.ends_with("is locked, expected no other writer"), "{error}");
    drop(first);
    make(&output, None, CatalogOptions::default(), &files).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_have_rows_of_their_own() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let files = [&b"\xfe.zt"[..], b"\xff.zt", "\u{fffd}.zt".as_bytes()].map(|name| {
        let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
        fs::copy(testdata("ztensor/golden/aligned_4096.zt"), &path).unwrap();
        path
    });
    let output = folder.path().join("c.jsonl");
    let again = |old| make(&output, old, CatalogOptions::default(), &files).unwrap();
    assert_eq!((again(None).files, again(Some(&*output)).unchanged), (3, 3));
    let paths: Vec<String> = rows(&output).into_iter().map(|row: FileRow| row.path).collect();
    let at = folder.path().to_str().unwrap();
    let expected =
        [format!("{at}/\u{fffd}.zt"), format!("file://{at}/%FE.zt"), format!("file://{at}/%FF.zt")];
    assert_eq!(paths, expected);
    #[cfg(feature = "remote")]
    for (path, file) in paths[1..].iter().zip(&files) {
        let location = modelcrate::remote::Location::parse(path).unwrap();
        assert_eq!(location.as_path(), Some(&**file));
    }
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
    // A run that was killed goes on from lines, as columns have no row before they have all.
    let row: serde_json::Value = rows(&lines).remove(0);
    let journal = path("killed.parquet.part");
    fs::write(&journal, format!("{}\n", serde_json::json!({ "file": row, "tensors": [] })))
        .unwrap();
    let plain = CatalogOptions::default().hash(true);
    assert_eq!(make(&path("killed.parquet"), None, plain, &files).unwrap().unchanged, 1);
    assert!(!journal.exists());
    // Whatever is wrong with it, that is an error, and not the end of the process.
    for at in (0..first.len()).step_by(41).chain(first.len() - 8..first.len()) {
        let mut bytes = first.clone();
        bytes[at] ^= 0x55;
        fs::write(&columns, &bytes).unwrap();
        let _ = make(&again, Some(&columns), options, &files);
        fs::write(&columns, &bytes[..at]).unwrap();
        let error = make(&again, Some(&columns), options, &files).unwrap_err();
        assert!(error.contains("old catalogue is malformed"), "{error}");
    }
    fs::write(&columns, b"PAR1 and so on").unwrap();
    let error = make(&again, Some(&columns), options, &files).unwrap_err();
    assert!(error.contains("old catalogue is malformed"), "{error}");
}
