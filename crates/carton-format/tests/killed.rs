//! A process that is killed while it edits a carton leaves the old file, or the new one, whole.

use std::{path::Path, time::Duration};

use carton_format::{
    Change, Description, Editor, Links, NewValue, Pack, Reader, Runner, WriteOptions, Writer,
    model_archive::Compression, repack, shrink,
};
use test_support::killed;

/// How often a process is killed, each time a little later.
const KILLS: u32 = 40;

#[test]
fn old_or_new_but_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.carton");
    pack(&path);
    let hash = Reader::open(&path).unwrap().file("model/a").unwrap().sha256();
    killed::kill("edits_until_it_is_killed", &path, KILLS, Duration::from_micros(400), |number| {
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.file("model/a").unwrap().sha256(), hash);
        assert!(reader.validate().is_valid(), "after kill {number}");
    });
}

fn pack(path: &Path) {
    let mut pack =
        Pack::new(&Description::new(Runner::new("noop", "=1.0.0".parse().unwrap()))).unwrap();
    for name in ["a", "b", "c"] {
        let content: Vec<u8> = (0..1_500_000_u32).map(|at| (at / 7 % 251) as u8).collect();
        pack.file(&format!("model/{name}"), content).unwrap();
    }
    pack.write(Writer::create(path).unwrap()).unwrap();
}

/// Runs in the child: edits of every kind, each in place of the file.
#[test]
fn edits_until_it_is_killed() {
    killed::edits(|path, turn| {
        let compression =
            if turn % 2 == 0 { Compression::Stored } else { Compression::Zstd { level: 1 } };
        let options = WriteOptions::default().compression(compression);
        let reader = Reader::open(path).unwrap();
        match turn % 3 {
            0 => drop(repack(&reader, options.create(path).unwrap(), |_| ()).unwrap()),
            1 => {
                drop(shrink(&reader, &Links::default(), options.create(path).unwrap()).unwrap());
            }
            _ => {
                let mut editor = Editor::open_with(path, options).unwrap();
                let value = NewValue::Text(format!("edit {turn}"));
                editor.change(&[Change::set("short_description", value)]).unwrap();
                assert!(editor.commit().unwrap().has_changed());
            }
        }
    });
}
