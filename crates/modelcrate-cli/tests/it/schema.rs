//! What commands print as JSON, against `schemas/`.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::{Map, Value};

/// Groups of commands that are to go, or whose schemas are still to be written.
const WITHOUT: [&str; 5] = ["carton", "nnpackage", "ptl", "rten", "ztensor"];

/// Compares what a command printed with its schema: `schemas/<command>.schema.json`.
#[track_caller]
pub(crate) fn check(args: &[&str], printed: &[u8]) {
    let faults = faults(args, printed);
    assert!(faults.is_empty(), "{args:?}: {faults:#?}\n{}", String::from_utf8_lossy(printed));
}

/// Compares rows of a file, one JSON object a line, with their schema.
#[track_caller]
pub(crate) fn check_rows(schema: &str, rows: &str) {
    assert!(!rows.is_empty());
    let schema = Schema::read(schema);
    for row in rows.lines() {
        assert_eq!(schema.faults(&serde_json::from_str(row).unwrap()), [""; 0], "{row}");
    }
}

fn faults(args: &[&str], printed: &[u8]) -> Vec<String> {
    let is = |format: &str| {
        let joined = format!("--format={format}");
        args.windows(2).any(|pair| pair == ["--format", format]) || args.contains(&&*joined)
    };
    let is_whole = is("json") || is("sarif");
    let name = if is("sarif") { Some("sarif".to_owned()) } else { schema_of(args) };
    let Some(name) = name.filter(|_| !printed.is_empty() && (is_whole || is("jsonl"))) else {
        return Vec::new();
    };
    let text = str::from_utf8(printed).unwrap();
    let documents = if is_whole { vec![text] } else { text.lines().collect() };
    let documents = documents.iter().map(|document| serde_json::from_str(document).unwrap());
    documents.flat_map(|document: Value| Schema::read(&name).faults(&document)).collect()
}

/// Returns the name of the schema of a command, that of a command of a group with a hyphen.
fn schema_of(args: &[&str]) -> Option<String> {
    let mut words = args.iter().copied().filter(|arg| !arg.starts_with('-'));
    let group = words.next()?;
    let name = words.next().map(|command| format!("{group}-{command}"));
    match name.filter(|name| path(name).exists()) {
        None if WITHOUT.contains(&group) => None,
        name => Some(name.unwrap_or_else(|| group.to_owned())),
    }
}

fn path(name: &str) -> PathBuf {
    test_support::workspace().join(format!("schemas/{name}.schema.json"))
}

/// A JSON Schema of what the schemas here use of draft 2020-12. A crate that knows all of it would
/// bring 22 others and cost a build more than a minute.
struct Schema {
    name: String,
    document: Value,
}

impl Schema {
    fn read(name: &str) -> Self {
        let text = fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), document: serde_json::from_str(&text).unwrap() }
    }

    fn faults(&self, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(&self.document, value, "", &mut faults);
        faults
    }

    /// Adds what is wrong with the value at a place.
    fn check(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let keywords = schema.as_object().unwrap();
        for (keyword, wanted) in keywords {
            let number = || wanted.as_u64().unwrap();
            let is_fine = match (&**keyword, value) {
                ("$ref", _) => {
                    self.follow(wanted.as_str().unwrap(), value, at, faults);
                    true
                }
                ("anyOf", _) => {
                    let of = |schema: &Value| {
                        let mut faults = Vec::new();
                        self.check(schema, value, at, &mut faults);
                        faults
                    };
                    let fewest = wanted.as_array().unwrap().iter().map(of).min_by_key(Vec::len);
                    faults.extend(fewest.unwrap());
                    true
                }
                ("type", _) => is_of(wanted.as_str().unwrap(), value),
                ("const", _) => value == wanted,
                ("enum", _) => wanted.as_array().unwrap().contains(value),
                ("minimum", Value::Number(found)) => found.as_f64() >= wanted.as_f64(),
                ("minLength", Value::String(text)) => text.len() as u64 >= number(),
                ("maxLength", Value::String(text)) => text.len() as u64 <= number(),
                ("minItems", Value::Array(items)) => items.len() as u64 >= number(),
                ("maxItems", Value::Array(items)) => items.len() as u64 <= number(),
                ("items", Value::Array(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        self.check(wanted, item, &format!("{at}/{index}"), faults);
                    }
                    true
                }
                ("required", Value::Object(found)) => {
                    let names = wanted.as_array().unwrap().iter();
                    names.filter_map(Value::as_str).all(|name| found.contains_key(name))
                }
                ("properties", Value::Object(found)) => {
                    for (name, schema) in wanted.as_object().unwrap() {
                        if let Some(value) = found.get(name) {
                            self.check(schema, value, &format!("{at}/{name}"), faults);
                        }
                    }
                    true
                }
                ("additionalProperties", Value::Object(found)) => {
                    self.others(keywords, wanted, found, at, faults);
                    true
                }
                ("uniqueItems", Value::Array(items)) => {
                    !items.iter().enumerate().any(|(at, item)| items[..at].contains(item))
                }
                ("$schema" | "$id" | "title" | "description" | "$defs", _)
                // Words of draft 4, of which SARIF is.
                | ("id" | "definitions" | "default" | "format" | "uniqueItems", _)
                | ("minimum" | "minLength" | "maxLength" | "minItems" | "maxItems", _)
                | ("items" | "required" | "properties" | "additionalProperties", _) => true,
                _ => panic!("{}: the keyword {keyword} is not known here", self.name),
            };
            if !is_fine {
                faults.push(format!("{at}: {keyword} is {wanted}, found {value}"));
            }
        }
    }

    /// Checks the properties that are not named.
    fn others(
        &self,
        keywords: &Map<String, Value>,
        wanted: &Value,
        found: &Map<String, Value>,
        at: &str,
        faults: &mut Vec<String>,
    ) {
        let named = keywords.get("properties").and_then(Value::as_object);
        for (name, value) in found {
            let at = format!("{at}/{name}");
            match wanted {
                _ if named.is_some_and(|named| named.contains_key(name)) => {}
                Value::Bool(true) => {}
                Value::Bool(false) => faults.push(format!("{at}: is in no schema")),
                schema => self.check(schema, value, &at, faults),
            }
        }
    }

    /// Checks against what a reference leads to, in this schema or in one beside it.
    fn follow(&self, to: &str, value: &Value, at: &str, faults: &mut Vec<String>) {
        let (file, pointer) = to.split_once('#').unwrap();
        let other = file.strip_suffix(".schema.json").map(Self::read);
        let schema = other.as_ref().unwrap_or(self);
        let part = schema.document.pointer(pointer).unwrap_or_else(|| panic!("{to} leads nowhere"));
        schema.check(part, value, at, faults);
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        _ => panic!("there is no type {name}"),
    }
}

/// The transcripts have no backslashes as they are printed, so their commands run once more.
#[test]
fn transcripts_fit_the_schemas() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut ran = BTreeSet::new();
    for path in fs::read_dir(folder.join("tests/cmd")).unwrap() {
        let text = fs::read_to_string(path.unwrap().path()).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("$ modelcrate ")) {
            let args: Vec<&str> = line.split(' ').collect();
            if args.iter().any(|arg| ["json", "jsonl", "sarif"].contains(arg)) {
                // It checks what it prints.
                crate::run::modelcrate(&folder, &args);
                ran.insert(args[0].to_owned());
            }
        }
    }
    assert!(["inspect", "verify", "explain"].iter().all(|command| ran.contains(*command)));
}

#[test]
fn sarif_fits_the_schema_of_its_standard() {
    let package = "target/oracles/jest-sarif-1.0.0-beta.0/package/lib/schemas";
    let path = test_support::workspace().join(package).join("sarif-2.1.0-rtm.5.json");
    let Ok(text) = fs::read_to_string(path) else {
        eprintln!("skipped: {package} is absent; `cargo xtask oracles` installs it");
        return;
    };
    let standard =
        Schema { name: "sarif".to_owned(), document: serde_json::from_str(&text).unwrap() };
    let args = ["verify", "--format", "sarif", "nnpackage/invalid", "ptl", "rten", "ztensor"];
    let printed = crate::run::modelcrate(&test_support::workspace().join("testdata"), &args);
    let mut log: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert!(log["runs"][0]["results"].as_array().unwrap().len() > 100);
    assert_eq!(standard.faults(&log), [""; 0]);
    log["runs"][0]["results"][0]["level"] = "grave".into();
    assert_eq!(standard.faults(&log).len(), 1);
}

#[test]
fn other_json_does_not_fit() {
    let line = r#"{"schema":1,"path":"a","format":null,"verdict":"valid","findings":[]}"#;
    let faults = |line: &str| faults(&["verify", "--format", "jsonl", "a"], line.as_bytes()).len();
    assert_eq!(faults(line), 0);
    for (from, to) in
        [("valid", "fine"), ("1", "2"), ("null", "7"), ("[]", "[{}]"), ("\"path\"", "\"at\"")]
    {
        assert_ne!(faults(&line.replace(from, to)), 0, "{from}");
    }
}
