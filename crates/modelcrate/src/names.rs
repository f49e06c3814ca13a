use std::{cmp::Ordering, fmt, str::FromStr};

/// Rules that give tensors other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMap(Vec<Rule>);

impl NameMap {
    /// Returns the name that the first rule which fits makes of a name; the same where none does.
    #[must_use]
    pub fn apply(&self, name: &str) -> String {
        self.0.iter().find_map(|rule| rule.apply(name)).unwrap_or_else(|| name.to_owned())
    }
}

impl FromIterator<Rule> for NameMap {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}

/// What becomes of names: `OLD=NEW`, or with one `*` on both sides, which stands for any text, as in
/// `model.*=*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    old: (String, Option<String>),
    new: (String, Option<String>),
}

impl Rule {
    /// Tells whether it gives a name another one.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        self.apply(name).is_some()
    }

    fn apply(&self, name: &str) -> Option<String> {
        let (start, end) = &self.old;
        let (new_start, new_end) = &self.new;
        match end {
            None => (name == start).then(|| new_start.clone()),
            Some(end) => {
                let middle = name.strip_prefix(start.as_str())?.strip_suffix(end.as_str())?;
                Some(format!("{new_start}{middle}{}", new_end.as_deref().unwrap_or_default()))
            }
        }
    }
}

impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let (old, new) = text.split_once('=').ok_or(InvalidRule::NoEquals)?;
        let parts = |side: &str| {
            let (start, end) = match side.split_once('*') {
                Some((start, end)) => (start, Some(end.to_owned())),
                None => (side, None),
            };
            (start.to_owned(), end)
        };
        let (old, new) = (parts(old), parts(new));
        let several = |end: &Option<String>| end.as_ref().is_some_and(|end| end.contains('*'));
        if old.1.is_some() != new.1.is_some() || several(&old.1) || several(&new.1) {
            return Err(InvalidRule::Stars);
        }
        Ok(Self { old, new })
    }
}

/// Why a text is no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRule {
    /// There are not two names.
    #[error("has no \"=\", expected OLD=NEW")]
    NoEquals,
    /// It has a `*` on one side, or several.
    #[error("expected no * or one on each side, such as model.*=*")]
    Stars,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |f: &mut fmt::Formatter<'_>, (start, end): &(String, Option<String>)| {
            f.write_str(start)?;
            end.iter().try_for_each(|end| write!(f, "*{end}"))
        };
        side(f, &self.old)?;
        f.write_str("=")?;
        side(f, &self.new)
    }
}

/// Compares names as people order them: numbers in them by their value, so that `layer.2` is before
/// `layer.10`.
#[must_use]
pub fn natural_order(one: &str, other: &str) -> Ordering {
    let (mut ones, mut others) = (one, other);
    loop {
        let (text, number, rest) = next(ones);
        let (other_text, other_number, other_rest) = next(others);
        let order = text.cmp(other_text).then_with(|| by_value(number, other_number));
        if order.is_ne() {
            return order;
        }
        if rest.is_empty() && other_rest.is_empty() {
            // Names that differ in leading zeros alone.
            return one.cmp(other);
        }
        (ones, others) = (rest, other_rest);
    }
}

/// Splits off what is before the first digit, and the digits that follow.
fn next(text: &str) -> (&str, &str, &str) {
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let (before, rest) = text.split_at_checked(start).unwrap_or((text, ""));
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    (before, digits, rest)
}

fn by_value(one: &str, other: &str) -> Ordering {
    let [one, other] = [one, other].map(|digits| digits.trim_start_matches('0'));
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_rule_that_fits() {
        let rules = ["model.*=*", "a=b", "*.w=*.weight"].map(|text| {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
            rule
        });
        let map = NameMap::from_iter(rules);
        for (old, new) in
            [("model.x.w", "x.w"), ("a", "b"), ("ab", "ab"), ("x.w", "x.weight"), ("", "")]
        {
            assert_eq!(map.apply(old), new, "{old}");
        }
    }

    #[test]
    fn parts_do_not_overlap() {
        let rule: Rule = "aba*aba=*".parse().unwrap();
        assert_eq!((rule.apply("aba"), rule.apply("abaaba")), (None, Some(String::new())));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, error) in [
            ("a", InvalidRule::NoEquals),
            ("a*=b", InvalidRule::Stars),
            ("a=b*", InvalidRule::Stars),
            ("a**=*", InvalidRule::Stars),
        ] {
            assert_eq!(text.parse::<Rule>(), Err(error), "{text}");
        }
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let mut names =
            ["layer.10.w", "layer.2.w", "b", "layer.2", "a10b2", "a10b1", "a9", "x01", "x1", ""];
        names.sort_unstable_by(|one, other| natural_order(one, other));
        assert_eq!(
            names,
            ["", "a9", "a10b1", "a10b2", "b", "layer.2", "layer.2.w", "layer.10.w", "x01", "x1"]
        );
    }
}
