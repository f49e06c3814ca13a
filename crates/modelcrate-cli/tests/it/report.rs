//! `modelcrate report`.

use std::{fs, path::Path};

use test_support::testdata;

use crate::run::{fails, modelcrate, prints};

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (from, name) in [
        ("rten/valid/mlp.v1.rten", "old.rten"),
        ("rten/valid/mlp.v2.rten", "new.rten"),
        ("ztensor/invalid/digest_crc_wrong.zt", "wrong.zt"),
    ] {
        fs::copy(testdata(from), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("torn.zt"), b"ZTEN1000 and nothing more").unwrap();
    folder
}

fn page(cd: &Path, name: &str) -> String {
    fs::read_to_string(cd.join(name)).unwrap()
}

#[test]
fn pages_are_written_as_other_results_are() {
    let folder = folder();
    let cd = folder.path();
    let said = prints(cd, &["report", "old.rten", "-o", "page.html"]);
    assert!(said.starts_with("page.html: written, "), "{said}");
    let html = page(cd, "page.html");
    assert!(html.starts_with("<!DOCTYPE html>\n") && html.ends_with("</html>\n"));
    assert!(html.contains("<h1>old.rten</h1>"), "{html}");
    assert_eq!(prints(cd, &["report", "old.rten"]), html);

    for (args, message) in [
        (["report", "old.rten", "-o", "page.html"], "page.html: is there already (--overwrite"),
        (["report", "old.rten", "-o", "old.rten"], "old.rten: is an input, expected another file"),
        (["report", "none.rten", "-o", "new.html"], "none.rten: opening failed"),
        (["report", "old.rten", "-o", "none/new.html"], "in a folder that does not exist"),
    ] {
        let (status, text) = fails(cd, &args);
        assert!(status == 2 && text.contains(message), "{args:?}: {status} {text}");
    }
    assert!(!cd.join("new.html").exists());
    prints(cd, &["report", "new.rten", "--overwrite", "-o", "page.html"]);
    assert!(page(cd, "page.html").contains("<h1>new.rten</h1>"));
}

#[test]
fn shards_of_the_input_are_no_place_for_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    let shard = "model-00001-of-00002.safetensors";
    let all = ["model.safetensors.index.json", shard, "model-00002-of-00002.safetensors"];
    for name in all {
        fs::copy(testdata("weights").join(name), cd.join(name)).unwrap();
    }
    let before = fs::read(cd.join(shard)).unwrap();
    for args in [
        &["report", all[0], "--format", "html", "--overwrite", "-o", shard][..],
        &["convert", all[0], shard, "--overwrite"],
    ] {
        let (status, text) = fails(cd, args);
        let message = format!("error: {shard}: is a shard of the input, expected another file\n");
        assert_eq!((status, text), (2, message));
    }
    assert_eq!(fs::read(cd.join(shard)).unwrap(), before);
}

/// What a finding advises to read in its message is there.
#[test]
fn messages_are_whole() {
    let folder = folder();
    fs::write(folder.path().join("garbage"), "no model").unwrap();
    let said = prints(folder.path(), &["report", "--format", "markdown", "garbage"]);
    assert!(said.contains("safetensors, tflite, ztensor |\n"), "{said}");
}

#[test]
fn the_end_of_the_name_says_how() {
    let folder = folder();
    let cd = folder.path();
    for (args, is_html) in [
        (&["-o", "a.md"][..], false),
        (&["-o", "b.htm"], true),
        (&["--format", "html", "-o", "c.md"], true),
        (&["--format", "markdown", "-o", "d.html"], false),
    ] {
        prints(cd, &[&["report", "old.rten"], args].concat());
        let made = page(cd, args.last().unwrap());
        assert_eq!(made.starts_with("<!DOCTYPE html>"), is_html, "{args:?}");
        assert_eq!(made.starts_with("# old.rten\n"), !is_html, "{args:?}");
    }
}

#[test]
fn an_end_that_says_nothing_is_refused() {
    let folder = folder();
    let cd = folder.path();
    for (args, ends) in [
        (["report", "old.rten", "-o", "a.pdf"], ".html, .htm, .md, .markdown"),
        (["graph", "old.rten", "-o", "a.png"], ".txt, .dot, .gv, .mmd, .json, .svg"),
    ] {
        let (status, error) = fails(cd, &args);
        assert_eq!(status, 2);
        assert!(
            error.contains(&format!("says no format, expected --format or an end of {ends}")),
            "{error}"
        );
        assert!(!cd.join(args[3]).exists());
        prints(cd, &[&args[..3], &[args[0]]].concat());
    }
}

/// The page says what is wrong, as `verify` does; that is no failure of the command.
#[test]
fn invalid_files_have_pages() {
    let folder = folder();
    let cd = folder.path();
    for (file, rule) in [("wrong.zt", "zt/digest-mismatch"), ("torn.zt", "zt/")] {
        assert_eq!(modelcrate(cd, &["verify", file]).status.code(), Some(1), "{file}");
        let html = prints(cd, &["report", file]);
        assert!(html.contains("<p class=\"verdict invalid\">invalid</p>"), "{file}");
        assert!(html.contains(rule) && html.contains("<b>Do:</b>"), "{file}: {html}");
    }
}

#[test]
fn tensors_are_read_where_that_is_asked_for() {
    let folder = folder();
    let cd = folder.path();
    let plain = prints(cd, &["report", "old.rten"]);
    assert!(!plain.contains("class=\"histogram\"") && !plain.contains("SHA-256</dt>"));
    assert!(prints(cd, &["report", "--stats", "old.rten"]).contains("class=\"histogram\""));
    assert!(prints(cd, &["report", "--digests", "old.rten"]).contains("SHA-256</dt>"));
}

#[test]
fn two_files_are_compared() {
    let folder = folder();
    let cd = folder.path();
    let same = prints(cd, &["report", "old.rten", "new.rten"]);
    assert!(same.contains("Nothing differs that counts"), "{same}");
    prints(cd, &["edit", "new.rten", "--set", "description=other words"]);
    let html = prints(cd, &["report", "old.rten", "new.rten"]);
    assert!(html.contains("The files differ") && html.contains("other words"), "{html}");
    let (status, text) = fails(cd, &["report", "old.rten", "torn.zt"]);
    assert!(status == 2 && text.contains("torn.zt: does not open"), "{status} {text}");
}
