//! Things that are equal, and what they are.

/// Things that are known to be equal, and what they are: a union-find.
#[derive(Debug)]
pub(crate) struct Classes<T> {
    /// Another member of the same class, or itself in the one that stands for all.
    parents: Vec<usize>,
    /// Members of the class, in the one that stands for all.
    sizes: Vec<usize>,
    values: Vec<Option<T>>,
}

impl<T: Copy + PartialEq> Classes<T> {
    pub(crate) fn new(count: usize) -> Self {
        Self { parents: (0..count).collect(), sizes: vec![1; count], values: vec![None; count] }
    }

    pub(crate) fn add(&mut self) -> usize {
        let key = self.parents.len();
        self.parents.push(key);
        self.sizes.push(1);
        self.values.push(None);
        key
    }

    pub(crate) fn get(&self, key: usize) -> Option<T> {
        self.values.get(self.root(key)).copied().flatten()
    }

    pub(crate) fn set(&mut self, key: usize, value: T) -> Result<(), Clash<T>> {
        let root = self.root(key);
        let Some(slot) = self.values.get_mut(root) else { return Ok(()) };
        match *slot {
            Some(found) if found != value => Err(Clash { found, expected: value }),
            _ => {
                *slot = Some(value);
                Ok(())
            }
        }
    }

    /// Makes two classes one; the first is what is found where they differ.
    pub(crate) fn join(&mut self, left: usize, right: usize) -> Result<(), Clash<T>> {
        let (left, right) = (self.root(left), self.root(right));
        if left == right {
            return Ok(());
        }
        let (found, expected) = (self.get(left), self.get(right));
        if let Some((found, expected)) = found.zip(expected)
            && found != expected
        {
            return Err(Clash { found, expected });
        }
        let size = |key: usize| self.sizes.get(key).copied().unwrap_or_default();
        let total = size(left).saturating_add(size(right));
        let (below, above) = if size(left) > size(right) { (right, left) } else { (left, right) };
        put(&mut self.parents, below, above);
        put(&mut self.sizes, above, total);
        put(&mut self.values, above, found.or(expected));
        Ok(())
    }

    /// Returns the member that stands for the class. The smaller class always goes below the
    /// larger one, so the way there is as short as a logarithm.
    fn root(&self, mut key: usize) -> usize {
        while let Some(&parent) = self.parents.get(key)
            && parent != key
        {
            key = parent;
        }
        key
    }
}

fn put<T>(list: &mut [T], at: usize, value: T) {
    if let Some(slot) = list.get_mut(at) {
        *slot = value;
    }
}

/// Two things that should be equal and are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clash<T> {
    pub(crate) found: T,
    pub(crate) expected: T,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::element::Kind;

    #[test]
    fn what_is_joined_is_equal() {
        let mut classes = Classes::new(4);
        classes.join(0, 1).unwrap();
        classes.join(2, 3).unwrap();
        classes.set(3, Kind::Int).unwrap();
        assert_eq!(classes.get(0), None);
        classes.join(1, 2).unwrap();
        assert_eq!(classes.get(0), Some(Kind::Int));
    }

    #[test]
    fn what_differs_is_not_joined() {
        let mut classes = Classes::new(2);
        classes.set(0, Kind::Int).unwrap();
        classes.set(1, Kind::Float).unwrap();
        let clash = Clash { found: Kind::Int, expected: Kind::Float };
        assert_eq!(classes.join(0, 1), Err(clash));
    }

    #[test]
    fn ways_stay_short() {
        const COUNT: usize = 1 << 16;
        let mut classes: Classes<Kind> = Classes::new(COUNT);
        for key in 1..COUNT {
            classes.join(key - 1, key).unwrap();
        }
        classes.set(0, Kind::Int).unwrap();
        assert_eq!(classes.get(COUNT - 1), Some(Kind::Int));
        let depth = |mut key: usize| {
            let mut depth = 0;
            while classes.parents[key] != key {
                key = classes.parents[key];
                depth += 1;
            }
            depth
        };
        assert!((0..COUNT).map(depth).max().unwrap() <= 16);
    }
}
