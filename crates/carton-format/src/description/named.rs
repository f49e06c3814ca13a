use toml::map::Map;

use crate::{
    Result,
    text::{Node, Unknown},
};

/// Values under unique names, in the order of the document.
///
/// Two of these are equal where the same names have the same values, whatever the order: the order
/// of keys has no meaning in TOML.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<V>(Map<String, V>);

impl<V> Named<V> {
    /// Reads a table whose keys are names.
    pub(crate) fn parse<'d>(
        node: Node<'d>,
        unknown: &mut Unknown<'d>,
        mut value: impl FnMut(Node<'d>) -> Result<V>,
    ) -> Result<Self> {
        let mut table = node.table()?;
        let named = table.entries().map(|(name, node)| Ok((name, value(node)?))).collect();
        table.finish(unknown);
        named
    }

    /// Adds a value at the end; where the name is taken, replaces its value and returns that.
    pub fn insert(&mut self, name: impl Into<String>, value: V) -> Option<V> {
        self.0.insert(name.into(), value)
    }

    /// Returns the value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.get(name)
    }

    /// Returns all names and values in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V> Default for Named<V> {
    fn default() -> Self {
        Self(Map::new())
    }
}

impl<V: Eq> Eq for Named<V> {}

impl<K: Into<String>, V> FromIterator<(K, V)> for Named<V> {
    /// Keeps the last value of a name that comes twice, at the place of the first.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl<V> IntoIterator for Named<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order() {
        let mut named: Named<u8> = [("z", 1), ("a", 2)].into_iter().collect();
        assert_eq!(named.insert("z", 3), Some(1));
        assert_eq!(named.iter().collect::<Vec<_>>(), [("z", &3), ("a", &2)]);
        assert_eq!(named, [("a", 2), ("z", 3)].into_iter().collect());
        assert_ne!(named, [("a", 2)].into_iter().collect());
    }
}
