//! Graphs made by hand.

use std::collections::HashMap;

use super::*;
use crate::graph::{Constant, Node, Outer, Subgraph, Value};

/// Makes a method of operators without names: each takes what the operator of a number makes, a
/// tensor that has a name, or a list, and makes one value.
fn method(operators: &[(&str, &[&str])]) -> Subgraph {
    let mut graph = Subgraph { name: "forward".to_owned(), ..Subgraph::default() };
    let add = |graph: &mut Subgraph, value: Value| {
        graph.values.push(Value { id: graph.values.len(), ..value });
        graph.values.len() - 1
    };
    let input = add(&mut graph, Value::default());
    graph.inputs = vec![input];
    let mut made = vec![input];
    for (operator, inputs) in operators {
        let mut node = Node { operator: (*operator).to_owned(), ..Node::default() };
        for input in *inputs {
            let constant = Some(Constant { text: Some((*input).to_owned()), bytes: None });
            let value = match input.parse::<usize>() {
                Ok(number) => made[number],
                Err(_) if input.starts_with('[') => {
                    add(&mut graph, Value { constant, ..Value::default() })
                }
                Err(_) => {
                    let name = Some((*input).to_owned());
                    add(&mut graph, Value { name, ..Value::default() })
                }
            };
            node.inputs.push(Some(value));
        }
        let output = add(&mut graph, Value::default());
        node.outputs = vec![Some(output)];
        node.id = graph.nodes.len();
        made.push(output);
        graph.nodes.push(node);
    }
    graph.outputs = vec![made[made.len() - 1]];
    graph
}

fn compared(old: Vec<Subgraph>, new: Vec<Subgraph>) -> Vec<(String, bool, bool)> {
    let found = differences(&[old, new].map(|subgraphs| Graph { subgraphs }), true);
    let operator = |of: &Differing<OperatorSummary>| {
        of.new.as_ref().or(of.old.as_ref()).unwrap().operator.clone()
    };
    found.iter().map(|of| (operator(of), of.old.is_some(), of.new.is_some())).collect()
}

fn between(old: &[(&str, &[&str])], new: &[(&str, &[&str])]) -> Vec<(String, bool, bool)> {
    compared(vec![method(old)], vec![method(new)])
}

const NETWORK: [(&str, &[&str]); 5] = [
    ("conv", &["0", "a.weight", "[1, 1]"]),
    ("relu", &["1"]),
    ("conv", &["2", "b.weight", "[1, 1]"]),
    ("relu", &["3"]),
    ("add", &["4", "2"]),
];

#[test]
fn what_is_the_same_has_no_differences() {
    assert_eq!(between(&NETWORK, &NETWORK), []);
}

#[test]
fn what_is_put_in_changes_nothing_behind_it() {
    let mut new = NETWORK.to_vec();
    new.splice(1..2, [("norm", &["1"][..]), ("relu", &["2"])]);
    new[3].1 = &["3", "b.weight", "[1, 1]"];
    new[4].1 = &["4"];
    new[5].1 = &["5", "3"];
    let found = between(&NETWORK, &new);
    // What reads it now reads something else.
    assert_eq!(found, [("relu".to_owned(), true, true), ("norm".to_owned(), false, true)]);
    let found = between(&new, &NETWORK);
    assert_eq!(found, [("norm".to_owned(), true, false), ("relu".to_owned(), true, true)]);
}

#[test]
fn other_constants_and_tensors_are_changes() {
    for inputs in [["2", "b.weight", "[2, 2]"], ["2", "a.weight", "[1, 1]"]] {
        let mut new = NETWORK.to_vec();
        new[2].1 = &inputs;
        assert_eq!(between(&NETWORK, &new), [("conv".to_owned(), true, true)]);
    }
}

#[test]
fn inputs_have_an_order() {
    let mut new = NETWORK.to_vec();
    new[4].1 = &["2", "4"];
    assert_eq!(between(&NETWORK, &new), [("add".to_owned(), true, true)]);
}

#[test]
fn what_a_method_gives_back_counts() {
    let (old, mut new) = (method(&NETWORK), method(&NETWORK));
    new.outputs = new.nodes[3].outputs.iter().flatten().copied().collect();
    assert_eq!(compared(vec![old], vec![new]), [("return".to_owned(), true, true)]);
}

#[test]
fn bodies_read_what_is_around_them() {
    let around = |from: usize| {
        let main = method(&NETWORK);
        let value = main.nodes[from].outputs[0].unwrap();
        let outer = Some(Outer { subgraph: 0, value });
        let mut body = method(&[("relu", &["0"])]);
        body.name = "then".to_owned();
        body.inputs.clear();
        body.values[0].outer = outer;
        vec![main, body]
    };
    assert_eq!(compared(around(1), around(1)), []);
    assert_eq!(compared(around(1), around(3)), [("relu".to_owned(), true, true)]);
}

/// An operator with names: its own, what it computes, reads and makes.
type Named<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str]);

/// Makes a graph of operators with names; what none of them makes is an input, or a constant where it
/// is called after a weight. An empty name is none.
fn graph(operators: &[Named<'_>]) -> Subgraph {
    let mut graph = Subgraph { name: "main".to_owned(), ..Subgraph::default() };
    let mut values: HashMap<&str, usize> = HashMap::new();
    let all = operators.iter().flat_map(|(_, _, inputs, outputs)| [*inputs, *outputs].concat());
    for name in all {
        values.entry(name).or_insert_with(|| {
            let constant = name.starts_with('w').then(Constant::default);
            let known = Some(name.to_owned()).filter(|name| !name.starts_with('#'));
            graph.values.push(Value { name: known, constant, ..Value::default() });
            graph.values.len() - 1
        });
    }
    for (id, (name, operator, inputs, outputs)) in operators.iter().enumerate() {
        let places = |names: &[&str]| names.iter().map(|name| Some(values[name])).collect();
        graph.nodes.push(Node {
            id,
            name: Some((*name).to_owned()).filter(|name| !name.is_empty()),
            operator: (*operator).to_owned(),
            inputs: places(inputs),
            outputs: places(outputs),
            ..Node::default()
        });
    }
    let made = graph.producers();
    let is_given = |at: &usize| made[*at].is_none() && graph.values[*at].constant.is_none();
    graph.inputs = (0..graph.values.len()).filter(is_given).collect();
    graph
}

fn named(old: &[Named<'_>], new: &[Named<'_>]) -> Vec<(String, bool, bool)> {
    compared(vec![graph(old)], vec![graph(new)])
}

#[test]
fn other_names_are_no_differences() {
    let old: &[Named<'_>] = &[
        ("m1", "MatMul", &["x", "w1"], &["h"]),
        ("r", "Relu", &["h"], &["a"]),
        ("m2", "MatMul", &["a", "w2"], &["y"]),
    ];
    let new: &[Named<'_>] = &[
        ("n2", "MatMul", &["b", "w2"], &["z"]),
        ("n1", "MatMul", &["x", "w1"], &["g"]),
        ("s", "Relu", &["g"], &["b"]),
    ];
    // In whatever order.
    assert_eq!(named(old, new), []);
    let swapped: &[Named<'_>] = &[
        ("n1", "MatMul", &["x", "w2"], &["g"]),
        ("s", "Relu", &["g"], &["b"]),
        ("n2", "MatMul", &["b", "w1"], &["z"]),
    ];
    let change = || ("MatMul".to_owned(), true, true);
    assert_eq!(named(old, swapped), [change(), change()]);
    // One that computes something else makes none of those behind it others.
    let other: &[Named<'_>] = &[
        ("n1", "Gemm", &["x", "w1"], &["g"]),
        ("s", "Relu", &["g"], &["b"]),
        ("n2", "MatMul", &["b", "w2"], &["z"]),
    ];
    let found = named(old, other);
    assert!(found.len() <= 3 && !found.contains(&("Relu".to_owned(), true, false)), "{found:?}");
}

#[test]
fn what_is_read_and_made_has_an_order() {
    let sub = |name, inputs| graph(&[(name, "Sub", inputs, &["y"])]);
    let mut swapped = sub("s2", &["b", "a"]);
    swapped.inputs.reverse();
    assert_eq!(
        compared(vec![sub("s", &["a", "b"])], vec![swapped]),
        [("Sub".to_owned(), true, true)]
    );
    let split: &[Named<'_>] = &[("s", "Split", &["x"], &["a", "b"]), ("n", "Neg", &["a"], &["y"])];
    let swapped: &[Named<'_>] =
        &[("s", "Split", &["x"], &["b", "a"]), ("n", "Neg", &["a"], &["y"])];
    assert_eq!(named(split, swapped), [("Split".to_owned(), true, true)]);
}

#[test]
fn the_name_is_enough() {
    let old: &[Named<'_>] = &[("l", "Elu", &["x"], &["h"]), ("r", "Relu", &["h"], &["y"])];
    let new: &[Named<'_>] = &[("l", "Selu", &["x"], &["g"]), ("r", "Relu", &["g"], &["y"])];
    assert_eq!(named(old, new), [("Selu".to_owned(), true, true)]);
}

#[test]
fn branches_in_another_order_are_the_same() {
    let old: &[Named<'_>] = &[
        ("", "Relu", &["x"], &["#1"]),
        ("", "Neg", &["#1"], &["#2"]),
        ("", "Abs", &["x"], &["#3"]),
        ("", "Neg", &["#3"], &["#4"]),
        ("", "Add", &["#2", "#4"], &["#5"]),
    ];
    let new: Vec<Named<'_>> = [2, 3, 0, 1, 4].map(|at| old[at]).to_vec();
    assert_eq!(named(old, &new), []);
}

#[test]
fn bodies_are_those_of_their_operator() {
    let model = |then: usize, moved: bool| {
        let mut main = graph(&[("i", "If", &["c"], &["y"])]);
        main.nodes[0].bodies = vec![then, 3 - then];
        let body = |name: &str, operators: &[Named<'_>]| {
            let mut graph = graph(operators);
            name.clone_into(&mut graph.name);
            graph
        };
        let relu: Named<'_> = ("p", "Relu", &["x"], &["a"]);
        let abs: Named<'_> = ("q", "Abs", &["x"], &["b"]);
        let (first, second) =
            if moved { (vec![], vec![abs, relu]) } else { (vec![relu], vec![abs]) };
        vec![main, body("one", &first), body("two", &second)]
    };
    assert_eq!(compared(model(1, false), model(1, false)), []);
    let changed = |operator: &str| (operator.to_owned(), true, true);
    assert_eq!(compared(model(1, false), model(1, true)), [changed("Relu")]);
    assert_eq!(compared(model(1, false), model(2, false)), [changed("Relu"), changed("Abs")]);
}

#[test]
fn many_operators_take_no_longer_than_they_must() {
    let names: Vec<String> = (0..20_000).map(|at| format!("operator{}", at % 1000)).collect();
    let operators = |step: usize| -> Vec<(&str, &[&str])> {
        (0..names.len()).map(|at| (&*names[at * step % names.len()], &["0"] as &[&str])).collect()
    };
    // The same in another order, of which nothing long stays in a row.
    assert!(between(&operators(1), &operators(7919)).len() < 20_000);
}
