//! What is found in connections, and what stops onert: each was seen by running onert 0.1.0.

use std::{fs, path::Path};

use circle_format::{
    Writer,
    model::{
        BuiltinOperator, ModelBuilder, Operator, Schema, Tensor, TensorType, options::AddOptions,
    },
};
use nnpackage::Reader;
use serde_json::{Value as Json, json};

/// Writes a package of so many models of one input and one output each.
fn package(folder: &Path, models: usize, inputs: &[&str], outputs: &[&str], edges: &Json) {
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x", TensorType::Float32, [1, 2]));
    let sum = graph.output(Tensor::new("sum", TensorType::Float32, [1, 2]));
    let add = Operator::new([x, x], [sum]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    graph.finish();
    let bytes = Writer::new(Vec::new(), &model.finish()).finish().unwrap();
    let names: Vec<_> = (0..models).map(|index| format!("{index}.circle")).collect();
    for name in &names {
        fs::write(folder.join(name), &bytes).unwrap();
    }
    let manifest = json!({
        "major-version": "1",
        "minor-version": "3",
        "patch-version": "0",
        "models": names,
        "model-types": vec!["circle"; models],
        "pkg-inputs": inputs,
        "pkg-outputs": outputs,
        "model-connect": edges,
    });
    fs::create_dir(folder.join("metadata")).unwrap();
    fs::write(folder.join("metadata/MANIFEST"), manifest.to_string()).unwrap();
}

#[test]
fn what_stops_onert() {
    let edge = |from: &str, to: &[&str]| json!({"from": from, "to": to});
    let straight = json!([edge("0:0:0", &["1:0:0"])]);
    let no_edge = "fails to run: \"Cannot find edge for model input\"";
    let crash = "crashes while running";
    let garbage = "goes on with wrong data";
    type Case<'a> = (usize, &'a [&'a str], &'a [&'a str], Json, &'a [&'a str], &'a str);
    let cases: [Case<'_>; 8] = [
        (2, &["0:0:0"], &["1:0:0"], straight.clone(), &[], "runs"),
        (2, &["0:0:0"], &["0:0:0"], json!([]), &["nnp/input-unfed", "nnp/unused-model"], no_edge),
        (2, &["0:0:0"], &["1:0:0"], json!([]), &["nnp/input-unfed", "nnp/unused-model"], crash),
        (
            3,
            &["0:0:0"],
            &["2:0:0"],
            json!([edge("0:0:0", &["1:0:0", "2:0:0"])]),
            &["nnp/unused-model"],
            crash,
        ),
        (2, &["0:0:0"], &[], straight.clone(), &["nnp/unused-model", "nnp/no-outputs"], crash),
        (
            3,
            &["0:0:0"],
            &["2:0:0"],
            json!([edge("0:0:0", &["1:0:0", "2:0:0"]), edge("1:0:0", &["2:0:0"])]),
            &["nnp/input-fed-twice"],
            garbage,
        ),
        (2, &["0:0:0", "0:0:0"], &["1:0:0"], straight.clone(), &["nnp/reference-twice"], garbage),
        (2, &["0:0:0"], &["1:0:0", "1:0:0"], straight, &["nnp/reference-twice"], garbage),
    ];
    for (at, (models, inputs, outputs, edges, rules, onert)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        package(folder.path(), models, inputs, outputs, &edges);
        let reader = Reader::open(folder.path()).unwrap();
        let found = reader.diagnoses();
        let found = found.iter().map(|found| &found.finding.rule[..]);
        let found: Vec<_> = found.filter(|rule| *rule != "nnp/multi-model").collect();
        assert_eq!(found, rules, "case {at}");
        let forecast = reader.forecast().map_or_else(|| "runs".to_owned(), |of| of.to_string());
        assert_eq!(forecast, onert, "case {at}");
    }
}
