//! What the fuzz target `ptl_spec` does with its input; a test of the crate replays the corpus.

use ptl_spec::{Dialect, Json, Param, ParamKind, Params, Spec, Value};

/// Reads any bytes as a spec, calls it with parameters of the kinds that it asks for, and gives its
/// own input back to it as the model's output: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    for dialect in [Dialect::Documented, Dialect::Android] {
        let options = Spec::options().dialect(dialect);
        let report = options.clone().lint(bytes);
        let Ok(spec) = options.parse(bytes) else {
            assert!(!report.is_valid());
            continue;
        };
        let signature = spec.signature();
        let _ = (signature.to_string(), signature.json_schema());
        let again = Spec::options().dialect(dialect).parse(spec.to_text());
        assert_eq!(again.expect("what was read can be written").json(), spec.json());
        let mut params = Params::new();
        for parameter in &signature.parameters {
            params.insert(parameter.name.clone(), param(parameter.kind));
        }
        let Ok(mut call) = spec.call(&params) else { continue };
        let output = call.pack().unwrap_or(Value::None);
        let _ = call.unpack(&output);
    }
}

fn param(kind: ParamKind) -> Param {
    match kind {
        ParamKind::Audio => Param::Audio(vec![1, -1]),
        ParamKind::Integer | ParamKind::Number | ParamKind::Any => 2.into(),
        ParamKind::Boolean => true.into(),
        ParamKind::Colour => "#00FF00".into(),
        ParamKind::NumberList | ParamKind::IntegerList => Json::from(vec![1, 2, 3]).into(),
        ParamKind::StringList => Json::from(vec!["a", "b"]).into(),
        _ => "Who was [SEP] Jim? héllo 12".into(),
    }
}
