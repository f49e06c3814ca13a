use std::{fmt::Write as _, str::FromStr};

use anyhow::ensure;
use modelcrate::{
    AnyReader, Change, Diff as Differences, DiffOptions, Differing, FileSummary, Format,
    NamedTensor, OperatorSummary, Rule, SummaryOptions, TensorDiff,
    tensor_core::{
        Profile, Shape,
        compare::{Comparison, Tolerance},
    },
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    escape::escape,
    failure::{About, chain},
    glob::{Glob, check_meant, is_meant},
    inspect,
    options::{Input, Print, manner},
    outcome::{Outcome, print_error},
    output,
    progress::Progress,
};

/// Show what differs between two model files of any formats
///
/// Tensors are compared by name: element types, shapes, and values bit by bit. Of files of one
/// format or of one kind of graph, metadata, inputs and outputs, files inside and operators are
/// compared too; of files of different formats, the metadata that both have.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 nothing is different, 1 something is, 2 the files or some tensors of them could not
be compared.

Examples:
  modelcrate diff model.rten model.safetensors
  modelcrate diff old.zt new.zt --map 'model.*=*' --tensor '*.weight' --tolerance 1e-6,1e-5")]
pub(crate) struct Diff {
    /// The first file; - is standard input
    #[arg(value_name = "OLD")]
    old: Input,
    /// The second file
    #[arg(value_name = "NEW")]
    new: Input,
    /// Compare the tensor OLD of the first file with NEW of the second; a * on both sides stands for
    /// any text. The first that fits counts
    #[arg(long, value_name = "OLD=NEW")]
    map: Vec<Rule>,
    /// Compare only tensors of this name in either file; * stands for any text
    #[arg(long, value_name = "GLOB")]
    tensor: Vec<Glob>,
    /// Compare nothing but tensors
    #[arg(long)]
    tensors_only: bool,
    /// How far values may be apart: |new - old| <= ABS + REL * |old|
    #[arg(long, value_name = "ABS[,REL]")]
    tolerance: Option<Within>,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Compared {
    old: File,
    new: File,
    equal: bool,
    #[serde(flatten)]
    differences: Differences,
}

#[derive(Serialize)]
struct File {
    path: String,
    format: Format,
    version: String,
}

impl File {
    fn text(&self) -> String {
        let Self { path, format, version } = self;
        let joint = if version.is_empty() { "" } else { " " };
        format!("{} ({format}{joint}{})", escape(path), escape(version))
    }
}

impl Diff {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let compared = match self.compare() {
            Ok(compared) => compared,
            Err(error) => {
                print_error(&chain(&error));
                return Ok(Outcome::Failed);
            }
        };
        output::print_result(self.print, &compared, &compared.text())?;
        Ok(match &compared.differences {
            differences if differences.has_unknown() => Outcome::Failed,
            differences if !differences.is_empty() => Outcome::Invalid,
            _ => Outcome::Fine,
        })
    }

    fn compare(&self) -> anyhow::Result<Compared> {
        let open = |input: &Input| {
            output::open(input, AnyReader::options().profile(Profile::Lenient)).about(input)
        };
        let (old, new) = (open(&self.old)?, open(&self.new)?);
        let mut options = DiffOptions::default();
        options.names = self.map.iter().cloned().collect();
        options.tolerance = self.tolerance.map(|within| within.0);
        options.tensors_only = self.tensors_only;
        options.threads = manner().threads();
        self.check_meant(&old, &new)?;
        let bar = Progress::new(&self.new, old.byte_len().saturating_add(new.byte_len()));
        let is_meant = |name: &str| is_meant(&self.tensor, name);
        let differences = old.diff(&new, &options, is_meant, |bytes| bar.inc(bytes));
        bar.finish();
        let file = |input: &Input, reader: &AnyReader| {
            let version = reader.summary(SummaryOptions::default()).version;
            File { path: output::path_text(input), format: reader.format(), version }
        };
        let differences = differences.about(&self.new)?;
        let (old, new) = (file(&self.old, &old), file(&self.new, &new));
        Ok(Compared { old, new, equal: differences.is_empty(), differences })
    }

    fn check_meant(&self, old: &AnyReader, new: &AnyReader) -> anyhow::Result<()> {
        if self.tensor.is_empty() && self.map.is_empty() {
            return Ok(());
        }
        let (old, new) = (old.tensor_set().about(&self.old)?, new.tensor_set().about(&self.new)?);
        for rule in &self.map {
            let mut names = old.tensors().iter().map(NamedTensor::name);
            let fits = names.any(|name| rule.fits(name));
            ensure!(fits, "{}: has no tensor that --map {rule} is for", self.old.display());
        }
        let names = old.tensors().iter().chain(new.tensors()).map(NamedTensor::name);
        check_meant(&self.tensor, "tensor", names).about(&self.new)
    }
}

impl Compared {
    fn text(&self) -> String {
        let Self { old, new, differences, .. } = self;
        let mut text = String::new();
        for (mark, file) in [("-", old), ("+", new)] {
            let _ = writeln!(text, "{mark} {}", file.text());
        }
        text.push_str(&section("metadata", &differences.metadata, Value::to_string));
        text.push_str(&section("inputs", &differences.inputs, inspect::port_text));
        text.push_str(&section("outputs", &differences.outputs, inspect::port_text));
        text.push_str(&section("files", &differences.files, file_text));
        text.push_str(&section("operators", &differences.operator_types, u64::to_string));
        text.push_str(&operators(&differences.operators));
        text.push_str(&tensors(&differences.tensors));
        let apart = differences.apart.len();
        if apart > 0 {
            let _ =
                writeln!(text, "{apart} metadata that only one has or that say how it was written");
        }
        let verdict = if self.equal { "equal" } else { "different" };
        let changed = differences.tensors.len();
        let tensors = if differences.same == 1 { "tensor" } else { "tensors" };
        let _ = writeln!(text, "{verdict}: {} {tensors} the same, {changed} not", differences.same);
        text
    }
}

fn section<T>(title: &str, differing: &[Differing<T>], show: impl Fn(&T) -> String) -> String {
    if differing.is_empty() {
        return String::new();
    }
    let mut table = output::table(["", title, "old", "new"], &[]);
    for Differing { name, old, new } in differing {
        let side = |side: &Option<T>| {
            side.as_ref().map(|of| escape(&show(of)).into_owned()).unwrap_or_default()
        };
        let mark = mark(old.is_some(), new.is_some());
        table.add_row([mark.to_owned(), inspect::name(name), side(old), side(new)]);
    }
    format!("\n{}", output::table_text(&table))
}

const fn mark(old: bool, new: bool) -> &'static str {
    match (old, new) {
        (true, false) => "-",
        (false, true) => "+",
        _ => "~",
    }
}

fn file_text(file: &FileSummary) -> String {
    match (&file.target, file.bytes) {
        (Some(target), _) => format!("link to {target}"),
        (None, Some(bytes)) => format!("{bytes} bytes"),
        (None, None) => "there".to_owned(),
    }
}

fn operators(differing: &[Differing<OperatorSummary>]) -> String {
    if differing.is_empty() {
        return String::new();
    }
    let mut table = output::table(["", "operator", "graph", "what", "old", "new"], &[]);
    for Differing { name, old, new } in differing {
        let graph = old.as_ref().or(new.as_ref()).map_or("", |operator| &operator.graph);
        let mut row = |what: &str, old: String, new: String, mark: &str| {
            let cells = [old, new].map(|cell| escape(&cell).into_owned());
            let [old, new] = cells;
            let (name, graph) = (inspect::name(name), escape(graph).into_owned());
            table.add_row([mark.to_owned(), name, graph, what.to_owned(), old, new]);
        };
        match (old, new) {
            (Some(old), Some(new)) => {
                for (what, old, new) in changes(old, new) {
                    row(&what, old, new, "~");
                }
            }
            (Some(old), None) => row("", old.operator.clone(), String::new(), "-"),
            (None, Some(new)) => row("", String::new(), new.operator.clone(), "+"),
            (None, None) => {}
        }
    }
    format!("\n{}", output::table_text(&table))
}

/// Returns what is different about an operator, in the old and the new file.
fn changes(old: &OperatorSummary, new: &OperatorSummary) -> Vec<(String, String, String)> {
    let names = |names: &[Option<String>]| {
        let names: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
        names.join(", ")
    };
    let mut changes = vec![
        ("graph".to_owned(), old.graph.clone(), new.graph.clone()),
        ("type".to_owned(), old.operator.clone(), new.operator.clone()),
        ("inputs".to_owned(), names(&old.inputs), names(&new.inputs)),
        ("outputs".to_owned(), names(&old.outputs), names(&new.outputs)),
    ];
    let mut keys: Vec<&String> = old.attributes.keys().chain(new.attributes.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let value = |of: &OperatorSummary, key: &String| {
        of.attributes.get(key).map_or_else(|| "-".to_owned(), Value::to_string)
    };
    changes.extend(keys.into_iter().map(|key| (key.clone(), value(old, key), value(new, key))));
    changes.retain(|(_, old, new)| old != new);
    changes
}

fn tensors(differing: &[TensorDiff]) -> String {
    if differing.is_empty() {
        return String::new();
    }
    let mut table = output::table(["", "tensor", "what differs"], &[]);
    for tensor in differing {
        let mut name = inspect::name(tensor.name());
        if let (Some(old), Some(new)) = (&tensor.old, &tensor.new)
            && old != new
        {
            name = format!("{} = {name}", inspect::name(old));
        }
        let mark = mark(tensor.old.is_some(), tensor.new.is_some());
        table.add_row([mark.to_owned(), name, escape(&change(&tensor.change)).into_owned()]);
    }
    format!("\n{}\n", output::table_text(&table).trim_end())
}

fn change(change: &Change) -> String {
    match change {
        Change::Added => "only in the new file".to_owned(),
        Change::Removed => "only in the old file".to_owned(),
        Change::Shape { old_shape, new_shape } => format!("shape {old_shape} became {new_shape}"),
        Change::ElementType { old_dtype, new_dtype, values } => {
            let values = values.as_ref().map(|values| match values.mismatches {
                0 => ", equal values".to_owned(),
                _ => format!(", {}", values_text(values, None)),
            });
            format!("{old_dtype} became {new_dtype}{}", values.unwrap_or_default())
        }
        Change::Values { shape, values } => values_text(values, Some(shape)),
        Change::Bytes { bytes: 0, .. } => "has other parts".to_owned(),
        Change::Bytes { bytes, first } => format!("{bytes} bytes, the first at {first}"),
        Change::Unknown { reason } => format!("cannot be compared: {reason}"),
        other => format!("{other:?}"),
    }
}

fn values_text(values: &Comparison, shape: Option<&Shape>) -> String {
    let Comparison { elements, mismatches, nan_mismatches, .. } = values;
    if *mismatches == 0 {
        return "equal values in other bits".to_owned();
    }
    let mut text = format!("{mismatches} of {elements} elements");
    if *nan_mismatches > 0 {
        let _ = write!(text, ", {nan_mismatches} with NaN");
    }
    if let Some(most) = values.max_abs {
        let place = shape.map(|shape| Comparison::coordinates(most.index, shape));
        let place = place.map_or_else(|| most.index.to_string(), |place| format!("{place:?}"));
        let _ = write!(text, ", at most {} at {place}", number(most.value));
    }
    if let Some(most) = values.max_rel {
        let _ = write!(text, ", relative {}", number(most.value));
    }
    if let Some(most) = values.max_ulp {
        let _ = write!(text, ", {} ulp", most.value);
    }
    text
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        0.001..1e6 => format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => format!("{value:.3e}"),
    }
}

/// A tolerance as users write it: an absolute one, and after a comma a relative one.
#[derive(Clone, Copy, Debug)]
struct Within(Tolerance);

impl FromStr for Within {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
            number.ok_or_else(|| format!("{text:?} is not a number of at least 0"))
        };
        let (atol, rtol) = text.split_once(',').unwrap_or((text, "0"));
        Ok(Self(Tolerance { atol: number(atol)?, rtol: number(rtol)?, equal_nan: true }))
    }
}
