//! JSON with the ranges of its values, for who changes the text.

use std::ops::Range;

use jsonc_parser::{ast, common::Ranged as _};

use crate::{IoRef, json_write::NewValue};

/// A value and where it stands, in bytes of the text.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) range: Range<usize>,
    pub(crate) shape: Shape,
}

#[derive(Debug)]
pub(crate) enum Shape {
    /// As onert converts it to text.
    Scalar {
        text: String,
        literal: Literal,
    },
    Array(Vec<Tree>),
    Object(Vec<Member>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Text,
    Number,
    /// A word.
    Word,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_range: Range<usize>,
    pub(crate) value: Tree,
}

impl Tree {
    pub(crate) const NONE: Self = Self { range: 0..0, shape: Shape::Object(Vec::new()) };

    pub(crate) fn of(value: &ast::Value<'_>, mark: usize) -> Self {
        let moved = |start: usize, end: usize| start.saturating_add(mark)..end.saturating_add(mark);
        let scalar = |text: &str, literal| Shape::Scalar { text: text.to_owned(), literal };
        let shape = match value {
            ast::Value::NullKeyword(_) => scalar("", Literal::Word),
            ast::Value::BooleanLit(literal) => scalar(&literal.value.to_string(), Literal::Word),
            ast::Value::NumberLit(literal) => scalar(literal.value, Literal::Number),
            ast::Value::StringLit(literal) => scalar(&literal.value, Literal::Text),
            ast::Value::Array(array) => {
                Shape::Array(array.elements.iter().map(|item| Self::of(item, mark)).collect())
            }
            ast::Value::Object(object) => {
                let members = object.properties.iter().map(|property| Member {
                    key: property.name.as_str().to_owned(),
                    key_range: moved(property.name.start(), property.name.end()),
                    value: Self::of(&property.value, mark),
                });
                Shape::Object(members.collect())
            }
        };
        Self { range: moved(value.start(), value.end()), shape }
    }

    /// Returns the member of a key that counts, with its position.
    pub(crate) fn last(&self, key: &str) -> Option<(usize, &Self)> {
        let Shape::Object(members) = &self.shape else { return None };
        let index = members.iter().rposition(|member| member.key == key)?;
        members.get(index).map(|member| (index, &member.value))
    }

    /// Returns where items or members stand, with their keys.
    pub(crate) fn children(&self) -> Vec<Range<usize>> {
        match &self.shape {
            Shape::Scalar { .. } => Vec::new(),
            Shape::Array(items) => items.iter().map(|item| item.range.clone()).collect(),
            Shape::Object(members) => {
                let ranges =
                    members.iter().map(|member| member.key_range.start..member.value.range.end);
                ranges.collect()
            }
        }
    }

    /// Tells whether onert reads the value as another one.
    pub(crate) fn is(&self, value: &NewValue) -> bool {
        match (&self.shape, value) {
            (Shape::Scalar { text, literal }, NewValue::Number(expected)) => {
                *literal == Literal::Number && text == expected
            }
            (Shape::Scalar { text, literal }, NewValue::Exactly(expected)) => {
                *literal == Literal::Text && text == expected
            }
            (Shape::Scalar { text, .. }, NewValue::Text(expected)) => text == expected,
            (Shape::Scalar { text, .. }, NewValue::Reference(expected)) => {
                text.parse::<IoRef>().is_ok_and(|found| found == *expected)
            }
            (Shape::Array(items), NewValue::Array(values)) => {
                items.len() == values.len()
                    && items.iter().zip(values).all(|(item, value)| item.is(value))
            }
            (Shape::Object(_), NewValue::Object(members)) => members
                .iter()
                .all(|(key, value)| self.last(key).is_some_and(|(_, found)| found.is(value))),
            _ => false,
        }
    }
}
