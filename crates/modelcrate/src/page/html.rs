//! The page as HTML.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write},
};

use tensor_core::{
    Finding, Severity, Source,
    digest::{Algorithm, Digest},
    text::grouped,
};

use super::{
    Content, Page, ROWS, Suspect, Suspicion, changes, graph, tensors,
    text::{Cut, LONG, Lines, Text, count, cut, dtype, shape, size, value},
};
use crate::{Port, TypedName, common_key, rules::Rule};

/// Writes the whole page.
pub(super) fn write(page: &Page<'_>, mut out: impl Write) -> io::Result<()> {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; \
         form-action 'none'",
        source(STYLE),
        source(SCRIPT)
    );
    let verdict = page.verdict();
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"modelcrate\">\n\
         <title>{}: {verdict}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#report\">Skip to the report</a>\n\
         <header>\n<h1>{}</h1>\n<p class=\"verdict {verdict}\">{verdict}</p>\n\
         <button type=\"button\" id=\"theme\" aria-pressed=\"false\" hidden>Dark</button>\n</header>\n",
        Text(cut(&page.name, TITLE).unwrap_or(&page.name)),
        Cut(&page.name),
    )?;
    let sections = sections(page);
    write!(out, "<nav aria-label=\"Parts of the report\">\n<ul>\n")?;
    for section in &sections {
        writeln!(out, "<li><a href=\"#{}\">{}</a></li>", section.id, section.title)?;
    }
    write!(out, "</ul>\n</nav>\n<main id=\"report\" tabindex=\"-1\">\n")?;
    for Section { id, title, body } in &sections {
        write!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n\
             <h2 id=\"{id}-title\">{title}</h2>\n{body}</section>\n"
        )?;
    }
    write!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")?;
    out.flush()
}

/// Returns how a policy names a text that it allows.
fn source(text: &str) -> String {
    let Digest::Sha256(digest) = Algorithm::Sha256.digest(text.as_bytes()) else {
        // That is not what was asked for.
        return "none".to_owned();
    };
    let mut source = "sha256-".to_owned();
    for group in digest.chunks(3) {
        let byte = |at: usize| group.get(at).map_or(0, |byte| u32::from(*byte));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = usize::try_from(bits >> shift & 0x3f).ok();
            let digit = digit.filter(|_| place <= group.len()).and_then(|at| BASE64.get(at));
            source.push(char::from(*digit.unwrap_or(&b'=')));
        }
    }
    source
}

/// A part of the page.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) body: String,
}

fn sections(page: &Page<'_>) -> Vec<Section> {
    let mut sections = vec![Section { id: "summary", title: "Summary", body: summary(page) }];
    let mut add = |id, title, body: String| {
        if !body.is_empty() {
            sections.push(Section { id, title, body });
        }
    };
    if let Some(compared) = &page.compared {
        add("changes", "Changes", changes::html(&page.name, compared));
    }
    add("findings", "Findings", findings(page));
    let Some(content) = &page.content else { return sections };
    let (tensors, shown) = tensors::html(content);
    add("suspects", "Tensors to look at", suspects(content, shown));
    add("interface", "Inputs and outputs", interface(content));
    let room = PAGE.saturating_sub(tensors.len());
    add("tensors", "Tensors", tensors);
    let changed = page.compared.as_ref().map(|compared| &compared.diff);
    add("graph", "Graph", graph::html(content, changed, room));
    add("operators", "Operators", operators(content));
    add("files", "Files", files(content));
    sections
}

fn summary(page: &Page<'_>) -> String {
    let mut out = "<dl class=\"facts\">\n".to_owned();
    for (label, said) in facts(page) {
        let _ = writeln!(out, "<div><dt>{label}</dt><dd>{}</dd></div>", Cut(&said));
    }
    out.push_str("</dl>\n");
    let Some(content) = &page.content else { return out };
    let metadata = &content.summary.metadata;
    if metadata.is_empty() {
        return out;
    }
    let mut rows = String::new();
    for (key, found) in metadata.iter().take(ROWS) {
        let text = value(found);
        let shown = match cut(&text, LONG) {
            None => Lines(&text).to_string(),
            Some(start) => format!("{}…", Lines(start)),
        };
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td class=\"text\">{shown}</td></tr>",
            Cut(key)
        );
    }
    let heads = ["key", "value"];
    out.push_str(&table("Metadata", &heads, &rows, rest(metadata.len(), "inspect --format json")));
    out
}

/// Returns what is said of a file first, label by label.
pub(super) fn facts(page: &Page<'_>) -> Vec<(&'static str, String)> {
    let Some(Content { reader, summary, coverage, .. }) = &page.content else {
        return vec![("File", "does not open".to_owned())];
    };
    let mut facts = vec![("Format", format!("{} {}", summary.format, summary.version))];
    facts.push(("Size", size(reader.source().map_or_else(|| reader.byte_len(), Source::len))));
    let bytes = summary.tensors.iter().fold(0_u64, |sum, of| sum.saturating_add(of.bytes));
    facts.push(("Tensors", format!("{}, {}", grouped(summary.tensors.len() as u64), size(bytes))));
    if let Some(graph) = &summary.graph {
        let graphs =
            if graph.graphs > 1 { format!(" in {} graphs", graph.graphs) } else { String::new() };
        facts.push(("Operators", format!("{}{graphs}", grouped(graph.operators))));
    }
    if !summary.files.is_empty() {
        facts.push(("Files", grouped(summary.files.len() as u64)));
    }
    if let Some(percent) = coverage.percent() {
        facts.push(("Covered by digests", format!("{percent} % of the bytes")));
    }
    let known = |wanted: &[&str]| {
        let mut keys = summary.metadata.iter();
        let found = keys.find(|(key, _)| wanted.contains(&common_key(summary.format, key)));
        found.map(|(_, found)| value(found))
    };
    facts.extend(known(&PRODUCER).map(|producer| ("Producer", producer)));
    facts.extend(known(&["license"]).map(|licence| ("Licence", licence)));
    facts.extend(summary.model_hash.clone().map(|hash| ("Model hash", hash)));
    facts
}

/// The findings of a rule.
pub(super) struct Found<'f> {
    pub(super) severity: Severity,
    pub(super) rule: &'f str,
    pub(super) findings: Vec<&'f Finding>,
}

/// Returns the findings by rule, the gravest first.
pub(super) fn by_rule<'f>(page: &'f Page<'_>) -> Vec<Found<'f>> {
    let mut rules: BTreeMap<&str, Found<'f>> = BTreeMap::new();
    for finding in page.findings.findings() {
        let rule: &str = &finding.rule;
        let new = || Found { severity: finding.severity, rule, findings: Vec::new() };
        let found = rules.entry(rule).or_insert_with(new);
        found.severity = found.severity.max(finding.severity);
        found.findings.push(finding);
    }
    let mut all: Vec<Found<'f>> = rules.into_values().collect();
    all.sort_by_key(|found| std::cmp::Reverse(found.severity));
    all
}

fn findings(page: &Page<'_>) -> String {
    let all = by_rule(page);
    if all.is_empty() {
        return "<p>Nothing was found.</p>\n".to_owned();
    }
    let mut out = String::new();
    for Found { severity, rule, findings } in all {
        let open = if severity == Severity::Note { "" } else { " open" };
        let _ = writeln!(
            out,
            "<details class=\"finding {severity}\"{open}>\n<summary><b>{severity}</b> <code>{}</code> {}</summary>",
            Text(rule),
            if findings.len() > 1 { format!("{} times", findings.len()) } else { String::new() }
        );
        if let Some(rule) = Rule::find(rule) {
            for (label, said) in
                [("Means", rule.meaning), ("Do", rule.remedy), ("Source", rule.source)]
            {
                let _ = writeln!(out, "<p><b>{label}:</b> {}.</p>", code(said));
            }
        }
        out.push_str("<ul>\n");
        for finding in findings.iter().take(FINDINGS) {
            let place = finding.at.to_string();
            let joint = if place.is_empty() { "" } else { ": " };
            let _ = writeln!(
                out,
                "<li><span class=\"place\">{}</span>{joint}{}</li>",
                Cut(&place),
                Text(cut(&finding.message, LONG).unwrap_or(&finding.message))
            );
        }
        out.push_str("</ul>\n");
        if findings.len() > FINDINGS {
            let left = findings.len().saturating_sub(FINDINGS);
            let _ = writeln!(out, "<p>… and {left} more: <code>modelcrate verify -v</code></p>");
        }
        out.push_str("</details>\n");
    }
    out
}

/// Writes a sentence of ours, in which some words are between backticks.
fn code(sentence: &str) -> String {
    let mut out = String::new();
    for (at, part) in sentence.split('`').enumerate() {
        let _ = match at % 2 {
            0 => write!(out, "{}", Text(part)),
            _ => write!(out, "<code>{}</code>", Text(part)),
        };
    }
    out
}

/// Writes the tensors that someone should look at, of which those have a row that are among the first.
fn suspects(content: &Content<'_>, shown: usize) -> String {
    if content.suspects.is_empty() {
        return String::new();
    }
    let all = &content.summary.tensors;
    let mut rows = String::new();
    for Suspect { tensor, suspicions } in content.suspects.iter().take(ROWS) {
        let Some(found) = all.get(*tensor) else { continue };
        let mut said = String::new();
        for suspicion in suspicions {
            let joint = if said.is_empty() { "" } else { "; " };
            let _ = match suspicion {
                Suspicion::Equal(other) => {
                    let other = all.get(*other).map_or("", |other| &other.name);
                    let other = cut(other, NAME).unwrap_or(other);
                    write!(said, "{joint}the same elements as <code>{}</code>", Text(other))
                }
                other => write!(said, "{joint}{}", sentence(other)),
            };
        }
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{said}</td></tr>",
            tensors::link(*tensor, &found.name, shown),
            Text(&dtype(found)),
            Text(&found.shape.to_string()),
        );
    }
    let heads = ["tensor", "type", "shape", "why"];
    table(
        "Tensors to look at",
        &heads,
        &rows,
        rest(content.suspects.len(), "inspect --stats --tensors"),
    )
}

/// Says what is unusual about a tensor.
pub(super) fn sentence(suspicion: &Suspicion) -> String {
    match suspicion {
        Suspicion::Nan(elements) => format!("{} NaN", grouped(*elements)),
        Suspicion::Infinite(elements) => format!("{} infinite", grouped(*elements)),
        Suspicion::Zero => "all elements are zero".to_owned(),
        Suspicion::Constant => "all elements are one number".to_owned(),
        Suspicion::Saturated => {
            "1 of 100 elements or more at an end of what the type can hold".to_owned()
        }
        Suspicion::Equal(_) => "the same elements as another".to_owned(),
    }
}

fn interface(content: &Content<'_>) -> String {
    let summary = &content.summary;
    let mut out = String::new();
    for (caption, ports) in [("Inputs", &summary.inputs), ("Outputs", &summary.outputs)] {
        if !ports.is_empty() {
            let rows: String = ports.iter().take(ROWS).map(port).collect();
            let heads = ["name", "type", "shape", "description"];
            out.push_str(&table(caption, &heads, &rows, rest(ports.len(), "inspect")));
        }
    }
    if !summary.methods.is_empty() {
        let mut rows = String::new();
        let types = |list: &Option<Vec<TypedName>>| list.as_ref().map_or(0, Vec::len);
        for method in summary.methods.iter().take(ROWS) {
            let _ = writeln!(
                rows,
                "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td></tr>",
                Cut(&method.signature),
                types(&method.parameters),
                types(&method.returns)
            );
        }
        let heads = ["method", "parameters", "returns"];
        out.push_str(&table("Methods", &heads, &rows, rest(summary.methods.len(), "inspect")));
    }
    out
}

fn port(port: &Port) -> String {
    let said = port.description.as_deref().unwrap_or_default();
    let inside = port.internal_name.as_deref().map(|name| format!(" (inside: {})", Cut(name)));
    format!(
        "<tr><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
        Cut(&port.name),
        inside.unwrap_or_default(),
        Cut(&port.dtype),
        Cut(&shape(port)),
        Text(cut(said, LONG).unwrap_or(said))
    )
}

fn operators(content: &Content<'_>) -> String {
    let Some(graph) = &content.summary.graph else { return String::new() };
    let mut counts: Vec<(&String, u64)> =
        graph.by_operator.iter().map(|(name, count)| (name, *count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most = counts.first().map_or(1, |(_, count)| *count);
    let mut rows = String::new();
    for (name, count) in counts.iter().take(ROWS) {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}{}</td></tr>",
            Cut(name),
            grouped(*count),
            bar(*count, most)
        );
    }
    if rows.is_empty() {
        return rows;
    }
    table(
        "Operators by type",
        &["operator", "number"],
        &rows,
        rest(counts.len(), "inspect --format json"),
    )
}

fn files(content: &Content<'_>) -> String {
    let files = &content.summary.files;
    let most = files.iter().filter_map(|file| file.bytes).max().unwrap_or(1);
    let mut rows = String::new();
    for file in files.iter().take(ROWS) {
        let bytes = file.bytes.map(|bytes| format!("{}{}", grouped(bytes), bar(bytes, most)));
        let stored = file.encoding.iter().map(String::as_str).chain(file.place);
        let mut stored: Vec<String> = stored.map(str::to_owned).collect();
        stored.extend(file.target.as_ref().map(|target| format!("link to {target}")));
        stored.extend(file.stored_bytes.map(|bytes| format!("{} bytes", grouped(bytes))));
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td>{}</td><td><code>{}</code></td></tr>",
            Cut(&file.path),
            bytes.unwrap_or_default(),
            Cut(&stored.join(", ")),
            Text(file.sha256.as_deref().unwrap_or_default())
        );
    }
    if rows.is_empty() {
        return rows;
    }
    table(
        "Files inside",
        &["file", "bytes", "stored", "SHA-256"],
        &rows,
        rest(files.len(), "inspect --files"),
    )
}

/// Draws how much of the most there is.
pub(super) fn bar(amount: u64, most: u64) -> String {
    let width = u128::from(amount).saturating_mul(100).div_ceil(u128::from(most.max(1)));
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect width=\"{width}\" height=\"8\"/></svg>"
    )
}

/// Says how many rows are left out, and which command lists them.
pub(super) fn rest(rows: usize, command: &'static str) -> Option<(usize, &'static str)> {
    let left = rows.saturating_sub(ROWS);
    (left > 0).then_some((left, command))
}

/// Writes a table in a frame that can be moved by keys where it is too wide.
pub(super) fn table(
    caption: &str,
    heads: &[&str],
    rows: &str,
    left: Option<(usize, &str)>,
) -> String {
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {caption}\">\n<table>\n\
         <caption>{caption}</caption>\n<thead><tr>"
    );
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    let _ = write!(out, "</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n");
    if let Some((left, command)) = left {
        let _ = writeln!(
            out,
            "<p>… and {}: <code>modelcrate {command}</code></p>",
            count(left, "more row")
        );
    }
    out
}

const STYLE: &str = include_str!("page.css");

const SCRIPT: &str = include_str!("page.js");

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Keys that say what made a file.
const PRODUCER: [&str; 4] = ["producer", "generator", "author", "general.author"];

/// Findings of a rule that are listed.
const FINDINGS: usize = 20;

/// Bytes of the table of tensors and all drawings.
const PAGE: usize = 2_850_000;

/// Characters of a name in a sentence.
pub(super) const NAME: usize = 80;

/// Characters of the title of the page.
const TITLE: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_in_base64() {
        // printf 'a' | openssl dgst -sha256 -binary | base64
        assert_eq!(source("a"), "sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=");
    }
}
