//! Shapes as a model declares them, with symbols for what only a call decides, and the check that
//! the real shapes of one call agree with all of them.

use std::{collections::BTreeMap, fmt};

use crate::{Shape, shape::show};

/// The shape that a model declares for an input or an output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SymbolicShape {
    /// Any dimensions of any rank.
    Any,
    /// A whole shape of any rank, the same wherever the symbol stands in one call.
    Symbol(String),
    /// One entry per dimension, outermost first.
    Dims(Vec<Dim>),
}

/// One dimension of a [`SymbolicShape`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// This many elements.
    Fixed(u64),
    /// Any number of elements, the same wherever the symbol stands in one call.
    Symbol(String),
    /// Any number of elements.
    Any,
}

impl SymbolicShape {
    /// Tells whether a real shape agrees with this one, taken alone.
    ///
    /// A symbol that stands for several dimensions must find the same number in each. Shapes that
    /// share symbols are checked together with [`Bindings`].
    #[must_use]
    pub fn matches(&self, actual: &Shape) -> bool {
        Bindings::default().bind("", self, actual).is_ok()
    }

    /// Returns the number of dimensions, where it is declared.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        match self {
            Self::Dims(dims) => Some(dims.len()),
            Self::Any | Self::Symbol(_) => None,
        }
    }
}

impl fmt::Display for SymbolicShape {
    /// Writes `[batch, 3, *]`, a symbol, or `*`; a long shape is cut after 16 dimensions and its
    /// rank is named.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Symbol(symbol) => f.write_str(symbol),
            Self::Dims(dims) => show(dims, f),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(elements) => write!(f, "{elements}"),
            Self::Symbol(symbol) => f.write_str(symbol),
            Self::Any => f.write_str("*"),
        }
    }
}

impl From<&Shape> for SymbolicShape {
    fn from(shape: &Shape) -> Self {
        Self::Dims(shape.dims().iter().copied().map(Dim::Fixed).collect())
    }
}

impl FromIterator<Dim> for SymbolicShape {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Self {
        Self::Dims(dims.into_iter().collect())
    }
}

/// What the symbols of one call stand for, over all its inputs and outputs.
///
/// # Examples
///
/// ```
/// use tensor_core::Shape;
/// use tensor_core::symbolic::{Bindings, Dim, SymbolicShape};
///
/// let declared = SymbolicShape::Dims(vec![Dim::Symbol("batch".to_owned()), Dim::Fixed(3)]);
/// let mut bindings = Bindings::default();
/// bindings.bind("input \"x\"", &declared, &Shape::from([2, 3]))?;
/// assert_eq!(bindings.dim("batch"), Some(2));
/// let error = bindings.bind("input \"y\"", &declared, &Shape::from([5, 3])).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"input "y" dimension 0: symbol "batch" is 5, but input "x" dimension 0 bound it to 2"#
/// );
/// # Ok::<(), tensor_core::symbolic::BindError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    symbols: BTreeMap<String, (Bound, Place)>,
}

impl Bindings {
    /// Checks a real shape against its declaration and binds the symbols that are new.
    ///
    /// `place` is what errors call it, such as `input "x"`. Where the check fails, nothing is
    /// bound that was not bound before.
    ///
    /// # Errors
    ///
    /// [`BindError::Rank`] and [`BindError::Fixed`] where the shape is not as declared;
    /// [`BindError::Symbol`] where a symbol already stands for something else, be it in the same
    /// shape.
    pub fn bind(
        &mut self,
        place: impl Into<String>,
        declared: &SymbolicShape,
        actual: &Shape,
    ) -> Result<(), BindError> {
        let mut added = Vec::new();
        let result = self.unify(place.into(), declared, actual, &mut added);
        if result.is_err() {
            for symbol in added {
                self.symbols.remove(symbol);
            }
        }
        result
    }

    /// Returns the real shape of a declared one; `None` where a part of it is not known.
    #[must_use]
    pub fn resolve(&self, declared: &SymbolicShape) -> Option<Shape> {
        match declared {
            SymbolicShape::Any => None,
            SymbolicShape::Symbol(symbol) => self.shape(symbol).cloned(),
            SymbolicShape::Dims(dims) => dims
                .iter()
                .map(|dim| match dim {
                    Dim::Fixed(elements) => Some(*elements),
                    Dim::Symbol(symbol) => self.dim(symbol),
                    Dim::Any => None,
                })
                .collect(),
        }
    }

    /// Returns what a symbol for one dimension stands for, in elements.
    #[must_use]
    pub fn dim(&self, symbol: &str) -> Option<u64> {
        match self.symbols.get(symbol) {
            Some((Bound::Dim(elements), _)) => Some(*elements),
            _ => None,
        }
    }

    /// Returns what a symbol for a whole shape stands for.
    #[must_use]
    pub fn shape(&self, symbol: &str) -> Option<&Shape> {
        match self.symbols.get(symbol) {
            Some((Bound::Shape(shape), _)) => Some(shape),
            _ => None,
        }
    }

    /// Does the work of `bind` and lists in `added` what a failure has to take back.
    fn unify<'a>(
        &mut self,
        place: String,
        declared: &'a SymbolicShape,
        actual: &Shape,
        added: &mut Vec<&'a str>,
    ) -> Result<(), BindError> {
        let dims = match declared {
            SymbolicShape::Any => return Ok(()),
            SymbolicShape::Symbol(symbol) => {
                let place = Place { tensor: place, dimension: None };
                return self.bind_symbol(place, symbol, Bound::Shape(actual.clone()), added);
            }
            SymbolicShape::Dims(dims) => dims,
        };
        if dims.len() != actual.rank() {
            let (found, expected) = (actual.clone(), declared.clone());
            let place = Place { tensor: place, dimension: None };
            return Err(BindError::Rank { place, found, expected });
        }
        for (index, (dim, &found)) in dims.iter().zip(actual.dims()).enumerate() {
            let place = || Place { tensor: place.clone(), dimension: Some(index) };
            match dim {
                Dim::Any => {}
                Dim::Fixed(expected) if *expected == found => {}
                Dim::Fixed(expected) => {
                    return Err(BindError::Fixed { place: place(), found, expected: *expected });
                }
                Dim::Symbol(symbol) => {
                    self.bind_symbol(place(), symbol, Bound::Dim(found), added)?;
                }
            }
        }
        Ok(())
    }

    fn bind_symbol<'a>(
        &mut self,
        place: Place,
        symbol: &'a str,
        found: Bound,
        added: &mut Vec<&'a str>,
    ) -> Result<(), BindError> {
        match self.symbols.get(symbol) {
            Some((expected, _)) if *expected == found => {}
            Some((expected, bound_at)) => {
                let (expected, bound_at) = (expected.clone(), bound_at.clone());
                let symbol = symbol.to_owned();
                let conflict = Conflict { symbol, place, found, bound_at, expected };
                return Err(BindError::Symbol(Box::new(conflict)));
            }
            None => {
                self.symbols.insert(symbol.to_owned(), (found, place));
                added.push(symbol);
            }
        }
        Ok(())
    }
}

/// Where a shape, or one dimension of it, belongs in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The caller's words for the tensor, such as `input "x"`.
    pub tensor: String,
    /// Which dimension, counted from the outermost; `None` for the shape as a whole.
    pub dimension: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tensor)?;
        match self.dimension {
            Some(dimension) => write!(f, " dimension {dimension}"),
            None => Ok(()),
        }
    }
}

/// What a symbol stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// One dimension, in elements.
    Dim(u64),
    /// A whole shape.
    Shape(Shape),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dim(elements) => write!(f, "{elements}"),
            Self::Shape(shape) => write!(f, "shape {shape}"),
        }
    }
}

/// Why a real shape does not agree with its declaration, or with the rest of the call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The shape has another number of dimensions than is declared.
    #[error("{place}: shape {found} has rank {}, expected the rank of {expected}", .found.rank())]
    Rank {
        /// The tensor.
        place: Place,
        /// Its real shape.
        found: Shape,
        /// Its declared shape.
        expected: SymbolicShape,
    },
    /// A dimension is not the number that is declared.
    #[error("{place} is {found}, expected {expected}")]
    Fixed {
        /// The dimension.
        place: Place,
        /// How many elements it has.
        found: u64,
        /// How many are declared.
        expected: u64,
    },
    /// A symbol stands for two different things in one call.
    #[error(
        "{}: symbol {:?} is {}, but {} bound it to {}",
        .0.place, .0.symbol, .0.found, .0.bound_at, .0.expected
    )]
    Symbol(Box<Conflict>),
}

/// Two meanings of one symbol. A dimension and a shape of one dimension are different meanings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The symbol.
    pub symbol: String,
    /// Where it stands for something else than before.
    pub place: Place,
    /// What it would stand for there.
    pub found: Bound,
    /// Where it was bound.
    pub bound_at: Place,
    /// What it was bound to.
    pub expected: Bound,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads `[batch, 3, *]`, `*` and `symbol`: what `Display` writes.
    fn declared(text: &str) -> SymbolicShape {
        let dim = |text: &str| match (text, text.parse()) {
            ("*", _) => Dim::Any,
            (_, Ok(elements)) => Dim::Fixed(elements),
            (symbol, Err(_)) => Dim::Symbol(symbol.to_owned()),
        };
        match (text, text.strip_prefix('[').and_then(|text| text.strip_suffix(']'))) {
            ("*", _) => SymbolicShape::Any,
            (_, Some("")) => SymbolicShape::Dims(Vec::new()),
            (_, Some(dims)) => dims.split(", ").map(dim).collect(),
            (symbol, None) => SymbolicShape::Symbol(symbol.to_owned()),
        }
    }

    /// Binds input "a", "b" and so on, of which only the last may fail; returns the message.
    #[track_caller]
    fn rejects<const N: usize>(call: [(&str, Shape); N], message: &str) {
        let mut bindings = Bindings::default();
        let mut results = ('a'..).zip(call).map(|(name, (text, actual))| {
            bindings.bind(format!("input \"{name}\""), &declared(text), &actual)
        });
        let last = results.by_ref().take(N - 1).find(Result::is_err);
        assert!(last.is_none(), "an earlier input does not bind: {last:?}");
        let error = results.next().unwrap().expect_err("the last input must not bind");
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn display_reads_like_the_declaration() {
        for text in ["*", "image", "[]", "[batch, 3, *]"] {
            assert_eq!(declared(text).to_string(), text);
        }
        let long: SymbolicShape = std::iter::repeat_n(Dim::Any, 5000).collect();
        assert!(long.to_string().ends_with("*, … of rank 5000]"), "{long}");
    }

    #[test]
    fn symbol_binds_once_per_call() {
        rejects(
            [("[batch, 3]", [2, 3].into()), ("[3, batch]", [3, 3].into())],
            r#"input "b" dimension 1: symbol "batch" is 3, but input "a" dimension 0 bound it to 2"#,
        );
        rejects(
            [("[n, n]", [2, 3].into())],
            r#"input "a" dimension 1: symbol "n" is 3, but input "a" dimension 0 bound it to 2"#,
        );
    }

    #[test]
    fn shape_symbol_binds_once_per_call() {
        rejects(
            [("s", [2, 3].into()), ("s", [2, 3].into()), ("s", [2, 3, 1].into())],
            r#"input "c": symbol "s" is shape [2, 3, 1], but input "a" bound it to shape [2, 3]"#,
        );
    }

    #[test]
    fn dimension_and_shape_do_not_share_a_symbol() {
        rejects(
            [("[s]", [3].into()), ("s", [3].into())],
            r#"input "b": symbol "s" is shape [3], but input "a" dimension 0 bound it to 3"#,
        );
        rejects(
            [("s", [3].into()), ("[s]", [3].into())],
            r#"input "b" dimension 0: symbol "s" is 3, but input "a" bound it to shape [3]"#,
        );
    }

    #[test]
    fn rank_differs() {
        rejects(
            [("[batch, 3]", [2, 3, 4].into())],
            r#"input "a": shape [2, 3, 4] has rank 3, expected the rank of [batch, 3]"#,
        );
        rejects(
            [("[1]", Shape::scalar())],
            r#"input "a": shape [] has rank 0, expected the rank of [1]"#,
        );
    }

    #[test]
    fn fixed_dimension_differs() {
        rejects([("[*, 3]", [9, 4].into())], r#"input "a" dimension 1 is 4, expected 3"#);
    }

    #[test]
    fn failed_bind_changes_nothing() {
        let mut bindings = Bindings::default();
        bindings.bind("input", &declared("[batch, 3]"), &[2, 3].into()).unwrap();
        let output = declared("[batch, new, 7]");
        bindings.bind("output", &output, &[2, 5, 8].into()).unwrap_err();
        assert_eq!(bindings.dim("new"), None, "a failed bind must not leave symbols");
        assert_eq!(bindings.dim("batch"), Some(2), "a failed bind must not take symbols away");
        bindings.bind("output", &output, &[2, 6, 7].into()).unwrap();
        assert_eq!(bindings.dim("new"), Some(6));
    }

    #[test]
    fn wildcards_bind_nothing() {
        assert!(declared("*").matches(&Shape::scalar()));
        assert!(declared("*").matches(&[1, 2, 3].into()));
        assert!(declared("[*, *]").matches(&[1, 2].into()));
    }

    #[test]
    fn matches_repeated_symbols() {
        let square = declared("[n, n, *]");
        assert!(square.matches(&[4, 4, 9].into()));
        assert!(!square.matches(&[4, 5, 9].into()));
        assert!(declared("s").matches(&[4, 5].into()));
    }

    #[test]
    fn resolves_what_is_bound() {
        let mut bindings = Bindings::default();
        bindings.bind("input", &declared("[batch, *]"), &[2, 3].into()).unwrap();
        bindings.bind("mask", &declared("s"), &[7, 1].into()).unwrap();
        let resolve = |text| bindings.resolve(&declared(text));
        assert_eq!(resolve("[4, batch]"), Some([4, 2].into()));
        assert_eq!(resolve("s"), Some([7, 1].into()));
        assert_eq!(bindings.shape("s"), Some(&[7, 1].into()));
        for text in ["*", "[batch, *]", "[other]", "other", "batch", "[s]"] {
            assert_eq!(resolve(text), None, "{text}");
        }
    }

    fn dims() -> impl Strategy<Value = Vec<Dim>> {
        let dim = prop_oneof![
            (0..3_u64).prop_map(Dim::Fixed),
            "[a-c]".prop_map(Dim::Symbol),
            Just(Dim::Any)
        ];
        prop::collection::vec(dim, 0..5)
    }

    proptest! {
        #[test]
        fn a_shape_matches_itself(dims in prop::collection::vec(any::<u64>(), 0..6)) {
            let shape = Shape::from(dims);
            let same = SymbolicShape::from(&shape);
            prop_assert!(same.matches(&shape));
            prop_assert_eq!(Bindings::default().resolve(&same), Some(shape));
        }

        #[test]
        fn what_binds_resolves(declared in dims(), sizes in prop::array::uniform3(0..3_u64)) {
            let actual: Shape = declared
                .iter()
                .map(|dim| match dim {
                    Dim::Fixed(elements) => *elements,
                    Dim::Symbol(symbol) => sizes[usize::from(symbol.as_bytes()[0] - b'a')],
                    Dim::Any => 9,
                })
                .collect();
            let known = !declared.contains(&Dim::Any);
            let declared = SymbolicShape::Dims(declared);
            let mut bindings = Bindings::default();
            bindings.bind("input", &declared, &actual).unwrap();
            prop_assert_eq!(bindings.resolve(&declared), known.then_some(actual));
        }

        #[test]
        fn failures_change_nothing(
            first in dims(),
            second in dims(),
            actual in prop::collection::vec(0..3_u64, 0..5),
        ) {
            let mut bindings = Bindings::default();
            let found: Shape = (0..first.len() as u64).collect();
            let _ = bindings.bind("first", &SymbolicShape::Dims(first), &found);
            let before = bindings.symbols.clone();
            if bindings.bind("second", &SymbolicShape::Dims(second), &actual.into()).is_err() {
                prop_assert_eq!(bindings.symbols, before);
            }
        }
    }
}
