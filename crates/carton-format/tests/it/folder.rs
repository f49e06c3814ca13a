//! Folders that lead elsewhere: nothing outside is read, and nothing waits.
#![cfg(unix)]

use std::{fs, os::unix::fs::symlink, path::Path};

use carton_format::{Place, Reader, Sha256};
use tempfile::TempDir;

/// A folder with the files of a carton, and a file beside it that is none of its business.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap() };
        let root = case.root();
        fs::create_dir_all(root.join("model")).unwrap();
        fs::write(case.folder.path().join("secret"), "secret").unwrap();
        fs::write(root.join("model/m"), "model").unwrap();
        fs::write(root.join("carton.toml"), TOML).unwrap();
        case.list(&[("carton.toml", TOML), ("model/m", "model")]);
        case
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("carton")
    }

    fn list(&self, files: &[(&str, &str)]) {
        let line = |(path, content): &(&str, &str)| {
            format!("{path}={}\n", Sha256::digest(content.as_bytes()))
        };
        fs::write(self.root().join("MANIFEST"), files.iter().map(line).collect::<String>())
            .unwrap();
    }

    /// Puts a link in the place of a file or folder.
    fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.root().join(path);
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
        symlink(target, path).unwrap();
    }

    #[track_caller]
    fn finds(&self, expected: &[&str]) {
        let report = Reader::open(self.root()).unwrap().validate();
        let errors = report.findings().iter().filter(|finding| finding.rule != "carton/no-index");
        let found: Vec<String> =
            errors.map(|f| format!("{} {}: {}", f.severity, f.rule, f.message)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn sound_folder() {
    Case::new().finds(&[]);
}

#[test]
fn file_links_out() {
    for target in ["../../secret", "/etc/passwd"] {
        let case = Case::new();
        case.link("model/m", target);
        case.finds(&[r#"error carton/file: "model/m" leads out of the folder"#]);
        let reader = Reader::open(case.root()).unwrap();
        let error = reader.file("model/m").unwrap().bytes().unwrap_err();
        assert_eq!(error.to_string(), r#""model/m" leads out of the folder"#);
    }
}

#[test]
fn folder_links_out() {
    let case = Case::new();
    fs::create_dir(case.folder.path().join("other")).unwrap();
    fs::write(case.folder.path().join("other/m"), "model").unwrap();
    case.link("model", "../other");
    case.finds(&[
        r#"error carton/unlisted-file: is in the carton, but not listed in MANIFEST"#,
        r#"error carton/file: "model/m" leads out of the folder"#,
    ]);
}

#[test]
fn documents_link_out() {
    for name in ["MANIFEST", "LINKS"] {
        let case = Case::new();
        case.link(name, "../secret");
        let error = Reader::open(case.root()).unwrap_err();
        assert_eq!(error.to_string(), format!("{name:?} leads out of the folder"));
    }
}

#[test]
fn links_inside_are_followed() {
    let case = Case::new();
    case.link("model/l", "m");
    case.list(&[("carton.toml", TOML), ("model/l", "model"), ("model/m", "model")]);
    case.finds(&[]);
}

#[test]
fn links_in_a_circle_and_to_nothing() {
    for target in ["m", "x"] {
        let case = Case::new();
        case.link("model/m", target);
        case.finds(&[
            r#"error carton/missing-file: "model/m" is listed in MANIFEST, but is neither in the carton nor in LINKS"#,
        ]);
    }
}

#[test]
fn folder_in_the_place_of_a_file() {
    let case = Case::new();
    fs::remove_file(case.root().join("model/m")).unwrap();
    fs::create_dir(case.root().join("model/m")).unwrap();
    let reader = Reader::open(case.root()).unwrap();
    let file = reader.file("model/m").unwrap();
    assert_eq!(file.place(), Place::Missing);
    assert_eq!(file.bytes().unwrap_err().to_string(), r#""model/m" is a folder, expected a file"#);
}

/// A pipe that nobody writes to: whoever opened it would wait for ever.
#[test]
fn pipes_are_not_opened() {
    let case = Case::new();
    let path = case.root().join("model/m");
    fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let reader = Reader::open(case.root()).unwrap();
    let error = reader.file("model/m").unwrap().bytes().unwrap_err();
    assert_eq!(error.to_string(), r#""model/m" is not a regular file"#);
}

const TOML: &str = "\
spec_version = 1

[runner]
runner_name = \"noop\"
required_framework_version = \"=1.2.3\"
runner_compat_version = 1
";
