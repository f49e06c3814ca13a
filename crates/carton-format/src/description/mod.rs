//! The document that describes a model. Format text: "`carton.toml`".

use std::collections::HashMap;

use tensor_core::{Limit, Limits};

use crate::{
    DocumentError, DocumentFault, Error, Named, Platform, Reference, Result, Runner, TensorSpec,
    UnknownKey,
    text::emit::{Emitter, Inline, List, Text},
    text::{Document, Node, Table, Unknown},
};

pub(crate) mod lint;
pub(crate) mod markdown;
pub(crate) mod named;
pub(crate) mod platform;
pub(crate) mod reference;
pub(crate) mod runner;
pub(crate) mod tensor_spec;

/// What `carton.toml` says about a model.
///
/// A list that is there and empty is `Some` of an empty list, so that it is written as it was read.
///
/// # Examples
///
/// ```
/// use carton_format::{Description, Runner};
/// use tensor_core::Limits;
///
/// let mut description = Description::new(Runner::new("torchscript", "=1.12.1".parse()?));
/// description.model_name = Some("example".to_owned());
/// let written = description.to_bytes()?;
/// assert_eq!(
///     String::from_utf8(written.clone())?,
///     r#"spec_version = 1
/// model_name = "example"
///
/// [runner]
/// runner_name = "torchscript"
/// required_framework_version = "=1.12.1"
/// "#
/// );
/// assert_eq!(Description::parse(&written, &Limits::default())?.description, description);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The name of the model.
    pub model_name: Option<String>,
    /// The model in at most 100 characters.
    pub short_description: Option<String>,
    /// The model at any length, in Markdown without HTML. Links are `https` URLs or `@misc/<path>`.
    pub model_description: Option<String>,
    /// An SPDX expression, or anything else.
    pub license: Option<String>,
    /// The URL of the source.
    pub repository: Option<String>,
    /// The URL of the project.
    pub homepage: Option<String>,
    /// Where the model runs; anywhere, where there are none.
    pub required_platforms: Option<Vec<Platform>>,
    /// What the model takes, in the order of calls without names.
    pub inputs: Option<Vec<TensorSpec>>,
    /// What the model gives, in order.
    pub outputs: Option<Vec<TensorSpec>>,
    /// Calls whose results are known.
    pub self_tests: Option<Vec<SelfTest>>,
    /// Calls that show what the model is for.
    pub examples: Option<Vec<Example>>,
    /// What runs the model.
    pub runner: Runner,
}

impl Description {
    /// The path of the document in a carton.
    pub const PATH: &'static str = "carton.toml";

    /// The version of the format that this crate reads and writes.
    pub const SPEC_VERSION: u64 = 1;

    /// Makes a description of the only thing that has to be known.
    #[must_use]
    pub const fn new(runner: Runner) -> Self {
        Self {
            model_name: None,
            short_description: None,
            model_description: None,
            license: None,
            repository: None,
            homepage: None,
            required_platforms: None,
            inputs: None,
            outputs: None,
            self_tests: None,
            examples: None,
            runner,
        }
    }

    /// Parses the document, as far as it can be judged without the carton's other files.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where it is longer than [`Limits::document_bytes`]; [`Error::Document`] for
    /// the first thing that is not TOML, has another version, is missing, or is not one of the values
    /// that the format text allows there.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<ParsedDescription> {
        Self::check_len(bytes.len() as u64, limits)?;
        let document = Document::parse(Self::PATH, bytes)?;
        let mut unknown = Unknown::with_lines(&document);
        let description = Self::parse_root(document.root(), limits, &mut unknown)?;
        Ok(ParsedDescription {
            description,
            lines: unknown.lines(),
            unknown_keys: unknown.into_keys(),
            toml_1_1: document.needs_toml_1_1(),
        })
    }

    pub(crate) fn check_len(bytes: u64, limits: &Limits) -> Result<()> {
        Ok(limits.check(Limit::DocumentBytes, "carton.toml in bytes", bytes)?)
    }

    /// Returns all self tests and examples: their list, their number, and what they refer to.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&'static str, usize, Vec<Argument<'_>>)> {
        let tests = self.self_tests.iter().flatten().enumerate().map(|(number, test)| {
            ("self_test", number, arguments(test.sides(), |name| Reference::Tensor(name.clone())))
        });
        let examples = self.examples.iter().flatten().enumerate();
        let examples = examples.map(|(number, example)| {
            ("example", number, arguments(example.sides(), Reference::clone))
        });
        tests.chain(examples)
    }

    /// Makes an error about the document whose line is not known.
    pub(crate) fn error(at: String, fault: DocumentFault) -> Error {
        let file = Self::PATH.into();
        Error::Document(Box::new(DocumentError { file, line: None, at, fault }))
    }

    fn parse_root<'d>(
        mut root: Table<'d>,
        limits: &Limits,
        unknown: &mut Unknown<'d>,
    ) -> Result<Self> {
        let version = root.required("spec_version")?;
        let expected = Self::SPEC_VERSION;
        let found = version.unsigned().map_err(|_| version.fault(expected.to_string()))?;
        if found != expected {
            return Err(version.error(DocumentFault::UnsupportedVersion { found, expected }));
        }
        let description = Self {
            model_name: root.optional_string("model_name")?,
            short_description: root.optional_string("short_description")?,
            model_description: root.optional_string("model_description")?,
            license: root.optional_string("license")?,
            repository: root.optional_string("repository")?,
            homepage: root.optional_string("homepage")?,
            required_platforms: list(root.optional("required_platforms"), Node::parse)?,
            inputs: list(root.optional("input"), |node| TensorSpec::parse(node, limits, unknown))?,
            outputs: list(root.optional("output"), |node| {
                TensorSpec::parse(node, limits, unknown)
            })?,
            self_tests: list(root.optional("self_test"), |node| SelfTest::parse(node, unknown))?,
            examples: list(root.optional("example"), |node| Example::parse(node, unknown))?,
            runner: Runner::parse(root.required("runner")?, unknown)?,
        };
        root.finish(unknown);
        Ok(description)
    }

    /// Writes the document: TOML 1.0, keys in the order of the reference implementation, the same
    /// bytes for the same description.
    ///
    /// # Errors
    ///
    /// [`Error::Document`] where a value has no form in the document: a symbol `*`, or a whole
    /// number above 2⁶³ − 1.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check()?;
        let mut emitter = Emitter::default();
        emitter
            .pair("spec_version", Self::SPEC_VERSION)
            .optional_text("model_name", self.model_name.as_deref())
            .optional_text("short_description", self.short_description.as_deref())
            .optional_text("model_description", self.model_description.as_deref())
            .optional_text("license", self.license.as_deref())
            .optional_text("repository", self.repository.as_deref())
            .optional_text("homepage", self.homepage.as_deref());
        if let Some(platforms) = &self.required_platforms {
            emitter.pair("required_platforms", List(platforms.iter().map(|p| Text(p.as_str()))));
        }
        // Empty lists come first: after a table they would belong to it.
        for (key, is_empty) in [
            ("input", self.inputs.as_ref().is_some_and(Vec::is_empty)),
            ("output", self.outputs.as_ref().is_some_and(Vec::is_empty)),
            ("self_test", self.self_tests.as_ref().is_some_and(Vec::is_empty)),
            ("example", self.examples.as_ref().is_some_and(Vec::is_empty)),
        ] {
            if is_empty {
                emitter.pair(key, "[]");
            }
        }
        for input in self.inputs.iter().flatten() {
            input.emit(emitter.item("input"));
        }
        for output in self.outputs.iter().flatten() {
            output.emit(emitter.item("output"));
        }
        for test in self.self_tests.iter().flatten() {
            test.emit(emitter.item("self_test"));
        }
        for example in self.examples.iter().flatten() {
            example.emit(emitter.item("example"));
        }
        self.runner.emit(&mut emitter);
        Ok(emitter.finish())
    }

    /// Checks that every value has a form in the document.
    fn check(&self) -> Result<()> {
        for (list, specs) in [("input", &self.inputs), ("output", &self.outputs)] {
            for (index, spec) in specs.iter().flatten().enumerate() {
                if let Err((path, fault)) = spec.check() {
                    return Err(Self::error(format!("{list}[{index}].{path}"), fault));
                }
            }
        }
        match self.runner.compat_version {
            Some(version) if i64::try_from(version).is_err() => {
                let expected = "a whole number from 0 to 9223372036854775807".into();
                let fault = DocumentFault::Value { found: version.to_string(), expected };
                Err(Self::error("runner.runner_compat_version".to_owned(), fault))
            }
            _ => Ok(()),
        }
    }
}

/// The side, the name and the reference of an argument or result of a call.
pub(crate) type Argument<'a> = (&'static str, &'a str, Reference);

/// What a call is given, and what it gives, with the keys of both.
type Sides<'a, V> = [(&'static str, Option<&'a Named<V>>); 2];

fn arguments<V>(sides: Sides<'_, V>, reference: impl Fn(&V) -> Reference) -> Vec<Argument<'_>> {
    let mut arguments = Vec::new();
    for (side, named) in sides {
        let named = named.into_iter().flat_map(Named::iter);
        arguments.extend(named.map(|(name, value)| (side, name, reference(value))));
    }
    arguments
}

fn list<'d, T>(
    node: Option<Node<'d>>,
    item: impl FnMut(Node<'d>) -> Result<T>,
) -> Result<Option<Vec<T>>> {
    node.map(|node| node.list(item)).transpose()
}

/// A description and what is known about the text that it was read from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParsedDescription {
    /// The description.
    pub description: Description,
    /// Keys that the format text does not name, in the order of the document.
    pub unknown_keys: Vec<UnknownKey>,
    /// The first line, counted from 1, that readers of TOML 1.0 refuse.
    pub toml_1_1: Option<u64>,
    lines: HashMap<String, u64>,
}

impl ParsedDescription {
    /// Returns the line, counted from 1, of a value by its path, such as `self_test[0].inputs.x`.
    ///
    /// Where it is absent, or an item of a plain array, this is the line of what would hold it.
    #[must_use]
    pub fn line_of(&self, path: &str) -> Option<u64> {
        let line = self.lines.get(path);
        line.or_else(|| self.lines.get(path.rsplit_once(['.', '['])?.0)).copied()
    }
}

/// A call whose results are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelfTest {
    /// What to call it.
    pub name: Option<String>,
    /// What it shows.
    pub description: Option<String>,
    /// For each input, the name of a tensor in `tensor_data/index.toml`.
    pub inputs: Named<String>,
    /// For each output, the name of the tensor that it should come close to.
    pub expected_out: Option<Named<String>>,
}

impl SelfTest {
    /// Makes a self test of the names of inputs and the names of tensors.
    #[must_use]
    pub fn new(inputs: Named<String>) -> Self {
        Self { inputs, ..Self::default() }
    }

    fn parse<'d>(node: Node<'d>, unknown: &mut Unknown<'d>) -> Result<Self> {
        let mut table = node.table()?;
        let test = Self {
            name: table.optional_string("name")?,
            description: table.optional_string("description")?,
            inputs: Named::parse(table.required("inputs")?, unknown, tensor)?,
            expected_out: table
                .optional("expected_out")
                .map(|node| Named::parse(node, unknown, tensor))
                .transpose()?,
        };
        table.finish(unknown);
        Ok(test)
    }

    fn emit(&self, emitter: &mut Emitter) {
        let text = |name: &String| format!("{}{name}", reference::TENSOR);
        emit_call(emitter, [&self.name, &self.description], self.sides(), text);
    }

    fn sides(&self) -> Sides<'_, String> {
        [("inputs", Some(&self.inputs)), ("expected_out", self.expected_out.as_ref())]
    }
}

/// A call that shows what the model is for. It need not be runnable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Example {
    /// What to call it.
    pub name: Option<String>,
    /// What it shows.
    pub description: Option<String>,
    /// What is given for each input. The reference implementation does not read a carton with an
    /// example that lacks this or the next.
    pub inputs: Option<Named<Reference>>,
    /// What may come out for each output.
    pub sample_out: Option<Named<Reference>>,
}

impl Example {
    /// Makes an example that every reader takes.
    #[must_use]
    pub fn new(inputs: Named<Reference>, sample_out: Named<Reference>) -> Self {
        Self { inputs: Some(inputs), sample_out: Some(sample_out), ..Self::default() }
    }

    fn parse<'d>(node: Node<'d>, unknown: &mut Unknown<'d>) -> Result<Self> {
        let mut table = node.table()?;
        let mut references = |node: Option<Node<'d>>| {
            node.map(|node| Named::parse(node, unknown, Node::parse)).transpose()
        };
        let example = Self {
            name: table.optional_string("name")?,
            description: table.optional_string("description")?,
            inputs: references(table.optional("inputs"))?,
            sample_out: references(table.optional("sample_out"))?,
        };
        table.finish(unknown);
        Ok(example)
    }

    fn emit(&self, emitter: &mut Emitter) {
        let texts = [&self.name, &self.description];
        emit_call(emitter, texts, self.sides(), Reference::to_string);
    }

    fn sides(&self) -> Sides<'_, Reference> {
        [("inputs", self.inputs.as_ref()), ("sample_out", self.sample_out.as_ref())]
    }
}

/// Reads the reference of a self test, which may only be to a tensor.
fn tensor(node: Node<'_>) -> Result<String> {
    match node.string()?.strip_prefix(reference::TENSOR) {
        Some(name) => Ok(name.to_owned()),
        None => Err(node.fault("\"@tensor_data/<name>\"")),
    }
}

fn emit_call<V>(
    emitter: &mut Emitter,
    [name, description]: [&Option<String>; 2],
    sides: Sides<'_, V>,
    text: impl Fn(&V) -> String,
) {
    emitter
        .optional_text("name", name.as_deref())
        .optional_text("description", description.as_deref());
    for (side, named) in sides {
        let Some(named) = named else { continue };
        let text = |(name, value)| (name, Text(&text(value)).to_string());
        let texts: Vec<_> = named.iter().map(text).collect();
        emitter.pair(side, Inline(texts.iter().map(|(name, text)| (*name, text))));
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option::of, prelude::*};
    use tensor_core::symbolic::{Dim, SymbolicShape};

    use super::*;
    use tensor_core::DType;

    use crate::{OptionValue, tensor::dtype};

    const MINIMAL: &str =
        "spec_version = 1\n[runner]\nrunner_name = 'r'\nrequired_framework_version = '*'\n";

    fn parse(text: &str) -> Result<Description> {
        Ok(Description::parse(text.as_bytes(), &Limits::default())?.description)
    }

    /// Refuses the minimal document with one thing changed, or added where that is nothing.
    #[track_caller]
    fn refuses(old: &str, new: &str, message: &str) {
        assert!(MINIMAL.contains(old), "{old}");
        let text = match old {
            "" => format!("{MINIMAL}{new}"),
            _ => MINIMAL.replacen(old, new, 1),
        };
        assert_eq!(parse(&text).unwrap_err().to_string(), format!("carton.toml{message}"));
    }

    #[test]
    fn minimal_document() {
        let runner = Runner::new("r", "*".parse().unwrap());
        assert_eq!(parse(MINIMAL).unwrap(), Description::new(runner));
    }

    /// Those that are not among the cases of `testdata`.
    #[test]
    fn documents_that_are_refused() {
        for (old, new, message) in [
            (
                "= 1",
                "= 18446744073709551617",
                " line 1: spec_version is 18446744073709551617, expected 1",
            ),
            (
                "",
                "[[input]]\nname = ''\ndtype = ''",
                " line 7: input[0].dtype is \"\", expected one of float32, float64, string, int8, \
                 int16, int32, int64, uint8, uint16, uint32, uint64",
            ),
            (
                "",
                "[[self_test]]\ninputs = { 'a b' = '@...' }",
                " line 6: self_test[0].inputs.\"a b\" is \"@...\", expected \
                 \"@tensor_data/<name>\"",
            ),
        ] {
            refuses(old, new, message);
        }
        let error = parse(&MINIMAL.replace("= 1", "= 2")).unwrap_err();
        assert_eq!(error.kind(), tensor_core::ErrorKind::Unsupported);
    }

    /// Verdicts of the reference implementation.
    #[test]
    fn shapes_of_the_reference() {
        let shape = |text: &str| {
            let text = format!("{MINIMAL}[[input]]\nname = ''\ndtype = 'int8'\nshape = {text}");
            parse(&text).map(|description| description.inputs.unwrap().remove(0).shape)
        };
        let symbol = |text: &str| text.to_owned();
        for (text, expected) in [
            ("'*'", SymbolicShape::Any),
            ("'image'", SymbolicShape::Symbol(symbol("image"))),
            ("''", SymbolicShape::Symbol(symbol(""))),
            ("[]", SymbolicShape::Dims(Vec::new())),
            (
                "['n', 0, 9223372036854775807, '*', '']",
                SymbolicShape::Dims(vec![
                    Dim::Symbol(symbol("n")),
                    Dim::Fixed(0),
                    Dim::Fixed(i64::MAX as u64),
                    Dim::Any,
                    Dim::Symbol(symbol("")),
                ]),
            ),
        ] {
            assert_eq!(shape(text).unwrap(), expected);
        }
    }

    /// Verdicts of the reference implementation.
    #[test]
    fn options_of_the_reference() {
        let option = |text: &str| {
            let options = parse(&format!("{MINIMAL}[runner.opts]\na = {text}"))?.runner.options;
            Ok::<_, Error>(options.unwrap().get("a").unwrap().clone())
        };
        for (text, expected) in [
            ("0xf", OptionValue::from(15)),
            ("-1_000", OptionValue::from(-1000)),
            ("2.0", OptionValue::from(2.0)),
            ("inf", OptionValue::from(f64::INFINITY)),
            ("nan", OptionValue::from(f64::NAN)),
            ("'x'", OptionValue::from("x")),
            ("false", OptionValue::from(false)),
        ] {
            assert_eq!(option(text).unwrap(), expected);
        }
        let empty = parse(&format!("{MINIMAL}[runner.opts]")).unwrap().runner.options;
        assert_eq!(empty, Some(Named::default()));
    }

    #[test]
    fn document_over_the_limit() {
        let limits = Limits::default().with_document_bytes(10);
        assert_eq!(
            Description::parse(MINIMAL.as_bytes(), &limits).unwrap_err().to_string(),
            "carton.toml in bytes is 77, over the limit of 10 (Limits::document_bytes)"
        );
    }

    #[test]
    fn lines_of_values() {
        let text = format!(
            "{MINIMAL}[[self_test]]\ninputs.x = '@tensor_data/x'\n[self_test.expected_out]\n\
             'a.b' = '@tensor_data/y'\n"
        );
        let text = text.replace("[runner]", "required_platforms = [\n'x86_64' ]\n[runner]");
        let parsed = Description::parse(text.as_bytes(), &Limits::default()).unwrap();
        for (path, line) in [
            ("spec_version", Some(1)),
            ("required_platforms", Some(2)),
            ("required_platforms[0]", Some(2)),
            ("runner.runner_name", Some(5)),
            ("self_test[0]", Some(7)),
            ("self_test[0].inputs.x", Some(8)),
            ("self_test[0].expected_out.\"a.b\"", Some(10)),
            ("self_test[1]", Some(7)),
            ("runner.runner_compat_version", Some(4)),
            ("model_name", None),
            ("", None),
        ] {
            assert_eq!(parsed.line_of(path), line, "{path}");
        }
    }

    #[test]
    fn unknown_keys_are_listed() {
        let text = format!(
            "{MINIMAL}extra = 1\n[runner.opts]\nany = 1\n[[input]]\nname = ''\ndtype = 'int8'\n\
             shape = []\nunit = 'm'\n[[example]]\nplay = {{ a = 1,\n }}\n[later.on]\nx = 1\n"
        );
        let parsed = Description::parse(text.as_bytes(), &Limits::default()).unwrap();
        let found: Vec<_> = parsed.unknown_keys.iter().map(|k| (k.path.as_str(), k.line)).collect();
        let expected =
            [("runner.extra", 5), ("input[0].unit", 12), ("example[0].play", 14), ("later", 16)];
        assert_eq!(found, expected);
        assert_eq!(parsed.toml_1_1, Some(14));
    }

    #[test]
    fn values_without_a_form_are_not_written() {
        let fails = |shape, message: &str| {
            let mut description = parse(MINIMAL).unwrap();
            description.outputs = Some(vec![TensorSpec::new("x", DType::I8, shape)]);
            assert_eq!(description.to_bytes().unwrap_err().to_string(), message);
        };
        let star = || "*".to_owned();
        fails(
            SymbolicShape::Symbol(star()),
            "carton.toml: output[0].shape is the symbol \"*\", expected SymbolicShape::Any",
        );
        fails(
            SymbolicShape::Dims(vec![Dim::Any, Dim::Symbol(star())]),
            "carton.toml: output[0].shape[1] is the symbol \"*\", expected Dim::Any",
        );
        fails(
            SymbolicShape::Dims(vec![Dim::Fixed(1 << 63)]),
            "carton.toml: output[0].shape[0] is 9223372036854775808, expected a whole number from \
             0 to 9223372036854775807, a symbol or \"*\"",
        );
        let mut description = parse(MINIMAL).unwrap();
        description.runner.compat_version = Some(1 << 63);
        assert_eq!(
            description.to_bytes().unwrap_err().to_string(),
            "carton.toml: runner.runner_compat_version is 9223372036854775808, expected a whole \
             number from 0 to 9223372036854775807"
        );
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[a-z\n\"'\\\\]{0,8}",
            Just("*".to_owned()),
            Just("\"\"\"\r\n\u{1b}\0\u{7f}\u{feff}".to_owned()),
        ]
    }

    fn symbol() -> impl Strategy<Value = String> {
        texts().prop_filter("a symbol", |text| text != "*")
    }

    fn shapes() -> impl Strategy<Value = SymbolicShape> {
        let dim = prop_oneof![
            (0..=i64::MAX as u64).prop_map(Dim::Fixed),
            symbol().prop_map(Dim::Symbol),
            Just(Dim::Any),
        ];
        prop_oneof![
            Just(SymbolicShape::Any),
            symbol().prop_map(SymbolicShape::Symbol),
            vec(dim, 0..4).prop_map(SymbolicShape::Dims),
        ]
    }

    fn specs() -> impl Strategy<Value = Option<Vec<TensorSpec>>> {
        let dtype = proptest::sample::select(dtype::STORED.map(|(dtype, _)| dtype).to_vec());
        let spec = (texts(), dtype, shapes(), of(texts()), of(texts()));
        let spec = spec.prop_map(|(name, dtype, shape, description, internal_name)| TensorSpec {
            name,
            dtype,
            shape,
            description,
            internal_name,
        });
        of(vec(spec, 0..3))
    }

    fn names<V: std::fmt::Debug>(
        value: impl Strategy<Value = V>,
    ) -> impl Strategy<Value = Named<V>> {
        vec((texts(), value), 0..3).prop_map(Named::from_iter)
    }

    fn references() -> impl Strategy<Value = Option<Named<Reference>>> {
        of(names(prop_oneof![
            texts().prop_map(Reference::Tensor),
            texts().prop_map(Reference::Misc)
        ]))
    }

    fn runners() -> impl Strategy<Value = Runner> {
        let versions = ["*", " =1.2.3", "1.2.3", ">=1.10, <2", "=2.0.1+cu118"];
        let version = proptest::sample::select(versions.to_vec()).prop_map(|v| v.parse().unwrap());
        let option = prop_oneof![
            any::<i64>().prop_map(OptionValue::Integer),
            any::<u64>().prop_map(f64::from_bits).prop_map(OptionValue::Float),
            any::<f64>().prop_map(OptionValue::Float),
            texts().prop_map(OptionValue::String),
            any::<bool>().prop_map(OptionValue::Boolean),
        ];
        let options = of(names(option));
        (texts(), version, of(0..=i64::MAX as u64), options).prop_map(
            |(name, required_framework_version, compat_version, options)| Runner {
                name,
                required_framework_version,
                compat_version,
                options,
            },
        )
    }

    fn descriptions() -> impl Strategy<Value = Description> {
        let platforms = ["x86_64", "x86_64-linux-gnu", "aarch64-apple-darwin"];
        let platform =
            proptest::sample::select(platforms.to_vec()).prop_map(|p| p.parse().unwrap());
        let test = (of(texts()), of(texts()), names(texts()), of(names(texts()))).prop_map(
            |(name, description, inputs, expected_out)| SelfTest {
                name,
                description,
                inputs,
                expected_out,
            },
        );
        let example = (of(texts()), of(texts()), references(), references()).prop_map(
            |(name, description, inputs, sample_out)| Example {
                name,
                description,
                inputs,
                sample_out,
            },
        );
        let metadata =
            (of(texts()), of(texts()), of(texts()), of(texts()), of(texts()), of(texts()));
        let lists = (
            of(vec(platform, 0..3)),
            specs(),
            specs(),
            of(vec(test, 0..3)),
            of(vec(example, 0..3)),
        );
        (metadata, lists, runners()).prop_map(|(metadata, lists, runner)| Description {
            model_name: metadata.0,
            short_description: metadata.1,
            model_description: metadata.2,
            license: metadata.3,
            repository: metadata.4,
            homepage: metadata.5,
            required_platforms: lists.0,
            inputs: lists.1,
            outputs: lists.2,
            self_tests: lists.3,
            examples: lists.4,
            runner,
        })
    }

    proptest! {
        #[test]
        fn written_documents_read_back(description in descriptions()) {
            let bytes = description.to_bytes().unwrap();
            let parsed = Description::parse(&bytes, &Limits::default()).unwrap();
            prop_assert_eq!(&parsed.description, &description);
            prop_assert_eq!(parsed.toml_1_1, None);
            prop_assert_eq!(parsed.unknown_keys, []);
            prop_assert_eq!(&parsed.description.to_bytes().unwrap(), &bytes);
            #[cfg(feature = "edit")]
            prop_assert_eq!(Description::edit(&bytes, &[], &Limits::default()).unwrap(), bytes);
            // Whatever it finds, it must come to an end.
            let _ = description.lint();
        }

        #[test]
        fn other_documents_are_refused_or_read(bytes in vec(any::<u8>(), 0..200)) {
            let _ = Description::parse(&bytes, &Limits::default());
        }
    }

    #[test]
    fn broken_documents_are_refused_or_read() {
        let text = format!("{MINIMAL}[[input]]\nname = ''\ndtype = 'int8'\nshape = ['n', 1]\n");
        test_support::mutations(text.as_bytes(), |bytes| {
            if let Ok(parsed) = Description::parse(bytes, &Limits::default()) {
                let _ = parsed.lint();
                parsed.description.to_bytes().unwrap();
            }
        });
        test_support::truncations(text.as_bytes(), |bytes| {
            let _ = Description::parse(bytes, &Limits::default());
        });
    }
}
