//! The commands that pack, unpack and draw, whatever the format.

use std::{fs, path::Path};

use modelcrate::{carton_format, nnpackage};
use test_support::{names, testdata};

use crate::run::{fails, prints};

/// A folder with files that the commands take and do not take.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [
        ("nnpackage/valid/03_two_models_connected.zip", "two.zip"),
        ("nnpackage/valid/everything.circle", "every.circle"),
        ("carton/golden/minimal.carton", "m.carton"),
        ("ptl/valid/torch113/img_extras.ptl", "m.ptl"),
        ("rten/valid/mlp.v2.rten", "m.rten"),
        ("ztensor/valid/v1.1-ref/scalars.zt", "m.zt"),
    ] {
        fs::copy(testdata(from), folder.path().join(to)).unwrap();
    }
    folder
}

fn files(package: &Path) -> Vec<(String, Vec<u8>)> {
    let package = nnpackage::Reader::open(package).unwrap();
    let files = package.files().unwrap();
    files.map(|file| (file.path().to_owned(), file.bytes().unwrap().to_vec())).collect()
}

#[test]
fn unpacked_packages_are_packed_again() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["unpack", "two.zip", "two"]);
    let text = prints(cd, &["pack", "two", "again.zip", "--level", "0"]);
    assert!(text.starts_with("again.zip: packed, version 1.3.0, 2 models, 5 files, "), "{text}");
    assert_eq!(files(&cd.join("again.zip")), files(&cd.join("two.zip")));
    let digests = ["pack", "two", "other", "--to", "nnpackage", "--folder", "--digests"];
    assert!(prints(cd, &digests).ends_with(" 6 files\n"));
    assert!(prints(cd, &["verify", "other"]).starts_with("other: valid\n"));
    let (status, said) = fails(cd, &["pack", "two", "new.zip", "--mmap"]);
    let message =
        "error: --mmap is for models, not for the folder of a package, which edit changes\n";
    assert_eq!((status, said.as_str()), (2, message));
    let (status, said) = fails(cd, &["pack", "two", "two/new.zip"]);
    assert!(status == 2 && said == "error: two/new.zip: is in a folder that is read\n", "{said}");
}

#[test]
fn the_output_says_what_is_packed() {
    let folder = folder();
    let cd = folder.path();
    let runner = ["--runner", "x", "--framework-version", "1"];
    let carton = |out: &[&str]| prints(cd, &[&["pack", "m.rten"], out, &runner].concat());
    carton(&["a.CARTON"]);
    carton(&["b", "--to", "carton"]);
    for name in ["a.CARTON", "b"] {
        assert!(carton_format::Reader::open(cd.join(name)).is_ok());
    }
    prints(cd, &["unpack", "two.zip", "two"]);
    prints(cd, &["pack", "two/m0.circle", "c", "--to", "nnpkg"]);
    assert!(nnpackage::Reader::open(cd.join("c")).is_ok());
    let before = names(cd);
    for (args, message) in [
        (&["m.rten"][..], "what is to be written is missing: give it behind what is read"),
        (&["m.rten", "new"], "new: does not tell by its name what to make: --to carton or --to nn"),
        (&["m.rten", "new.zt"], "new.zt: is called as ztensor, expected a carton or an nnpackage"),
        (
            &["m.rten", "new.carton", "--mmap"],
            "new.carton: is a carton, for which there is no --mmap",
        ),
        (
            &["two/m0.circle", "new.zip", "--runner=x", "--framework-version=1"],
            "new.zip: is an nnpackage, for which there is no --runner",
        ),
        (&["m.rten", "m.zt", "new.carton"], "a carton is packed of one folder or file, not of sev"),
        (&["m.rten", "new", "--to", "zt"], "expected carton or nnpackage"),
    ] {
        let (status, said) = fails(cd, &[&["pack"], args].concat());
        assert!(status == 2 && said.contains(message), "{args:?}: {said}");
    }
    assert_eq!(names(cd), before);
}

#[test]
fn what_is_no_package_is_not_unpacked() {
    let folder = folder();
    let cd = folder.path();
    for (args, message) in [
        (
            &["m.ptl", "new"][..],
            "error: m.ptl: is a PyTorch Live model, expected a carton or an nnpackage; ",
        ),
        (
            &["two.zip", "new", "--offline"],
            "error: two.zip: is an nnpackage, for which there is no --offline\n",
        ),
        (&["two.zip", "none/new"], "error: none/new: is in a folder that does not exist\n"),
        (&["m.carton", "none/new"], "error: none/new: is in a folder that does not exist\n"),
        (&["m.carton", "-"], "error: -: standard output takes no folder\n"),
    ] {
        let (status, said) = fails(cd, &[&["unpack"], args].concat());
        assert!(status == 2 && said.starts_with(message), "{args:?}: {said}");
    }
}

#[test]
fn every_model_is_drawn_in_every_language() {
    let folder = folder();
    let cd = folder.path();
    prints(cd, &["convert", "m.rten", "m.onnx"]);
    for file in ["m.rten", "m.onnx", "every.circle", "two.zip", "m.ptl", "m.carton"] {
        for (end, format, start) in [
            ("dot", "dot", "digraph "),
            ("gv", "dot", "digraph "),
            ("mmd", "mermaid", "flowchart "),
            ("json", "json", "{\"schema\":1,"),
            ("svg", "svg", "<svg "),
            ("txt", "text", ""),
        ] {
            let out = format!("{file}.{end}");
            let said = prints(cd, &["graph", file, "-o", &out]);
            assert!(said.starts_with(&format!("{out}: written, ")), "{said}");
            let text = prints(cd, &["graph", file, "--format", format]);
            assert!(text.starts_with(start), "{text}");
            assert_eq!(fs::read_to_string(cd.join(&out)).unwrap(), text);
        }
    }
    let (status, said) = fails(cd, &["graph", "m.rten", "-o", "m.rten.dot"]);
    let there = "error: m.rten.dot: is there already (--overwrite replaces it)\n";
    assert_eq!((status, said.as_str()), (2, there));
    prints(cd, &["graph", "m.rten", "-o", "m.rten.dot", "--overwrite"]);
    let (status, said) = fails(cd, &["graph", "m.rten", "-o", "m.rten", "--overwrite"]);
    assert_eq!(
        (status, said.as_str()),
        (2, "error: m.rten: is the input, expected another file\n")
    );
    fs::write(cd.join("no.onnx"), "no model").unwrap();
    let (status, said) = fails(cd, &["graph", "no.onnx"]);
    assert!(status == 2 && said.starts_with("error: no.onnx: byte "), "{said}");
    let (status, said) = fails(cd, &["graph", "m.zt"]);
    assert!(status == 2 && said.contains("which has no graph to be drawn"), "{said}");
}
