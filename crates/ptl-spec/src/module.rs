//! The code of a model as far as it can be known without running it: methods, their types, the
//! operators that they call.

use std::fmt;

use crate::pickle::{Id, Pickle, PickleFault};

/// The bytecode of a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bytecode {
    /// Its version: 8 as ZIP files are written now, 9 in FlatBuffer files.
    pub version: u64,
    /// The methods, in the order of the file.
    pub methods: Vec<Method>,
}

impl Bytecode {
    /// Returns the method `forward`, which calls go to.
    #[must_use]
    pub fn forward(&self) -> Option<&Method> {
        self.methods.iter().find(|method| method.short_name() == "forward")
    }

    /// Returns the versions of PyTorch that are known to read it, in words; `None` for a version
    /// that none of them reads.
    #[must_use]
    pub const fn readers(&self) -> Option<&'static str> {
        match self.version {
            4..=9 => Some("PyTorch 1.13 to 2.5"),
            _ => None,
        }
    }
}

/// A method of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method {
    /// Its name with the class, such as `__torch__.Net.forward`.
    pub name: String,
    /// What it takes, itself first; `None` in files that do not say.
    pub arguments: Option<Vec<Argument>>,
    /// What it gives; `None` in files that do not say.
    pub returns: Option<Vec<Argument>>,
    /// The operators that it calls, each once.
    pub operators: Vec<Operator>,
    /// How many instructions it has.
    pub instructions: u64,
    /// How many registers it uses.
    pub registers: u64,
}

impl Method {
    /// Returns the last part of the name.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

/// An argument or a value that is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// Its name, mostly empty where it is returned.
    pub name: String,
    /// Its type as `TorchScript` writes it, such as `Tuple[Tensor, int]`.
    pub type_name: String,
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            return f.write_str(&self.type_name);
        }
        write!(f, "{}: {}", self.name, self.type_name)
    }
}

/// An operator of PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Operator {
    /// Its name, such as `aten::mean`.
    pub name: String,
    /// Which of the operators of that name, or empty.
    pub overload: String,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.overload.as_str() {
            "" => f.write_str(&self.name),
            overload => write!(f, "{}.{overload}", self.name),
        }
    }
}

impl Bytecode {
    /// Reads `(version, method…)`.
    pub(crate) fn from_pickle(pickle: &Pickle) -> Result<Self, PickleFault> {
        let parts = items(pickle, pickle.root(), "bytecode")?;
        let Some((version, methods)) = parts.split_first() else {
            return Err(wrong("bytecode", "an empty tuple", "a version and methods"));
        };
        let version = pickle.int(*version).and_then(|version| u64::try_from(version).ok());
        let version =
            version.ok_or_else(|| wrong("bytecode version", "something else", "a number"))?;
        let methods = methods.iter().map(|id| Method::from_pickle(pickle, *id));
        Ok(Self { version, methods: methods.collect::<Result<_, _>>()? })
    }
}

impl Method {
    /// Reads `(name, (("instructions", …), …), (("arguments", …), ("returns", …)))`; the last part
    /// is absent in old files.
    fn from_pickle(pickle: &Pickle, id: Id) -> Result<Self, PickleFault> {
        let parts = items(pickle, id, "method")?;
        let &[name, body, ref rest @ ..] = parts else {
            return Err(wrong("method", "a short tuple", "a name and a body"));
        };
        let operators = match entry(pickle, body, "operators")? {
            Some(operators) => items(pickle, operators, "operators")?,
            None => &[],
        };
        let instructions = match entry(pickle, body, "instructions")? {
            Some(instructions) => items(pickle, instructions, "instructions")?.len() as u64,
            None => 0,
        };
        let registers = entry(pickle, body, "register_size")?.and_then(|id| pickle.int(id));
        let arguments = |key| match rest.first() {
            Some(schema) => entry(pickle, *schema, key)?
                .map(|id| Argument::all_from_pickle(pickle, id))
                .transpose(),
            None => Ok(None),
        };
        Ok(Self {
            name: text(pickle, name, "name of a method")?,
            arguments: arguments("arguments")?,
            returns: arguments("returns")?,
            operators: operators
                .iter()
                .map(|id| Operator::from_pickle(pickle, *id))
                .collect::<Result<_, _>>()?,
            instructions,
            registers: registers.and_then(|size| u64::try_from(size).ok()).unwrap_or_default(),
        })
    }
}

impl Argument {
    /// Reads `(("name", …), ("type", …), ("default_value", …))`, any number of times.
    fn all_from_pickle(pickle: &Pickle, id: Id) -> Result<Vec<Self>, PickleFault> {
        let one = |id: &Id| {
            let field = |key| {
                entry(pickle, *id, key)?
                    .map_or(Ok(String::new()), |id| text(pickle, id, "argument"))
            };
            Ok(Self { name: field("name")?, type_name: field("type")? })
        };
        items(pickle, id, "arguments")?.iter().map(one).collect()
    }
}

impl Operator {
    fn from_pickle(pickle: &Pickle, id: Id) -> Result<Self, PickleFault> {
        match *items(pickle, id, "operator")? {
            [name, overload, ..] => Ok(Self {
                name: text(pickle, name, "name of an operator")?,
                overload: text(pickle, overload, "overload of an operator")?,
            }),
            _ => Err(wrong("operator", "a short tuple", "a name and an overload")),
        }
    }
}

/// Returns the value of a key in a tuple of pairs.
fn entry(pickle: &Pickle, id: Id, key: &str) -> Result<Option<Id>, PickleFault> {
    for pair in items(pickle, id, "table")? {
        if let Some(&[name, value]) = pickle.tuple(*pair)
            && pickle.text(name) == Some(key)
        {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn items<'p>(pickle: &'p Pickle, id: Id, what: &'static str) -> Result<&'p [Id], PickleFault> {
    pickle.items(id).ok_or_else(|| wrong(what, pickle.node(id).kind(), "a tuple"))
}

fn text(pickle: &Pickle, id: Id, what: &'static str) -> Result<String, PickleFault> {
    let text = pickle.text(id).map(str::to_owned);
    text.ok_or_else(|| wrong(what, pickle.node(id).kind(), "a text"))
}

fn wrong(what: &'static str, found: &str, expected: &'static str) -> PickleFault {
    PickleFault::Value { what, found: found.to_owned(), expected }
}
