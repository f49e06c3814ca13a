//! Edits that wait for other editors.

use std::{fs, process::Command, thread, time::Duration};

use modelcrate::tensor_core::output::LockedFile;
use test_support::testdata;

use crate::run::fails;

/// Every command that changes a file in place, on a file of its format; some write another, too.
const EDITS: [(&str, &str); 20] = [
    ("carton/golden/minimal.carton", "edit FILE --set license=MIT"),
    ("carton/golden/minimal.carton", "compact FILE --compression stored"),
    ("carton/golden/minimal.carton", "carton shrink FILE --url-prefix https://a.example"),
    ("carton/golden/minimal.carton", "carton fill FILE --offline --cache cache"),
    ("nnpackage/valid/01_minimal_circle_stored.zip", "edit FILE --set NUM_THREADS=2"),
    ("nnpackage/valid/everything.circle", "edit FILE --set license=MIT"),
    ("ptl/valid/torch113/img_extras.ptl", "ptl embed FILE notes --name notes"),
    ("ptl/valid/torch113/img_extras.ptl", "edit FILE --remove model/live.spec.json"),
    ("ptl/valid/torch113/img_extras.ptl", "ptl strip FILE"),
    ("ptl/valid/torch113/img_extras.ptl", "compact FILE"),
    ("ptl/valid/torch113/img_extras.ptl", "ptl strip FILE -o stripped"),
    ("ptl/valid/torch113/img_extras.ptl", "compact FILE -o compacted"),
    ("ptl/valid/torch113/img_extras.ptl", "recover FILE"),
    ("rten/valid/mlp.v2.rten", "edit FILE --set license=MIT"),
    ("rten/valid/mlp.v2.rten", "rten fix-dims FILE"),
    ("ztensor/valid/v1.1-ref/scalars.zt", "edit FILE --put notes=u8:5:notes"),
    ("ztensor/valid/v1.1-ref/scalars.zt", "edit FILE --rename s_u8=u"),
    ("ztensor/valid/v1.1-ref/scalars.zt", "edit FILE --remove s_u8"),
    ("ztensor/valid/v1.1-ref/scalars.zt", "compact FILE"),
    ("ztensor/valid/v1.1-ref/scalars.zt", "recover FILE"),
];

#[test]
fn of_two_editors_one_is_told_or_waits() {
    let folder = tempfile::tempdir().unwrap();
    let cd = folder.path();
    fs::write(cd.join("notes"), "12345").unwrap();
    thread::scope(|scope| {
        for (number, (sample, line)) in EDITS.iter().enumerate() {
            let file = format!("file{number}");
            let line = line.replace("FILE", &file);
            fs::copy(testdata(sample), cd.join(&file)).unwrap();
            scope.spawn(move || {
                let args: Vec<&str> = line.split(' ').collect();
                let lock = LockedFile::open(cd.join(&file)).unwrap();
                let (status, text) = fails(cd, &args);
                assert!(text.starts_with(&format!("error: {file}: is locked")), "{line}: {text}");
                assert_eq!(status, 2, "{line}");
                let mut waiting = Command::new(env!("CARGO_BIN_EXE_modelcrate"));
                let waiting = waiting.current_dir(cd).args(&args).args(["--wait", "60"]);
                let mut waiting = waiting.stdout(std::process::Stdio::null()).spawn().unwrap();
                thread::sleep(Duration::from_millis(300));
                assert!(waiting.try_wait().unwrap().is_none(), "{line} did not wait");
                drop(lock);
                assert!(waiting.wait().unwrap().success(), "{line}");
            });
        }
    });
}
