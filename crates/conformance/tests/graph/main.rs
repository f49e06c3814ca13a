//! Graphs are what others see in the same files: node by node, edge by edge.

use std::path::{Path, PathBuf};

use conformance::python::Client;
use modelcrate::{
    AnyReader,
    graph::{Graph, Subgraph},
    rten_format::{self, onnx::Export},
    tensor_core::{
        Source,
        symbolic::{Dim, SymbolicShape},
    },
};
use serde_json::{Value as Json, json};
use test_support::files;

/// Returns what the script prints of files, with the graphs that we see in them.
#[track_caller]
fn read(client: Client, kind: &str, paths: &[PathBuf]) -> Vec<(PathBuf, Graph, Json)> {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let args: Vec<&Path> = [Path::new(kind)].into_iter().chain(paths.iter().copied()).collect();
    let Some(Json::Array(printed)) = client.run("graph_read.py", &args) else { return Vec::new() };
    assert_eq!(printed.len(), paths.len());
    let graph = |path: &Path| {
        let reader = AnyReader::open(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Graph::of(&reader).unwrap().unwrap()
    };
    paths
        .into_iter()
        .zip(printed)
        .map(|(path, json)| (path.to_owned(), graph(path), json))
        .collect()
}

/// Returns a graph in the words of the script, with `position` of a value in the place of its place.
fn nodes(graph: &Subgraph, position: impl Fn(usize) -> usize) -> Json {
    let list = |list: &[Option<usize>]| -> Json {
        list.iter().map(|at| at.map(&position)).map(|at| json!(at)).collect()
    };
    graph
        .nodes
        .iter()
        .map(|node| json!([node.operator, list(&node.inputs), list(&node.outputs)]))
        .collect()
}

fn ends(graph: &Subgraph, position: impl Fn(usize) -> usize) -> Json {
    [&graph.inputs, &graph.outputs]
        .map(|list| list.iter().map(|at| position(*at)).collect::<Vec<_>>())
        .iter()
        .map(|list| json!(list))
        .collect()
}

/// The shape as numbers, -1 for a dimension that is not known.
fn shape(shape: Option<&SymbolicShape>) -> Json {
    let Some(SymbolicShape::Dims(dims)) = shape else { return Json::Null };
    let dim = |dim: &Dim| match dim {
        Dim::Fixed(elements) => json!(elements),
        _ => json!(-1),
    };
    dims.iter().map(dim).collect()
}

#[test]
fn circle_and_tflite_models() {
    let mut compared = 0;
    let tflite = Client::models().into_iter().chain(files("nnpackage/valid", "tflite"));
    for (client, kind, paths) in [
        (Client::TFLITE, "tflite", tflite.collect::<Vec<_>>()),
        (Client::CIRCLE_SCHEMA, "circle", files("nnpackage/valid", "circle")),
    ] {
        for (path, graph, json) in read(client, kind, &paths) {
            assert_eq!(json.as_array().unwrap().len(), graph.subgraphs.len(), "{path:?}");
            for (graph, json) in graph.subgraphs.iter().zip(json.as_array().unwrap()) {
                let values = graph.values.iter();
                let values = values.map(|value| json!([value.name, shape(value.shape.as_ref())]));
                let named = |of: &Json| of.as_array().cloned().unwrap_or_default();
                let theirs = named(&json["values"]).into_iter().map(|value| {
                    // An empty name is none to us.
                    match &value[0] {
                        Json::String(name) if name.is_empty() => json!([null, value[1]]),
                        _ => value,
                    }
                });
                assert_eq!(values.collect::<Json>(), theirs.collect::<Json>(), "{path:?}");
                assert_eq!(nodes(graph, |at| at), json["nodes"], "{path:?}");
                assert_eq!(ends(graph, |at| at), json["ends"], "{path:?}");
                compared += graph.nodes.len();
            }
        }
    }
    println!("{compared} nodes of Circle and TFLite models");
}

/// The main graphs: of what operators hold the script sees nothing.
#[test]
fn rten_models() {
    let paths = files("rten/valid", "rten");
    let (mut compared, mut unknown) = (0, 0);
    for (path, graph, json) in read(Client::RTEN_CONVERT, "rten", &paths) {
        let (graph, mut json) = (&graph.subgraphs[0], json[0].clone());
        let position = |at: usize| graph.values[at].id;
        // Operators since release 0.22.
        for (node, theirs) in graph.nodes.iter().zip(json["nodes"].as_array_mut().unwrap()) {
            if theirs[0].is_null() {
                theirs[0] = json!(node.operator);
                unknown += 1;
            }
        }
        assert_eq!(nodes(graph, position), json["nodes"], "{path:?}");
        assert_eq!(ends(graph, position), json["ends"], "{path:?}");
        for value in &graph.values {
            let theirs = &json["values"][value.id];
            let name = theirs[0].as_str().filter(|name| !name.is_empty());
            assert_eq!(value.name.as_deref(), name, "{path:?}");
            if value.constant.is_some() {
                assert_eq!(shape(value.shape.as_ref()), theirs[1], "{path:?}");
            }
        }
        compared += graph.nodes.len();
    }
    assert!(unknown * 4 <= compared, "{unknown} of {compared} operators are unknown");
    println!("{compared} nodes of RTen models");
}

/// Returns a graph of ours in the words of the script, by the names of values.
fn named(graph: &Graph, index: usize) -> Json {
    let subgraph = &graph.subgraphs[index];
    let name = |at: &usize| subgraph.values[*at].name.clone();
    let list = |list: &[Option<usize>]| -> Vec<Option<String>> {
        list.iter().map(|at| at.as_ref().and_then(name)).collect()
    };
    let nodes = subgraph.nodes.iter().map(|node| {
        let bodies = node.bodies.iter().map(|body| named(graph, *body)).collect::<Json>();
        json!([node.operator, node.name, list(&node.inputs), list(&node.outputs), bodies])
    });
    let ends = [&subgraph.inputs, &subgraph.outputs];
    let ends = ends.map(|ends| ends.iter().map(name).collect::<Vec<_>>());
    let constants = subgraph.values.iter().filter(|value| value.outer.is_none());
    let constants = constants.filter(|value| value.constant.is_some());
    let constants: serde_json::Map<String, Json> =
        constants.map(|of| (of.name.clone().unwrap(), shape(of.shape.as_ref()))).collect();
    json!({
        "name": subgraph.name,
        "nodes": nodes.collect::<Json>(),
        "ends": ends,
        "constants": constants,
    })
}

/// Exports are what `onnx` sees in them, and have the operators and edges of the models that they were.
#[test]
fn onnx_exports() {
    let folder = tempfile::tempdir().unwrap();
    let models = files("rten/valid", "rten");
    let exports = models.iter().map(|model| {
        let reader = rten_format::Reader::open(model).unwrap();
        let path = folder.path().join(model.file_name().unwrap()).with_extension("onnx");
        Export::new(&reader).write(&path).unwrap();
        path
    });
    let exports: Vec<PathBuf> = exports.collect();
    let args: Vec<&Path> =
        [Path::new("onnx")].into_iter().chain(exports.iter().map(PathBuf::as_path)).collect();
    let Some(Json::Array(printed)) = Client::ONNX_RUNTIME.run("graph_read.py", &args) else {
        return;
    };
    let mut compared = 0;
    for ((model, export), theirs) in models.iter().zip(&exports).zip(&printed) {
        let graph = Graph::of_onnx(&Source::open(export).unwrap()).unwrap();
        assert_eq!(named(&graph, 0), theirs[0], "{model:?}");
        let rten = Graph::of(&AnyReader::open(model).unwrap()).unwrap().unwrap();
        compared += same_operators(&named(&rten, 0), &theirs[0], model);
    }
    println!("{compared} operators of RTen models and their exports");
}

/// Compares operators with those of an export: by what they make, as others may stand between.
fn same_operators(ours: &Json, theirs: &Json, model: &Path) -> usize {
    let nodes = |of: &Json| of["nodes"].as_array().cloned().unwrap();
    let mut compared = 0;
    for node in nodes(ours) {
        // One that nothing reads may have no name in the one and a name in the other.
        let made =
            |of: &Json| of[3].as_array().unwrap().iter().find(|name| name.is_string()).cloned();
        let makes = |found: &Json| {
            made(&node).is_some_and(|name| found[3].as_array().unwrap().contains(&name))
        };
        let Some(found) = nodes(theirs).into_iter().find(makes) else {
            panic!("{model:?}: nothing makes {}", node[3]);
        };
        let operator = match node[0].as_str().unwrap() {
            "Upsample" => "Resize",
            "Scatter" => "ScatterElements",
            operator => operator,
        };
        assert_eq!(found[0], operator, "{model:?}");
        // Attributes of ours may be inputs of theirs.
        let inputs = |of: &Json| {
            of[2]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(Json::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let (ours, theirs) = (inputs(&node), inputs(&found));
        assert!(theirs.starts_with(&ours), "{model:?}: {ours:?}, {theirs:?}");
        compared += 1;
        for (ours, theirs) in node[4].as_array().unwrap().iter().zip(found[4].as_array().unwrap()) {
            compared += same_operators(ours, theirs, model);
        }
    }
    compared
}
