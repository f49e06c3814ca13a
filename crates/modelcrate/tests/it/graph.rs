//! Graphs of files of every format.

use std::time::Instant;

use modelcrate::{
    AnyReader,
    graph::{Graph, Selection, Subgraph},
    model_archive::{ArchiveWriter, EntryOptions},
    rten_format::{self, Model, Node, NodeKind, Operator, OperatorType, Value},
    tensor_core::TensorBuf,
    ztensor,
};
use test_support::{files, testdata};

fn graph(path: &std::path::Path) -> Option<Graph> {
    Graph::of(&AnyReader::open(path).unwrap()).unwrap()
}

/// Asserts that positions lead somewhere, and that every drawing can be made.
fn check(name: &str, graph: &Graph) {
    for subgraph in &graph.subgraphs {
        let is_value = |at: &usize| *at < subgraph.values.len();
        assert!(subgraph.inputs.iter().chain(&subgraph.outputs).all(is_value), "{name}");
        for node in &subgraph.nodes {
            let mut values = node.inputs.iter().chain(&node.outputs).flatten();
            assert!(values.all(is_value), "{name}: {node:?}");
            assert!(node.bodies.iter().all(|body| *body < graph.subgraphs.len()), "{name}");
        }
        for outer in subgraph.values.iter().filter_map(|value| value.outer) {
            let values = &graph.subgraphs[outer.subgraph].values;
            assert!(outer.value < values.len(), "{name}");
        }
    }
    assert!(graph.dot().starts_with("digraph "));
    assert!(graph.mermaid().starts_with("flowchart "));
    assert_eq!(graph.to_string().matches("graph ").count() > 0, !graph.subgraphs.is_empty());
    let svg = graph.svg().unwrap_or_else(|error| panic!("{name}: {error}"));
    let drawn = graph.subgraphs.iter().map(|graph| graph.nodes.len() + graph.inputs.len());
    assert_eq!(svg.contains("<g class=\"node "), drawn.sum::<usize>() > 0, "{name}");
    assert_eq!(svg, graph.svg().unwrap(), "{name}: another picture of the same graph");
    for levels in 0..=graph.levels() {
        let collapsed = graph.collapsed(levels);
        assert!(collapsed.node_count() <= graph.node_count());
        captures_lead_to_their_names(name, &collapsed);
    }
    captures_lead_to_their_names(name, graph);
}

fn captures_lead_to_their_names(name: &str, graph: &Graph) {
    for value in graph.subgraphs.iter().flat_map(|graph| &graph.values) {
        if let Some(outer) = value.outer {
            let source = &graph.subgraphs[outer.subgraph].values[outer.value];
            assert_eq!(source.name, value.name, "{name}");
            // A constant is one wherever it is read.
            assert_eq!(source.constant, value.constant, "{name}");
        }
    }
}

/// What bodies read counts as read by the operator that holds them.
#[test]
fn parts_follow_what_bodies_read() {
    let graph = graph(&testdata("rten/valid/control_flow.v2.rten")).unwrap();
    let captures = |graph: &Graph| {
        let values = graph.subgraphs.iter().flat_map(|graph| &graph.values);
        values.filter(|value| value.outer.is_some()).count()
    };
    // Constants are a part of the group that reads them.
    assert_eq!((captures(&graph), captures(&graph.collapsed(1))), (7, 5));
    let part = graph.select(&Selection::default().to(|name| name == "branch")).unwrap();
    captures_lead_to_their_names("part", &part);
    let main = &part.subgraphs[0];
    let inputs: Vec<Option<usize>> = main.inputs.iter().copied().map(Some).collect();
    assert_eq!(named(main, &inputs), ["cond", "x"]);
    assert_eq!(captures(&part), 6);
}

/// Parts that do not hang together are placed one at a time.
#[test]
fn many_nodes_apart_are_drawn() {
    let mut graph = rten_format::Graph::default();
    for _ in 0..10_000 {
        let operator = Operator {
            operator_type: OperatorType::Relu,
            attributes: None,
            inputs: vec![],
            outputs: vec![],
        };
        graph.nodes.push(Node { name: None, kind: NodeKind::Operator(operator) });
    }
    let bytes = Model { graph, metadata: None }.to_bytes().unwrap();
    let graph = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    let start = Instant::now();
    assert_eq!(graph.svg().unwrap().matches("data-node=\"").count(), 10_000);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn every_model_of_the_test_data_is_drawn() {
    let mut drawn = 0;
    for (folder, ends) in [
        ("rten/valid", ["rten", "rten"]),
        ("nnpackage/valid", ["circle", "tflite"]),
        ("nnpackage/valid", ["zip", "zip"]),
        ("ptl/valid/torch113", ["ptl", "ptl"]),
        ("ptl/valid/torch251", ["ptl", "ptl"]),
        ("ptl/valid/backport", ["ptl", "ptl"]),
        ("carton/valid", ["carton", "carton"]),
    ] {
        let paths = files(folder, ends[0]).into_iter();
        let paths: Vec<_> = match ends {
            [one, other] if one == other => paths.collect(),
            [_, other] => paths.chain(files(folder, other)).collect(),
        };
        assert!(!paths.is_empty(), "{folder}");
        for path in paths {
            let graph = graph(&path).unwrap_or_else(|| panic!("{path:?} has no graph"));
            check(&path.display().to_string(), &graph);
            drawn += 1;
        }
    }
    assert!(drawn > 60, "{drawn}");
}

#[test]
fn files_of_tensors_have_none() {
    let mut writer = ztensor::Writer::new(Vec::new());
    writer.add("w", &TensorBuf::from_slice([2], &[1.0_f32, 2.0]).unwrap()).unwrap();
    let reader = AnyReader::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(Graph::of(&reader).unwrap(), None);
}

fn named<'a>(graph: &'a Subgraph, list: &[Option<usize>]) -> Vec<&'a str> {
    let name = |at: &Option<usize>| match at.map(|at| &graph.values[at]) {
        None => "none",
        Some(value) => {
            let text = value.constant.as_ref().and_then(|constant| constant.text.as_deref());
            value.name.as_deref().or(text).unwrap_or("?")
        }
    };
    list.iter().map(name).collect()
}

/// The same code in both containers: what instructions load are attributes by their names.
#[test]
fn methods_of_both_containers() {
    for file in ["img.ptl", "img_fb.ptl"] {
        let graph = graph(&testdata("ptl/valid/torch251").join(file)).unwrap();
        let [forward, modules] = &graph.subgraphs[..] else { panic!("{graph}") };
        assert_eq!((forward.name.as_str(), modules.name.as_str()), ("forward", "modules"));
        let operators: Vec<&str> = forward.nodes.iter().map(|node| &*node.operator).collect();
        let expected = ["aten::conv2d", "aten::relu", "aten::mean.dim", "aten::t", "aten::addmm"];
        assert_eq!(operators, expected, "{file}");
        let conv = named(forward, &forward.nodes[0].inputs);
        let expected = ["x", "conv_weight", "conv_bias", "[1, 1]", "[1, 1]", "[1, 1]"];
        assert_eq!(conv, expected, "{file}");
        let weight = &forward.values[forward.nodes[0].inputs[1].unwrap()];
        assert_eq!(weight.type_text(), "f32 [4, 3, 3, 3]");
        assert_eq!(forward.nodes[4].outputs, [Some(forward.outputs[0])]);
        assert_eq!(modules.nodes[0].bodies, [0]);
    }
}

/// A value of a pickle.
enum Pickled {
    Int(i32),
    True,
    Text(&'static str),
    Tuple(Vec<Pickled>),
}

use Pickled::{Int, Text, True, Tuple};

impl Pickled {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Int(number) => {
                out.push(b'J');
                out.extend(number.to_le_bytes());
            }
            True => out.push(0x88),
            Text(text) => {
                out.push(b'X');
                out.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
                out.extend(text.as_bytes());
            }
            Tuple(items) => {
                out.push(b'(');
                items.iter().for_each(|item| item.write(out));
                out.push(b't');
            }
        }
    }
}

/// Returns a model whose only method has some instructions.
fn method(
    instructions: &[(&'static str, i32, i32)],
    operators: &[&'static str],
    constants: Vec<Pickled>,
) -> Vec<u8> {
    let instruction =
        |&(name, x, n): &(&'static str, i32, i32)| Tuple(vec![Text(name), Int(x), Int(n)]);
    let operator = |name: &&'static str| Tuple(vec![Text(name), Text(""), Int(1)]);
    let pair = |name, value| Tuple(vec![Text(name), value]);
    let typed =
        |name, type_name| Tuple(vec![pair("name", Text(name)), pair("type", Text(type_name))]);
    let arguments = Tuple(vec![typed("self", "Net"), typed("x", "Tensor"), typed("c", "bool")]);
    let body = Tuple(vec![
        pair("instructions", Tuple(instructions.iter().map(instruction).collect())),
        pair("operators", Tuple(operators.iter().map(operator).collect())),
        pair("constants", Tuple(constants)),
        pair("types", Tuple(vec![])),
        pair("register_size", Int(8)),
    ]);
    let schema = Tuple(vec![pair("arguments", arguments), pair("returns", Tuple(vec![]))]);
    let code = Tuple(vec![Int(8), Tuple(vec![Text("__torch__.Net.forward"), body, schema])]);
    let mut bytecode = b"\x80\x02".to_vec();
    code.write(&mut bytecode);
    bytecode.push(b'.');
    let mut writer = ArchiveWriter::new(Vec::new());
    for (name, content) in [
        ("net/data.pkl", &b"\x80\x02c__torch__\nNet\n)\x81}b."[..]),
        ("net/bytecode.pkl", &bytecode),
        ("net/version", b"3\n"),
    ] {
        writer.add(name, content, &EntryOptions::default()).unwrap();
    }
    writer.finish().unwrap()
}

/// `r = relu(x) if c else neg(x)`, and ten times relu of it.
#[test]
fn branches_and_loops_of_methods() {
    let bytes = method(
        &[
            ("STOREN", 1, 3),
            ("LOAD", 3, 0),
            ("JF", 4, 0),
            ("LOAD", 2, 0),
            ("OP", 0, 0),
            ("JMP", 3, 0),
            ("LOAD", 2, 0),
            ("OP", 1, 0),
            ("STORE", 4, 0),
            ("LOADC", 0, 0),
            ("LOADC", 1, 0),
            ("LOADC", 2, 0),
            ("LOAD", 4, 0),
            ("LOOP", 6, 3),
            ("STOREN", 5, 2),
            ("LOADC", 2, 0),
            ("LOAD", 6, 0),
            ("OP", 0, 0),
            ("JMP", -5, 0),
            ("STORE", 7, 0),
            ("LOAD", 7, 0),
            ("RET", 0, 0),
        ],
        &["aten::relu", "aten::neg"],
        vec![Int(0), Int(10), True],
    );
    let graph = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    check("branches and loops", &graph);
    let text = graph.to_string();
    let expected = "\
graph 0 \"forward\"
  input   \"x\": Tensor
  input   \"c\": bool
  output  #5
       0  If: \"c\" -> #2
          graphs 1, 2
       1  Loop: #3, #4, #2 -> #5
          graphs 3
  constant #3 = 10
  constant #4 = True

graph 1 \"then\"
  output  #1
       0  aten::relu: \"x\" -> #1

graph 2 \"else\"
  output  #1
       0  aten::neg: \"x\" -> #1

graph 3 \"body\"
  input   \"iteration\"
  input   \"carried 1\"
  output  #3
  output  #2
       0  aten::relu: \"carried 1\" -> #2
  constant #3 = True
";
    assert!(text.starts_with(expected), "{text}");
}

/// Code that jumps as no compiler makes it is drawn all the same.
#[test]
fn odd_jumps_are_drawn_as_jumps() {
    for instructions in [
        &[("JF", -1, 0), ("LOOP", 1, 65_535), ("JMP", i32::MAX, 0), ("OP", 7, 0)][..],
        &[("STOREN", 1, 65_535), ("OP", 0, 0), ("STOREN", 1, 65_535), ("LIST_UNPACK", i32::MAX, 0)],
        &[("JF", 2, 0), ("JMP", 1, 0), ("RET", 0, 0), ("BOGUS", 1, 1)],
    ] {
        let bytes = method(instructions, &["aten::relu"], vec![]);
        let graph = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
        check("odd jumps", &graph);
        let values: usize = graph.subgraphs.iter().map(|graph| graph.values.len()).sum();
        assert!(values < 2000, "{values}");
    }
}

#[test]
fn operators_with_bodies_have_them() {
    let graph = graph(&testdata("rten/valid/control_flow.v2.rten")).unwrap();
    let main = &graph.subgraphs[0];
    let bodies: Vec<_> = main.nodes.iter().map(|node| node.bodies.clone()).collect();
    assert_eq!(bodies, [vec![1, 2], vec![5]]);
    let then = &graph.subgraphs[1];
    let outer = then.values.iter().find_map(|value| value.outer).unwrap();
    assert_eq!(main.values[outer.value].name.as_deref(), Some("x"));
}

/// A model of layers as transformers have them, with values that go past all of them.
fn large(layers: usize) -> Model {
    let mut graph = rten_format::Graph::default();
    let value = |graph: &mut rten_format::Graph| {
        graph.nodes.push(Node::named(format!("v{}", graph.nodes.len()), Value::default()));
        u32::try_from(graph.nodes.len() - 1).unwrap()
    };
    let (input, mask) = (value(&mut graph), value(&mut graph));
    graph.inputs = vec![input, mask];
    let mut last = input;
    for layer in 0..layers {
        let mut add = |name: &str, inputs: &[u32]| {
            let output = value(&mut graph);
            let operator = Operator {
                operator_type: OperatorType::Add,
                attributes: None,
                inputs: inputs.iter().copied().map(Some).collect(),
                outputs: vec![Some(output)],
            };
            graph.nodes.push(Node::named(format!("/layer.{layer}/{name}"), operator));
            output
        };
        let norm = add("norm", &[last]);
        let heads: Vec<u32> = ["q", "k", "v"]
            .iter()
            .map(|head| {
                let product = add(&format!("attention/{head}/product"), &[norm]);
                let sum = add(&format!("attention/{head}/sum"), &[product]);
                add(&format!("attention/{head}/order"), &[sum])
            })
            .collect();
        let scores = add("attention/scores", &heads[..2]);
        let masked = add("attention/masked", &[scores, mask]);
        let mixed = add("attention/mixed", &[masked, heads[2]]);
        let out = add("residual", &[mixed, last]);
        last = add("output", &[out]);
    }
    graph.outputs = vec![last];
    Model { graph, metadata: None }
}

#[test]
fn three_thousand_nodes_are_drawn_in_seconds() {
    let bytes = large(200).to_bytes().unwrap();
    let graph = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    assert_eq!((graph.node_count(), graph.levels()), (3000, 3));
    let start = Instant::now();
    let svg = graph.svg().unwrap();
    let took = start.elapsed();
    assert_eq!(svg.matches("data-node=\"").count(), 3000);
    // A mask that is read 200 layers further down is a reference there.
    assert!(svg.contains("class=\"node reference\""));
    // Without optimisation, and beside other tests.
    assert!(took.as_secs() < 20, "{took:?}");
    let layers = graph.collapsed(1);
    assert_eq!(layers.node_count(), 200);
    assert_eq!(layers.subgraphs[0].nodes[7].attributes["Add"], 15);
}

/// What a hostile file can ask for is refused, or done in bounded time.
#[test]
fn large_and_dense_graphs_are_refused_or_drawn() {
    // All lead to all.
    let mut graph = rten_format::Graph::default();
    let count = 60_u32;
    for id in 0..count {
        graph.nodes.push(Node::named(format!("v{id}"), Value::default()));
    }
    for id in 0..count {
        let operator = Operator {
            operator_type: OperatorType::Add,
            attributes: None,
            inputs: (0..count).map(Some).collect(),
            outputs: vec![Some(id)],
        };
        graph.nodes.push(Node { name: None, kind: NodeKind::Operator(operator) });
    }
    graph.outputs = (0..count).collect();
    let bytes = Model { graph, metadata: None }.to_bytes().unwrap();
    let found = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    let start = Instant::now();
    assert!(found.svg().unwrap().contains("data-node=\"59\""));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    let bytes = large(1500).to_bytes().unwrap();
    let found = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    let error = found.svg().unwrap_err().to_string();
    assert!(error.starts_with("the model has 22500 nodes, more than can be laid out"), "{error}");
    assert!(found.collapsed(1).svg().is_ok());
}

/// Values that are read here and there, so that lines cross whatever the order is.
#[test]
fn tangled_graphs_are_drawn_in_seconds() {
    let mut graph = rten_format::Graph::default();
    graph.nodes.push(Node::named("x", Value::default()));
    graph.inputs = vec![0];
    let (mut values, mut random) = (vec![0_u32], 1_u32);
    for at in 0..3000 {
        let inputs = [0; 2].map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let back = (random >> 16) as usize % values.len().min(30);
            Some(values[values.len() - 1 - back])
        });
        let made = u32::try_from(graph.nodes.len()).unwrap();
        graph.nodes.push(Node::named(format!("v{at}"), Value::default()));
        let operator = Operator {
            operator_type: OperatorType::Add,
            attributes: None,
            inputs: inputs.to_vec(),
            outputs: vec![Some(made)],
        };
        graph.nodes.push(Node { name: None, kind: NodeKind::Operator(operator) });
        values.push(made);
    }
    let bytes = Model { graph, metadata: None }.to_bytes().unwrap();
    let found = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    let start = Instant::now();
    assert_eq!(found.svg().unwrap().matches("data-node=\"").count(), 3000);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

/// Many operators that make, and many that read, one value of a long name and a high rank.
#[test]
fn long_names_are_cut_where_they_would_stand_often() {
    let shape = Some(vec![rten_format::Dim::Fixed(1); 10_000]);
    let mut nodes = vec![Node::named("n".repeat(100_000), Value { shape, dtype: None })];
    let operator = |inputs: &[u32], outputs: &[u32]| Operator {
        operator_type: OperatorType::Relu,
        attributes: None,
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: outputs.iter().copied().map(Some).collect(),
    };
    nodes.extend((0..20_000).map(|_| Node::named("make", operator(&[], &[0]))));
    nodes.extend((0..20_000).map(|_| Node::named("read", operator(&[0, 0], &[]))));
    let graph = rten_format::Graph { nodes, ..rten_format::Graph::default() };
    let bytes = Model { graph, metadata: None }.to_bytes().unwrap();
    let graph = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    assert!(graph.dot().len() < 20 << 20, "{}", graph.dot().len());
    assert!(graph.to_string().len() < 20 << 20);
}

/// Names that would be markup, hide or turn text.
#[test]
fn names_are_texts_in_pictures() {
    let name = "</text><script>alert(1)</script>\u{202e}&\"'";
    let nodes = vec![
        Node::named(name, Value::default()),
        Node::named(
            name,
            Operator {
                operator_type: OperatorType::Relu,
                attributes: None,
                inputs: vec![Some(0)],
                outputs: vec![],
            },
        ),
    ];
    let graph = rten_format::Graph { nodes, inputs: vec![0], ..rten_format::Graph::default() };
    let bytes = Model { graph, metadata: None }.to_bytes().unwrap();
    let graph = Graph::of(&AnyReader::from_bytes(bytes).unwrap()).unwrap().unwrap();
    let svg = graph.svg().unwrap();
    assert!(!svg.contains("<script") && !svg.contains('\u{202e}'), "{svg}");
    assert!(svg.contains("&lt;/text&gt;&lt;script&gt;"), "{svg}");
}

/// A byte that is another one makes another graph, or none; whatever it is, it is drawn.
#[test]
fn changed_files_are_drawn_or_refused() {
    for file in [
        "ptl/valid/torch251/img_fb.ptl",
        "nnpackage/valid/03_two_models_connected.zip",
        "rten/valid/mlp.v1.rten",
    ] {
        let bytes = std::fs::read(testdata(file)).unwrap();
        let mut drawn = 0;
        test_support::mutations(&bytes, |changed| {
            let Ok(reader) = AnyReader::from_bytes(changed.to_vec()) else { return };
            if let Ok(Some(graph)) = Graph::of(&reader) {
                drawn += 1;
                let _ = graph.collapsed(1);
                let text = graph.to_string();
                assert!(text.len() < 16 << 20, "{file}: {}", text.len());
                // Layout takes time, and knows positions alone.
                if drawn % 64 == 0 {
                    let _ = graph.svg();
                }
            }
        });
        assert!(drawn > 0, "{file}");
    }
}

/// No prefix of an ONNX model and no changed byte of one ends the process, and no part of one is lost.
#[cfg(feature = "rten-onnx")]
#[test]
fn changed_onnx_models_are_drawn_or_refused() {
    let reader =
        modelcrate::rten_format::Reader::open(testdata("rten/valid/control_flow.v2.rten")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    modelcrate::rten_format::onnx::Export::new(&reader).write(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let of = |bytes: Vec<u8>| Graph::of_onnx(&tensor_core::Source::from_bytes(bytes));
    let whole = of(bytes.clone()).unwrap();
    check("control_flow", &whole);
    assert_eq!(
        whole.node_count(),
        graph(&testdata("rten/valid/control_flow.v2.rten")).unwrap().node_count()
    );
    let mut refused = 0;
    for at in 0..bytes.len() {
        refused += usize::from(of(bytes[..at].to_vec()).is_err());
        for byte in [bytes[at] ^ 1 << (at % 8), 0, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            if let Ok(graph) = of(changed) {
                assert!(graph.subgraphs.len() <= 64, "byte {at}");
                assert!(at % 16 > 0 || !graph.to_string().is_empty() && graph.svg().is_ok());
            }
        }
    }
    assert!(refused > bytes.len() / 2, "{refused} of {} prefixes", bytes.len());
    // Graphs in attributes of nodes of graphs.
    let mut deep = Vec::new();
    let fields = [0x32_u8, 0x2a, 0x0a].into_iter().cycle().take(3 * 200);
    for field in fields.chain([0x3a]) {
        let mut around = vec![field];
        let mut len = deep.len();
        while len > 0x7f {
            around.push(u8::try_from(len & 0x7f).unwrap() | 0x80);
            len >>= 7;
        }
        around.push(u8::try_from(len).unwrap());
        around.append(&mut deep);
        deep = around;
    }
    let error = of(deep).unwrap_err().to_string();
    assert!(error.contains("found graphs within graphs"), "{error}");
}
