//! What methods do, instruction by instruction, and the objects that they work on: what a file says,
//! without running any of it.

use std::collections::HashMap;

use tensor_core::{Budget, Limit, Limits, text::short};

use crate::{
    Operator,
    module::walk::WalkFault,
    pickle::{Function, Global, Id, Node, Pickle, PickleFault},
};

/// The instructions of a method, as the lite interpreter runs them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code {
    /// The name of the method with the class, such as `__torch__.Net.forward`.
    pub name: String,
    /// What is done, in order.
    pub instructions: Vec<Instruction>,
    /// The operators that instructions call, with the number of values that each takes, where the
    /// file says; files up to bytecode version 5 do not.
    pub operators: Vec<(Operator, Option<u32>)>,
    /// The constants that instructions load: numbers, texts and lists of them as source has them,
    /// others in a word, such as `Tensor`.
    pub constants: Vec<String>,
}

/// An instruction: what is done, and two numbers whose meaning depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instruction {
    /// Its name, such as `OP` or `LOADC`; `?` for one that this crate does not know.
    pub name: &'static str,
    /// The first number: mostly the place of something in a list.
    pub x: i32,
    /// The second number: mostly a count.
    pub n: u16,
}

/// An object of a model: a module, or another object with attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Its class, such as `__torch__.torch.nn.modules.conv.Conv2d`.
    pub class: String,
    /// The path to it, such as `encoder.conv1`; empty for the model itself. One that is shared has the
    /// first of its paths.
    pub path: String,
    /// Its attributes, by the place that instructions name them by.
    pub attributes: Vec<(String, Attribute)>,
}

/// What an attribute of an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Attribute {
    /// Another object, by its place among all of them.
    Object(usize),
    /// A tensor, whose name is the path to the attribute.
    Tensor,
    /// A number, a text or a list of them, as source has it; other values in a word.
    Value(String),
}

/// The names of instructions, by their numbers in FlatBuffer files.
pub(crate) const INSTRUCTIONS: [&str; 52] = [
    "OP",
    "OPN",
    "LOAD",
    "MOVE",
    "STOREN",
    "STORE",
    "DROP",
    "DROPR",
    "LOADC",
    "JF",
    "JMP",
    "LOOP",
    "RET",
    "WAIT",
    "CALL",
    "GUARD",
    "TYPECHECK",
    "FAIL_GUARD",
    "PROFILE_OP",
    "TAIL_CALL",
    "INTERFACE_CALL",
    "GET_ATTR",
    "SET_ATTR",
    "LIST_UNPACK",
    "TUPLE_CONSTRUCT",
    "NAMED_TUPLE_CONSTRUCT",
    "LIST_CONSTRUCT",
    "DICT_CONSTRUCT",
    "CREATE_OBJECT",
    "ISINSTANCE",
    "TUPLE_SLICE",
    "TUPLE_INDEX",
    "RAISE_EXCEPTION",
    "DICT_INDEX",
    "UNCHECKED_CAST",
    "__IS__",
    "UN_INITIALIZED",
    "__ISNOT__",
    "FORMAT",
    "DEVICE",
    "DTYPE",
    "DIM",
    "__NOT__",
    "TO_LIST",
    "NUM_TO_TENSOR",
    "IS_CUDA",
    "FORK",
    "WARN",
    "ENTER",
    "EXIT",
    "AWAITABLE",
    "?",
];

impl Instruction {
    pub(crate) fn new(name: &str, x: i64, n: i64) -> Self {
        let known = INSTRUCTIONS.iter().find(|known| **known == name);
        Self {
            name: known.copied().unwrap_or("?"),
            x: i32::try_from(x).unwrap_or(-1),
            n: u16::try_from(n).unwrap_or(u16::MAX),
        }
    }

    /// The bytes that one takes in memory.
    pub(crate) const LEN: u64 = size_of::<Self>() as u64;
}

/// Objects that are being listed.
pub(crate) struct Objects<'l> {
    pub(crate) list: Vec<Object>,
    limits: &'l Limits,
    memory: Budget,
}

impl<'l> Objects<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        let memory = Budget::new("objects in bytes", limits.document_bytes, Limit::DocumentBytes);
        Self { list: Vec::new(), limits, memory }
    }

    /// Adds an object without its attributes; returns its place.
    pub(crate) fn add(
        &mut self,
        class: &str,
        path: String,
        depth: u32,
    ) -> tensor_core::Result<usize> {
        self.limits.check(Limit::Depth, "nesting of objects", depth.into())?;
        self.limits.check(Limit::NameBytes, "path of an object in bytes", path.len() as u64)?;
        let class = short(class).into_owned();
        let bytes = path.len().saturating_add(class.len()).saturating_add(size_of::<Object>());
        self.memory.take(bytes as u64)?;
        self.list.push(Object { class, path, attributes: Vec::new() });
        Ok(self.list.len().saturating_sub(1))
    }

    pub(crate) fn attribute(
        &mut self,
        object: usize,
        name: String,
        attribute: Attribute,
    ) -> tensor_core::Result<()> {
        let text = if let Attribute::Value(text) = &attribute { text.len() } else { 0 };
        self.memory.take(name.len().saturating_add(text).saturating_add(64) as u64)?;
        if let Some(object) = self.list.get_mut(object) {
            object.attributes.push((name, attribute));
        }
        Ok(())
    }

    /// Returns the path to an attribute of an object.
    pub(crate) fn path(&self, object: usize, name: &str) -> String {
        match self.list.get(object).map_or("", |object| &object.path) {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }
}

/// Reads the objects of a pickle, the model itself first.
pub(crate) fn objects(pickle: &Pickle, limits: &Limits) -> Result<Vec<Object>, WalkFault> {
    let mut walk = Walk { pickle, objects: Objects::new(limits), known: HashMap::new() };
    walk.object(pickle.root(), String::new(), 0)?;
    Ok(walk.objects.list)
}

struct Walk<'p> {
    pickle: &'p Pickle,
    objects: Objects<'p>,
    known: HashMap<Id, usize>,
}

impl Walk<'_> {
    /// Lists an object and those that its attributes are; returns its place.
    fn object(&mut self, id: Id, path: String, depth: u32) -> Result<usize, WalkFault> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let Node::Object { class, state } = self.pickle.node(id) else {
            let (found, expected) = (self.pickle.node(id).kind().to_owned(), "an object");
            return Err(PickleFault::Value { what: "the model", found, expected }.into());
        };
        let class = match self.pickle.node(*class) {
            Node::Global(Global::Class(name)) => name.as_str(),
            _ => "",
        };
        let place = self.objects.add(class, path, depth)?;
        self.known.insert(id, place);
        let state = state.map(|state| self.pickle.node(state));
        let Some(Node::Dict(members)) = state else { return Ok(place) };
        for (key, value) in members {
            let name = self.pickle.text(*key).unwrap_or("?").to_owned();
            let attribute = match self.pickle.node(*value) {
                Node::Object { .. } => {
                    let path = self.objects.path(place, &name);
                    Attribute::Object(self.object(*value, path, depth.saturating_add(1))?)
                }
                Node::Call {
                    function: Function::Tensor | Function::QuantizedTensor | Function::SparseTensor,
                    ..
                } => Attribute::Tensor,
                _ => Attribute::Value(literal(self.pickle, *value, 0)),
            };
            self.objects.attribute(place, name, attribute)?;
        }
        Ok(place)
    }
}

/// Writes a value as source has it, as far as it is worth showing.
pub(crate) fn literal(pickle: &Pickle, id: Id, depth: u32) -> String {
    let list = |items: &[Id]| {
        let shown = items.iter().take(SHOWN).map(|item| match depth {
            0..MAX_DEPTH => literal(pickle, *item, depth.saturating_add(1)),
            _ => "…".to_owned(),
        });
        join(shown, items.len())
    };
    match pickle.node(id) {
        Node::None => "None".to_owned(),
        Node::Bool(true) => "True".to_owned(),
        Node::Bool(false) => "False".to_owned(),
        Node::Int(number) => number.to_string(),
        Node::Float(number) => number.to_string(),
        Node::Text(_) => format!("{:?}", short(pickle.text(id).unwrap_or_default())),
        Node::Tuple(items) => format!("({})", list(items)),
        Node::List(items) => format!("[{}]", list(items)),
        Node::Dict(pairs) => format!("a dictionary of {}", pairs.len()),
        Node::Call { function: Function::TypeTag, arguments } if depth < MAX_DEPTH => {
            match pickle.tuple(*arguments) {
                Some(&[inner, ..]) => literal(pickle, inner, depth.saturating_add(1)),
                _ => "?".to_owned(),
            }
        }
        Node::Call { function: Function::List, .. } => {
            format!("[{}]", list(pickle.items(id).unwrap_or_default()))
        }
        Node::Call { function, arguments } => match function {
            Function::Device => match pickle.tuple(*arguments) {
                Some(&[name, ..]) => format!("{:?}", short(pickle.text(name).unwrap_or_default())),
                _ => "?".to_owned(),
            },
            Function::Complex => "complex".to_owned(),
            _ => "Tensor".to_owned(),
        },
        Node::Object { .. } => "an object".to_owned(),
        Node::Global(_) | Node::Persistent(_) => "?".to_owned(),
    }
}

/// Joins the items of a list of which the first are shown.
pub(crate) fn join(shown: impl Iterator<Item = String>, count: usize) -> String {
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if count > SHOWN {
        text.push_str(", …");
    }
    text
}

/// Items of a list that are shown.
pub(crate) const SHOWN: usize = 8;

/// Lists in lists that are shown.
const MAX_DEPTH: u32 = 3;
