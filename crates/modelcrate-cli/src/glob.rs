use std::str::FromStr;

use ::glob::Pattern;

/// Names that are meant: one as it is written, or those that fit a pattern of `*`, `?` and `[…]`.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    text: String,
    pattern: Option<Pattern>,
}

impl Glob {
    /// Returns what the user wrote.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Tells whether a name is meant; `*` stands for any characters, `/` and `.` among them.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.text == name || self.pattern.as_ref().is_some_and(|pattern| pattern.matches(name))
    }
}

impl FromStr for Glob {
    type Err = std::convert::Infallible;

    /// Reads a pattern; what is none, such as `w[0`, is a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self { text: text.to_owned(), pattern: Pattern::new(text).ok() })
    }
}

/// Tells whether a name is one that patterns mean; without patterns all are.
pub(crate) fn is_meant(globs: &[Glob], name: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
}

/// Refuses a pattern that means none of the names.
#[expect(clippy::needless_pass_by_value, reason = "iterators are handed over")]
pub(crate) fn check_meant<'n>(
    globs: &[Glob],
    what: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> anyhow::Result<()> {
    match globs.iter().find(|glob| !names.clone().any(|name| glob.matches(name))) {
        Some(glob) => anyhow::bail!("has no {what} {:?}", glob.text()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        let glob = |text: &str| text.parse::<Glob>().unwrap();
        for (text, name) in [
            ("w", "w"),
            ("*", "a/b.c"),
            ("layer.*.weight", "layer.0.attention/x.weight"),
            ("w?", "w1"),
            ("w[0-3]", "w2"),
            ("w[0]", "w[0]"),
            ("w[0", "w[0"),
        ] {
            assert!(glob(text).matches(name), "{text} {name}");
        }
        for (text, name) in [("w", "w1"), ("w?", "w"), ("*.weight", "w.bias"), ("W", "w")] {
            assert!(!glob(text).matches(name), "{text} {name}");
        }
        assert!(is_meant(&[], "w") && !is_meant(&[glob("b"), glob("c*")], "w"));
        let names = ["a", "b"].into_iter();
        let error = check_meant(&[glob("a"), glob("c*")], "tensor", names).unwrap_err();
        assert_eq!(error.to_string(), "has no tensor \"c*\"");
    }
}
