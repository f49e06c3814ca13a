//! The two numbers of an operator code, and what is said of pairs that do not fit.

use circle_format::{
    Reader,
    model::{BuiltinOperator, ModelBuilder, OperatorCode, Schema},
};

/// Returns what is found about a code in a model.
fn found(schema: Schema, deprecated: i8, builtin: i32) -> Vec<String> {
    let mut model = ModelBuilder::new(schema);
    model.subgraph("main").finish();
    let mut model = model.finish();
    model.operator_codes.push(OperatorCode {
        deprecated_builtin_code: deprecated,
        builtin_code: BuiltinOperator::from_code(builtin),
        ..OperatorCode::default()
    });
    let bytes = model.to_bytes().unwrap();
    let diagnoses = Reader::from_bytes(bytes).unwrap().diagnoses();
    let diagnoses =
        diagnoses.into_iter().filter(|found| found.finding.rule.contains("operator-code"));
    diagnoses.map(|found| format!("{} {}", found.finding.rule, found.finding.message)).collect()
}

#[test]
fn conforming_pairs() {
    for (deprecated, builtin) in [(0, 0), (41, 41), (126, 126), (127, 128), (127, 209)] {
        for schema in [Schema::Circle, Schema::Tflite] {
            assert_eq!(found(schema, deprecated, builtin), [""; 0], "{deprecated} {builtin}");
        }
    }
    assert_eq!(found(Schema::Circle, -6, -6), [""; 0]);
}

/// Circle before 0.4, with BCQ operators since 0.2, and TFLite before TF 2.3.
#[test]
fn old_files_have_one_number() {
    assert_eq!(found(Schema::Circle, 41, 0), [""; 0]);
    assert_eq!(found(Schema::Circle, -4, 0), [""; 0]);
    assert_eq!(found(Schema::Tflite, 41, 0), [""; 0]);
}

/// onert 0.1.0 ran a model with the codes 0 and -6, and one with 0 and 41, as ADD.
#[test]
fn pairs_that_contradict_each_other() {
    for (schema, deprecated, builtin, message) in [
        (Schema::Circle, 0, 41, "the codes 0 and 41, of which onert makes ADD and TFLite SUB"),
        (
            Schema::Circle,
            0,
            -6,
            "the codes 0 and -6, of which onert makes ADD; for RMS_NORM they would be -6 and -6",
        ),
        (
            Schema::Tflite,
            50,
            150,
            "the codes 50 and 150, of which onert makes GELU; for GELU they would be 127 and 150",
        ),
    ] {
        let expected = format!("model/operator-code-conflict has {message}");
        assert_eq!(found(schema, deprecated, builtin), [expected]);
    }
}
