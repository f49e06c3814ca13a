//! The links of a model's description. Format text: "`carton.toml`", `model_description`.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};

/// A place in Markdown that points to something else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkdownLink {
    /// What it points to, with escapes undone.
    pub target: String,
    /// How it is written.
    pub kind: LinkKind,
    /// The line of the Markdown, counted from 1.
    pub line: u64,
}

/// How a link is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkKind {
    /// `[text](target)`.
    Link,
    /// `![text](target)`.
    Image,
    /// `<target>`.
    Autolink,
    /// `[name]: target`, whether the name is used or not.
    Definition,
    /// `src="target"` or `href="target"` in a tag of HTML.
    Html,
}

impl MarkdownLink {
    /// Returns the path of a file in `misc/`, where the target is `@misc/<path>`.
    #[must_use]
    pub fn misc_path(&self) -> Option<&str> {
        self.target.strip_prefix(crate::description::reference::MISC)
    }
}

/// Returns the links of a Markdown text, in its order. What is shown as code has none.
///
/// The dialect is `CommonMark` with tables and footnotes. The time is linear in the length of the
/// text.
///
/// # Examples
///
/// ```
/// let links = carton_format::markdown_links("See ![a plot](@misc/plot.png), not `[x](y)`.");
/// assert_eq!(links.len(), 1);
/// assert_eq!(links[0].misc_path(), Some("plot.png"));
/// ```
#[must_use]
pub fn markdown_links(markdown: &str) -> Vec<MarkdownLink> {
    scan(markdown).links
}

/// What a look at a Markdown text finds.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) links: Vec<MarkdownLink>,
    /// The lines, counted from 1, on which a tag or a comment of HTML starts.
    pub(crate) html: Vec<u64>,
}

pub(crate) fn scan(markdown: &str) -> Scan {
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES);
    let mut found = Vec::new();
    let definitions = parser.reference_definitions().iter();
    found.extend(definitions.map(|(_, definition)| {
        (definition.span.start, LinkKind::Definition, definition.dest.to_string())
    }));
    let mut html = Vec::new();
    for (event, range) in parser.into_offset_iter() {
        let (kind, link_type, target) = match event {
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                (LinkKind::Link, link_type, dest_url)
            }
            Event::Start(Tag::Image { link_type, dest_url, .. }) => {
                (LinkKind::Image, link_type, dest_url)
            }
            Event::Html(tag) | Event::InlineHtml(tag) => {
                if tag.contains('<') {
                    html.push(range.start);
                }
                let targets = html_targets(&tag).into_iter();
                found.extend(targets.map(|target| (range.start, LinkKind::Html, target)));
                continue;
            }
            _ => continue,
        };
        match link_type {
            LinkType::Inline => found.push((range.start, kind, target.into_string())),
            LinkType::Autolink => {
                found.push((range.start, LinkKind::Autolink, target.into_string()));
            }
            LinkType::Email => {
                found.push((range.start, LinkKind::Autolink, format!("mailto:{target}")));
            }
            // Their targets stand in definitions, which are in the list already.
            _ => {}
        }
    }
    found.sort_by_key(|&(offset, ..)| offset);
    let mut lines = Lines::new(markdown);
    let links = found
        .into_iter()
        .map(|(offset, kind, target)| MarkdownLink { target, kind, line: lines.at(offset) })
        .collect();
    let mut lines = Lines::new(markdown);
    Scan { links, html: html.into_iter().map(|offset| lines.at(offset)).collect() }
}

/// Counts lines up to offsets that do not decrease.
#[derive(Debug)]
struct Lines<'a> {
    rest: &'a [u8],
    offset: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.as_bytes(), offset: 0, line: 1 }
    }

    fn at(&mut self, offset: usize) -> u64 {
        let passed = offset.saturating_sub(self.offset);
        if let Some((passed, rest)) = self.rest.split_at_checked(passed) {
            let newlines = passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.line = self.line.saturating_add(newlines);
            (self.rest, self.offset) = (rest, offset);
        }
        self.line
    }
}

/// Finds the values of `src` and `href` in a piece of HTML. The piece may be any part of a block,
/// so this looks for the words and not for tags.
fn html_targets(html: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('=') {
        rest = after;
        let name = before.trim_end().rsplit(|char: char| !char.is_ascii_alphanumeric()).next();
        if !name.is_some_and(|n| n.eq_ignore_ascii_case("src") || n.eq_ignore_ascii_case("href")) {
            continue;
        }
        let value = after.trim_start();
        let (value, after) = match value.strip_prefix(['"', '\'']) {
            Some(quoted) if value.starts_with('"') => {
                quoted.split_once('"').unwrap_or((quoted, ""))
            }
            Some(quoted) => quoted.split_once('\'').unwrap_or((quoted, "")),
            None => value.split_at(value.find([' ', '\t', '\n', '\r', '>']).unwrap_or(value.len())),
        };
        targets.push(value.to_owned());
        // A value is read once, whatever it holds.
        rest = after;
    }
    targets
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[track_caller]
    fn finds(markdown: &str, expected: &[(LinkKind, &str, u64)]) {
        let links = markdown_links(markdown);
        let found: Vec<_> = links.iter().map(|l| (l.kind, l.target.as_str(), l.line)).collect();
        assert_eq!(found, expected, "{markdown}");
    }

    #[test]
    fn every_way_to_link() {
        use LinkKind::{Autolink, Definition, Html, Image, Link};
        finds("a\n[x](@misc/a.png \"title\") b", &[(Link, "@misc/a.png", 2)]);
        finds("![x](<@misc/a b.png>)", &[(Image, "@misc/a b.png", 1)]);
        finds("[![x](a)](b)", &[(Link, "b", 1), (Image, "a", 1)]);
        finds(
            "<https://a.b/c>\n<a@b.c>",
            &[(Autolink, "https://a.b/c", 1), (Autolink, "mailto:a@b.c", 2)],
        );
        finds(
            "[x] [y][x]\n\n[x]: <a b>\n[z]: c\n",
            &[(Definition, "a b", 3), (Definition, "c", 4)],
        );
        finds("[^1]\n\n[^1]: note [x](y)\n", &[(Link, "y", 3)]);
        finds("a | b\n--|--\n[x](y) | [z](w)\n", &[(Link, "y", 3), (Link, "w", 3)]);
        finds("a <img src='b'> <a HREF = c>", &[(Html, "b", 1), (Html, "c", 1)]);
        finds("<p>\n<img alt=x src=\"b\"\n>\n<a href=c>\n", &[(Html, "b", 2), (Html, "c", 4)]);
        finds(r"[x](a\)b) [y](&amp;)", &[(Link, "a)b", 1), (Link, "&", 1)]);
    }

    #[test]
    fn text_that_is_no_link() {
        finds("`[x](y)` ``<b> [x](y)`` \\[x](y)", &[]);
        finds("```md\n[x](y)\n[z]: w\n<img src=a>\n```\n\n    [x](y)\n", &[]);
        finds("[x] [y][z] (https://a.b) https://a.b [x](a b)", &[]);
        finds("", &[]);
    }

    #[test]
    fn tags_of_html() {
        assert_eq!(scan("a <b>c</b>\n\n<!-- d\ne -->\n\n`<b>` a < b").html, [1, 1, 3]);
        assert_eq!(scan("&lt;b> 1 < 2 > 1 <https://a.b>").html, [0; 0]);
    }

    /// Threat T12: what makes careless parsers take quadratic or exponential time.
    #[test]
    fn hostile_text_takes_no_longer() {
        for piece in [
            "[",
            "]",
            "![",
            "[](",
            "[a](<",
            "[a](b\\",
            "*a ",
            "_a**",
            "`",
            "a`",
            "``a`",
            "<",
            "<a ",
            "<!--",
            "<a href=",
            "=",
            "&",
            "\\",
            "> ",
            ">",
            "- ",
            "1. ",
            "[a]: b\n",
            "[a]: ",
            "[a",
            "![a][",
            "[^a]",
            "[^a]:",
            "a|",
            "|\n|-|\n",
            "```\n",
            "#",
            "- a\n\n",
            "<?",
            "<![CDATA[",
            "~",
            "$",
            "<https://a",
            "\t",
        ] {
            let text = piece.repeat((1 << 20) / piece.len());
            let start = Instant::now();
            let _ = scan(&text);
            assert!(start.elapsed() < Duration::from_secs(5), "{piece:?}: {:?}", start.elapsed());
        }
    }
}
