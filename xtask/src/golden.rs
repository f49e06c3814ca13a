//! Golden files: what our writers must reproduce, byte for byte.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::root;

mod carton;
mod nnpackage;
mod ptl;
mod rten;
mod ztensor;
mod ztensor2;

/// A file that a writer makes.
pub(crate) struct Golden {
    /// Relative to `testdata/`: `<format>/golden/<name>`, or in another folder that has nothing else.
    pub(crate) path: &'static str,
    /// Makes its bytes; the same ones each time and on every machine.
    pub(crate) make: fn() -> Result<Vec<u8>>,
}

/// Returns every golden file.
fn goldens() -> Vec<Golden> {
    let mut goldens = carton::goldens();
    goldens.extend(nnpackage::goldens());
    goldens.extend(ptl::goldens());
    goldens.extend(rten::goldens());
    goldens.extend(ztensor::goldens());
    goldens.extend(ztensor2::goldens());
    goldens
}

/// Writes the golden files and prints those that changed.
pub(crate) fn write() -> Result<()> {
    write_to(&testdata(), &goldens())
}

/// Compares the golden files with what the writers make now.
pub(crate) fn check() -> Result<()> {
    let goldens = goldens();
    let faults = faults(&testdata(), &goldens)?;
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        bail!("{} golden files differ; `cargo xtask golden` rewrites them", faults.len());
    }
    println!("{} golden files are as the writers make them", goldens.len());
    Ok(())
}

fn testdata() -> PathBuf {
    root().join("testdata")
}

fn write_to(testdata: &Path, goldens: &[Golden]) -> Result<()> {
    for golden in goldens {
        let made = golden.made()?;
        let path = testdata.join(golden.path);
        if stored(&path)?.as_ref() == Some(&made) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("{folder:?}"))?;
        }
        fs::write(&path, &made).with_context(|| format!("{path:?}"))?;
        println!("testdata/{}: written, {} bytes", golden.path, made.len());
    }
    for path in strays(testdata, goldens)? {
        println!("testdata/{path}: no entry makes this file; remove it");
    }
    Ok(())
}

/// Returns one line for each file that is missing, differs, or is made by no entry.
fn faults(testdata: &Path, goldens: &[Golden]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for golden in goldens {
        let stored = stored(&testdata.join(golden.path))?;
        if let Some(fault) = compare(stored.as_deref(), &golden.made()?) {
            faults.push(format!("testdata/{}: {fault}", golden.path));
        }
    }
    let strays = strays(testdata, goldens)?;
    faults.extend(
        strays
            .iter()
            .map(|path| format!("testdata/{path}: no entry makes this file, expected one")),
    );
    Ok(faults)
}

impl Golden {
    fn made(&self) -> Result<Vec<u8>> {
        (self.make)().with_context(|| format!("testdata/{} cannot be made", self.path))
    }
}

fn stored(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{path:?}")),
    }
}

fn compare(stored: Option<&[u8]>, made: &[u8]) -> Option<String> {
    let Some(stored) = stored else {
        return Some(format!("missing, expected {} bytes", made.len()));
    };
    if stored == made {
        return None;
    }
    let pairs = stored.iter().zip(made);
    let offset = pairs.take_while(|(stored, made)| stored == made).count();
    Some(format!(
        "differs from byte {offset} on: {}, expected {}",
        byte(stored, offset),
        byte(made, offset)
    ))
}

fn byte(bytes: &[u8], offset: usize) -> String {
    bytes.get(offset).map_or_else(|| "the end".to_owned(), |byte| format!("{byte:#04x}"))
}

/// Returns the files in folders of golden files that no entry makes, relative to `testdata/`.
fn strays(testdata: &Path, goldens: &[Golden]) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut folders: BTreeSet<String> =
        names(testdata)?.into_iter().map(|format| format!("{format}/golden")).collect();
    let of_entries = goldens.iter().filter_map(|golden| golden.path.rsplit_once('/'));
    folders.extend(of_entries.map(|(folder, _)| folder.to_owned()));
    for folder in folders {
        for name in names(&testdata.join(&folder))? {
            found.insert(format!("{folder}/{name}"));
        }
    }
    found.retain(|path| {
        !path.ends_with("/README.md") && goldens.iter().all(|golden| golden.path != path)
    });
    Ok(found)
}

/// Returns the names in a folder; none where there is no such folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("{folder:?}"))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect::<io::Result<_>>().with_context(|| format!("{folder:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Golden = Golden { path: "ztensor/golden/empty.zt", make: || Ok(b"abc".to_vec()) };

    #[test]
    fn entries_lie_in_golden_folders_once() {
        let mut seen = BTreeSet::new();
        for golden in goldens() {
            let parts: Vec<&str> = golden.path.split('/').collect();
            let is_placed = matches!(parts[..], [_, "golden", _] | ["ztensor", "v2", "invalid", _]);
            assert!(is_placed, "{}", golden.path);
            assert!(seen.insert(golden.path), "{} stands twice", golden.path);
        }
    }

    #[test]
    fn written_files_pass_the_check() {
        let folder = tempfile::tempdir().unwrap();
        write_to(folder.path(), &[ENTRY]).unwrap();
        assert_eq!(faults(folder.path(), &[ENTRY]).unwrap(), [""; 0]);
    }

    #[test]
    fn missing_file_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            faults(folder.path(), &[ENTRY]).unwrap(),
            ["testdata/ztensor/golden/empty.zt: missing, expected 3 bytes"]
        );
    }

    #[test]
    fn file_that_no_entry_makes_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        write_to(folder.path(), &[ENTRY]).unwrap();
        fs::write(folder.path().join("ztensor/golden/README.md"), "# Golden\n").unwrap();
        assert_eq!(
            faults(folder.path(), &[]).unwrap(),
            ["testdata/ztensor/golden/empty.zt: no entry makes this file, expected one"]
        );
    }

    #[test]
    fn first_difference_is_named() {
        assert_eq!(compare(Some(b"abc"), b"abc"), None);
        assert_eq!(
            compare(Some(b"abc"), b"abd").unwrap(),
            "differs from byte 2 on: 0x63, expected 0x64"
        );
        assert_eq!(
            compare(Some(b"abc"), b"abcd").unwrap(),
            "differs from byte 3 on: the end, expected 0x64"
        );
    }
}
