//! Packages that are built: what they hold, how they are laid out, and what is refused.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nnpackage::{
    Builder, ConfigChange, IoRef, ModelType, PackageVersion, Reader, Sums, WriteOptions, Writer,
    extract,
    model_archive::{Entry, Method},
    tensor_core::{
        Severity, Source,
        digest::{Algorithm, Digest},
    },
};
use test_support::testdata;

use crate::common::{bytes, circle, packed, part, refuses, walk, written};

fn tflite() -> Source {
    part("04", "sub/add.tflite")
}

fn one() -> Builder {
    let mut builder = Builder::default();
    builder.model("add.circle", circle()).unwrap();
    builder
}

/// Everything that a package can have, connected.
fn everything() -> Builder {
    let mut builder = Builder::default();
    let connected = "03";
    builder.model("m0.circle", part(connected, "m0.circle")).unwrap();
    builder.model("parts/m1.circle", part(connected, "m1.circle")).unwrap();
    builder.input(IoRef::new(0, 0, 0));
    builder.connect(IoRef::new(0, 0, 0), IoRef::new(1, 0, 0));
    builder.output(IoRef::new(1, 0, 0));
    builder.config("model.cfg", "# threads\nNUM_THREADS=2\n").unwrap();
    builder.mmap().unwrap();
    let [input, expected] =
        ["input", "expected"].map(|name| part(connected, &format!("metadata/tc/{name}.h5")));
    builder.golden_input(input).unwrap();
    builder.golden_expected(expected).unwrap();
    builder.model_info(1, "m1.json", &b"{\"type\": \"circle\"}"[..]).unwrap();
    let kernel = "custom_op/libMyOp.x86_64-linux.release.a";
    let name = "libMyOp.x86_64-linux.release.a";
    builder.custom_op(name, part("05", kernel)).unwrap();
    builder.file("LICENSE", bytes("MIT")).unwrap();
    builder.digests(true);
    builder
}

#[test]
fn manifest_comes_first_and_the_rest_is_sorted() {
    let reader = written(&everything());
    let names: Vec<&str> = reader.archive().unwrap().entries().map(Entry::name).collect();
    let expected = [
        "metadata/MANIFEST",
        "LICENSE",
        "custom_op/libMyOp.x86_64-linux.release.a",
        "m0.circle",
        "metadata/m1.json",
        "metadata/model.cfg",
        "metadata/tc/expected.h5",
        "metadata/tc/input.h5",
        "parts/m1.circle",
        "metadata/SHA256SUMS",
    ];
    assert_eq!(names, expected);
}

#[test]
fn models_are_stored_on_pages() {
    let mut builder = one();
    let zeros = vec![0; 3 << 20];
    builder.model_as("big.bin", Source::from_bytes(zeros), ModelType::Bin).unwrap();
    builder.file("text", bytes(&"text ".repeat(1000))).unwrap();
    for alignment in [16, 64, 4096] {
        let options = WriteOptions::default().alignment(alignment);
        let reader =
            Reader::from_bytes(options.write_to(Vec::new(), &builder).finish().unwrap()).unwrap();
        for model in reader.models() {
            let extent = model.file().extent().unwrap().unwrap();
            assert!(extent.is_aligned(alignment.into()), "{} {extent:?}", model.path());
        }
        let text = reader.archive().unwrap().entry("text").unwrap();
        assert_eq!(text.info().method, Method::Deflate);
    }
}

#[test]
fn same_calls_make_the_same_bytes() {
    assert!(packed(&everything()) == packed(&everything()));
}

#[test]
fn folder_and_archive_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [written, extracted, archive] =
        ["written", "extracted", "package.zip"].map(|name| folder.path().join(name));
    let builder = everything();
    Writer::options().create_folder(&written, &builder).unwrap();
    Writer::create(&archive, &builder).unwrap().finish().unwrap();
    extract(&Reader::open(&archive).unwrap(), &extracted).unwrap();
    let (written_files, extracted_files) = (walk(&written), walk(&extracted));
    assert_eq!(written_files.len(), 10);
    assert!(written_files == extracted_files);
    for path in [&written, &archive] {
        let report = Reader::open(path).unwrap().validate();
        assert!(report.is_valid(), "{report:?}");
    }
}

#[test]
fn checks_find_only_what_the_models_cause() {
    let rules = |builder: &Builder| -> Vec<String> {
        let report = written(builder).validate();
        report.findings().iter().map(|finding| finding.rule.to_string()).collect()
    };
    assert_eq!(rules(&one()), [""; 0]);
    let mut mapped = one();
    mapped.mmap().unwrap();
    assert_eq!(rules(&mapped), [""; 0]);
    // The first says that onert's Python interface has a fault, the second that there is a list, the
    // others are about a kernel that no model uses and a file that the manifest cannot name.
    let expected = [
        "nnp/draft-attribute",
        "nnp/multi-model",
        "nnp/kernel-unused",
        "nnp/digests",
        "nnp/unreferenced-file",
    ];
    assert_eq!(rules(&everything()), expected);
}

#[test]
fn type_is_that_of_the_identifier() {
    let mut builder = Builder::default();
    builder.model("a.tflite", circle()).unwrap();
    builder.model("b.circle", tflite()).unwrap();
    builder.model_as("c.circle", bytes("binary"), ModelType::Tvn).unwrap();
    builder.model_as("d", circle(), ModelType::Bin).unwrap();
    let types = ["circle", "tflite", "tvn", "bin"].map(str::to_owned);
    assert_eq!(builder.manifest().model_types.unwrap(), types);
}

#[test]
fn version_is_the_lowest_that_will_do() {
    let version = |builder: &Builder| written(builder).manifest().version.to_string();
    let mut builder = one();
    assert_eq!(version(&builder), "1.0.0");
    builder.mmap().unwrap();
    assert_eq!(version(&builder), "1.1.0");
    builder.model_as("a", bytes("x"), ModelType::Bin).unwrap();
    assert_eq!(version(&builder), "1.2.0");
    builder.input(IoRef::new(0, 0, 0));
    assert_eq!(version(&builder), "1.3.0");
    builder.version(PackageVersion::new(1, 3, 1));
    assert_eq!(version(&builder), "1.3.1");
}

#[test]
fn mapping_is_a_key_of_the_configuration() {
    let mut builder = one();
    builder.mmap().unwrap();
    let reader = written(&builder);
    assert_eq!(reader.config_path().as_deref(), Some("metadata/config.cfg"));
    let config = || reader.file("metadata/config.cfg").unwrap().bytes().unwrap();
    assert_eq!(config(), "USE_MMAPED_DATA=1\n");
    let mut builder = one();
    builder.config("a.cfg", "USE_MMAPED_DATA = OFF # slow\n").unwrap();
    builder.mmap().unwrap();
    builder.change_config(&[ConfigChange::set("NUM_THREADS", "2")]).unwrap();
    let reader = written(&builder);
    let config = reader.file("metadata/a.cfg").unwrap().bytes().unwrap();
    assert_eq!(config, "USE_MMAPED_DATA = 1 # slow\nNUM_THREADS=2\n");
}

#[test]
fn digests_are_those_of_the_files() {
    let reader = written(&everything());
    let sums = reader.sums().unwrap().unwrap();
    assert_eq!(sums.iter().len(), 9);
    for (path, digest) in sums.iter() {
        let content = reader.file(path).unwrap().bytes().unwrap();
        let found = Algorithm::Sha256.digest(&content);
        assert_eq!(found, Digest::Sha256(*digest), "{path}");
    }
}

#[test]
fn differing_files_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("package");
    let rules = |change: &dyn Fn(&Path)| -> Vec<(String, String)> {
        let _ = fs::remove_dir_all(&package);
        Writer::options().create_folder(&package, &everything()).unwrap();
        change(&package);
        let report = Reader::open(&package).unwrap().validate();
        let errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
        errors.map(|found| (found.rule.to_string(), found.message.clone())).collect()
    };
    let rule = |rule: &str, message: &str| vec![(rule.to_owned(), message.to_owned())];
    assert_eq!(rules(&|_| ()), []);
    assert_eq!(rules(&|path| fs::write(path.join("LICENSE"), "GPL").unwrap())[0].0, "nnp/digest");
    assert_eq!(
        rules(&|path| fs::remove_file(path.join("LICENSE")).unwrap()),
        rule(
            "nnp/digest-missing-file",
            "is listed in \"metadata/SHA256SUMS\", but is not in the package"
        )
    );
    assert_eq!(
        rules(&|path| fs::write(path.join("new"), "x").unwrap()),
        rule("nnp/digest-unlisted-file", "is not listed in \"metadata/SHA256SUMS\"")
    );
    assert_eq!(
        rules(&|path| fs::write(path.join(Sums::PATH), "no digest\n").unwrap()),
        rule(
            "nnp/digests",
            "is \"no digest\", expected 64 hex digits, two blanks and a path (onert takes no notice)"
        )
    );
}

#[test]
fn paths_that_collide() {
    let mut builder = one();
    let taken = "\"add.circle\" is in the package already";
    refuses(builder.model("add.circle", circle()), taken);
    let case = "\"Add.circle\" is one file with \"add.circle\" where case does not count";
    refuses(builder.model("Add.circle", circle()), case);
    let clash = "\"add.circle/x\" and \"add.circle\" cannot both be there: one would be a file \
                 inside of the other";
    refuses(builder.file("add.circle/x", circle()), clash);
    let made = "\"metadata/MANIFEST\" is made with the package, expected another path";
    refuses(builder.file("metadata/MANIFEST", circle()), made);
    let outside =
        "\"../x\" is not a path for a file of a package: it has a component \".\" or \"..\"";
    refuses(builder.file("../x", circle()), outside);
    builder.config("a.cfg", "").unwrap();
    let config = "\"metadata/b.cfg\" is named as configs[0]: \"a.cfg\"";
    refuses(builder.config("b.cfg", ""), config);
    let info = "models[1] is not there: there are 1 models";
    refuses(builder.model_info(1, "a.json", ""), info);
    // Nothing of what was refused is there.
    assert_eq!(written(&builder).files().unwrap().count(), 3);
}

#[test]
fn what_is_no_model() {
    let mut builder = Builder::default();
    let other = "\"a\" is of no known format, expected a Circle or TFLite model, or that its type \
                 is given";
    refuses(builder.model("a", bytes("some text")), other);
    let differs = "\"a\" is a Circle model, but its type is given as \"tflite\"";
    refuses(builder.model_as("a", circle(), ModelType::Tflite), differs);
    let no_type =
        "\"a\" has the type \"../x\", expected \"circle\", \"tflite\", \"bin\" or \"tvn\"";
    refuses(builder.model_as("a", circle(), ModelType::Other("../x")), no_type);
    let broken = Source::from_bytes(b"\x20\0\0\0CIR0 and no more than this".to_vec());
    let error = builder.model("a", broken).unwrap_err();
    assert!(error.to_string().starts_with("\"a\" cannot be opened as a model: "), "{error}");
    assert_eq!(error.rule(), "model/malformed");
    let none = Writer::new(Vec::new(), &builder).finish();
    refuses(none, "the package would have no model");
}

/// A model whose operator runs `other.tvn` beside it.
fn running(case: &str) -> PathBuf {
    testdata("nnpackage/invalid").join(case).join("add.circle")
}

#[test]
fn files_that_a_model_needs_come_with_it() {
    let invalid = testdata("nnpackage/invalid");
    for (from, path, needed, rules) in [
        (running("run_model_missing"), "sub/run.circle", "other.tvn", None),
        (
            invalid.join("model_other_file.tflite"),
            "m.tflite",
            "w.bin",
            Some(["model/other-file", "model/external-constant"]),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model");
        fs::copy(from, &model).unwrap();
        let mut builder = Builder::default();
        let missing = "which is not in the folder of the model";
        let missing = format!("{path:?} needs the file {needed:?}, {missing}");
        refuses(builder.model_from(path, &model), &missing);
        assert_eq!(builder.paths().len(), 0);
        fs::write(folder.path().join(needed), [1; 16]).unwrap();
        builder.model_from(path, &model).unwrap();
        let reader = written(&builder);
        let needed =
            path.rsplit_once('/').map_or(needed.into(), |(at, _)| format!("{at}/{needed}"));
        assert_eq!(reader.file(&needed).unwrap().bytes().unwrap(), [1; 16][..]);
        let found: Vec<_> = reader.diagnoses().into_iter().map(|of| of.finding.rule).collect();
        for rule in ["nnp/run-model", "nnp/unreferenced-file"] {
            assert!(!found.contains(&rule.into()), "{found:?}");
        }
        assert!(rules.is_none_or(|rules| found == rules), "{found:?}");
    }
}

#[test]
fn files_that_a_model_runs_are_asked_for() {
    let source = || Source::open(running("run_model_missing")).unwrap();
    let mut builder = Builder::default();
    builder.model("a/run.circle", source()).unwrap();
    let missing = "\"a/run.circle\" needs the file \"other.tvn\", which is not in the package";
    refuses(Writer::new(Vec::new(), &builder).finish(), missing);
    builder.file("a/other.tvn", bytes("binary")).unwrap();
    Writer::new(Vec::new(), &builder).finish().unwrap();
}

#[test]
fn files_outside_are_not_fetched() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("models")).unwrap();
    let model = folder.path().join("models/run.circle");
    fs::copy(running("run_model_outside"), &model).unwrap();
    fs::write(folder.path().join("other.tvn"), "secret").unwrap();
    let mut builder = Builder::default();
    let outside =
        |out_of: &str| format!("needs the file \"../other.tvn\", which leads out of {out_of}");
    let refused = format!("\"run.circle\" {}", outside("the package"));
    refuses(builder.model_from("run.circle", &model), &refused);
    let refused = format!("\"a/run.circle\" {}", outside("the folder of the model"));
    refuses(builder.model_from("a/run.circle", &model), &refused);
}

#[cfg(unix)]
#[test]
fn links_out_of_the_folder_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("models")).unwrap();
    let model = folder.path().join("models/run.circle");
    fs::copy(running("run_model_missing"), &model).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", folder.path().join("models/other.tvn")).unwrap();
    let refused = "\"run.circle\" needs the file \"other.tvn\", which leads out of the folder of the \
                   model";
    refuses(Builder::default().model_from("run.circle", &model), refused);
}

#[test]
fn failures_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = one();
    builder.model("run.circle", Source::open(running("run_model_missing")).unwrap()).unwrap();
    let options = WriteOptions::default();
    assert!(options.create(folder.path().join("a.zip"), &builder).unwrap().finish().is_err());
    assert!(options.create_folder(folder.path().join("a"), &builder).is_err());
    let one = one();
    let unaligned =
        options.alignment(3).create(folder.path().join("a.zip"), &one).unwrap().finish();
    let message = "entry \"add.circle\" cannot be written: alignment is 3, expected a power of two \
                   up to 32768";
    refuses(unaligned, message);
    let level = options.level(10).create(folder.path().join("a.zip"), &one).unwrap().finish();
    let message = "entry \"metadata/MANIFEST\" cannot be written: level is 10, expected 1 to 9";
    refuses(level, message);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
