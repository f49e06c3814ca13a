//! Values by name, in the order in which they came.

use std::collections::HashMap;

#[derive(Clone, Debug)]
pub(super) struct Named<T> {
    values: Vec<(String, T)>,
    /// Where each is, by name.
    indices: HashMap<String, usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { values: Vec::new(), indices: HashMap::new() }
    }
}

impl<T> Named<T> {
    /// Returns a value with its name.
    pub(super) fn get(&self, name: &str) -> Option<(&str, &T)> {
        let (name, value) = self.values.get(*self.indices.get(name)?)?;
        Some((name, value))
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &T)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Adds a value, in the place of one of the same name.
    pub(super) fn put(&mut self, name: String, value: T) {
        let known = self.indices.get(&name).copied();
        match known.and_then(|index| self.values.get_mut(index)) {
            Some((_, slot)) => *slot = value,
            None => {
                self.indices.insert(name.clone(), self.values.len());
                self.values.push((name, value));
            }
        }
    }
}
