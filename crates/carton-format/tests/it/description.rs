//! Documents of the reference implementation's own tests, which lie beside the workspace.

use std::fs;

use carton_format::Description;
use tensor_core::Limits;

#[test]
fn documents_of_the_reference() {
    let Some(folder) = test_support::shared("corpus/carton/toml") else { return };
    let mut refused = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap();
        let parsed = Description::parse(&bytes, &Limits::default());
        if name.ends_with("_expect_failure") {
            refused.push((name, parsed.unwrap_err().to_string()));
            continue;
        }
        let parsed = parsed.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((&parsed.unknown_keys, parsed.toml_1_1), (&Vec::new(), None), "{name}");
        let written = parsed.description.to_bytes().unwrap();
        let again = Description::parse(&written, &Limits::default()).unwrap();
        assert_eq!(again.description, parsed.description, "{name}");
    }
    refused.sort();
    let expected = [
        (
            "invalid_self_test_2_expect_failure",
            "carton.toml line 15: self_test[0].inputs.x is \"@...\", expected \
             \"@tensor_data/<name>\"",
        ),
        (
            "invalid_self_test_expect_failure",
            "carton.toml line 14: self_test[0].inputs.x is \
             \"@misc/self_tests_cannot_reference_misc\", expected \"@tensor_data/<name>\"",
        ),
        (
            "required_platforms_expect_failure",
            "carton.toml line 8: required_platforms[4] is \"aninvalidplatform\", expected a \
             target triple, such as x86_64-unknown-linux-gnu",
        ),
    ];
    assert_eq!(refused, expected.map(|(name, message)| (name.to_owned(), message.to_owned())));
}
