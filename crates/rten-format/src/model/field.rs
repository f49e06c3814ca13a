//! How each type of attribute is stored, and how it is shown.

use std::str::FromStr;

use bytes::Bytes;
use flat_tables::UnknownTable;
use flatbuffers::{Vector, WIPOffset};

use crate::{
    AutoPad, ConstantDataType, CoordTransformMode, DataType, DepthToSpaceMode, GeluApproximation,
    Graph, NMSBoxOrder, NearestMode, PadMode, RNNDirection, Release, ResizeMode, Result,
    ScatterReduction,
    generated::rten as stored,
    model::{
        builder::Builder,
        visit::{Checked, Place, Visit, missing},
    },
};

/// The value of one attribute, for whoever shows or compares attributes of every kind.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttributeValue<'a> {
    /// An attribute that is not set.
    Absent,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number of 32 bits.
    Float(f32),
    /// A value of an enumeration.
    Enum {
        /// The name of the enumeration in the format.
        of: &'static str,
        /// Its name in the format; `None` for an unknown number.
        name: Option<&'static str>,
        /// Its number.
        code: u16,
    },
    /// Whole numbers of either sign.
    Ints(&'a [i32]),
    /// Whole numbers.
    Uints(&'a [u32]),
    /// Text.
    Text(&'a str),
    /// A subgraph.
    Graph(&'a Graph),
    /// A table that this crate does not know.
    Unknown(&'a UnknownTable),
}

/// A type of attribute.
pub(crate) trait Field<'a>: Sized {
    /// What the generated getter returns.
    type Stored;
    /// What the generated arguments take.
    type Built;

    /// Checks what is stored for the field of a table.
    fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked;

    fn parse(stored: Self::Stored, model: &Bytes) -> Result<Self>;

    fn build(&self, builder: &mut Builder) -> Result<Self::Built>;

    fn value(&self) -> AttributeValue<'_>;

    /// Returns what a text says; else what it can say.
    fn from_text(text: &str) -> std::result::Result<Self, String>;

    /// Returns the first release that reads this value; `None` where it is not known.
    fn since(&self) -> Option<Release> {
        Some(Release::OLDEST)
    }
}

macro_rules! numbers {
    ($( $type:ident => $variant:ident, $expected:literal; )*) => {$(
        impl Field<'_> for $type {
            type Stored = Self;
            type Built = Self;

            fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked {
                if let Some(place) = at.place {
                    walk.checker().read::<{ size_of::<Self>() }>(place)?;
                }
                Ok(())
            }

            fn parse(stored: Self, _: &Bytes) -> Result<Self> {
                Ok(stored)
            }

            fn build(&self, _: &mut Builder) -> Result<Self> {
                Ok(*self)
            }

            fn value(&self) -> AttributeValue<'_> {
                AttributeValue::$variant((*self).into())
            }

            fn from_text(text: &str) -> std::result::Result<Self, String> {
                let found = text.parse::<Self>().ok();
                let is_finite = |found: &Self| match found.value() {
                    AttributeValue::Float(number) => number.is_finite(),
                    _ => true,
                };
                found.filter(is_finite).ok_or_else(|| $expected.to_owned())
            }
        }
    )*};
}

numbers! {
    bool => Bool, "true or false";
    i32 => Int, "a whole number of 32 bits";
    u32 => Int, "a whole number of 32 bits, from 0";
    f32 => Float, "a finite number";
}

macro_rules! enums {
    ($($type:ident)*) => {$(
        impl Field<'_> for $type {
            type Stored = stored::$type;
            type Built = stored::$type;

            fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked {
                if let Some(place) = at.place {
                    walk.checker().read::<{ size_of::<stored::$type>() }>(place)?;
                }
                Ok(())
            }

            fn parse(stored: stored::$type, _: &Bytes) -> Result<Self> {
                Ok(Self::from_code(stored.0))
            }

            fn build(&self, _: &mut Builder) -> Result<stored::$type> {
                Ok(stored::$type(self.code()))
            }

            fn value(&self) -> AttributeValue<'_> {
                let (of, name, code) = (stringify!($type), self.name(), self.code().into());
                AttributeValue::Enum { of, name, code }
            }

            fn from_text(text: &str) -> std::result::Result<Self, String> {
                let known = Self::ALL.iter().find(|known| known.name() == Some(text));
                known.copied().ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().filter_map(|known| known.name()).collect();
                    format!("one of {}", names.join(", "))
                })
            }

            fn since(&self) -> Option<Release> {
                Self::since(*self)
            }
        }
    )*};
}

enums! {
    AutoPad ConstantDataType CoordTransformMode DataType DepthToSpaceMode GeluApproximation
    NMSBoxOrder NearestMode PadMode RNNDirection ResizeMode ScatterReduction
}

/// What may be absent: a number, or an enumerator.
macro_rules! optional {
    ($($type:ident)*) => {$(
        impl<'a> Field<'a> for Option<$type> {
            type Stored = Option<<$type as Field<'a>>::Stored>;
            type Built = Option<<$type as Field<'a>>::Built>;

            fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked {
                <$type as Field<'a>>::check(at, walk)
            }

            fn parse(stored: Self::Stored, model: &Bytes) -> Result<Self> {
                stored.map(|stored| Field::parse(stored, model)).transpose()
            }

            fn build(&self, builder: &mut Builder) -> Result<Self::Built> {
                self.as_ref().map(|value| value.build(builder)).transpose()
            }

            fn value(&self) -> AttributeValue<'_> {
                self.as_ref().map_or(AttributeValue::Absent, Field::value)
            }

            fn from_text(text: &str) -> std::result::Result<Self, String> {
                if text == NONE {
                    return Ok(None);
                }
                let found = <$type as Field<'a>>::from_text(text);
                found.map(Some).map_err(|expected| format!("{NONE} or {expected}"))
            }

            fn since(&self) -> Option<Release> {
                self.as_ref().map_or(Some(Release::OLDEST), Field::since)
            }
        }
    )*};
}

optional! { i32 u32 f32 ConstantDataType DataType }

macro_rules! vectors {
    ($( $type:ident => $variant:ident; )*) => {$(
        impl<'a> Field<'a> for Option<Vec<$type>> {
            type Stored = Option<Vector<'a, $type>>;
            type Built = Option<WIPOffset<Vector<'static, $type>>>;

            fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked {
                if let Some(place) = at.place {
                    walk.checker().vector::<{ size_of::<$type>() }>(place)?;
                }
                Ok(())
            }

            fn parse(stored: Self::Stored, _: &Bytes) -> Result<Self> {
                Ok(stored.map(|vector| vector.iter().collect()))
            }

            fn build(&self, builder: &mut Builder) -> Result<Self::Built> {
                Ok(self.as_ref().map(|vector| builder.fbb().create_vector(vector)))
            }

            fn value(&self) -> AttributeValue<'_> {
                self.as_deref().map_or(AttributeValue::Absent, AttributeValue::$variant)
            }

            fn from_text(text: &str) -> std::result::Result<Self, String> {
                if text == NONE {
                    return Ok(None);
                }
                list(text).map(Some).map_err(|expected| format!("{NONE} or {expected}"))
            }
        }
    )*};
}

vectors! {
    i32 => Ints;
    u32 => Uints;
}

/// A vector that must be there.
impl<'a> Field<'a> for Vec<u32> {
    type Stored = Vector<'a, u32>;
    type Built = Option<WIPOffset<Vector<'static, u32>>>;

    fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked {
        let place = at.place.ok_or_else(|| missing(at.name, at.table))?;
        walk.checker().vector::<{ size_of::<u32>() }>(place)?;
        Ok(())
    }

    fn parse(stored: Self::Stored, _: &Bytes) -> Result<Self> {
        Ok(stored.iter().collect())
    }

    fn build(&self, builder: &mut Builder) -> Result<Self::Built> {
        Ok(Some(builder.fbb().create_vector(self)))
    }

    fn value(&self) -> AttributeValue<'_> {
        AttributeValue::Uints(self)
    }

    fn from_text(text: &str) -> std::result::Result<Self, String> {
        list(text)
    }
}

impl<'a> Field<'a> for Option<String> {
    type Stored = Option<&'a str>;
    type Built = Option<WIPOffset<&'static str>>;

    fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked {
        if let Some(place) = at.place {
            walk.checker().text(place)?;
        }
        Ok(())
    }

    fn parse(stored: Self::Stored, _: &Bytes) -> Result<Self> {
        Ok(stored.map(str::to_owned))
    }

    fn build(&self, builder: &mut Builder) -> Result<Self::Built> {
        Ok(self.as_ref().map(|text| builder.fbb().create_string(text)))
    }

    fn value(&self) -> AttributeValue<'_> {
        self.as_deref().map_or(AttributeValue::Absent, AttributeValue::Text)
    }

    fn from_text(text: &str) -> std::result::Result<Self, String> {
        Ok(Some(text.to_owned()).filter(|text| text != NONE))
    }
}

impl<'a> Field<'a> for Option<Box<Graph>> {
    type Stored = Option<stored::Graph<'a>>;
    type Built = Option<WIPOffset<stored::Graph<'static>>>;

    fn check<'b>(at: Place<'_>, walk: &mut impl Visit<'b>) -> Checked {
        at.place.map_or(Ok(()), |place| walk.graph(at.name, place))
    }

    fn parse(stored: Self::Stored, model: &Bytes) -> Result<Self> {
        stored.map(|graph| Ok(Box::new(Graph::parse(&graph, model)?))).transpose()
    }

    fn build(&self, builder: &mut Builder) -> Result<Self::Built> {
        self.as_ref().map(|graph| graph.build(builder)).transpose()
    }

    fn value(&self) -> AttributeValue<'_> {
        self.as_deref().map_or(AttributeValue::Absent, AttributeValue::Graph)
    }

    fn from_text(_: &str) -> std::result::Result<Self, String> {
        Err("a graph, which no text says".to_owned())
    }
}

/// Reads numbers with commas between them; nothing is an empty list.
fn list<T: FromStr>(text: &str) -> std::result::Result<Vec<T>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let numbers = text.split(',').map(|number| number.trim().parse());
    let numbers: std::result::Result<_, _> = numbers.collect();
    numbers.map_err(|_| "whole numbers with commas between them".to_owned())
}

/// The text of an attribute that is absent.
const NONE: &str = "none";
