//! Findings as SARIF 2.1.0, which code scanners of CI systems read.

use std::fmt::Write as _;

use modelcrate::{
    rules::Rule,
    tensor_core::{At, Finding, Severity},
};
use serde_json::{Map, Value, json};

use super::File;

/// A log in the making.
#[derive(Default)]
pub(super) struct Log {
    rules: Vec<String>,
    results: Vec<Value>,
}

impl Log {
    pub(super) fn add(&mut self, file: &File) {
        for finding in file.findings.findings() {
            let index = self.rule(&finding.rule);
            self.results.push(json!({
                "ruleId": finding.rule,
                "ruleIndex": index,
                "level": level(finding.severity),
                "message": { "text": finding.message },
                "locations": [location(file, finding)],
            }));
        }
    }

    fn rule(&mut self, id: &str) -> usize {
        let known = self.rules.iter().position(|known| known == id);
        known.unwrap_or_else(|| {
            self.rules.push(id.to_owned());
            self.rules.len().saturating_sub(1)
        })
    }

    pub(super) fn finish(self, is_whole: bool) -> Value {
        let rules: Vec<Value> = self.rules.iter().map(|id| described(id)).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "modelcrate",
                    "version": env!("CARGO_PKG_VERSION"),
                    "informationUri": env!("CARGO_PKG_REPOSITORY"),
                    "rules": rules,
                }},
                "invocations": [{ "executionSuccessful": is_whole }],
                "results": self.results,
            }],
        })
    }
}

fn described(id: &str) -> Value {
    let Some(rule) = Rule::find(id) else { return json!({ "id": id }) };
    let gravest = rule.severities().next().unwrap_or(Severity::Error);
    json!({
        "id": id,
        "shortDescription": { "text": rule.meaning },
        "help": { "text": format!("{} (source: {})", rule.remedy, rule.source) },
        "defaultConfiguration": { "level": level(gravest) },
    })
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn location(file: &File, finding: &Finding) -> Value {
    let mut physical = Map::new();
    physical.insert("artifactLocation".to_owned(), json!({ "uri": uri(&file.path) }));
    if let Some(region) = region(&finding.at) {
        physical.insert("region".to_owned(), region);
    }
    let mut location = Map::new();
    location.insert("physicalLocation".to_owned(), Value::Object(physical));
    let At { entry, tensor, path, .. } = &finding.at;
    let names: Vec<Value> = [entry, tensor, path]
        .into_iter()
        .flatten()
        .map(|name| json!({ "fullyQualifiedName": name }))
        .collect();
    if !names.is_empty() {
        location.insert("logicalLocations".to_owned(), names.into());
    }
    Value::Object(location)
}

/// Says where in the file it is; lines and bytes of an entry are not those of the file.
fn region(at: &At) -> Option<Value> {
    match (at.entry.is_none(), at.line, at.column, at.offset) {
        (true, Some(line), Some(column), _) => {
            Some(json!({ "startLine": line, "startColumn": column }))
        }
        (true, Some(line), None, _) => Some(json!({ "startLine": line })),
        (true, None, _, Some(offset)) => Some(json!({ "byteOffset": offset })),
        _ => None,
    }
}

/// Writes a path as a reference to a resource: of what is not ASCII or has a meaning there, every byte
/// as `%XX`.
fn uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    // What stands before a colon in the first part would be taken for a scheme.
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        let _ =
            if is_plain { write!(uri, "{}", char::from(byte)) } else { write!(uri, "%{byte:02X}") };
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        for (path, expected) in [
            ("a/b.zt", "a/b.zt"),
            ("/a b.zt", "file:///a%20b.zt"),
            ("a:b%.zt", "a%3Ab%25.zt"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
