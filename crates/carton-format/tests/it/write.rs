//! What is written reads back, and is found to be sound.

use std::{num::NonZeroUsize, path::Path};

use carton_format::{
    Description, Example, Linked, Links, Named, Pack, Place, Reader, Reference, Runner, SelfTest,
    Sha256, TensorSpec, UnpackOptions, Value, WriteOptions, Writer, fill,
    model_archive::{Compression, Method},
    repack, replace_description, shrink, unpack,
};
use tensor_core::{
    DType, Profile, Severity, TensorBuf,
    symbolic::{Dim, SymbolicShape},
};
use test_support::{assert_bytes, files, noise, testdata};

fn threads(threads: usize) -> WriteOptions {
    WriteOptions::default().threads(NonZeroUsize::new(threads).unwrap())
}

fn description() -> Description {
    let mut description = Description::new(Runner::new("noop", "=1.0.0".parse().unwrap()));
    description.runner.compat_version = Some(1);
    let shape = SymbolicShape::Dims(vec![Dim::Symbol("n".to_owned())]);
    let spec = |name| TensorSpec::new(name, DType::F32, shape.clone());
    description.inputs = Some(vec![spec("x")]);
    description.outputs = Some(vec![spec("y")]);
    let mut test = SelfTest::new(Named::from_iter([("x", "numbers".to_owned())]));
    test.expected_out = Some(Named::from_iter([("y", "numbers".to_owned())]));
    description.self_tests = Some(vec![test]);
    let picture = Named::from_iter([("x", Reference::Misc("a.png".to_owned()))]);
    let result = Named::from_iter([("y", Reference::Tensor("numbers".to_owned()))]);
    description.examples = Some(vec![Example::new(picture, result)]);
    description
}

fn numbers() -> Value {
    Value::Numeric(TensorBuf::from_slice([3], &[1.0_f32, 2.0, 3.0]).unwrap())
}

/// A folder with files of every kind that matters, and a carton's worth of everything else.
fn pack(folder: &Path) -> Pack {
    let model = folder.join("source");
    std::fs::create_dir_all(model.join("sub/.hidden")).unwrap();
    std::fs::create_dir_all(model.join("empty")).unwrap();
    for number in 0..40 {
        std::fs::write(model.join(format!("sub/{number}.txt")), "text ".repeat(number)).unwrap();
    }
    std::fs::write(model.join("large.bin"), noise(3 << 20)).unwrap();
    std::fs::write(model.join("text.bin"), "all work and no play ".repeat(100_000)).unwrap();
    std::fs::write(model.join("sub/.hidden/a=b"), b"").unwrap();
    // What a process that was killed has left is not a part of the model.
    std::fs::write(model.join("sub/.a=b.Xq3vB7.modelcrate"), b"half").unwrap();
    std::fs::write(model.join("ünï"), b"x").unwrap();
    #[cfg(unix)]
    if !model.join("sub/link").exists() {
        std::os::unix::fs::symlink("../large.bin", model.join("sub/link")).unwrap();
    }
    let strings = Value::Strings {
        shape: [2].into(),
        strings: vec!["\u{1b}[0m\n\"".to_owned(), String::new()],
    };
    let mut pack = Pack::new(&description()).unwrap();
    pack.model(&model).unwrap();
    pack.file("misc/a.png", &b"\x89PNG\r\n\x1a\n"[..]).unwrap();
    pack.tensor("numbers", &numbers()).unwrap();
    pack.tensor("list", &Value::Nested(vec![numbers(), strings])).unwrap();
    pack
}

fn packed(folder: &Path, options: WriteOptions) -> Vec<u8> {
    pack(folder).write(options.write_to(Vec::new())).unwrap().sink
}

#[track_caller]
fn is_sound(bytes: &[u8]) -> Reader {
    let reader = Reader::from_bytes(bytes.to_vec()).unwrap();
    let report = reader.validate();
    assert!(report.is_empty(), "{report:?}");
    reader
}

#[test]
fn everything_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let reader = is_sound(&packed(folder.path(), WriteOptions::default()));
    assert_eq!(*reader.description().unwrap(), description());
    let source = folder.path().join("source");
    for (path, from) in
        [("model/large.bin", "large.bin"), ("model/sub/39.txt", "sub/39.txt"), ("model/ünï", "ünï")]
    {
        let expected = std::fs::read(source.join(from)).unwrap();
        assert_bytes(&reader.file(path).unwrap().bytes().unwrap(), &expected, path);
    }
    assert!(reader.file("model/sub/.hidden/a=b").unwrap().is_empty().unwrap());
    assert!(reader.file("model/sub/.a=b.Xq3vB7.modelcrate").is_none());
    let Value::Nested(list) = reader.tensor("list").unwrap().unwrap().value().unwrap() else {
        panic!("not a list");
    };
    let [Value::Numeric(numbers), Value::Strings { strings, .. }] = &list[..] else {
        panic!("{list:?}");
    };
    assert_eq!(numbers.view().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(strings[0], "\u{1b}[0m\n\"");
}

#[test]
fn methods_are_chosen_by_what_they_save() {
    let folder = tempfile::tempdir().unwrap();
    let reader = is_sound(&packed(folder.path(), WriteOptions::default()));
    let method = |path| reader.archive().unwrap().entry(path).unwrap().info().method;
    assert_eq!(method("model/large.bin"), Method::Stored);
    assert_eq!(method("model/text.bin"), Method::Zstd);
    assert_eq!(method("model/sub/39.txt"), Method::Zstd);
    assert_eq!(method("model/sub/0.txt"), Method::Stored);
    let data = reader.archive().unwrap().entry("model/large.bin").unwrap().extent().unwrap();
    assert!(data.is_aligned(64));
}

#[cfg(unix)]
#[test]
fn links_stay_links() {
    let folder = tempfile::tempdir().unwrap();
    let reader = is_sound(&packed(folder.path(), WriteOptions::default()));
    let entry = reader.archive().unwrap().entry("model/sub/link").unwrap();
    assert_eq!(entry.target().unwrap(), "../large.bin");
    let [link, target] =
        ["model/sub/link", "model/large.bin"].map(|path| reader.file(path).unwrap());
    assert_eq!(link.sha256(), target.sha256());
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let one = packed(folder.path(), threads(1));
    for number in 2..4 {
        assert_bytes(&packed(folder.path(), threads(number)), &one, "threads");
    }
}

#[test]
fn order_of_adding_does_not_matter() {
    let mut first = Pack::new(&bare()).unwrap();
    first.file("model/b", &b"b"[..]).unwrap().file("model/a", &b"a"[..]).unwrap();
    let mut second = Pack::new(&bare()).unwrap();
    second.stream("model/a", &b"a"[..]).unwrap().file("model/b", &b"b"[..]).unwrap();
    let [first, second] = [first, second].map(|pack| pack.write(Writer::new(Vec::new())).unwrap());
    assert_bytes(&first.sink, &second.sink, "order");
}

#[test]
fn every_compression_keeps_the_model_hash() {
    let folder = tempfile::tempdir().unwrap();
    let first = is_sound(&packed(folder.path(), WriteOptions::default()));
    for compression in [
        Compression::Stored,
        Compression::Zstd { level: 3 },
        Compression::Deflate { level: 6 },
        Compression::DeflateIfSmaller { level: 1 },
    ] {
        let options = WriteOptions::default().compression(compression);
        let whole = is_sound(&packed(folder.path(), options));
        assert_eq!(whole.model_hash(), first.model_hash());
        let again = repack(&first, options.write_to(Vec::new()), |_| ()).unwrap();
        assert_eq!(is_sound(&again.sink).model_hash(), first.model_hash());
    }
}

#[test]
fn shrunk_and_filled_again() {
    let folder = tempfile::tempdir().unwrap();
    let whole = is_sound(&packed(folder.path(), WriteOptions::default()));
    let mut links = Links::default();
    let large = whole.file("model/large.bin").unwrap();
    links.add(large.sha256(), "https://models.example.com/large.bin");
    let shrunk = shrink(&whole, &links, Writer::new(Vec::new())).unwrap();
    assert!(shrunk.sink.len() < 1 << 20);
    let bytes = shrunk.sink;
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    assert_eq!(reader.model_hash(), whole.model_hash());
    assert_eq!(reader.file("model/large.bin").unwrap().place(), Place::Linked);
    // A link to the file that is not here is linked too: both have one digest.
    assert_eq!(reader.file("model/sub/link").unwrap().place(), Place::Linked);
    assert_eq!(reader.validate().worst(), Some(Severity::Note));
    assert_eq!(
        fill(&reader, Writer::new(Vec::new()), |_| ()).unwrap_err().to_string(),
        r#""model/large.bin" is not in the carton, but linked to "https://models.example.com/large.bin""#
    );
    let store = Store(large.bytes().unwrap());
    let reader = Reader::options().fetch(std::sync::Arc::new(store)).from_bytes(bytes).unwrap();
    let filled = fill(&reader, Writer::new(Vec::new()), |_| ()).unwrap();
    let filled = is_sound(&filled.sink);
    assert_eq!(filled.model_hash(), whole.model_hash());
    assert!(filled.links().is_none());
}

/// A fetcher that has one content, and says that of any digest.
struct Store(bytes::Bytes);

impl carton_format::fetch::Fetch for Store {
    fn fetch(
        &self,
        _: &carton_format::fetch::Link<'_>,
    ) -> Result<carton_format::fetch::Fetched, carton_format::fetch::FetchError> {
        let source = tensor_core::Source::from_bytes(self.0.clone());
        Ok(carton_format::fetch::Fetched::new(source))
    }
}

/// What `LINKS` says beside links is in whatever is made of a carton.
#[test]
fn unknown_keys_of_links_stay() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Reader::from_bytes(packed_stored()).unwrap();
    let file = whole.file("model/a").unwrap();
    let links =
        format!("version = 1\nby = \"x\"\n[urls]\n{} = ['https://a.example']", file.sha256());
    let links = Links::parse(links.as_bytes(), &tensor_core::Limits::default()).unwrap();
    let linked = shrink(&whole, &links, Writer::new(Vec::new())).unwrap().sink;
    let store = std::sync::Arc::new(Store(file.bytes().unwrap()));
    let reader = Reader::options().fetch(store).from_bytes(linked).unwrap();
    let target = folder.path().join("u");
    unpack(&reader, &target, &UnpackOptions::default(), |_| ()).unwrap();
    let text = [&reader.file("carton.toml").unwrap().bytes().unwrap()[..], b"#"].concat();
    for made in [
        repack(&reader, Writer::new(Vec::new()), |_| ()).unwrap(),
        shrink(&reader, &Links::default(), Writer::new(Vec::new())).unwrap(),
        replace_description(&reader, &text, Writer::new(Vec::new())).unwrap(),
        fill(&reader, Writer::new(Vec::new()), |_| ()).unwrap(),
        Pack::unpacked(&target).unwrap().write(Writer::new(Vec::new())).unwrap(),
    ] {
        let made = Reader::from_bytes(made.sink).unwrap();
        let text = String::from_utf8(made.links().unwrap().to_bytes()).unwrap();
        assert!(text.starts_with("version = 1\nby = \"x\"\n\n[urls]\n"), "{text}");
    }
}

/// It has the digest of the file, so it is linked as that is.
#[test]
fn a_link_to_a_linked_file_is_linked_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(Store(bytes::Bytes::from_static(b"model")));
    let path = testdata("carton/invalid/symlink_linked.carton");
    let reader = Reader::options().fetch(store).open(path).unwrap();
    assert_eq!(reader.file("model/l").unwrap().place(), Place::Linked);
    let target = folder.path().join("u");
    unpack(&reader, &target, &UnpackOptions::default(), |_| ()).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("n", target.join("model/l")).unwrap();
    let text = [&reader.file("carton.toml").unwrap().bytes().unwrap()[..], b"#"].concat();
    for made in [
        repack(&reader, Writer::new(Vec::new()), |_| ()).unwrap(),
        shrink(&reader, &Links::default(), Writer::new(Vec::new())).unwrap(),
        replace_description(&reader, &text, Writer::new(Vec::new())).unwrap(),
        Pack::unpacked(&target).unwrap().write(Writer::new(Vec::new())).unwrap(),
    ] {
        let made = Reader::from_bytes(made.sink).unwrap();
        assert_eq!(made.file("model/l").unwrap().place(), Place::Linked);
        assert!(made.validate().worst() < Some(Severity::Warning), "{:?}", made.validate());
    }
    let whole = is_sound(&fill(&reader, Writer::new(Vec::new()), |_| ()).unwrap().sink);
    assert_eq!(whole.model_hash(), reader.model_hash());
    let options = UnpackOptions::default().linked(Linked::Fetch);
    unpack(&reader, folder.path().join("whole"), &options, |_| ()).unwrap();
    assert_eq!(std::fs::read(folder.path().join("whole/model/l")).unwrap(), b"model");
}

#[test]
fn what_a_fetcher_returns_is_compared() {
    let bytes = std::fs::read(testdata("carton/valid/ref_linked.carton")).unwrap();
    let store = Store(bytes::Bytes::from_static(b"something else"));
    let reader = Reader::options().fetch(std::sync::Arc::new(store)).from_bytes(bytes).unwrap();
    let found = Sha256::digest(b"something else");
    let expected = reader.file("model/f.bin").unwrap().sha256();
    let message = format!(
        "\"model/f.bin\" has digest {expected} in MANIFEST, but its content hashes to {found}"
    );
    assert_eq!(reader.file("model/f.bin").unwrap().bytes().unwrap_err().to_string(), message);
    assert_eq!(fill(&reader, Writer::new(Vec::new()), |_| ()).unwrap_err().to_string(), message);
}

#[test]
fn another_description_changes_the_hash_alone() {
    for path in files("carton/valid", "carton") {
        let reader = Reader::open(&path).unwrap();
        if reader.file("carton.toml").unwrap().place() != Place::Here {
            continue;
        }
        let text = reader.file("carton.toml").unwrap().bytes().unwrap();
        let same = replace_description(&reader, &text, Writer::new(Vec::new())).unwrap();
        assert_eq!(same.manifest.model_hash(), reader.model_hash(), "{path:?}");
        let mut longer = text.to_vec();
        longer.extend(b"# a comment\n");
        let other = replace_description(&reader, &longer, Writer::new(Vec::new())).unwrap();
        assert_ne!(other.manifest.model_hash(), reader.model_hash(), "{path:?}");
        let other = Reader::from_bytes(other.sink).unwrap();
        for file in reader.files().filter(|file| file.path() != "carton.toml") {
            assert_eq!(other.manifest().sha256(file.path()), Some(file.sha256()), "{path:?}");
        }
        assert_eq!(other.description().unwrap(), reader.description().unwrap(), "{path:?}");
    }
}

#[test]
fn cartons_of_the_reference_are_copied_as_they_are_stored() {
    for path in files("carton/valid", "carton") {
        let reader = Reader::open(&path).unwrap();
        let copied = shrink(&reader, &Links::default(), Writer::new(Vec::new())).unwrap();
        let copied = Reader::from_bytes(copied.sink).unwrap();
        assert_eq!(copied.model_hash(), reader.model_hash(), "{path:?}");
        for entry in reader.archive().unwrap().entries() {
            let copy = copied.archive().unwrap().entry(entry.name()).unwrap();
            assert_eq!(copy.info().stored_size, entry.info().stored_size, "{entry:?}");
        }
    }
}

#[test]
fn paths_that_are_refused() {
    let mut writer = Writer::new(Vec::new());
    for (path, message) in [
        ("MANIFEST", r#""MANIFEST" cannot be written: "MANIFEST" is listed, which it never is"#),
        ("LINKS", r#""LINKS" cannot be written: "LINKS" is listed, which it never is"#),
        (
            "model/../x",
            r#""model/../x" cannot be written: path "model/../x" has a component "." or "..""#,
        ),
        ("model/", r#""model/" cannot be written: path "model/" is a folder, expected a file"#),
        (
            "model/a\nb",
            "\"model/a\\nb\" cannot be written: path \"model/a\\nb\" has the character '\\n'",
        ),
    ] {
        assert_eq!(writer.file(path, b"").unwrap_err().to_string(), message);
    }
    writer.file("model/a", b"").unwrap();
    assert_eq!(
        writer.file("model/a", b"").unwrap_err().to_string(),
        r#""model/a" cannot be written: it was written before"#
    );
}

#[test]
fn cartons_that_lack_something() {
    let mut writer = Writer::new(Vec::new());
    writer.file("model/a", b"").unwrap();
    assert_eq!(writer.finish().unwrap_err().to_string(), "carton has no carton.toml");
    let mut writer = Writer::new(Vec::new());
    writer.description(&bare()).unwrap();
    writer.symlink("model/a", "b").unwrap();
    assert_eq!(
        writer.finish().unwrap_err().to_string(),
        r#""model/a" cannot be written: it links to "b", which is not in the archive"#
    );
}

#[test]
fn an_unfinished_file_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.carton");
    std::fs::write(&path, b"old").unwrap();
    let mut writer = Writer::create(&path).unwrap();
    writer.file("model/a", &noise(1 << 20)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn what_cannot_be_packed() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let refuses = |make: &dyn Fn(&Path), message: &str| {
        let model = folder.path().join("model");
        std::fs::create_dir(&model).unwrap();
        make(&model);
        let mut pack = Pack::new(&description()).unwrap();
        let error = pack.model(&model).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}");
        std::fs::remove_dir_all(&model).unwrap();
    };
    refuses(
        &|model| symlink("none", model.join("a")).unwrap(),
        "No such file or directory (os error 2)",
    );
    refuses(&|model| symlink("a", model.join("a")).unwrap(), "(os error 40)");
    refuses(
        &|model| symlink(".", model.join("a")).unwrap(),
        "it leads back to a folder that it lies in",
    );
    refuses(&|model| std::fs::write(model.join("a\nb"), b"").unwrap(), "has the character '\\n'");
}

#[cfg(unix)]
#[test]
fn links_from_outside_are_packed_as_files() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let (model, outside) = (folder.path().join("model"), folder.path().join("outside"));
    for folder in [&model, &outside] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(outside.join("f"), b"content").unwrap();
    std::fs::write(model.join("g"), b"inside").unwrap();
    symlink("../outside/f", model.join("file")).unwrap();
    symlink("../outside", model.join("folder")).unwrap();
    symlink(model.join("g"), model.join("absolute")).unwrap();
    let mut pack =
        Pack::new(&Description::new(Runner::new("noop", "=1.0.0".parse().unwrap()))).unwrap();
    pack.model(&model).unwrap();
    let finished = pack.write(Writer::new(Vec::new())).unwrap();
    let reader = Reader::from_bytes(finished.sink).unwrap();
    let archive = reader.archive().unwrap();
    assert_eq!(archive.entry("model/absolute").unwrap().target().unwrap(), "g");
    for path in ["model/file", "model/folder/f"] {
        assert_eq!(archive.entry(path).unwrap().bytes().unwrap(), &b"content"[..]);
    }
}

#[test]
fn unpacked_cartons_open_as_cartons() {
    let folder = tempfile::tempdir().unwrap();
    for path in files("carton/valid", "carton") {
        let name = path.file_stem().unwrap();
        if name == "ref_zip64_4gib" {
            continue;
        }
        let (reader, target) = (Reader::open(&path).unwrap(), folder.path().join(name));
        unpack(&reader, &target, &UnpackOptions::default(), |_| ()).unwrap();
        let unpacked = Reader::open(&target).unwrap();
        assert_eq!(unpacked.model_hash(), reader.model_hash());
        let [expected, found] = [&reader, &unpacked].map(Reader::validate);
        let rules = |report: &tensor_core::Report| {
            report.findings().iter().map(|finding| finding.rule.clone()).collect::<Vec<_>>()
        };
        assert_eq!(rules(&found), rules(&expected), "{path:?}: {found:?}");
        // And what was unpacked is packed to the same model again.
        let shrunk = shrink(&unpacked, &Links::default(), Writer::new(Vec::new())).unwrap();
        assert_eq!(shrunk.manifest.model_hash(), reader.model_hash());
        let packed = Pack::unpacked(&target).unwrap().write(Writer::new(Vec::new())).unwrap();
        assert_eq!(packed.manifest.model_hash(), reader.model_hash());
    }
}

#[test]
fn a_dry_run_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dry_run = UnpackOptions::default().dry_run();
    let reader = Reader::open(testdata("carton/valid/ref_symlinks.carton")).unwrap();
    let done = std::sync::atomic::AtomicU64::new(0);
    let count = |bytes| {
        done.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    };
    unpack(&reader, folder.path().join("u"), &dry_run, count).unwrap();
    assert!(done.into_inner() > 0);
    let reader = Reader::open(testdata("carton/invalid/digest_model.carton")).unwrap();
    let error = unpack(&reader, folder.path().join("u"), &dry_run, |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("\"model/m\" has digest "), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // What the real run would say of the place.
    std::fs::write(folder.path().join("a"), "").unwrap();
    for place in [folder.path().to_owned(), folder.path().join("none/u")] {
        let [dry, real] = [dry_run, UnpackOptions::default()]
            .map(|options| unpack(&reader, &place, &options, |_| ()).unwrap_err().to_string());
        assert_eq!(dry, real);
    }
}

/// In an archive as in a folder.
#[test]
fn links_to_unlisted_files_are_written_as_files() {
    let path = testdata("carton/invalid/symlink_unlisted.carton");
    let reader = Reader::open(path).unwrap();
    assert_eq!(reader.unlisted().unwrap(), ["model/n"]);
    for made in [
        repack(&reader, Writer::new(Vec::new()), |_| ()).unwrap(),
        shrink(&reader, &Links::default(), Writer::new(Vec::new())).unwrap(),
        fill(&reader, Writer::new(Vec::new()), |_| ()).unwrap(),
    ] {
        let made = is_sound(&made.sink);
        assert_eq!(made.model_hash(), reader.model_hash());
        assert_eq!(made.file("model/l").unwrap().bytes().unwrap(), &b"model"[..]);
    }
}

/// Its digest is that of its target, and is not made right in passing.
#[test]
fn links_with_a_wrong_digest_are_refused() {
    let reader = Reader::open(testdata("carton/invalid/symlink_digest.carton")).unwrap();
    let text = [&reader.file("carton.toml").unwrap().bytes().unwrap()[..], b"#"].concat();
    for made in [
        repack(&reader, Writer::new(Vec::new()), |_| ()),
        shrink(&reader, &Links::default(), Writer::new(Vec::new())),
        fill(&reader, Writer::new(Vec::new()), |_| ()),
        replace_description(&reader, &text, Writer::new(Vec::new())),
    ] {
        let error = made.unwrap_err();
        assert_eq!((error.rule(), error.at().entry.as_deref()), ("carton/digest", Some("model/l")));
    }
}

/// Documents that are copied are held against all other files.
#[test]
fn copied_documents_are_checked() {
    let reader = Reader::open(testdata("carton/golden/everything.carton")).unwrap();
    for encode in [false, true] {
        let finish = |left_out: &str, options: WriteOptions| {
            let mut writer = options.write_to(Vec::new());
            for file in reader.files().filter(|file| !file.path().starts_with(left_out)) {
                match encode {
                    true => writer.encode(file).unwrap(),
                    false => writer.copy(file).unwrap(),
                }
            }
            writer.finish().map(|finished| finished.manifest.model_hash())
        };
        let options = WriteOptions::default();
        assert_eq!(finish("none", options).unwrap(), reader.model_hash());
        for (left_out, message) in [
            ("tensor_data/", "refers to tensor "),
            ("tensor_data/t", "MANIFEST does not list"),
            ("misc/", "which is not in the carton"),
        ] {
            let error = finish(left_out, options).unwrap_err().to_string();
            assert!(error.contains(message), "{left_out}: {error}");
            finish(left_out, options.unchecked()).unwrap();
        }
    }
}

/// What a description that is packed refers to has to be there, as where it is written.
#[test]
fn packs_of_what_is_not_there() {
    let error = Pack::new(&description()).unwrap().write(Writer::new(Vec::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"carton.toml\" cannot be written: self_test[0].inputs.x refers to tensor \"numbers\", which \
         tensor_data/index.toml does not have"
    );
}

#[test]
fn wrong_content_is_not_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let reader = Reader::open(testdata("carton/valid/ref_minimal.carton")).unwrap();
    unpack(&reader, &source, &UnpackOptions::default(), |_| ()).unwrap();
    std::fs::write(source.join("model/f.bin"), b"changed").unwrap();
    let reader = Reader::open(&source).unwrap();
    let error = unpack(&reader, &target, &UnpackOptions::default(), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("\"model/f.bin\" has digest 73cb"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// What is not listed is not unpacked, and a link to it would lead to nothing.
#[test]
fn links_to_unlisted_files_become_files() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let reader = Reader::open(testdata("carton/invalid/symlink_unlisted.carton")).unwrap();
    unpack(&reader, &target, &UnpackOptions::default(), |_| ()).unwrap();
    let unpacked = Reader::open(&target).unwrap();
    assert!(unpacked.validate().is_empty());
    assert_eq!(unpacked.model_hash(), reader.model_hash());
    assert_eq!(unpacked.file("model/l").unwrap().bytes().unwrap(), &b"model"[..]);
}

#[test]
fn a_folder_of_many_files_needs_few_open_ones() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3000 {
        std::fs::write(folder.path().join(number.to_string()), number.to_string()).unwrap();
    }
    let mut pack = Pack::new(&bare()).unwrap();
    pack.model(folder.path()).unwrap();
    let mut done = std::sync::atomic::AtomicU64::new(0);
    let total = pack.content_len();
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    assert!(open() < 500, "files are open before they are needed");
    pack.write_with(Writer::new(Vec::new()), |bytes| {
        done.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    })
    .unwrap();
    // The index is made when the carton is written.
    assert_eq!(*done.get_mut(), total + b"tensor = []\n".len() as u64);
}

#[test]
fn a_file_that_changes_is_not_packed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, b"old").unwrap();
    let mut pack = Pack::new(&description()).unwrap();
    pack.model(folder.path()).unwrap();
    std::fs::write(&path, b"longer").unwrap();
    assert_eq!(
        pack.write(Writer::new(Vec::new())).unwrap_err().to_string(),
        format!("{path:?} cannot be packed: it is 6 bytes long, but was 3 when it was added")
    );
}

#[test]
fn copies_keep_their_alignment() {
    let folder = tempfile::tempdir().unwrap();
    let stored = WriteOptions::default().compression(Compression::Stored);
    let first = is_sound(&packed(folder.path(), stored.alignment(4096)));
    let copy = shrink(&first, &Links::default(), Writer::new(Vec::new())).unwrap();
    let copy = is_sound(&copy.sink);
    let archive = copy.archive().unwrap();
    for entry in archive.entries().filter(|entry| entry.name().starts_with("model/sub/1")) {
        assert!(entry.extent().unwrap().is_aligned(4096), "{entry:?}");
    }
}

#[test]
fn what_is_left_out_is_compared_first() {
    let mut bytes = packed_stored();
    let at = bytes.windows(4).position(|bytes| bytes == b"good").unwrap();
    bytes[at..at + 4].copy_from_slice(b"evil");
    let reader = Reader::options().profile(Profile::Lenient).from_bytes(bytes).unwrap();
    let mut links = Links::default();
    links.add(reader.file("model/a").unwrap().sha256(), "https://models.example.com/a");
    let error = shrink(&reader, &links, Writer::new(Vec::new())).unwrap_err();
    assert!(error.to_string().contains("CRC-32"), "{error}");
}

fn packed_stored() -> Vec<u8> {
    let mut writer = WriteOptions::default().compression(Compression::Stored).write_to(Vec::new());
    writer.description(&bare()).unwrap();
    writer.file("model/a", b"good").unwrap();
    writer.finish().unwrap().sink
}

fn bare() -> Description {
    Description::new(Runner::new("noop", "=1.0.0".parse().unwrap()))
}

#[test]
fn digests_without_a_url_stay_in_links() {
    let bytes = std::fs::read(testdata("carton/valid/ref_linked.carton")).unwrap();
    let reader = Reader::from_bytes(bytes).unwrap();
    let sha256 = reader.file("model/f.bin").unwrap().sha256();
    let folder = tempfile::tempdir().unwrap();
    unpack(&reader, folder.path().join("u"), &UnpackOptions::default(), |_| ()).unwrap();
    std::fs::write(folder.path().join("u/LINKS"), format!("version = 1\n[urls]\n{sha256} = []\n"))
        .unwrap();
    let reader = Reader::open(folder.path().join("u")).unwrap();
    let again = repack(&reader, Writer::new(Vec::new()), |_| ()).unwrap();
    let again = Reader::from_bytes(again.sink).unwrap();
    assert_eq!(again.links().unwrap().urls(sha256), Some(&[][..]));
}

#[cfg(unix)]
#[test]
fn links_of_folders_stay_links() {
    let folder = tempfile::tempdir().unwrap();
    let reader = Reader::open(testdata("carton/valid/ref_symlinks.carton")).unwrap();
    let target = folder.path().join("u");
    unpack(&reader, &target, &UnpackOptions::default(), |_| ()).unwrap();
    let unpacked = Reader::open(&target).unwrap();
    for sink in [
        repack(&unpacked, Writer::new(Vec::new()), |_| ()).unwrap().sink,
        shrink(&unpacked, &Links::default(), Writer::new(Vec::new())).unwrap().sink,
    ] {
        let again = Reader::from_bytes(sink).unwrap();
        assert_eq!(again.model_hash(), reader.model_hash());
        let is_link = |reader: &Reader, path: &str| {
            reader.file(path).unwrap().entry().unwrap().target().is_ok()
        };
        for file in reader.model() {
            assert_eq!(is_link(&again, file.path()), is_link(&reader, file.path()), "{file:?}");
        }
    }
}

#[test]
fn a_tensor_that_is_refused_leaves_nothing() {
    let mut writer = Writer::new(Vec::new());
    writer.description(&bare()).unwrap();
    writer.file("tensor_data/tensor_0.bin", b"junk").unwrap();
    let one = || Value::Numeric(TensorBuf::from_slice([1], &[1.0_f32]).unwrap());
    let message = r#""tensor_data/tensor_0.bin" cannot be written: it was written before"#;
    for _ in 0..2 {
        assert_eq!(writer.tensor("x", &one()).unwrap_err().to_string(), message);
    }
    let reader = Reader::from_bytes(writer.finish().unwrap().sink).unwrap();
    assert!(reader.tensor("x").unwrap().is_none());
}

#[test]
fn cartons_that_no_reader_would_accept_are_not_finished() {
    let finish = |text: &str, then: &dyn Fn(&mut Writer<Vec<u8>>)| {
        let mut writer = Writer::new(Vec::new());
        let runner = "[runner]\nrunner_name = \"r\"\nrequired_framework_version = \"=1.0.0\"\n";
        writer.file("carton.toml", format!("spec_version = 1\n{text}{runner}").as_bytes()).unwrap();
        then(&mut writer);
        writer.finish().map(drop).map_err(|error| error.to_string())
    };
    let toml = |message: &str| Err(format!("\"carton.toml\" cannot be written: {message}"));
    let test = "[[self_test]]\ninputs = { x = \"@tensor_data/t\" }\n";
    let example = "[[example]]\ninputs = { x = \"@misc/p\" }\n";
    let tensor =
        "self_test[0].inputs.x refers to tensor \"t\", which tensor_data/index.toml does not have";
    assert_eq!(finish(test, &|_| ()), toml(tensor));
    let file = "example[0].inputs.x refers to \"@misc/p\", which is not in the carton";
    assert_eq!(finish(example, &|_| ()), toml(file));
    assert_eq!(finish(example, &|writer| writer.misc("p", b"").unwrap()), Ok(()));
    let sha256 = Sha256::digest(b"");
    assert_eq!(
        finish("", &|writer| writer.link("model/a", sha256, []).unwrap()),
        Err(r#""model/a" cannot be written: its content is not in the carton, and there is no URL for it"#.to_owned())
    );
    assert_eq!(
        finish("", &|writer| {
            writer.link("model/a", sha256, ["https://models.example.com/a"]).unwrap();
            writer.symlink("model/b", "a").unwrap();
        }),
        Err(r#""model/b" cannot be written: it links to "a", whose content is not in the carton"#
            .to_owned())
    );
    let mut writer = Writer::new(Vec::new());
    assert!(writer.file("carton.toml", b"garbage").is_err());
}

#[test]
fn few_fetched_files_are_open() {
    struct Each(tempfile::TempDir);

    impl carton_format::fetch::Fetch for Each {
        fn fetch(
            &self,
            link: &carton_format::fetch::Link<'_>,
        ) -> Result<carton_format::fetch::Fetched, carton_format::fetch::FetchError> {
            let source = tensor_core::Source::open(self.0.path().join(link.sha256.to_string()));
            Ok(carton_format::fetch::Fetched::new(source.unwrap()))
        }
    }

    let store = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(Vec::new());
    writer.description(&bare()).unwrap();
    for number in 0..1000 {
        let content = number.to_string();
        let sha256 = Sha256::digest(content.as_bytes());
        std::fs::write(store.path().join(sha256.to_string()), content).unwrap();
        writer.link(&format!("model/{number}"), sha256, ["https://models.example.com"]).unwrap();
    }
    let bytes = writer.finish().unwrap().sink;
    let fetch = std::sync::Arc::new(Each(store));
    let reader = Reader::options().fetch(fetch).from_bytes(bytes).unwrap();
    let filled = fill(&reader, Writer::new(Vec::new()), |_| ()).unwrap();
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    assert!(open < 500, "{open} files are open");
    assert_eq!(Reader::from_bytes(filled.sink).unwrap().model_hash(), reader.model_hash());
}
