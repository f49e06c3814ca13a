//! Catalogues, as the command makes them.

use std::{fs, path::Path};

use crate::{
    run::{fails, modelcrate, prints},
    schema::check_rows,
};

fn testdata(name: &str) -> String {
    test_support::testdata(name).display().to_string()
}

fn check(folder: &Path, name: &str) {
    check_rows("catalog-file", &fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap());
    let tensors = folder.join(format!("{name}.tensors.jsonl"));
    check_rows("catalog-tensor", &fs::read_to_string(tensors).unwrap());
}

#[test]
fn catalogues_of_all_test_data_fit_the_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let all = ["carton", "nnpackage", "ptl", "rten", "weights", "ztensor"].map(testdata);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let args = |output| [&["catalog", "-o", output, "--tensors"][..], &all].concat();
    let said = prints(cd, &args("c.jsonl"));
    assert!(said.starts_with("c.jsonl: ") && said.contains(" invalid"), "{said}");
    check(cd, "c");
    let again = prints(cd, &[&args("c.jsonl")[..], &["--format", "json"]].concat());
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    // What is in a folder may change without it.
    let rows = fs::read_to_string(cd.join("c.jsonl")).unwrap();
    let folders = rows.lines().filter(|row| row.contains("\"bytes\":null")).count() as u64;
    let number = |key: &str| again[key].as_u64().unwrap();
    assert!(folders > 0 && number("files") - number("unchanged") == folders, "{again}");
    // Shards have all rows among them.
    let mut rows = Vec::new();
    for shard in ["1/2", "2/2"] {
        prints(cd, &[&args("part.jsonl")[..], &["--shard", shard, "--from", "c.jsonl"]].concat());
        rows.extend(fs::read_to_string(cd.join("part.jsonl")).unwrap().lines().map(str::to_owned));
    }
    rows.sort();
    let whole = fs::read_to_string(cd.join("c.jsonl")).unwrap();
    let mut whole: Vec<&str> = whole.lines().collect();
    whole.sort_unstable();
    assert_eq!(rows, whole);
    prints(cd, &["catalog", all[4], "-o", "s.jsonl", "--tensors", "--stats", "--hash", "--verify"]);
    // Rows of tensors are not left to grow old.
    let (status, said) = fails(cd, &["catalog", all[4], "-o", "s.jsonl", "--hash"]);
    assert!(status == 2 && said.contains("has rows of tensors in \"s.tensors.jsonl\""), "{said}");
    check(cd, "s");
}

#[test]
fn what_cannot_be_read_is_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let output = modelcrate(cd, &["catalog", "none.zt", "-o", "c.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    let row = fs::read_to_string(cd.join("c.jsonl")).unwrap();
    assert!(row.contains("\"verdict\":\"unread\"") && row.contains("No such file"), "{row}");
    for (args, said) in [
        (&["catalog", "x", "-o", "c.csv"][..], "error: c.csv: ends in \"csv\", expected \"jsonl\""),
        (
            &["catalog", "x", "-o", "s3://b/c.jsonl"],
            "error: s3://b/c.jsonl: is an address, expected a path",
        ),
        (&["catalog", "-", "-o", "c.jsonl"], "error: -: standard input has no path"),
        (&["catalog", "x", "-o", "c.jsonl", "--shard", "3/2"], "error: invalid value '3/2'"),
        (&["catalog", "x", "-o", "none/c.jsonl"], "error: none/c.jsonl: "),
    ] {
        let (status, found) = fails(cd, args);
        assert!(status == 2 && found.starts_with(said), "{args:?}: {found}");
    }
}
