//! What a description says that readers tolerate, or that can be true of no model.

use std::collections::{HashMap, HashSet};

use tensor_core::{
    Finding, Report,
    symbolic::{Dim, SymbolicShape},
    text::Quoted,
};

use crate::{
    Description, Named, ParsedDescription, TensorSpec,
    description::markdown,
    links::url::is_url,
    text::{Key, report_toml_1_1, report_unknown},
};

impl Description {
    /// Finds what can be found without the carton's other files.
    ///
    /// | rule | severity | what |
    /// |---|---|---|
    /// | `carton/short-description-length` | warning | more than 100 characters |
    /// | `carton/license` | note | `license` is not an SPDX expression |
    /// | `carton/not-a-url` | warning | `repository` or `homepage` is not an `http` or `https` URL |
    /// | `carton/description-link` | warning | a link to neither an `https` URL nor `@misc/…` |
    /// | `carton/description-html` | warning | raw HTML in `model_description` |
    /// | `carton/duplicate-platform` | warning | two names of one platform |
    /// | `carton/inputs-without-outputs` | warning | inputs but no outputs, or the reverse |
    /// | `carton/duplicate-name` | error | two inputs, or two outputs, of one name |
    /// | `carton/symbol-shape-and-dimension` | error | a symbol for a shape and for a dimension |
    /// | `carton/call-without-declarations` | warning | a self test or example without them |
    /// | `carton/undeclared-name` | warning | a self test or example of what is not declared |
    /// | `carton/self-test-lacks-input` | warning | a self test without a declared input |
    /// | `carton/example-incomplete` | warning | no `inputs` or no `sample_out` |
    /// | `carton/empty-runner-name` | error | no runner has that name |
    /// | `carton/no-compat-version` | warning | no `runner_compat_version` |
    #[must_use]
    pub fn lint(&self) -> Report {
        self.lint_with(Lint { report: Report::default(), parsed: None })
    }

    fn lint_with(&self, mut lint: Lint<'_>) -> Report {
        self.lint_texts(&mut lint);
        self.lint_platforms(&mut lint);
        self.lint_tensors(&mut lint);
        self.lint_calls(&mut lint);
        self.lint_runner(&mut lint);
        lint.report
    }

    fn lint_texts(&self, lint: &mut Lint<'_>) {
        if let Some(text) = &self.short_description {
            let characters = text.chars().count();
            if characters > SHORT_DESCRIPTION {
                let message =
                    format!("has {characters} characters, expected {SHORT_DESCRIPTION} at most");
                lint.warn("carton/short-description-length", "short_description", message);
            }
        }
        for (key, text) in [("repository", &self.repository), ("homepage", &self.homepage)] {
            if let Some(text) = text
                && !is_url(text, &["https://", "http://"])
            {
                let message = format!("is {}, expected an http or https URL", Quoted(text));
                lint.warn("carton/not-a-url", key, message);
            }
        }
        if let Some(license) = self.license.as_ref().filter(|license| !is_spdx(license)) {
            let message = format!("is {}, which is not an SPDX expression", Quoted(license));
            lint.add(Finding::note("carton/license", message), "license".to_owned());
        }
        let Some(markdown) = &self.model_description else { return };
        let scan = markdown::scan(markdown);
        for link in scan.links {
            let is_file = link.misc_path().is_some_and(|path| !path.is_empty());
            if !is_file && !is_url(&link.target, &["https://"]) {
                let message = format!(
                    "line {} of the text links to {}, expected an https URL or \"@misc/<path>\"",
                    link.line,
                    Quoted(&link.target)
                );
                lint.warn("carton/description-link", "model_description", message);
            }
        }
        for line in scan.html {
            let message = format!("line {line} of the text has raw HTML, expected Markdown only");
            lint.warn("carton/description-html", "model_description", message);
        }
    }

    fn lint_platforms(&self, lint: &mut Lint<'_>) {
        let mut first = HashMap::new();
        for (index, platform) in self.required_platforms.iter().flatten().enumerate() {
            let first = *first.entry(platform.normalized()).or_insert(index);
            if first != index {
                let path = format!("required_platforms[{index}]");
                let message = format!(
                    "{} is the platform of required_platforms[{first}]",
                    Quoted(platform.as_str())
                );
                lint.warn("carton/duplicate-platform", path, message);
            }
        }
    }

    fn lint_tensors(&self, lint: &mut Lint<'_>) {
        for (here, specs, there, others) in [
            ("input", &self.inputs, "output", &self.outputs),
            ("output", &self.outputs, "input", &self.inputs),
        ] {
            if specs.as_ref().is_some_and(|specs| !specs.is_empty()) && others.is_none() {
                let message = format!("is given, but {there} is not, expected all of both or none");
                lint.warn("carton/inputs-without-outputs", here, message);
            }
            let mut first = HashMap::new();
            for (index, spec) in specs.iter().flatten().enumerate() {
                let first = *first.entry(spec.name.as_str()).or_insert(index);
                if first != index {
                    let path = format!("{here}[{index}].name");
                    let message = format!("{} is the name of {here}[{first}]", Quoted(&spec.name));
                    lint.error("carton/duplicate-name", path, message);
                }
            }
        }
        self.lint_symbols(lint);
    }

    fn lint_symbols(&self, lint: &mut Lint<'_>) {
        let mut uses: HashMap<&str, (&str, String)> = HashMap::new();
        let mut clashes = HashSet::new();
        for (list, specs) in [("input", &self.inputs), ("output", &self.outputs)] {
            for (index, spec) in specs.iter().flatten().enumerate() {
                for (symbol, used) in spec.symbols() {
                    let path = || format!("{list}[{index}].shape");
                    match uses.get(symbol) {
                        None => drop(uses.insert(symbol, (used, path()))),
                        Some((first, _)) if *first == used => {}
                        Some(_) if !clashes.insert(symbol) => {}
                        Some((first, place)) => {
                            let message = format!(
                                "symbol {} stands for a {used}, but in {place} for a {first}",
                                Quoted(symbol)
                            );
                            lint.error("carton/symbol-shape-and-dimension", path(), message);
                        }
                    }
                }
            }
        }
    }

    fn lint_calls(&self, lint: &mut Lint<'_>) {
        let inputs = Declared::new("input", self.inputs.as_deref());
        let outputs = Declared::new("output", self.outputs.as_deref());
        for (key, is_empty) in [
            ("self_test", self.self_tests.as_ref().is_none_or(Vec::is_empty)),
            ("example", self.examples.as_ref().is_none_or(Vec::is_empty)),
        ] {
            for declared in [&inputs, &outputs] {
                if !is_empty && declared.names.is_none() {
                    let message = format!("is given, but {} is not", declared.list);
                    lint.warn("carton/call-without-declarations", key, message);
                }
            }
        }
        for (index, test) in self.self_tests.iter().flatten().enumerate() {
            let path = format!("self_test[{index}]");
            inputs.lint_names(lint, &format!("{path}.inputs"), &test.inputs);
            inputs.lint_missing(lint, &format!("{path}.inputs"), &test.inputs);
            if let Some(expected) = &test.expected_out {
                outputs.lint_names(lint, &format!("{path}.expected_out"), expected);
            }
        }
        for (index, example) in self.examples.iter().flatten().enumerate() {
            for (key, declared, references) in [
                ("inputs", &inputs, &example.inputs),
                ("sample_out", &outputs, &example.sample_out),
            ] {
                let path = format!("example[{index}].{key}");
                match references {
                    Some(references) => declared.lint_names(lint, &path, references),
                    None => {
                        let message = "is missing, and some readers need it";
                        lint.warn("carton/example-incomplete", path, message);
                    }
                }
            }
        }
    }

    fn lint_runner(&self, lint: &mut Lint<'_>) {
        let runner = &self.runner;
        if runner.name.is_empty() {
            let message = "is empty, expected the name of a runner";
            lint.error("carton/empty-runner-name", "runner.runner_name", message);
        }
        if runner.compat_version.is_none() {
            let message = "is missing, and some readers need it";
            lint.warn("carton/no-compat-version", "runner.runner_compat_version", message);
        }
    }
}

impl ParsedDescription {
    /// Finds what [`Description::lint`] finds, with lines, and what only the text shows.
    ///
    /// | rule | severity | what |
    /// |---|---|---|
    /// | `carton/toml-1-1` | warning | what readers of TOML 1.0 refuse |
    /// | `carton/unknown-key` | note | a key that the format text does not name |
    #[must_use]
    pub fn lint(&self) -> Report {
        let mut report = Report::default();
        report_toml_1_1(self.toml_1_1, Description::PATH, &mut report);
        report_unknown(&self.unknown_keys, Description::PATH, &mut report);
        self.description.lint_with(Lint { report, parsed: Some(self) })
    }
}

/// What was found so far.
struct Lint<'a> {
    report: Report,
    /// What knows the lines of values.
    parsed: Option<&'a ParsedDescription>,
}

impl Lint<'_> {
    fn warn(&mut self, rule: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.add(Finding::warning(rule, message), path.into());
    }

    fn error(&mut self, rule: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.add(Finding::error(rule, message), path.into());
    }

    fn add(&mut self, finding: Finding, path: String) {
        let line = self.parsed.and_then(|parsed| parsed.line_of(&path));
        self.report.add(finding.entry(Description::PATH).line(line).path(path));
    }
}

/// The names of the inputs or the outputs that a description declares.
#[derive(Debug)]
struct Declared<'a> {
    list: &'static str,
    specs: &'a [TensorSpec],
    names: Option<HashSet<&'a str>>,
}

impl<'a> Declared<'a> {
    fn new(list: &'static str, specs: Option<&'a [TensorSpec]>) -> Self {
        let names = specs.map(|specs| specs.iter().map(|spec| spec.name.as_str()).collect());
        Self { list, specs: specs.unwrap_or_default(), names }
    }

    /// Looks for names of a call that are not declared.
    fn lint_names<V>(&self, lint: &mut Lint<'_>, path: &str, named: &Named<V>) {
        let Some(declared) = &self.names else { return };
        for (name, _) in named.iter().filter(|(name, _)| !declared.contains(name)) {
            let path = format!("{path}.{}", Key(name));
            let message = format!("{} is the name of no {}", Quoted(name), self.list);
            lint.warn("carton/undeclared-name", path, message);
        }
    }

    /// Looks for declared names that a call lacks. Names one and counts the rest, so that many
    /// calls that lack many names stay one finding each.
    fn lint_missing<V>(&self, lint: &mut Lint<'_>, path: &str, named: &Named<V>) {
        let Some(declared) = &self.names else { return };
        let given = named.iter().filter(|(name, _)| declared.contains(name)).count();
        // The first that is missing comes at the latest after all that are given.
        let first = self.specs.iter().find(|spec| named.get(&spec.name).is_none());
        let Some(first) = first else { return };
        let message = match declared.len().saturating_sub(given) {
            1 => format!("lacks {} {}", self.list, Quoted(&first.name)),
            missing => {
                let others = missing.saturating_sub(1);
                format!("lacks {} {} and {others} more", self.list, Quoted(&first.name))
            }
        };
        lint.warn("carton/self-test-lacks-input", path, message);
    }
}

impl TensorSpec {
    /// Returns the symbols, and what each stands for.
    fn symbols(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let (shape, dims) = match &self.shape {
            SymbolicShape::Any => (None, [].as_slice()),
            SymbolicShape::Symbol(symbol) => (Some(symbol), [].as_slice()),
            SymbolicShape::Dims(dims) => (None, dims.as_slice()),
        };
        let dims = dims.iter().filter_map(|dim| match dim {
            Dim::Symbol(symbol) => Some((symbol.as_str(), "dimension")),
            Dim::Fixed(_) | Dim::Any => None,
        });
        shape.map(|symbol| (symbol.as_str(), "shape")).into_iter().chain(dims)
    }
}

/// Tells whether a text is built as the SPDX specification, annex D, says; which licenses there are
/// is not known here.
fn is_spdx(text: &str) -> bool {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let (mut open, mut wants_id) = (0_usize, true);
    for word in spaced.split_whitespace() {
        match word {
            "(" if wants_id => open = open.saturating_add(1),
            ")" if !wants_id && open > 0 => open = open.saturating_sub(1),
            "AND" | "OR" | "WITH" if !wants_id => wants_id = true,
            "AND" | "OR" | "WITH" => return false,
            _ if wants_id && is_id(word) => wants_id = false,
            _ => return false,
        }
    }
    open == 0 && !wants_id
}

/// Tells whether a word can be a license of SPDX: `MIT`, `GPL-2.0+`, `DocumentRef-a:LicenseRef-b`.
fn is_id(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':');
    let word = word.strip_suffix('+').unwrap_or(word);
    !word.is_empty() && word.bytes().all(is_part)
}

/// Characters of a short description, as Unicode scalar values.
const SHORT_DESCRIPTION: usize = 100;

#[cfg(test)]
mod tests {
    use tensor_core::{At, Limits};

    use super::*;

    /// A document in which there is nothing to find.
    const CLEAN: &str = "\
spec_version = 1
short_description = ''
repository = 'https://example.com/x'
homepage = 'HTTP://example.com'
model_description = '[a](https://example.com) ![b](@misc/b.png)'
required_platforms = ['x86_64', 'x86_64-linux']

[[input]]
name = 'x'
dtype = 'int8'
shape = ['n', 'n', '*']

[[input]]
name = 'y'
dtype = 'int8'
shape = 's'

[[output]]
name = 'x'
dtype = 'int8'
shape = '*'

[[self_test]]
inputs = { x = '@tensor_data/x', y = '@tensor_data/y' }
expected_out = { x = '@tensor_data/x' }

[[example]]
inputs = { x = '@misc/x' }
sample_out = {}

[runner]
runner_name = 'r'
required_framework_version = '=1.2.3'
runner_compat_version = 0
";

    fn lint(text: &str) -> Vec<String> {
        let parsed = Description::parse(text.as_bytes(), &Limits::default()).unwrap();
        let line = |at: &At| at.line.map(|line| format!(" line {line}")).unwrap_or_default();
        let path = |at: &At| at.path.as_ref().map(|path| format!("{path} ")).unwrap_or_default();
        parsed
            .lint()
            .into_iter()
            .map(|f| {
                format!("{} {}{}: {}{}", f.severity, f.rule, line(&f.at), path(&f.at), f.message)
            })
            .collect()
    }

    /// Finds something in the clean document with one thing changed.
    #[track_caller]
    fn finds<const N: usize>(old: &str, new: &str, expected: [&str; N]) {
        assert!(CLEAN.contains(old), "{old}");
        assert_eq!(lint(&CLEAN.replacen(old, new, 1)), expected);
    }

    #[test]
    fn clean_document() {
        finds("", "", []);
    }

    #[test]
    fn short_descriptions() {
        let text = |characters| format!("short_description = '{}'", "é".repeat(characters));
        finds("short_description = ''", &text(100), []);
        finds(
            "short_description = ''",
            &text(101),
            ["warning carton/short-description-length line 2: short_description has 101 \
              characters, expected 100 at most"],
        );
    }

    #[test]
    fn addresses() {
        for (url, shown) in [
            ("x", "\"x\""),
            ("https://", "\"https://\""),
            ("https:///x", "\"https:///x\""),
            ("ftp://x", "\"ftp://x\""),
        ] {
            finds(
                "https://example.com/x",
                url,
                [&*format!(
                    "warning carton/not-a-url line 3: repository is {shown}, expected an http or \
                     https URL"
                )],
            );
        }
        finds(
            "HTTP://example.com",
            "https://a b",
            ["warning carton/not-a-url line 4: homepage is \"https://a b\", expected an http \
                 or https URL"],
        );
    }

    #[test]
    fn licenses() {
        let text = |license| format!("license = '{license}'\nshort_description = ''");
        for license in [
            "MIT",
            "Apache-2.0 OR (MIT AND BSD-3-Clause)",
            "GPL-2.0+ WITH Classpath-exception-2.0",
            "DocumentRef-x:LicenseRef-y.1",
            "((0BSD))",
        ] {
            finds("short_description = ''", &text(license), []);
        }
        for license in ["", "MIT License", "MIT or 0BSD", "(MIT", "MIT)", "MIT AND", "OR MIT", "é"]
        {
            finds(
                "short_description = ''",
                &text(license),
                [&*format!(
                    "note carton/license line 2: license is {license:?}, which is not an SPDX \
                     expression"
                )],
            );
        }
    }

    #[test]
    fn links_of_the_description() {
        for target in ["http://example.com", "@misc/", "misc/b.png", "javascript:x", "#a"] {
            finds(
                "@misc/b.png",
                target,
                [&*format!(
                    "warning carton/description-link line 5: model_description line 1 of the text \
                     links to {target:?}, expected an https URL or \"@misc/<path>\""
                )],
            );
        }
    }

    #[test]
    fn an_empty_list_says_that_there_are_none() {
        let output = "[[output]]\nname = 'x'\ndtype = 'int8'\nshape = '*'\n";
        let text =
            CLEAN.replacen("\n[[input]]", "output = []\n[[input]]", 1).replacen(output, "", 1);
        assert_eq!(
            lint(&text),
            ["warning carton/undeclared-name line 21: self_test[0].expected_out.x \"x\" is the \
                 name of no output"]
        );
    }

    #[test]
    fn symbols_of_two_meanings() {
        finds(
            "shape = '*'",
            "shape = ['s', 's']",
            ["error carton/symbol-shape-and-dimension line 21: output[0].shape symbol \"s\" \
                 stands for a dimension, but in input[1].shape for a shape"],
        );
    }

    /// Many calls that lack many inputs, and names as long as the document allows.
    #[test]
    fn findings_do_not_multiply() {
        use std::fmt::Write as _;

        let mut text = "spec_version = 1\noutput = []\n".to_owned();
        let long = "é".repeat(100_000);
        for index in 0..2000 {
            let _ = write!(text, "[[input]]\nname = '{index}'\ndtype = 'int8'\nshape = []\n");
            let _ = write!(text, "[[self_test]]\ninputs = {{}}\n");
        }
        let _ = write!(text, "[[self_test]]\ninputs = {{ '{long}' = '@tensor_data/x' }}\n");
        text.push_str("[runner]\nrunner_name = 'r'\nrequired_framework_version = '=1.2.3'\n");
        let found = lint(&text);
        // As many of one rule as a report keeps, and how many more there are.
        assert_eq!(found.len(), Report::PER_RULE + 1 + 2);
        assert!(found.iter().any(|line| line.ends_with("1001 more are not listed")));
        assert!(found[0].ends_with("lacks input \"0\" and 1999 more"), "{}", found[0]);
    }
}
