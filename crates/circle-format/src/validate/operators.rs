//! Operators: what they refer to, and their options.

use std::collections::BTreeSet;

use tensor_core::{Extent, text};

use crate::{
    Diagnoses, Diagnosis, Reaction, Reader, Stage, flex,
    model::{
        BuiltinOperator, BuiltinOptions, BuiltinOptions2, Model, Operator, OperatorCode, Subgraph,
    },
};

use super::runtime;

pub(super) fn check(
    reader: &Reader,
    graph: usize,
    subgraph: &Subgraph,
    at: usize,
    operator: &Operator,
    findings: &mut Diagnoses,
) {
    let model = reader.model();
    let code = model.operator_code(operator);
    let name = code.map(|code| format!(" {}", shown(code))).unwrap_or_default();
    let path = format!("subgraph {graph}/operator {at}{name}");
    let mut push = |diagnosis: Diagnosis| findings.push(diagnosis.path(&path));
    let Some(code) = code else {
        let (index, count) = (operator.opcode_index, model.operator_codes.len());
        let message = format!("has operator code {index}, but the model has {count}");
        let diagnosis = Diagnosis::error("model/opcode-index", message);
        push(diagnosis.onert(Reaction::Garbage));
        return;
    };
    indices(subgraph, operator, &mut push);
    options(operator, code, &mut push);
    large_options(reader, operator, &mut push);
    if code.is_custom() {
        custom(operator, &mut push);
    }
    if !metadata_exists(model, operator.debug_metadata_index) {
        let index = operator.debug_metadata_index;
        let message = format!("has metadata {index}, but the model has {}", model.metadata.len());
        push(Diagnosis::warning("model/debug-metadata", message).ignored());
    }
}

/// Returns the name of an operator as far as it is worth showing: many may have one very long name.
fn shown(code: &OperatorCode) -> String {
    let operator = code.operator();
    match &code.custom_code {
        Some(custom) if code.is_custom() => format!("{operator}:{}", text::short(custom)),
        _ => operator.to_string(),
    }
}

pub(super) fn metadata_exists(model: &Model, index: i32) -> bool {
    index == -1 || usize::try_from(index).is_ok_and(|index| index < model.metadata.len())
}

fn indices(subgraph: &Subgraph, operator: &Operator, push: &mut impl FnMut(Diagnosis)) {
    let lists = [
        ("inputs", &operator.inputs),
        ("outputs", &operator.outputs),
        ("intermediates", &operator.intermediates),
    ];
    for (side, list) in lists {
        for (at, &index) in list.iter().enumerate() {
            let is_left_out = index == -1 && side == "inputs";
            if is_left_out || subgraph.tensor(index).is_some() {
                continue;
            }
            let count = subgraph.tensors.len();
            let message =
                format!("has {side}[{at}] that is tensor {index}, but the graph has {count}");
            let diagnosis = Diagnosis::error("model/tensor-index", message);
            push(match index {
                -1 => diagnosis.load_fails("unordered_map::at"),
                _ => diagnosis.onert(Reaction::Garbage),
            });
        }
    }
    let (changed, inputs) = (operator.mutating_variable_inputs.len(), operator.inputs.len());
    if changed != 0 && changed != inputs {
        let message = format!("says of {changed} inputs whether it changes them, but has {inputs}");
        push(Diagnosis::warning("model/mutating-inputs", message).ignored());
    }
}

/// Compares the options with the operator.
fn options(operator: &Operator, code: &OperatorCode, push: &mut impl FnMut(Diagnosis)) {
    let found = operator.options.as_ref().map(BuiltinOptions::tag);
    let builtin = code.operator();
    if let (Some(_), Some(_)) = (&operator.options, &operator.options_2) {
        let message = "has options of both unions, expected one of them";
        push(Diagnosis::warning("model/options", message));
    }
    for (union, is_unknown) in [
        ("first", matches!(operator.options, Some(BuiltinOptions::Unknown(_)))),
        ("second", matches!(operator.options_2.as_deref(), Some(BuiltinOptions2::Unknown(_)))),
    ] {
        if is_unknown {
            let message = format!("has options of a table of the {union} union that is not known");
            push(Diagnosis::warning("model/unknown-table", message));
        }
    }
    let Some(expected) = options_tag(builtin) else { return };
    let name = |tag: u8| {
        let table = BuiltinOptions::ALL.iter().find(|(known, _)| *known == tag);
        table.map_or_else(|| format!("table {tag}"), |(_, name)| (*name).to_owned())
    };
    match found {
        Some(found) if found != expected => {
            let message = format!("has {}, expected {}", name(found), name(expected));
            let diagnosis = Diagnosis::error("model/options-type", message);
            push(if runtime::needs_options(&code.name()) {
                diagnosis.crashes(Stage::Load)
            } else {
                diagnosis
            });
        }
        None if runtime::needs_options(&code.name()) => {
            let message =
                format!("has no options, where {} means its default values", name(expected));
            push(Diagnosis::warning("model/options-missing", message).crashes(Stage::Load));
        }
        _ => {}
    }
}

/// Checks custom options outside of the tables.
fn large_options(reader: &Reader, operator: &Operator, push: &mut impl FnMut(Diagnosis)) {
    let (offset, size) = (operator.large_custom_options_offset, operator.large_custom_options_size);
    if offset <= 1 {
        return;
    }
    let file_len = reader.source().len();
    let fits = Extent::new(offset, size).is_ok_and(|extent| extent.end() <= file_len);
    if !fits {
        let message =
            format!("needs {size} bytes of options at byte {offset} of a file of {file_len} bytes");
        push(Diagnosis::error("model/large-custom-options", message).ignored());
        return;
    }
    let message = "has custom options outside of the tables, where onert does not look";
    push(Diagnosis::warning("model/large-custom-options", message).ignored());
}

fn custom(operator: &Operator, push: &mut impl FnMut(Diagnosis)) {
    if operator.large_custom_options_offset > 1 && operator.custom_options.is_none() {
        return;
    }
    let Some(options) = &operator.custom_options else {
        let message = "is a custom operator without custom_options";
        let diagnosis = Diagnosis::warning("model/custom-options", message);
        push(diagnosis.crashes(Stage::Load));
        return;
    };
    // Some operators have options in a form of their own, whatever the format says.
    if !options.is_empty()
        && let Err(error) = flex::Value::parse(options)
    {
        let message = format!("has options that are not a FlexBuffer: {error}");
        push(Diagnosis::note("model/custom-options", message));
    }
}

/// Checks where operators with graphs of their own lead.
pub(super) fn calls(model: &Model, findings: &mut Diagnoses) {
    let count = model.subgraphs.len();
    let mut called: Vec<Vec<usize>> = Vec::with_capacity(count);
    for (graph, subgraph) in model.subgraphs.iter().enumerate() {
        let mut to = BTreeSet::new();
        for (at, operator) in subgraph.operators.iter().enumerate() {
            for (field, index) in called_graphs(operator) {
                match usize::try_from(index).ok().filter(|index| *index < count) {
                    Some(index) => drop(to.insert(index)),
                    None => {
                        let message =
                            format!("has {field} {index}, but the model has {count} graphs");
                        let diagnosis = Diagnosis::error("model/subgraph-index", message);
                        let failed = format!("Invalid subgraph index - {index}");
                        let diagnosis = diagnosis.load_fails(failed);
                        findings.push(diagnosis.path(format!("subgraph {graph}/operator {at}")));
                    }
                }
            }
        }
        called.push(to.into_iter().collect());
    }
    if let Some(graph) = cycle(&called) {
        let message = "runs itself, by way of the graphs that it runs";
        let diagnosis = Diagnosis::error("model/subgraph-cycle", message).crashes(Stage::Prepare);
        findings.push(diagnosis.path(format!("subgraph {graph}")));
    }
}

/// Returns the graphs that operators run.
pub(super) fn called(model: &Model) -> BTreeSet<usize> {
    let operators = model.subgraphs.iter().flat_map(|graph| &graph.operators);
    let called = operators.flat_map(called_graphs);
    called.filter_map(|(_, index)| usize::try_from(index).ok()).collect()
}

/// Returns the graphs that an operator runs, with the names of the options.
fn called_graphs(operator: &Operator) -> Vec<(&'static str, i64)> {
    let mut found = Vec::new();
    match &operator.options {
        Some(BuiltinOptions::If(options)) => {
            found.push(("then_subgraph_index", options.then_subgraph_index.into()));
            found.push(("else_subgraph_index", options.else_subgraph_index.into()));
        }
        Some(BuiltinOptions::While(options)) => {
            found.push(("cond_subgraph_index", options.cond_subgraph_index.into()));
            found.push(("body_subgraph_index", options.body_subgraph_index.into()));
        }
        Some(BuiltinOptions::Call(options)) => found.push(("subgraph", options.subgraph.into())),
        Some(BuiltinOptions::CallOnce(options)) => {
            found.push(("init_subgraph_index", options.init_subgraph_index.into()));
        }
        _ => {}
    }
    match operator.options_2.as_deref() {
        Some(BuiltinOptions2::StablehloReduce(options)) => {
            found.push(("body_subgraph_index", options.body_subgraph_index.into()));
        }
        Some(BuiltinOptions2::StablehloReduceWindow(options)) => {
            found.push(("body_subgraph_index", options.body_subgraph_index.into()));
        }
        Some(BuiltinOptions2::StablehloScatter(options)) => {
            let index = options.update_computation_subgraph_index;
            found.push(("update_computation_subgraph_index", index.into()));
        }
        Some(BuiltinOptions2::StablehloSort(options)) => {
            found.push(("comparator_subgraph_index", options.comparator_subgraph_index.into()));
        }
        Some(BuiltinOptions2::StablehloWhile(options)) => {
            found.push(("cond_subgraph_index", options.cond_subgraph_index.into()));
            found.push(("body_subgraph_index", options.body_subgraph_index.into()));
        }
        Some(BuiltinOptions2::StableHLOComposite(options)) => {
            let index = options.decomposition_subgraph_index;
            found.push(("decomposition_subgraph_index", index.into()));
        }
        Some(BuiltinOptions2::StablehloCase(options)) => {
            let indices = options.branch_subgraph_indices.iter();
            found.extend(indices.map(|&index| ("branch_subgraph_indices", index.into())));
        }
        _ => {}
    }
    found
}

/// Returns a graph from which calls lead back to it. No recursion: a file can nest as deeply as it
/// likes.
fn cycle(called: &[Vec<usize>]) -> Option<usize> {
    let mut done = vec![Mark::New; called.len()];
    for start in 0..called.len() {
        let mut path = vec![(start, 0)];
        while let Some((graph, next)) = path.pop() {
            let mark = done.get_mut(graph)?;
            if next == 0 {
                match mark {
                    Mark::Done => continue,
                    Mark::Open => return Some(graph),
                    Mark::New => *mark = Mark::Open,
                }
            }
            match called.get(graph).and_then(|to| to.get(next)) {
                Some(&to) => {
                    path.push((graph, next.saturating_add(1)));
                    path.push((to, 0));
                }
                None => *mark = Mark::Done,
            }
        }
    }
    None
}

/// How far a walk has come with a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

/// Returns the number of the table that holds the options of an operator; `None` where there is
/// none, or it has no fields.
fn options_tag(operator: BuiltinOperator) -> Option<u8> {
    let entry = OPTIONS.iter().find(|(operators, _)| operators.contains(&operator));
    entry.map(|(_, tag)| *tag)
}

macro_rules! operators {
    ($( $tag:literal $( $name:ident )+; )+) => {
        &[$( (operators!($( $name )+), $tag), )+]
    };
    ($( $name:ident )+) => {
        &[$( BuiltinOperator::$name, )+]
    };
}

/// The table of the first union that holds the options of operators, where that has fields.
const OPTIONS: &[(&[BuiltinOperator], u8)] = operators! {
    1 CONV_2D; 2 DEPTHWISE_CONV_2D; 3 CONCAT_EMBEDDINGS; 4 LSH_PROJECTION;
    5 AVERAGE_POOL_2D L2_POOL_2D MAX_POOL_2D; 6 SVDF; 7 RNN; 8 FULLY_CONNECTED; 9 SOFTMAX;
    10 CONCATENATION; 11 ADD; 12 L2_NORMALIZATION; 13 LOCAL_RESPONSE_NORMALIZATION; 14 LSTM;
    15 RESIZE_BILINEAR; 16 CALL; 17 RESHAPE; 18 SKIP_GRAM; 19 SPACE_TO_DEPTH;
    20 EMBEDDING_LOOKUP_SPARSE; 21 MUL; 23 GATHER;
    27 MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL; 28 SUB; 29 DIV; 30 SQUEEZE;
    31 UNIDIRECTIONAL_SEQUENCE_RNN; 32 STRIDED_SLICE; 35 SPLIT; 37 CAST; 40 ARG_MAX;
    49 TRANSPOSE_CONV; 50 SPARSE_TO_DENSE; 55 SHAPE; 57 ARG_MIN; 58 FAKE_QUANT; 59 PACK; 61 ONE_HOT;
    64 UNPACK; 69 BIDIRECTIONAL_SEQUENCE_LSTM; 70 BIDIRECTIONAL_SEQUENCE_RNN;
    71 UNIDIRECTIONAL_SEQUENCE_LSTM; 74 RESIZE_NEAREST_NEIGHBOR; 75 LEAKY_RELU; 77 MIRROR_PAD;
    79 SPLIT_V; 80 UNIQUE; 87 REVERSE_SEQUENCE; 92 IF; 93 WHILE; 94 DEPTH_TO_SPACE;
    101 BATCH_MATMUL; 102 CUMSUM; 103 CALL_ONCE; 106 CONV_3D; 107 HASHTABLE; 111 VAR_HANDLE;
    114 RANDOM_STANDARD_NORMAL RANDOM_UNIFORM MULTINOMIAL; 115 BUCKETIZE; 116 GELU; 248 RUN_MODEL;
    249 ROPE; 250 RMS_NORM; 251 GRU; 252 BCQ_GATHER; 253 BCQ_FULLY_CONNECTED; 254 INSTANCE_NORM;
};
