//! Folders that are changed whole or not at all.

#[cfg(unix)]
use std::{env, process::Command};
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use model_archive::{Archive, Error, FileFault, Folder, FolderEdit, Storage};
use tensor_core::{
    Chain, Extent,
    output::{Edited, Output, is_temporary},
};
use test_support::killed;

/// A folder beside which nothing is.
fn package() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("package");
    fs::create_dir_all(path.join("metadata")).unwrap();
    for (name, content) in [("MANIFEST", "{}"), ("metadata/config", "old"), ("model", "weights")] {
        fs::write(path.join(name), content).unwrap();
    }
    (dir, path)
}

fn edit(path: &Path) -> FolderEdit {
    FolderEdit::open(path, Output::default()).unwrap()
}

fn write(edit: &mut FolderEdit, path: &str, content: &str) {
    edit.file(path).unwrap().write_all(content.as_bytes()).unwrap();
}

fn contents(path: &Path) -> Vec<(String, String)> {
    let paths = Folder::open(path).unwrap().paths().unwrap();
    let content = |name: &String| fs::read_to_string(path.join(name)).unwrap();
    paths.iter().map(|name| (name.clone(), content(name))).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, content)| (name.to_owned(), content.to_owned())).into()
}

fn hidden(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap();
    entries.filter(|entry| is_temporary(&entry.as_ref().unwrap().file_name())).count()
}

#[test]
fn all_changes_at_once() {
    let (dir, path) = package();
    let before = contents(&path);
    let mut edit = edit(&path);
    write(&mut edit, "metadata/config", "new");
    write(&mut edit, "a/b/c", "added");
    write(&mut edit, "a/b/c", "again");
    edit.remove("model").unwrap();
    assert_eq!(contents(&path), before);
    let after = pairs([("MANIFEST", "{}"), ("a/b/c", "again"), ("metadata/config", "new")]);
    assert_eq!(contents(edit.prepared().unwrap().path()), after);
    assert_eq!(edit.commit().unwrap(), Edited::Updated { written: 2, removed: 1 });
    assert_eq!(contents(&path), after);
    assert_eq!(hidden(dir.path()), 0);
}

#[test]
fn dropped_before_its_commit() {
    let (dir, path) = package();
    let before = contents(&path);
    assert_eq!(edit(&path).commit().unwrap(), Edited::Unchanged);
    let mut edit = edit(&path);
    write(&mut edit, "metadata/config", "new");
    assert_eq!(hidden(dir.path()), 1);
    drop(edit);
    assert_eq!((contents(&path), hidden(dir.path())), (before, 0));
}

#[cfg(unix)]
#[test]
fn what_stays_is_kept_as_it_is() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let (_dir, path) = package();
    symlink("metadata", path.join("meta")).unwrap();
    symlink("model", path.join("latest")).unwrap();
    fs::write(path.join(".model.abcdef.modelcrate"), "half").unwrap();
    for (name, mode) in [("", 0o750), ("metadata", 0o700), ("metadata/config", 0o640)] {
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let mode = |name: &str| path.join(name).metadata().unwrap().mode() & 0o777;
    let number = |name: &str| path.join(name).metadata().unwrap().ino();
    let model = number("model");
    let mut edit = edit(&path);
    write(&mut edit, "meta/config", "new");
    edit.commit().unwrap();
    assert_eq!(number("model"), model);
    assert_eq!(fs::read_link(path.join("meta")).unwrap(), Path::new("metadata"));
    assert_eq!(fs::read_to_string(path.join("metadata/config")).unwrap(), "new");
    assert_eq!([mode(""), mode("metadata"), mode("metadata/config")], [0o750, 0o700, 0o640]);
    assert!(!path.join(".model.abcdef.modelcrate").exists());
    // The file behind a link is replaced; the link itself is removed.
    let mut edit = self::edit(&path);
    write(&mut edit, "latest", "other weights");
    edit.remove("meta").unwrap();
    edit.commit().unwrap();
    assert!(path.join("latest").is_symlink() && !path.join("meta").is_symlink());
    assert_eq!(fs::read_to_string(path.join("model")).unwrap(), "other weights");
}

#[cfg(unix)]
#[test]
fn a_dry_run_is_refused_as_an_edit_is() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = package();
    let left = dir.path().join(".other.abcdef.modelcrate");
    fs::create_dir(&left).unwrap();
    let output = Output { wait: Duration::from_secs(10), ..Output::default() };
    FolderEdit::check(&path, output).unwrap();
    // Nothing is swept, but by an edit.
    assert!(left.exists());
    let mut edit = FolderEdit::open(&path, output).unwrap();
    assert!(!left.exists());
    let error = FolderEdit::check(&path, Output::default()).unwrap_err();
    assert_eq!(error.kind(), tensor_core::ErrorKind::Busy);
    fs::set_permissions(path.join("model"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::create_dir(path.join("empty")).unwrap();
    for refused in ["model", "empty", "../outside", "metadata", "a/.x.abcdef.modelcrate/b"] {
        let expected = edit.file(refused).unwrap_err().to_string();
        let folder = Folder::open(&path).unwrap();
        assert_eq!(folder.check_file(refused).unwrap_err().to_string(), expected);
    }
    assert_eq!(edit.folder().check_file("metadata/new").unwrap(), "metadata/new");
    drop(edit);
    // Root may write there all the same.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let checked = FolderEdit::check(&path, output).map_err(|error| error.to_string());
    let mut edit = FolderEdit::open(&path, output).unwrap();
    assert_eq!(edit.prepared().map(drop).map_err(|error| error.to_string()), checked);
    drop(edit);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[cfg(unix)]
#[test]
fn nothing_outside_is_changed() {
    let (dir, path) = package();
    fs::create_dir(dir.path().join("other")).unwrap();
    fs::write(dir.path().join("other/file"), "theirs").unwrap();
    std::os::unix::fs::symlink("../other", path.join("out")).unwrap();
    let mut edit = edit(&path);
    for name in ["out/file", "out/new", "../other/file", "/etc/x"] {
        let error = edit.file(name).unwrap_err();
        let is_fault =
            matches!(&error, Error::File { fault: FileFault::Outside | FileFault::Name(_), .. });
        assert!(is_fault, "{name}: {error}");
        edit.remove(name).unwrap_err();
    }
    edit.file("metadata").unwrap_err();
    edit.file("model/inside").unwrap_err();
    edit.commit().unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("other/file")).unwrap(), "theirs");
    assert!(path.join("out").is_symlink());
}

#[cfg(unix)]
#[test]
fn one_editor_at_a_time() {
    let (_dir, path) = package();
    let mut first = edit(&path);
    let error = FolderEdit::open(&path, Output::default()).unwrap_err();
    assert!(matches!(error, Error::Core(tensor_core::Error::Locked { .. })), "{error}");
    let second = thread::spawn({
        let (path, wait) = (path.clone(), Duration::from_secs(30));
        move || FolderEdit::open(path, Output { wait, ..Output::default() })
    });
    write(&mut first, "first", "1");
    first.commit().unwrap();
    let mut second = second.join().unwrap().unwrap();
    write(&mut second, "second", "2");
    second.commit().unwrap();
    assert!(path.join("first").exists() && path.join("second").exists());
}

#[cfg(unix)]
#[test]
fn who_has_the_old_one_open_is_told() {
    let (_dir, path) = package();
    let reader = Folder::open(&path).unwrap();
    let model = reader.file("model").unwrap().unwrap();
    let mut edit = edit(&path);
    write(&mut edit, "model", "new");
    edit.commit().unwrap();
    assert_eq!(model.read(Extent::first(7), "model").unwrap(), "weights");
    let is_replaced =
        |error: Error| matches!(error, Error::Core(tensor_core::Error::Replaced { .. }));
    assert!(is_replaced(reader.file("model").unwrap_err()));
    assert!(is_replaced(reader.file("none").unwrap_err()));
    assert!(is_replaced(reader.paths().unwrap_err()));
}

#[test]
fn put_back_where_a_process_died_between_two_renames() {
    let (dir, path) = package();
    let before = contents(&path);
    let hidden = dir.path().join(".package.dead00.modelcrate");
    fs::create_dir_all(hidden.join("old")).unwrap();
    fs::rename(&path, hidden.join("old/package")).unwrap();
    // Who only reads moves nothing.
    Folder::open(&path).unwrap_err();
    Storage::open(&path, Archive::options()).unwrap_err();
    assert!(hidden.join("old/package").exists());
    drop(edit(&path));
    assert_eq!(contents(&path), before);
    assert!(!hidden.exists());
}

/// Whoever opens the folder finds both files as they were or both as they are, or is told.
#[cfg(unix)]
#[test]
fn readers_meanwhile() {
    let (_dir, path) = package();
    let turn = |turn: u32| {
        let mut edit = edit(&path);
        write(&mut edit, "metadata/config", &turn.to_string());
        write(&mut edit, "model", &turn.to_string());
        edit.commit().unwrap();
    };
    turn(0);
    let read = |folder: &Folder, name: &str| -> Result<_, Error> {
        let file = folder.file(name)?.expect("it is there");
        Ok(file.read(Extent::first(file.len()), "file")?)
    };
    let mut whole = 0;
    thread::scope(|scope| {
        let edits = scope.spawn(|| (1..100).for_each(turn));
        while !edits.is_finished() {
            let folder = Folder::open(&path).unwrap();
            let first = read(&folder, "metadata/config");
            match first.and_then(|first| Ok((first, read(&folder, "model")?))) {
                Ok((first, second)) => {
                    assert_eq!(first, second);
                    whole += 1;
                }
                Err(Error::Core(tensor_core::Error::Replaced { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert!(whole > 0);
}

/// Both files say which turn it was.
#[test]
fn edits_until_it_is_killed() {
    killed::edits(|path, turn| {
        let path = path.join("package");
        let mut edit = edit(&path);
        write(&mut edit, "metadata/config", &turn.to_string());
        write(&mut edit, "model", &turn.to_string());
        edit.commit().unwrap();
    });
}

#[test]
fn old_or_new_when_killed() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let path = inner.join("package");
    fs::create_dir_all(path.join("metadata")).unwrap();
    for name in ["metadata/config", "model"] {
        fs::write(path.join(name), "-").unwrap();
    }
    let test = "edit::edits_until_it_is_killed";
    killed::kill(test, &inner, 20, Duration::from_micros(300), |kill| {
        let found = contents(&path);
        assert_eq!(found.len(), 2, "kill {kill}");
        assert_eq!(found[0].1, found[1].1, "kill {kill}");
        // Who comes next takes away what is left.
        drop(edit(&path));
        assert_eq!(hidden(&inner), 0, "kill {kill}");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_mounted_inside_is_refused() {
    use test_support::SmallDisk;
    let (dir, path) = package();
    fs::create_dir(path.join("extra")).unwrap();
    let Some(disk) = SmallDisk::mount(&path.join("extra"), 1 << 20) else { return };
    fs::write(disk.path().join("shared"), "theirs").unwrap();
    check_mounted(&dir, &path);
    drop(disk);
    // On the same device.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("shared"), "theirs").unwrap();
    let mount = |command: &mut Command| assert!(command.status().unwrap().success());
    mount(Command::new("mount").arg("--bind").arg(&other).arg(path.join("extra")));
    let checked = std::panic::catch_unwind(|| check_mounted(&dir, &path));
    mount(Command::new("umount").arg(path.join("extra")));
    checked.unwrap();
}

#[cfg(target_os = "linux")]
fn check_mounted(dir: &tempfile::TempDir, path: &Path) {
    let mut edit = edit(path);
    let error = edit.file("metadata/config").unwrap_err();
    let extra = path.canonicalize().unwrap().join("extra");
    let reason = "it is a mount or a volume of its own, expected neither";
    let expected = format!("{extra:?}: linking or copying failed: {reason}");
    assert_eq!(Chain(&error).to_string(), expected);
    drop(edit);
    let output = Output { wait: Duration::from_secs(10), ..Output::default() };
    let checked = FolderEdit::check(path, output).unwrap_err();
    assert_eq!(Chain(&checked).to_string(), expected);
    assert_eq!(fs::read_to_string(path.join("extra/shared")).unwrap(), "theirs");
    assert_eq!(hidden(dir.path()), 0);
}

/// As a user who may not list the folder around the package, nor remove what is in `theirs`, nor read
/// what is in `guarded`.
#[cfg(unix)]
#[test]
fn edits_as_somebody_else() {
    use std::os::unix::fs::PermissionsExt;
    let Some(dir) = env::var_os(TOLD).map(PathBuf::from) else { return };
    let write = |path: &Path| {
        let mut edit = edit(path);
        write(&mut edit, "metadata/config", "new");
        edit.commit()
    };
    for (path, reason) in [
        (
            "unlisted/package",
            "the changed folder is in its place, but synchronising the one around it",
        ),
        ("package", "the changed folder is in its place, but removing all of the old one"),
    ] {
        let path = dir.join(path);
        let error = write(&path).unwrap_err().to_string();
        assert!(error.ends_with(&format!(": {reason} failed")), "{error}");
        assert_eq!(fs::read_to_string(path.join("metadata/config")).unwrap(), "new");
    }
    assert_eq!(hidden(&dir), 1);
    if fs::read_to_string("/proc/sys/fs/protected_hardlinks").is_ok_and(|set| set == "1\n") {
        let path = dir.join("guarded").canonicalize().unwrap();
        let error = Chain(&edit(&path).prepared().unwrap_err()).to_string();
        let start = format!("{:?}: linking or copying failed: ", path.join("file"));
        assert!(error.starts_with(&start), "{error}");
        let checked = FolderEdit::check(&path, Output::default()).unwrap_err();
        assert_eq!(Chain(&checked).to_string(), error);
    }
    // A folder of one's own that nobody may write to does not stay.
    let path = dir.join("package");
    let mode = |mode| fs::Permissions::from_mode(mode);
    fs::remove_dir_all(path.join("theirs")).unwrap();
    fs::create_dir(path.join("sealed")).unwrap();
    fs::write(path.join("sealed/file"), "").unwrap();
    fs::set_permissions(path.join("sealed"), mode(0o555)).unwrap();
    write(&path).unwrap();
    assert_eq!(hidden(&dir), 1);
    assert_eq!(path.join("sealed").metadata().unwrap().permissions().mode() & 0o777, 0o555);
    fs::set_permissions(path.join("sealed"), mode(0o755)).unwrap();
}

#[cfg(unix)]
#[test]
fn failures_after_the_commit_say_so() {
    use std::os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    };
    let (dir, path) = package();
    let unlisted = dir.path().join("unlisted");
    fs::create_dir_all(unlisted.join("package/metadata")).unwrap();
    fs::create_dir(path.join("theirs")).unwrap();
    fs::write(path.join("theirs/file"), "").unwrap();
    let guarded = dir.path().join("guarded");
    fs::create_dir(&guarded).unwrap();
    fs::write(guarded.join("file"), "").unwrap();
    fs::set_permissions(guarded.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
    for folder in [dir.path(), &path, &path.join("metadata"), &unlisted, &guarded] {
        if chown(folder, Some(1000), Some(1000)).is_err() {
            return eprintln!("skipped: only root becomes somebody else");
        }
    }
    for folder in [unlisted.join("package"), unlisted.join("package/metadata")] {
        chown(folder, Some(1000), Some(1000)).unwrap();
    }
    fs::set_permissions(&unlisted, fs::Permissions::from_mode(0o300)).unwrap();
    // Where that user finds it.
    let program = dir.path().join("program");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", "edit::edits_as_somebody_else"]).env(TOLD, dir.path());
    let output = command.current_dir("/").uid(1000).gid(1000).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[cfg(unix)]
const TOLD: &str = "MODEL_ARCHIVE_EDITED_AS_SOMEBODY_ELSE";
