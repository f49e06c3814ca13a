//! What a spec that can be read may still be wrong in.

use std::collections::HashSet;

use tensor_core::{At, Report, Severity};

use crate::{
    Error, Fault, Json, Pack, Profile, Signature, Slot, Spec, SpecOptions, Tokenizer, Unpack,
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
    pub fn check(&self) -> Report {
        let mut report = self.inner.lints.clone();
        spec(self, &mut report);
        report
    }
}

impl SpecOptions {
    /// Reports every fault of a text, not only the first, and what [`Spec::check`] does.
    #[must_use]
    pub fn check(self, text: impl AsRef<[u8]>) -> Report {
        let mut report = Report::default();
        let root = match Json::parse(text.as_ref(), &self.limits) {
            Ok(root) => root,
            Err(error) => {
                push(&mut report, &error);
                return report;
            }
        };
        let mut parser = Parser::new(self.profile, Stubs::Kept, vocabularies(&root));
        self.parts(&root, &mut parser);
        if parser.faults.is_empty() {
            return self.from_json(root).map(|spec| spec.check()).unwrap_or_default();
        }
        for fault in &parser.faults {
            push(&mut report, fault);
        }
        report.append(parser.lints);
        report
    }
}

/// Adds an error to a report.
pub(crate) fn push(report: &mut Report, error: &Error) {
    push_as(report, Severity::Error, error);
}

pub(crate) fn push_as(report: &mut Report, severity: Severity, error: &Error) {
    let at = match error {
        Error::Spec { at, .. } => At::file().path(at),
        _ => At::file(),
    };
    report.push(severity, error.rule(), at, tensor_core::Chain(error).to_string());
}

/// Reports on a spec that was read.
pub(crate) fn spec(spec: &Spec, report: &mut Report) {
    let (signature, conflicts) = Signature::with_conflicts(spec.pack(), spec.unpack());
    for conflict in &conflicts {
        push(report, conflict);
    }
    duplicate_keys(&signature, spec.profile(), report);
    answers(spec, report);
    vocabulary_texts(spec, report);
    for place in signature.deferred.iter().take(MAX_FINDINGS) {
        let message = format!("{place} depends on a parameter, and is checked when a call is made");
        report.push(Severity::Note, "ptl/spec-deferred", At::file().path(place), message);
    }
    extensions(spec, report);
}

/// Reports results that overwrite each other.
fn duplicate_keys(signature: &Signature, profile: Profile, report: &mut Report) {
    let severity = match profile {
        Profile::Documented => Severity::Error,
        Profile::Android => Severity::Warning,
    };
    let mut seen = HashSet::new();
    let twice = signature.results.iter().filter_map(|output| {
        let Slot::Value(key) = &output.key else { return None };
        (!seen.insert(key)).then_some((&output.place, key))
    });
    for (place, key) in twice.take(MAX_FINDINGS) {
        let fault = Fault::DuplicateKey { key: key.clone() };
        push_as(report, severity, &Error::spec(place, fault));
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
        push(report, &Error::spec("unpack", Fault::NoTokens));
    }
}

/// Indexes the vocabularies that are there.
fn vocabulary_texts(spec: &Spec, report: &mut Report) {
    if spec.json().get(BERT).is_some()
        && let Err(error) = spec
            .bert()
            .and_then(|vocabulary| vocabulary.padding().map_err(|fault| Error::spec(BERT, fault)))
    {
        push(report, &error);
    }
    if spec.json().get(GPT2).is_some()
        && let Err(error) = spec.gpt2()
    {
        push(report, &error);
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
        let message = format!("{what} is none of the format's text");
        report.push(Severity::Note, "ptl/spec-extension", At::file(), message);
    }
}

/// How many findings of one kind are reported.
const MAX_FINDINGS: usize = 1000;

fn visit_pack(pack: &Pack, visit: &mut impl FnMut(&Pack)) {
    visit(pack);
    if let Pack::Tuple(items) = pack {
        for item in items {
            visit_pack(item, visit);
        }
    }
}

fn visit_unpack(unpack: &Unpack, visit: &mut impl FnMut(&Unpack)) {
    visit(unpack);
    match unpack {
        Unpack::Tuple(items) | Unpack::List(items) => {
            for item in items {
                visit_unpack(item, visit);
            }
        }
        Unpack::Dict(items) => {
            for (_, item) in items {
                visit_unpack(item, visit);
            }
        }
        _ => {}
    }
}
