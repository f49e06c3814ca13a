//! Whatever callers ask for, nothing is written that `lint` calls an error, unless it was there.

use carton_format::{Editor, Reader, Sha256, Value, WriteOptions, Writer};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};
use tensor_core::{Report, Severity, TensorBuf, output::Durability};
use test_support::files;

/// One of many things to do with a file of a carton, good or not.
#[derive(Clone, Debug)]
enum Step {
    Put(&'static str, String),
    Stream(&'static str, String),
    Link(&'static str, &'static str),
    Symlink(&'static str, &'static str),
    Tensor(&'static str, Value),
    Remove(&'static str),
    /// The file of a carton, as it is stored or not.
    Copy(Index, Index, bool),
}

const PATHS: [&str; 14] = [
    "carton.toml",
    "tensor_data/index.toml",
    "tensor_data/x",
    "tensor_data/tensor_0.bin",
    "model/a",
    "model/A",
    "model/a/b",
    "model/con",
    "misc/p",
    "other",
    "a:b",
    "../a",
    "MANIFEST",
    "LINKS",
];

fn path() -> impl Strategy<Value = &'static str> {
    // Documents often, or little is finished.
    prop_oneof![select(&PATHS[..3]), select(&PATHS[..])]
}

/// A description that is wrong in up to two ways.
fn description() -> impl Strategy<Value = String> {
    let parts = [
        "",
        "license = 'MIT'\n",
        "model_description = '[a](@misc/p)'\n",
        "[[self_test]]\ninputs = { x = '@tensor_data/t' }\n",
        "[[self_test]]\ninputs = { x = '@misc/p' }\n",
        "[[example]]\ninputs = { x = '@misc/p', y = '@tensor_data/t' }\nsample_out = {}\n",
        "[[input]]\nname = 'x'\ndtype = 'float32'\nshape = [2]\n",
        "[[input]]\nname = 'x'\ndtype = 'int8'\nshape = 's'\n",
    ];
    let parts = vec(select(parts.to_vec()), 0..3);
    (parts, select(&["r", "r", "r", ""][..])).prop_map(|(mut parts, runner)| {
        // Plain values stand before tables.
        parts.sort_by_key(|part| part.starts_with('['));
        let runner = format!("runner_name = '{runner}'\nrequired_framework_version = '*'");
        format!("spec_version = 1\n{}[runner]\n{runner}\n", parts.concat())
    })
}

fn index() -> impl Strategy<Value = String> {
    let tensor = |name: &str, dtype: &str, shape: &str, file: &str| {
        format!(
            "[[tensor]]\nname = '{name}'\ndtype = '{dtype}'\nshape = {shape}\nfile = '{file}'\n"
        )
    };
    select(vec![
        "tensor = []\n".to_owned(),
        tensor("t", "float32", "[2]", "x"),
        tensor("t", "int8", "[4]", "x"),
        tensor("t", "string", "[4]", "x"),
        tensor("t", "int8", "[9223372036854775807, 9]", "x"),
        tensor("t", "int8", "[0]", "../carton.toml"),
        "[[tensor]]\nname = 'n'\ndtype = 'nested'\ninner = ['t']\n".to_owned(),
    ])
}

fn content() -> impl Strategy<Value = String> {
    let other = select(&["", "1234", "12345678", "spec_version = 2", "\u{1}"][..]);
    prop_oneof![3 => description(), 2 => index(), 2 => other.prop_map(str::to_owned)]
}

fn step() -> impl Strategy<Value = Step> {
    let (urls, targets) = (
        ["https://a.example/x", "http://a.example", "file:///x", "https://u:p@a.example"],
        ["a", "../misc/p", "../../x", "index.toml"],
    );
    let numbers = |shape: &[u64]| {
        let values = vec![1_f32; shape.iter().product::<u64>() as usize];
        Value::Numeric(TensorBuf::from_slice(shape.to_vec(), &values).unwrap())
    };
    let strings = Value::Strings { shape: [1].into(), strings: vec!["a".to_owned()] };
    let nested = Value::Nested(vec![strings.clone(), numbers(&[])]);
    let values = vec![numbers(&[2]), numbers(&[0, 3]), strings, nested];
    prop_oneof![
        4 => (path(), content()).prop_map(|(path, content)| Step::Put(path, content)),
        1 => (path(), content()).prop_map(|(path, content)| Step::Stream(path, content)),
        1 => (path(), select(urls.to_vec())).prop_map(|(path, url)| Step::Link(path, url)),
        1 => (path(), select(targets.to_vec())).prop_map(|(path, to)| Step::Symlink(path, to)),
        2 => (select(&["t", "u"][..]), select(values)).prop_map(|(name, v)| Step::Tensor(name, v)),
        1 => path().prop_map(Step::Remove),
        2 => any::<(Index, Index, bool)>().prop_map(|(from, at, raw)| Step::Copy(from, at, raw)),
    ]
}

/// A description, or the carton that it is copied from.
fn first() -> impl Strategy<Value = Result<String, Index>> {
    prop_oneof![2 => description().prop_map(Ok), 1 => any::<Index>().prop_map(Err)]
}

fn errors(report: Report) -> Vec<tensor_core::Finding> {
    report.into_iter().filter(|found| found.severity == Severity::Error).collect()
}

/// Cartons in which there is something to find, or nothing.
fn sources() -> Vec<Vec<u8>> {
    let paths = ["valid", "golden", "invalid"].map(|f| files(&format!("carton/{f}"), "carton"));
    let bytes = paths.into_iter().flatten().map(|path| std::fs::read(path).unwrap());
    bytes
        .filter(|bytes| bytes.len() < 1 << 16 && Reader::from_bytes(bytes.clone()).is_ok())
        .collect()
}

#[test]
fn writers_finish_what_is_sound() {
    let sources = sources().into_iter().map(|source| Reader::from_bytes(source).unwrap());
    let sources: Vec<_> = sources.filter(|source| source.file("carton.toml").is_some()).collect();
    proptest!(|(first in first(), steps in vec(step(), 0..8))| {
        let mut writer = Writer::new(Vec::new());
        let _ = match first {
            Ok(text) => writer.file("carton.toml", text.as_bytes()),
            Err(from) => writer.copy(from.get(&sources).file("carton.toml").unwrap()),
        };
        for step in steps {
            // What is refused is not in the carton.
            let _ = match step {
                Step::Put(path, content) => writer.file(path, content.as_bytes()),
                Step::Stream(path, content) => writer.stream(path, content.as_bytes()),
                Step::Link(path, url) => writer.link(path, Sha256([7; 32]), [url]),
                Step::Symlink(path, target) => writer.symlink(path, target),
                Step::Tensor(name, value) => writer.tensor(name, &value),
                Step::Copy(from, at, raw) => {
                    let files: Vec<_> = from.get(&sources).files().collect();
                    match raw {
                        true => writer.copy(*at.get(&files)),
                        false => writer.encode(*at.get(&files)),
                    }
                }
                Step::Remove(_) => Ok(()),
            };
        }
        if let Ok(finished) = writer.finish() {
            prop_assert_eq!(errors(Reader::from_bytes(finished.sink).unwrap().lint()), []);
        }
    });
}

#[test]
fn editors_make_nothing_worse() {
    let (sources, folder) = (sources(), tempfile::tempdir().unwrap());
    let path = folder.path().join("m.carton");
    let options = WriteOptions::default().durability(Durability::Cached);
    proptest!(|(source in any::<Index>(), steps in vec(step(), 1..4))| {
        std::fs::write(&path, source.get(&sources)).unwrap();
        let mut editor = Editor::open_with(&path, options).unwrap();
        let before = editor.reader().lint();
        for step in steps {
            let _ = match step {
                Step::Put(path, content) | Step::Stream(path, content) => {
                    editor.put(path, content).map(drop)
                }
                Step::Remove(path) | Step::Link(path, _) | Step::Symlink(path, _) => {
                    editor.remove(path).map(drop)
                }
                Step::Tensor(..) | Step::Copy(..) => Ok(()),
            };
        }
        if editor.commit().is_ok() {
            let after = Reader::open(&path).unwrap().lint();
            prop_assert_eq!(errors(after.new_since(&before)), []);
        }
    });
}

/// What is behind a link was written before anybody knew that it is a document.
#[test]
fn documents_that_are_links_are_refused() {
    for document in ["carton.toml", "tensor_data/index.toml"] {
        for (options, is_refused) in
            [(WriteOptions::default(), true), (WriteOptions::default().unchecked(), false)]
        {
            let mut writer = options.write_to(Vec::new());
            writer.file("model/a", b"not a document").unwrap();
            let target = if document == "carton.toml" { "model/a" } else { "../model/a" };
            let refused = writer.symlink(document, target).map_err(|error| error.to_string()).err();
            let message =
                "cannot be written: it is a document, expected a file and not a symbolic link";
            let expected = is_refused.then(|| format!("{document:?} {message}"));
            assert_eq!(refused, expected);
        }
    }
}
