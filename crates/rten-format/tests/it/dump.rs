//! Everything in a file is shown, and nothing in it can pass for what it is not.

use rten_format::{Graph, Model, Node, Reader, Value};

fn dump(file: &str) -> String {
    let path = test_support::testdata("rten/valid").join(file);
    Reader::open(path).unwrap().model().dump().to_string()
}

#[test]
fn text_of_a_perceptron() {
    assert_eq!(dump("mlp.v2.rten"), include_str!("dump/mlp.txt"));
}

#[test]
fn subgraphs_are_indented() {
    assert_eq!(dump("control_flow.v2.rten"), include_str!("dump/control_flow.txt"));
}

#[test]
fn names_make_no_lines() {
    let node = Node::named("a\nb\u{202e}\u{1b}[0m", Value::default());
    let graph = Graph { nodes: vec![node], ..Graph::default() };
    let model = Model { graph, metadata: None };
    assert_eq!(
        model.dump().to_string(),
        "graph\n  inputs = []\n  outputs = []\n  captures = []\n  \
         0 \"a\\nb\\u{202e}\\u{1b}[0m\" value\n"
    );
}

#[test]
fn every_real_file_is_written() {
    for path in test_support::files("rten/valid", "rten") {
        let reader = Reader::open(&path).unwrap();
        let model = reader.model();
        let operators = model.totals().operators as usize;
        let lines = model.dump().to_string().lines().filter(|line| line.contains(") -> (")).count();
        assert_eq!(lines, operators, "{path:?}");
    }
}

#[cfg(feature = "serde")]
mod data {
    use serde_json::Value as Json;

    use super::*;

    /// Compares names and kinds of all nodes, attributes, and values of constants with the facts.
    fn assert_graph(found: &Json, facts: &Json, at: &str) {
        for list in ["inputs", "outputs"] {
            assert_eq!(found[list], facts[list], "{at}");
        }
        let (nodes, facts) =
            (found["nodes"].as_array().unwrap(), facts["nodes"].as_array().unwrap());
        assert_eq!(nodes.len(), facts.len(), "{at}");
        for (node, facts) in nodes.iter().zip(facts) {
            let at = format!("{at}, node {}", facts["index"]);
            assert_eq!(node["name"], facts["name"], "{at}");
            match node["kind"].as_str().unwrap() {
                "operator" => {
                    for (field, fact) in
                        [("operator", "op"), ("inputs", "inputs"), ("outputs", "outputs")]
                    {
                        assert_eq!(node[field], facts[fact], "{at}");
                    }
                    for (field, value) in node["attributes"].as_object().into_iter().flatten() {
                        let fact = &facts["attrs"][field];
                        match value {
                            Json::Object(_) => assert_graph(value, fact, &at),
                            _ => assert_eq!(value, fact, "{at}, {field}"),
                        }
                    }
                }
                "constant" => {
                    assert_eq!(node["shape"], facts["shape"], "{at}");
                    assert_eq!(node["dtype"], facts["dtype"], "{at}");
                    assert_eq!(node["data_offset"], facts["data_offset"], "{at}");
                    let elements = facts["elements"].as_u64();
                    let elements = elements.filter(|_| facts["inline_data"] != "NONE");
                    assert_eq!(node["inline_elements"].as_u64(), elements, "{at}");
                    let shown = node["inline"].as_array().map(|shown| shown.len() as u64);
                    assert_eq!(shown, elements.filter(|elements| *elements <= 64), "{at}");
                }
                kind => {
                    assert_eq!(kind, "value", "{at}");
                    assert_eq!(node["shape"], facts["shape"], "{at}");
                    assert_eq!(node["dtype"], facts["dtype"], "{at}");
                }
            }
        }
    }

    #[test]
    fn data_is_as_the_facts_say() {
        for path in test_support::files("rten/valid", "rten") {
            let facts = std::fs::read(path.with_extension("facts.json")).unwrap();
            let facts: Json = serde_json::from_slice(&facts).unwrap();
            let found = serde_json::to_value(Reader::open(&path).unwrap().model()).unwrap();
            let at = path.display().to_string();
            assert_eq!(found["metadata"], facts["metadata"], "{at}");
            assert_graph(&found["graph"], &facts["graph"], &at);
        }
    }
}
