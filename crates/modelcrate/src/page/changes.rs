//! What differs between two files.

use std::fmt::Write as _;

use tensor_core::{Shape, compare::Comparison, text::grouped};

use super::{
    Compared, ROWS,
    heat::Strip,
    html::{rest, table},
    text::{Cut, Text, count, float, shape, value},
};
use crate::{Change, Differing, FileSummary, OperatorSummary, Port, TensorDiff};

/// A change of anything but a tensor: what is compared, its name, and what the files have.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

impl Row {
    /// Returns a sign for what became of it, and a word.
    pub(super) const fn mark(&self) -> (&'static str, &'static str) {
        mark(self.old.is_some(), self.new.is_some())
    }
}

const fn mark(old: bool, new: bool) -> (&'static str, &'static str) {
    match (old, new) {
        (true, false) => ("−", "removed"),
        (false, true) => ("+", "added"),
        _ => ("~", "changed"),
    }
}

/// Says in a sentence how much differs.
pub(super) fn sentence(compared: &Compared<'_>) -> String {
    let diff = &compared.diff;
    let verdict = if diff.is_empty() { "Nothing differs that counts" } else { "The files differ" };
    let same = count(usize::try_from(diff.same).unwrap_or(usize::MAX), "tensor");
    format!("{verdict}: {same} the same, {} not", grouped(diff.tensors.len() as u64))
}

/// Returns the changes of all but tensors, with what they are of.
pub(super) fn tables(compared: &Compared<'_>) -> Vec<(&'static str, Vec<Row>)> {
    let diff = &compared.diff;
    let mut tables = vec![
        ("Metadata", rows(&diff.metadata, value)),
        ("Inputs", rows(&diff.inputs, port)),
        ("Outputs", rows(&diff.outputs, port)),
        ("Files inside", rows(&diff.files, file)),
        ("Numbers of operators", rows(&diff.operator_types, |number| grouped(*number))),
        ("Operators", rows(&diff.operators, operator)),
        ("Metadata that do not count", rows(&diff.apart, value)),
    ];
    tables.retain(|(_, rows)| !rows.is_empty());
    tables
}

fn rows<T>(differing: &[Differing<T>], show: impl Fn(&T) -> String) -> Vec<Row> {
    let row = |of: &Differing<T>| Row {
        name: of.name.clone(),
        old: of.old.as_ref().map(&show),
        new: of.new.as_ref().map(&show),
    };
    differing.iter().map(row).collect()
}

fn port(port: &Port) -> String {
    format!("{} {}", port.dtype, shape(port))
}

fn file(file: &FileSummary) -> String {
    match (&file.target, file.bytes) {
        (Some(target), _) => format!("link to {target}"),
        (None, Some(bytes)) => format!("{} bytes", grouped(bytes)),
        (None, None) => "there".to_owned(),
    }
}

fn operator(operator: &OperatorSummary) -> String {
    let attributes: Vec<String> =
        operator.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let names = |names: &[Option<String>]| {
        let names: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
        names.join(", ")
    };
    // Of a body it may be the graph that is another.
    let graph = if operator.place.0 > 0 { format!("{}: ", operator.graph) } else { String::new() };
    let attributes = if attributes.is_empty() {
        String::new()
    } else {
        format!(" {{{}}}", attributes.join(", "))
    };
    let (inputs, outputs) = (names(&operator.inputs), names(&operator.outputs));
    let gives = if outputs.is_empty() { "" } else { " → " };
    format!("{graph}{}({inputs}){gives}{outputs}{attributes}", operator.operator)
}

/// Says what differs between two tensors.
pub(super) fn change(change: &Change) -> String {
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
        Change::Bytes { bytes, first } => {
            format!("{} bytes, the first at {first}", grouped(*bytes))
        }
        Change::Unknown { reason } => format!("cannot be compared: {reason}"),
    }
}

fn values_text(values: &Comparison, shape: Option<&Shape>) -> String {
    let Comparison { elements, mismatches, nan_mismatches, .. } = values;
    if *mismatches == 0 {
        return "equal values in other bits".to_owned();
    }
    let mut text = format!("{} of {} elements", grouped(*mismatches), grouped(*elements));
    if *nan_mismatches > 0 {
        let _ = write!(text, ", {} with NaN", grouped(*nan_mismatches));
    }
    if mismatches == nan_mismatches {
        return text;
    }
    if let Some(most) = values.max_abs {
        let place = shape.map(|shape| Comparison::coordinates(most.index, shape));
        let place = place.map_or_else(|| most.index.to_string(), |place| format!("{place:?}"));
        let _ = write!(text, ", at most {} at {place}", float(most.value));
    }
    if let Some(most) = values.max_rel {
        let _ = write!(text, ", relative {}", float(most.value));
    }
    text
}

/// Writes the section.
pub(super) fn html(name: &str, compared: &Compared<'_>) -> String {
    let mut out = format!(
        "<p>From <b>{}</b> ({}) to <b>{}</b>. {}.</p>\n",
        Cut(&compared.old.name),
        compared.old.verdict(),
        Cut(name),
        Text(&sentence(compared))
    );
    out.push_str(&tensors(compared));
    for (caption, changed) in tables(compared) {
        let mut rows = String::new();
        for row in changed.iter().take(ROWS) {
            let (sign, word) = row.mark();
            let side = |side: &Option<String>| side.as_deref().map(|text| Cut(text).to_string());
            let _ = writeln!(
                rows,
                "<tr class=\"{word}\"><td><abbr title=\"{word}\">{sign}</abbr></td>\
                 <th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
                Cut(&row.name),
                side(&row.old).unwrap_or_default(),
                side(&row.new).unwrap_or_default()
            );
        }
        let heads = ["change", "name", "old", "new"];
        out.push_str(&table(caption, &heads, &rows, rest(changed.len(), "diff")));
    }
    out
}

fn tensors(compared: &Compared<'_>) -> String {
    let changed = &compared.diff.tensors;
    let mut rows = String::new();
    for (at, tensor) in changed.iter().enumerate().take(ROWS) {
        let (sign, word) = mark(tensor.old.is_some(), tensor.new.is_some());
        let strip = compared.heat.get(at).and_then(Option::as_ref).map(strip);
        let _ = writeln!(
            rows,
            "<tr class=\"{word}\"><td><abbr title=\"{word}\">{sign}</abbr></td>\
             <th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
            names(tensor),
            Text(&change(&tensor.change)),
            strip.unwrap_or_default()
        );
    }
    if rows.is_empty() {
        return rows;
    }
    let heads = ["change", "tensor", "what differs", "where"];
    table("Changed tensors", &heads, &rows, rest(changed.len(), "diff"))
}

fn names(tensor: &TensorDiff) -> String {
    match (&tensor.old, &tensor.new) {
        (Some(old), Some(new)) if old != new => format!("{} = {}", Cut(old), Cut(new)),
        _ if tensor.name().is_empty() => "<i>no name</i>".to_owned(),
        _ => Cut(tensor.name()).to_string(),
    }
}

/// Draws where in a tensor values differ: one rectangle for neighbours that are as hot.
fn strip(strip: &Strip) -> String {
    let cells = strip.cells.len();
    let hot = strip.cells.iter().filter(|cell| **cell > 0.0).count();
    let mut out = format!(
        "<svg class=\"heat\" viewBox=\"0 0 {cells} 8\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"differs in {hot} of {cells} parts\">"
    );
    let mut levels = strip.levels().enumerate().peekable();
    while let Some((start, level)) = levels.next() {
        let mut width = 1_usize;
        while levels.next_if(|(_, next)| *next == level).is_some() {
            width = width.saturating_add(1);
        }
        let _ =
            write!(out, "<rect class=\"h{level}\" x=\"{start}\" width=\"{width}\" height=\"8\"/>");
    }
    out.push_str("</svg>");
    out
}
