//! Names: in ONNX each value of a model has one of its own, whatever graph it is in.

use std::collections::{HashMap, HashSet};

/// Gives out names, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names that the file has anywhere, which no made-up name may be.
    reserved: HashSet<String>,
    taken: HashSet<String>,
    /// The next number behind each name that was asked for before.
    next: HashMap<String, u64>,
}

impl Names {
    /// Reserves the names of a file for what has them there.
    pub(super) fn reserving<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let reserved = names.into_iter().map(str::to_owned).collect();
        Self { reserved, ..Self::default() }
    }

    /// Returns the name that something has in the file, or where it has none or another thing has
    /// it, one that is made from it or from `otherwise`.
    pub(super) fn claim(&mut self, name: Option<&str>, otherwise: &str) -> String {
        match name.filter(|name| !name.is_empty()) {
            Some(name) if self.taken.insert(name.to_owned()) => name.to_owned(),
            name => self.fresh(name.unwrap_or(otherwise)),
        }
    }

    /// Returns a name that nothing else has: the given one, with a number where that is needed.
    pub(super) fn fresh(&mut self, base: &str) -> String {
        let is_free =
            |this: &Self, name: &str| !this.reserved.contains(name) && !this.taken.contains(name);
        let mut name = base.to_owned();
        let mut number = self.next.get(base).copied().unwrap_or(2);
        while !is_free(self, &name) {
            name = format!("{base}_{number}");
            number = number.saturating_add(1);
        }
        self.next.insert(base.to_owned(), number);
        self.taken.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_a_name_keeps_it() {
        let mut names = Names::reserving(["a", "a", "a_2"]);
        assert_eq!(names.claim(Some("a"), "value"), "a");
        assert_eq!(names.claim(Some("a"), "value"), "a_3");
        assert_eq!(names.claim(Some("a_2"), "value"), "a_2");
        assert_eq!(names.claim(None, "value"), "value");
        assert_eq!(names.claim(Some(""), "value"), "value_2");
    }

    #[test]
    fn made_up_names_are_nobody_elses() {
        let mut names = Names::reserving(["a", "b"]);
        assert_eq!(names.fresh("b"), "b_2");
        assert_eq!(names.fresh("b"), "b_3");
        assert_eq!(names.fresh("c"), "c");
        assert_eq!(names.claim(Some("b"), "value"), "b");
    }
}
