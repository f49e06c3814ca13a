//! The values of a pickle, side by side: what is shared is there once, and nothing nests.

use std::ops::Range;

use bytes::Bytes;

use super::Global;

/// The place of a value among those of its pickle.
pub(crate) type Id = u32;

/// One value of a pickle.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Where its bytes are in the pickle.
    Text(Range<usize>),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    /// An object of a class of the model.
    Object {
        class: Id,
        state: Option<Id>,
    },
    /// What a function would make of its arguments.
    Call {
        function: super::Function,
        arguments: Id,
    },
    /// Something that is stored elsewhere.
    Persistent(Id),
}

impl Node {
    /// Returns what it is, in a few words.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::Global(_) => "a name",
            Self::Object { .. } => "an object",
            Self::Call { .. } => "a call",
            Self::Persistent(_) => "a storage",
        }
    }
}

/// A pickle that was read.
#[derive(Debug)]
pub(crate) struct Pickle {
    pub(super) bytes: Bytes,
    pub(super) nodes: Vec<Node>,
    pub(super) root: Id,
}

impl Pickle {
    pub(crate) const fn root(&self) -> Id {
        self.root
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        self.nodes.get(id as usize).unwrap_or(&Node::None)
    }

    /// Returns a text; `None` for any other value.
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        let Node::Text(range) = self.node(id) else { return None };
        // Texts were checked when they were read.
        self.bytes.get(range.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    pub(crate) fn int(&self, id: Id) -> Option<i64> {
        if let Node::Int(number) = self.node(id) { Some(*number) } else { None }
    }

    pub(crate) fn tuple(&self, id: Id) -> Option<&[Id]> {
        if let Node::Tuple(items) = self.node(id) { Some(items) } else { None }
    }

    /// Returns the items of a tuple or a list.
    pub(crate) fn items(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Node::Tuple(items) | Node::List(items) => Some(items),
            Node::Call { function: super::Function::List, arguments } => {
                let [list] = self.tuple(*arguments)? else { return None };
                match self.node(*list) {
                    Node::List(items) => Some(items),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
