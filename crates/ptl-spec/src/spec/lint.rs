//! What a spec that can be read may still be wrong in.

use std::collections::HashSet;

use tensor_core::{Finding, Report, Severity};

use crate::{
    Dialect, Error, Fault, Json, Pack, Signature, Slot, Spec, SpecOptions, Tokenizer, Unpack,
    spec::{
        parse::{Parser, Stubs},
        vocabularies,
    },
    tokenizer::{BERT, GPT2},
};

impl Spec {
    /// Reports what a call will fail on or someone should mend: what [`parse`](Self::parse) let
    /// pass, vocabularies, parameters of two kinds, results of one name.
    #[must_use]
    pub fn lint(&self) -> Report {
        let mut report = self.inner.lints.clone();
        spec(self, &mut report);
        report
    }
}

impl SpecOptions {
    /// Reports every fault of a text, not only the first, and what [`Spec::lint`] does.
    #[must_use]
    pub fn lint(self, text: impl AsRef<[u8]>) -> Report {
        let mut report = Report::default();
        let root = match Json::parse(text.as_ref(), &self.limits) {
            Ok(root) => root,
            Err(error) => {
                report.add(error.finding());
                return report;
            }
        };
        let mut parser = Parser::new(self.dialect, Stubs::Kept, vocabularies(&root));
        self.parts(&root, &mut parser);
        if parser.faults.is_empty() {
            return self.from_json(root).map(|spec| spec.lint()).unwrap_or_default();
        }
        report.extend(parser.faults.iter().map(Error::finding));
        report.append(parser.lints);
        report
    }
}

/// Reports on a spec that was read.
fn spec(spec: &Spec, report: &mut Report) {
    let (signature, conflicts) = Signature::with_conflicts(spec.pack(), spec.unpack());
    report.extend(conflicts.iter().map(Error::finding));
    duplicate_keys(&signature, spec.dialect(), report);
    answers(spec, report);
    vocabulary_texts(spec, report);
    for place in &signature.deferred {
        let message = format!("{place} depends on a parameter, and is checked when a call is made");
        report.add(Finding::note("ptl/spec-deferred", message).path(place));
    }
    extensions(spec, report);
}

/// Reports results that overwrite each other.
fn duplicate_keys(signature: &Signature, dialect: Dialect, report: &mut Report) {
    let severity = match dialect {
        Dialect::Documented => Severity::Error,
        Dialect::Android => Severity::Warning,
    };
    let mut seen = HashSet::new();
    let twice = signature.results.iter().filter_map(|output| {
        let Slot::Value(key) = &output.key else { return None };
        (!seen.insert(key)).then_some((&output.place, key))
    });
    for (place, key) in twice {
        let fault = Fault::DuplicateKey { key: key.clone() };
        let mut finding = Error::spec(place, fault).finding();
        finding.severity = severity;
        report.add(finding);
    }
}

/// Reports answers that no packed text belongs to.
fn answers(spec: &Spec, report: &mut Report) {
    let mut has_text = false;
    visit_pack(spec.pack(), &mut |pack| match pack {
        Pack::String(string) => has_text |= matches!(string.tokenizer, Tokenizer::Bert { .. }),
        Pack::Deferred(_) => has_text = true,
        _ => {}
    });
    let mut wants_text = false;
    visit_unpack(spec.unpack(), &mut |unpack| {
        wants_text |= matches!(unpack, Unpack::BertAnswer { .. });
    });
    if wants_text && !has_text {
        report.add(Error::spec("unpack", Fault::NoTokens).finding());
    }
}

/// Indexes the vocabularies that are there.
fn vocabulary_texts(spec: &Spec, report: &mut Report) {
    if spec.json().get(BERT).is_some()
        && let Err(error) = spec
            .bert()
            .and_then(|vocabulary| vocabulary.padding().map_err(|fault| Error::spec(BERT, fault)))
    {
        report.add(error.finding());
    }
    if spec.json().get(GPT2).is_some()
        && let Err(error) = spec.gpt2()
    {
        report.add(error.finding());
    }
}

/// Notes types that runtimes had and the format's text has not.
fn extensions(spec: &Spec, report: &mut Report) {
    let mut found: Vec<&str> = Vec::new();
    visit_pack(spec.pack(), &mut |pack| match pack {
        Pack::Audio { .. } => found.push("pack type tensor_from_audio"),
        Pack::Image(picture)
            if matches!(picture.tensor, crate::TensorStep::GreyscaleNorm { .. }) =>
        {
            found.push("transform greyscale_norm");
        }
        _ => {}
    });
    visit_unpack(spec.unpack(), &mut |unpack| match unpack {
        Unpack::Argmax { .. } => found.push("unpack type argmax"),
        Unpack::BoundingBoxes(_) => found.push("unpack type bounding_boxes"),
        Unpack::TensorToImage { .. } => found.push("unpack type tensor_to_image"),
        _ => {}
    });
    found.sort_unstable();
    found.dedup();
    for what in found {
        let message = format!("{what} is not in the format's text");
        report.add(Finding::note("ptl/spec-extension", message));
    }
}

fn visit_pack(pack: &Pack, visit: &mut impl FnMut(&Pack)) {
    visit(pack);
    if let Pack::Tuple(items) = pack {
        items.iter().for_each(|item| visit_pack(item, visit));
    }
}

fn visit_unpack(unpack: &Unpack, visit: &mut impl FnMut(&Unpack)) {
    visit(unpack);
    match unpack {
        Unpack::Tuple(items) | Unpack::List(items) => {
            items.iter().for_each(|item| visit_unpack(item, visit));
        }
        Unpack::Dict(items) => items.iter().for_each(|(_, item)| visit_unpack(item, visit)),
        _ => {}
    }
}
