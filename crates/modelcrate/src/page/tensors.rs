//! The table of tensors.

use std::fmt::Write as _;

use tensor_core::text::grouped;

use super::{
    Content, Suspect, TENSORS,
    html::bar,
    text::{Cut, Text, cut, dtype, float, number, quantization, size, value},
};
use crate::{Number, Stats, TensorSummary};

/// Writes the table, with what a script filters it by; returns how many rows it has, too.
pub(super) fn html(content: &Content<'_>) -> (String, usize) {
    let tensors = &content.summary.tensors;
    if tensors.is_empty() {
        return (String::new(), 0);
    }
    let mut out = FILTER.to_owned();
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: Tensors\">\n\
         <table id=\"tensor-table\" class=\"sortable\">\n<caption>Tensors</caption>\n<thead><tr>",
    );
    let heads: &[&str] =
        if content.has_stats { &HEADS } else { HEADS.get(..4).unwrap_or_default() };
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let most = tensors.iter().map(|tensor| tensor.bytes).max().unwrap_or(1);
    let mut suspects = content.suspects.iter().peekable();
    let mut shown = 0_usize;
    for (at, tensor) in tensors.iter().enumerate().take(TENSORS) {
        if out.len() > ROOM {
            break;
        }
        let suspect = suspects.next_if(|suspect| suspect.tensor == at);
        let is_whole = out.len() < WHOLE;
        row(&mut out, at, tensor, suspect, most, is_whole);
        if content.has_stats {
            stats(&mut out, tensor, is_whole);
        }
        out.push_str("</tr>\n");
        shown = shown.saturating_add(1);
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    if tensors.len() > shown {
        let left = grouped(tensors.len().saturating_sub(shown) as u64);
        let _ = writeln!(
            out,
            "<p>… and {left} more tensors: <code>modelcrate inspect --tensors</code></p>"
        );
    }
    (out, shown)
}

/// Writes a name that leads to the row of its tensor, where that is one of those that are shown.
pub(super) fn link(at: usize, name: &str, shown: usize) -> String {
    let name = name_text(name);
    if at < shown { format!("<a href=\"#t{at}\">{name}</a>") } else { name }
}

fn name_text(name: &str) -> String {
    if name.is_empty() { "<i>no name</i>".to_owned() } else { Cut(name).to_string() }
}

/// Writes a row, with what else is known of the tensor where there is room for that.
fn row(
    out: &mut String,
    at: usize,
    tensor: &TensorSummary,
    suspect: Option<&Suspect>,
    most: u64,
    is_whole: bool,
) {
    let class = if suspect.is_some() { " class=\"suspect\"" } else { "" };
    let name = name_text(&tensor.name);
    let _ = write!(out, "<tr id=\"t{at}\"{class}><th scope=\"row\">");
    let details = if is_whole { details(tensor) } else { String::new() };
    if details.is_empty() {
        out.push_str(&name);
    } else {
        let _ = write!(out, "<details><summary>{name}</summary><dl>{details}</dl></details>");
    }
    for suspicion in suspect.iter().flat_map(|suspect| &suspect.suspicions) {
        let _ = write!(out, " <span class=\"mark\">{}</span>", suspicion.word());
    }
    let _ = write!(
        out,
        "</th><td>{}</td><td>{}</td><td data-value=\"{}\">{}{}</td>",
        Cut(&dtype(tensor)),
        Cut(&tensor.shape.to_string()),
        tensor.bytes,
        size(tensor.bytes),
        bar(tensor.bytes, most)
    );
}

/// Writes what else is known of a tensor, as a list of terms.
fn details(tensor: &TensorSummary) -> String {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    pairs.extend(tensor.model.clone().map(|model| ("model", model)));
    pairs.extend(tensor.logical_type.clone().map(|of| ("type", of)));
    pairs.extend(tensor.offset.map(|offset| ("offset", format!("byte {offset}"))));
    pairs.extend(tensor.layout.clone().map(|layout| ("layout", layout)));
    pairs.extend(tensor.encoding.clone().map(|encoding| ("encoding", encoding)));
    pairs.extend(tensor.stored_bytes.map(|bytes| ("stored", format!("{} bytes", grouped(bytes)))));
    pairs.extend(tensor.stored_elements.map(|of| ("stored elements", grouped(of))));
    pairs.extend(tensor.quantization.as_ref().map(|of| ("quantized", quantization(of))));
    pairs.extend(tensor.digest.clone().map(|digest| ("digest", digest)));
    pairs.extend(tensor.sha256.clone().map(|digest| ("SHA-256", digest)));
    pairs.extend(tensor.stats_of.clone().map(|of| ("statistics of", of)));
    pairs.extend(tensor.metadata.iter().take(PAIRS).map(|(key, found)| (&**key, value(found))));
    let mut out = String::new();
    for part in tensor.components.iter().take(PAIRS) {
        let known = part.dtype.map(|dtype| dtype.to_string()).unwrap_or_default();
        let said = format!("{known} at byte {}, {} bytes", part.offset, grouped(part.stored_bytes));
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", Cut(&part.role), Cut(&said));
    }
    for (key, said) in pairs {
        let said = cut(&said, LONG).unwrap_or(&said);
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", Cut(key), Text(said));
    }
    out
}

/// Writes the cells of statistics, which are empty where there are none, and a histogram where there is
/// room for that.
fn stats(out: &mut String, tensor: &TensorSummary, is_whole: bool) {
    let Some(stats) = &tensor.stats else {
        out.push_str("<td></td><td></td><td></td><td></td><td></td><td></td><td></td>");
        return;
    };
    let mut cell = |value: Option<f64>, text: String| {
        let _ = match value {
            Some(value) => {
                write!(out, "<td data-value=\"{value:.9e}\">{text}</td>")
            }
            None => write!(out, "<td></td>"),
        };
    };
    for end in [stats.min, stats.max] {
        cell(end.map(Number::to_f64), end.map(number).unwrap_or_default());
    }
    for value in [stats.mean, stats.std] {
        cell(value, value.map(float).unwrap_or_default());
    }
    #[expect(clippy::cast_precision_loss, reason = "rows are sorted by it")]
    for number in [stats.zeros, stats.nan.saturating_add(stats.infinite)] {
        cell(Some(number as f64), if number == 0 { "0".to_owned() } else { grouped(number) });
    }
    let histogram = if is_whole { histogram(stats) } else { String::new() };
    let _ = write!(out, "<td>{histogram}</td>");
}

/// Draws a histogram as one path, from the smallest element to the largest.
pub(super) fn histogram(stats: &Stats) -> String {
    let most = stats.histogram.iter().copied().max().unwrap_or_default();
    if most == 0 {
        return String::new();
    }
    let mut path = "M0 16".to_owned();
    let (mut before, mut run) = (0_i64, 0_u64);
    for count in &stats.histogram {
        let height = u128::from(*count).saturating_mul(HEIGHT).div_ceil(u128::from(most));
        let height = i64::try_from(height).unwrap_or_default();
        if height != before {
            let _ = write!(path, "{}v{}", step(run), before.saturating_sub(height));
            (before, run) = (height, 0);
        }
        run = run.saturating_add(2);
    }
    let _ = write!(path, "{}V16z", step(run));
    let at = |place: usize| stats.percentiles.get(place).copied().map(float).unwrap_or_default();
    format!(
        "<svg class=\"histogram\" viewBox=\"0 0 64 16\" role=\"img\" aria-label=\"1 % below {}, half \
         below {}, 99 % below {}\"><path d=\"{path}\"/></svg>",
        at(0),
        at(3),
        at(6)
    )
}

/// Writes a step to the right, where there is one.
fn step(width: u64) -> String {
    if width == 0 { String::new() } else { format!("h{width}") }
}

const HEADS: [&str; 11] = [
    "name",
    "type",
    "shape",
    "bytes",
    "min",
    "max",
    "mean",
    "deviation",
    "zeros",
    "NaN, Inf",
    "histogram",
];

/// What a script shows and uses.
const FILTER: &str = "<form class=\"filter\" id=\"tensor-filter\" role=\"search\" hidden>\n\
    <label>Filter <input type=\"search\" id=\"tensor-text\" autocomplete=\"off\" \
    placeholder=\"name, type or shape\"></label>\n\
    <label><input type=\"checkbox\" id=\"tensor-suspects\"> only those to look at</label>\n\
    <output id=\"tensor-count\" aria-live=\"polite\"></output>\n</form>\n";

/// Bytes of the table up to which rows have histograms and details.
const WHOLE: usize = 700_000;

/// Bytes of the table.
const ROOM: usize = 2_000_000;

/// The height of a histogram.
const HEIGHT: u128 = 16;

/// Keys of metadata of a tensor that are shown.
const PAIRS: usize = 20;

/// Characters of what is said of a tensor.
const LONG: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_one_path() {
        let stats = Stats { histogram: vec![1, 1, 4, 0], ..Stats::default() };
        let drawn = histogram(&stats);
        assert!(drawn.contains("d=\"M0 16v-4h4v-12h2v16h2V16z\""), "{drawn}");
        assert_eq!(histogram(&Stats::default()), "");
    }
}
