//! What onert does with operators, from a table that was measured: `cargo xtask onert-table` runs
//! each operator with every number of inputs and all element types.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use tensor_core::text;

use crate::{
    Diagnosis, Reaction, Stage,
    model::{
        ActivationFunctionType, BuiltinOptions, Model, Operator, Subgraph, Tensor, TensorType,
        options::OptionValue,
    },
};

/// Operators of a model that onert stops at, or that it was not tried with, each once.
pub(super) struct Operators {
    /// By graph and position of the first one of each group.
    groups: BTreeMap<(usize, usize), Group>,
}

/// Operators that are alike.
struct Group {
    count: u64,
    name: &'static str,
    known: Known,
}

/// What is known of an operator.
enum Known {
    Stops { case: String, reaction: Reaction },
    Untried { case: String },
}

impl Operators {
    /// `called` are the graphs that operators run.
    pub(super) fn of(model: &Model, called: &BTreeSet<usize>) -> Self {
        let (mut groups, mut seen) = (BTreeMap::<_, Group>::new(), HashMap::new());
        // Names are as long as a file likes: each is looked at once.
        let codes = model.operator_codes.iter();
        let names: Vec<_> = codes.map(|code| TABLE.get_key_value(&*code.name())).collect();
        for (graph, subgraph) in model.subgraphs.iter().enumerate() {
            // All graphs are compiled, and not all of them run.
            let is_run = graph == 0 || called.contains(&graph);
            for (at, operator) in subgraph.operators.iter().enumerate() {
                let index = usize::try_from(operator.opcode_index).unwrap_or(usize::MAX);
                let Some(Some((name, lines))) = names.get(index) else { continue };
                let Some(known) = known(lines, subgraph, operator) else { continue };
                if known.stops_at() == Some(Stage::Run) && !is_run {
                    continue;
                }
                let key = (operator.opcode_index, known.case().to_owned());
                let first = *seen.entry(key).or_insert((graph, at));
                let new = || Group { count: 0, name, known };
                let group = groups.entry(first).or_insert_with(new);
                group.count = group.count.saturating_add(1);
            }
        }
        Self { groups }
    }

    /// Returns what stops onert when it reads one operator.
    pub(super) fn while_loading(&self, graph: usize, at: usize) -> Option<Diagnosis> {
        let group = self.groups.get(&(graph, at)).filter(|group| group.known.is_seen_at_once());
        group.map(|group| group.diagnosis((graph, at)))
    }

    /// Returns what stops onert once it has read a graph.
    pub(super) fn after_loading(&self, graph: usize) -> impl Iterator<Item = Diagnosis> {
        let groups = self.groups.range((graph, 0)..=(graph, usize::MAX));
        let groups = groups.filter(|(_, group)| !group.known.is_seen_at_once());
        groups.map(|(first, group)| group.diagnosis(*first))
    }
}

impl Group {
    fn diagnosis(&self, (graph, at): (usize, usize)) -> Diagnosis {
        let many = if self.count == 1 { String::new() } else { format!("{} × ", self.count) };
        let what = format!("{many}{}{}", self.name, shown(self.known.case()));
        let diagnosis = match &self.known {
            Known::Stops { case, reaction } => {
                let knows = if case == ANY { "know" } else { "run" };
                let message = format!("{what}, which onert 0.1.0 does not {knows}");
                Diagnosis::warning("model/onert-operator", message).onert(reaction.clone())
            }
            Known::Untried { .. } => {
                let message = format!("{what}, which onert 0.1.0 was not tried with");
                Diagnosis::note("model/onert-untried", message).onert(Reaction::Untried)
            }
        };
        diagnosis.path(format!("subgraph {graph}/operator {at} {}", self.name))
    }
}

impl Known {
    fn stops_at(&self) -> Option<Stage> {
        match self {
            Self::Stops { reaction, .. } => reaction.stops_at(),
            Self::Untried { .. } => None,
        }
    }

    fn case(&self) -> &str {
        match self {
            Self::Stops { case, .. } | Self::Untried { case } => case,
        }
    }

    /// Tells whether onert stops before it reads the next operator: it looks at element types once
    /// it has all of a graph.
    fn is_seen_at_once(&self) -> bool {
        match self {
            Self::Stops { reaction: Reaction::Fails { stage: Stage::Load, message }, .. } => {
                !message.starts_with("OperationValidator")
            }
            _ => self.stops_at() == Some(Stage::Load),
        }
    }
}

/// Tells whether a custom operator is one that onert has built in under this name.
#[must_use]
pub fn is_builtin_custom(name: &str) -> bool {
    TABLE.contains_key(&*format!("CUSTOM:{name}"))
}

/// Tells whether onert crashes where an operator has no options.
pub(super) fn needs_options(operator: &str) -> bool {
    TABLE.get(operator).is_some_and(|lines| outcome(lines, "no options").is_some())
}

/// Returns what is known against an operator; `None` where it runs.
fn known(lines: &Lines, subgraph: &Subgraph, operator: &Operator) -> Option<Known> {
    let signatures = [signature(subgraph, operator, false), signature(subgraph, operator, true)];
    let signature = signatures.iter().find(|case| outcome(lines, case).is_some());
    let cases = [ANY.to_owned(), format!("inputs {}", operator.inputs.len())];
    let cases = cases.into_iter().chain(activation(operator)).chain(signature.cloned());
    let stops = cases.filter_map(|case| match outcome(lines, &case) {
        Some(Some(reaction)) => Some((case, reaction)),
        _ => None,
    });
    if let Some((case, reaction)) = stops.min_by_key(|(_, reaction)| reaction.stops_at()) {
        return Some(Known::Stops { case, reaction: reaction.clone() });
    }
    let [case, _] = signatures.clone();
    signature.is_none().then_some(Known::Untried { case })
}

/// Returns how the table writes the activation of an operator that has one.
fn activation(operator: &Operator) -> Option<String> {
    let fields = operator.options.as_ref().map(BuiltinOptions::fields)?;
    let field = fields.into_iter().find(|(name, _)| *name == "fused_activation_function")?;
    match field.1 {
        OptionValue::Number { code, .. } => Some(format!("activation {code}")),
        _ => None,
    }
}

/// Returns the classes of inputs and outputs; of those that are alike in a row one with a star,
/// where that is asked for.
fn signature(subgraph: &Subgraph, operator: &Operator, is_starred: bool) -> String {
    let sides = [&operator.inputs, &operator.outputs].map(|side| {
        let mut classes: Vec<String> = side.iter().map(|&at| class(subgraph, at)).collect();
        if is_starred {
            classes.dedup();
            classes.iter_mut().for_each(|class| class.push('*'));
        }
        classes.join(" ")
    });
    sides.join(" > ")
}

fn class(subgraph: &Subgraph, index: i32) -> String {
    let Some(tensor) = subgraph.tensor(index) else { return "-".to_owned() };
    let Tensor { tensor_type, quantization, is_variable, .. } = tensor;
    let name = tensor.dtype().map_or_else(|| tensor_type.to_string(), |dtype| dtype.to_string());
    let is_per_axis = quantization.as_ref().is_some_and(|quantization| quantization.is_per_axis())
        && matches!(tensor_type, TensorType::Int8 | TensorType::Uint8 | TensorType::Int16);
    let axis = if is_per_axis { "/axis" } else { "" };
    let variable = if *is_variable { "~" } else { "" };
    format!("{name}{axis}{variable}")
}

/// Returns how a case reads behind the name of an operator.
fn shown(case: &str) -> String {
    match case.split_once(' ') {
        Some(("inputs", "1")) => " with 1 input".to_owned(),
        Some(("inputs", count)) => format!(" with {count} inputs"),
        Some(("activation", code)) => {
            let name =
                code.parse().ok().and_then(|code| ActivationFunctionType::from_code(code).name());
            format!(" with activation {}", name.unwrap_or(code))
        }
        _ if case == ANY => String::new(),
        _ => format!(" of {}", text::short(case)),
    }
}

/// The case of operators that onert does not know, whatever they have.
const ANY: &str = "any";

/// Lines of one operator.
type Lines = Vec<(HashSet<&'static str>, Option<Reaction>)>;

/// What was measured, by the name of the operator. Reactions are those that stop onert.
static TABLE: LazyLock<HashMap<&'static str, Lines>> = LazyLock::new(|| {
    let mut table = HashMap::<_, Lines>::new();
    for (name, cases, reaction) in TEXT.lines().filter_map(line) {
        table.entry(name).or_default().push((cases.split(", ").collect(), reaction));
    }
    table
});

/// Returns what becomes of a case; `None` where it was not measured, nothing within where it runs.
fn outcome<'a>(lines: &'a Lines, case: &str) -> Option<Option<&'a Reaction>> {
    let line = lines.iter().find(|(cases, _)| cases.contains(case));
    line.map(|(_, reaction)| reaction.as_ref())
}

/// Reads a line: operator, what becomes of it, what onert says, and the cases of which that is so.
fn line(line: &'static str) -> Option<(&'static str, &'static str, Option<Reaction>)> {
    let [name, outcome, message, cases] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let (how, stage) = outcome.split_once(' ').unwrap_or((outcome, ""));
    let stages = [Stage::Load, Stage::Prepare, Stage::Run].into_iter();
    let stage = stages.into_iter().find(|known| known.to_string() == stage);
    let reaction = match (how, stage) {
        ("runs", None) => None,
        ("fails", Some(stage)) => Some(Reaction::Fails { stage, message: message.to_owned() }),
        ("crashes", Some(stage)) => Some(Reaction::Crashes { stage }),
        _ => return None,
    };
    Some((name, cases, reaction))
}

const TEXT: &str = include_str!("onert.tsv");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BuiltinOperator;

    #[test]
    fn every_line_is_read() {
        let (head, lines) = TEXT.split_once('\n').unwrap();
        assert_eq!(head, "# onert 0.1.0");
        let wrong: Vec<_> = lines.lines().filter(|text| line(text).is_none()).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// Operators of the schema that have no line would be taken for custom ones.
    #[test]
    fn every_operator_is_measured() {
        let names = (-9..=209).filter_map(|code| BuiltinOperator::from_code(code).name());
        let missing: Vec<_> = names.filter(|name| !TABLE.contains_key(name)).collect();
        assert_eq!(missing, ["CUSTOM", "PLACEHOLDER_FOR_GREATER_OP_CODES"]);
    }

    #[test]
    fn a_case_has_one_outcome() {
        for (name, lines) in &*TABLE {
            let mut seen = HashSet::new();
            for (cases, _) in lines {
                assert!(cases.iter().all(|case| seen.insert(case)), "{name}");
            }
        }
    }
}
