//! JSON of `testdata`, taken apart.

use std::{fs, path::Path};

use ptl_spec::{Json, tensor_core::Limits};

pub(crate) fn read(path: impl AsRef<Path>) -> Json {
    Json::parse(&fs::read(path).unwrap(), &Limits::default()).unwrap()
}

pub(crate) fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json.get(key).and_then(Json::as_str).unwrap_or_else(|| panic!("{key} of {json}"))
}

pub(crate) fn array<'j>(json: &'j Json, key: &str) -> &'j [Json] {
    let Some(Json::Array(items)) = json.get(key) else { panic!("{key} of {json}") };
    items
}

pub(crate) fn members(json: &Json) -> &[(String, Json)] {
    let Json::Object(members) = json else { panic!("{json}") };
    members
}

pub(crate) fn long(json: &Json) -> i64 {
    let Json::Int(number) = json else { panic!("{json}") };
    *number
}
