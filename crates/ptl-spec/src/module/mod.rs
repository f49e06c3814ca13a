//! The code of a model as far as it can be known without running it: methods, their types, the
//! operators that they call.

use std::fmt;

use tensor_core::{Budget, Limit, Limits};

use crate::{
    module::{code::Instruction, walk::WalkFault},
    pickle::{Id, Pickle, PickleFault},
};

pub(crate) mod code;
pub(crate) mod scalar;
pub(crate) mod stored;
pub(crate) mod walk;

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

    /// Returns what it takes beside itself; `None` in files that do not say.
    #[must_use]
    pub fn parameters(&self) -> Option<&[Argument]> {
        let arguments = self.arguments.as_deref()?;
        Some(arguments.split_first().map_or(arguments, |(_, others)| others))
    }
}

/// Writes it as its source does, such as `forward(x: Tensor) -> Tensor`; the name alone where the file
/// does not say more.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_name())?;
        if let Some(parameters) = self.parameters() {
            write!(f, "({})", joined(parameters))?;
        }
        match self.returns.as_deref() {
            None => Ok(()),
            Some([one]) => write!(f, " -> {one}"),
            Some(returns) => write!(f, " -> ({})", joined(returns)),
        }
    }
}

fn joined(arguments: &[Argument]) -> String {
    arguments.iter().map(Argument::to_string).collect::<Vec<_>>().join(", ")
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

/// Returns the bytes that an argument or an operator takes.
pub(crate) fn cost([name, other]: &[String; 2]) -> u64 {
    size_of::<[String; 2]>().saturating_add(name.len()).saturating_add(other.len()) as u64
}

/// Returns what the code of a file may take in memory: a file may list one text many times.
pub(crate) const fn budget(limits: &Limits) -> Budget {
    Budget::new("code in bytes", limits.document_bytes, Limit::DocumentBytes)
}

/// Reads the bytecode of a pickle: `(version, method…)`.
pub(crate) fn bytecode(pickle: &Pickle, limits: &Limits) -> Read<Bytecode> {
    Code { pickle, memory: budget(limits) }.bytecode()
}

/// Returns the constants of each method, behind what stands before them in paths: the short name of
/// the method, where it is not the only one.
pub(crate) fn constants<'p>(pickle: &'p Pickle, limits: &Limits) -> Read<Vec<(String, &'p [Id])>> {
    Code { pickle, memory: budget(limits) }.constants()
}

/// Reads what the methods of a pickle do.
pub(crate) fn code(pickle: &Pickle, limits: &Limits) -> Read<Vec<code::Code>> {
    Code { pickle, memory: budget(limits) }.code()
}

type Read<T> = Result<T, WalkFault>;

/// A pickle of bytecode that is being read.
struct Code<'p> {
    pickle: &'p Pickle,
    memory: Budget,
}

impl<'p> Code<'p> {
    fn bytecode(&mut self) -> Read<Bytecode> {
        let parts = self.items(self.pickle.root(), "bytecode")?;
        let Some((version, methods)) = parts.split_first() else {
            return Err(wrong("bytecode", "an empty tuple", "a version and methods"));
        };
        let version = self.pickle.int(*version).and_then(|version| u64::try_from(version).ok());
        let version =
            version.ok_or_else(|| wrong("bytecode version", "something else", "a number"))?;
        let methods = methods.iter().map(|id| self.method(*id));
        Ok(Bytecode { version, methods: methods.collect::<Result<_, _>>()? })
    }

    fn constants(&mut self) -> Read<Vec<(String, &'p [Id])>> {
        let parts = self.items(self.pickle.root(), "bytecode")?;
        let methods = parts.get(1..).unwrap_or_default();
        let is_single = methods.len() == 1;
        let mut all = Vec::new();
        for id in methods {
            let &[name, body, ..] = self.items(*id, "method")? else {
                return Err(wrong("method", "a short tuple", "a name and a body"));
            };
            let name = if is_single { None } else { self.pickle.text(name) };
            let name = name.and_then(|name| name.rsplit('.').next()).unwrap_or_default();
            self.memory.take(name.len() as u64)?;
            let constants = self.list(body, "constants")?;
            all.push((name.to_owned(), constants));
        }
        Ok(all)
    }

    fn code(&mut self) -> Read<Vec<code::Code>> {
        let parts = self.items(self.pickle.root(), "bytecode")?;
        let methods = parts.get(1..).unwrap_or_default();
        methods.iter().map(|id| self.code_of(*id)).collect()
    }

    fn code_of(&mut self, id: Id) -> Read<code::Code> {
        let &[name, body, ..] = self.items(id, "method")? else {
            return Err(wrong("method", "a short tuple", "a name and a body"));
        };
        let name = self.text(name, "name of a method")?;
        self.memory.take(size_of::<code::Code>().saturating_add(name.len()) as u64)?;
        let mut instructions = Vec::new();
        for id in self.list(body, "instructions")? {
            self.memory.take(Instruction::LEN)?;
            let &[name, x, n, ..] = self.items(*id, "instruction")? else {
                return Err(wrong("instruction", "a short tuple", "a name and two numbers"));
            };
            let [x, n] = [x, n].map(|id| self.pickle.int(id).unwrap_or(-1));
            instructions.push(Instruction::new(self.pickle.text(name).unwrap_or("?"), x, n));
        }
        let mut operators = Vec::new();
        for id in self.list(body, "operators")? {
            let pair = self.operator(*id)?;
            self.memory.take(cost(&pair))?;
            let taken = match self.items(*id, "operator")? {
                [_, _, taken, ..] => self.pickle.int(*taken),
                _ => None,
            };
            let [name, overload] = pair;
            let taken = taken.and_then(|taken| u32::try_from(taken).ok());
            operators.push((Operator { name, overload }, taken));
        }
        let mut constants = Vec::new();
        for id in self.list(body, "constants")? {
            let text = code::literal(self.pickle, *id, 0);
            self.memory.take(text.len().saturating_add(size_of::<String>()) as u64)?;
            constants.push(text);
        }
        Ok(code::Code { name, instructions, operators, constants })
    }

    /// Reads `(name, (("instructions", …), …), (("arguments", …), ("returns", …)))`; the last part
    /// is absent in old files.
    fn method(&mut self, id: Id) -> Read<Method> {
        let &[name, body, ref rest @ ..] = self.items(id, "method")? else {
            return Err(wrong("method", "a short tuple", "a name and a body"));
        };
        let name = self.text(name, "name of a method")?;
        self.memory.take(size_of::<Method>().saturating_add(name.len()) as u64)?;
        let mut operators = Vec::new();
        for id in self.list(body, "operators")? {
            let pair = self.operator(*id)?;
            self.memory.take(cost(&pair))?;
            let [name, overload] = pair;
            operators.push(Operator { name, overload });
        }
        let instructions = self.list(body, "instructions")?.len() as u64;
        let registers = self.entry(body, "register_size")?.and_then(|id| self.pickle.int(id));
        let mut side = |key| match rest.first() {
            Some(schema) => match self.entry(*schema, key)? {
                Some(id) => self.arguments(id).map(Some),
                None => Ok(None),
            },
            None => Ok(None),
        };
        Ok(Method {
            name,
            arguments: side("arguments")?,
            returns: side("returns")?,
            operators,
            instructions,
            registers: registers.and_then(|size| u64::try_from(size).ok()).unwrap_or_default(),
        })
    }

    /// Reads `(("name", …), ("type", …), ("default_value", …))`, any number of times.
    fn arguments(&mut self, id: Id) -> Read<Vec<Argument>> {
        let mut arguments = Vec::new();
        for id in self.items(id, "arguments")? {
            let mut field = |key| match self.entry(*id, key)? {
                Some(id) => self.text(id, "argument"),
                None => Ok(String::new()),
            };
            let pair = [field("name")?, field("type")?];
            self.memory.take(cost(&pair))?;
            let [name, type_name] = pair;
            arguments.push(Argument { name, type_name });
        }
        Ok(arguments)
    }

    fn operator(&self, id: Id) -> Read<[String; 2]> {
        match *self.items(id, "operator")? {
            [name, overload, ..] => Ok([
                self.text(name, "name of an operator")?,
                self.text(overload, "overload of an operator")?,
            ]),
            _ => Err(wrong("operator", "a short tuple", "a name and an overload")),
        }
    }

    /// Returns the items of an entry; none where there is no such entry.
    fn list(&mut self, table: Id, key: &'static str) -> Read<&'p [Id]> {
        self.entry(table, key)?.map_or(Ok(&[]), |id| self.items(id, key))
    }

    /// Returns the value of a key in a tuple of pairs.
    fn entry(&mut self, table: Id, key: &str) -> Read<Option<Id>> {
        for pair in self.items(table, "table")? {
            // Many methods may share a long table.
            self.memory.take(1)?;
            if let Some(&[name, value]) = self.pickle.tuple(*pair)
                && self.pickle.text(name) == Some(key)
            {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn items(&self, id: Id, what: &'static str) -> Read<&'p [Id]> {
        let items = self.pickle.items(id);
        items.ok_or_else(|| wrong(what, self.pickle.node(id).kind(), "a tuple"))
    }

    fn text(&self, id: Id, what: &'static str) -> Read<String> {
        let text = self.pickle.text(id).map(str::to_owned);
        text.ok_or_else(|| wrong(what, self.pickle.node(id).kind(), "a text"))
    }
}

fn wrong(what: &'static str, found: &str, expected: &'static str) -> WalkFault {
    PickleFault::Value { what, found: found.to_owned(), expected }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One long operator that stands in a method many times is kept as often, as far as the limit
    /// goes.
    #[test]
    fn shared_texts_are_bounded() {
        let mut bytes = b"\x80\x02(K\x08(X\x01\0\0\0f(X\x09\0\0\0operators((X\x10\x27\0\0".to_vec();
        bytes.extend([b'o'; 10_000]);
        bytes.extend(b"X\0\0\0\0tq\x01");
        bytes.extend(b"h\x01".repeat(10_000));
        bytes.extend(b"t\x86ttt.");
        let pickle = Pickle::parse(bytes.into()).unwrap();
        let Err(WalkFault::Core(error)) = bytecode(&pickle, &Limits::default()) else {
            panic!("a file of 30 KB takes 100 MB")
        };
        // How much it would be depends on the width of pointers.
        let is_code = |what, field| (what, field) == ("code in bytes", "document_bytes");
        assert!(
            matches!(error, tensor_core::Error::OverLimit { what, field, .. } if is_code(what, field))
        );
    }
}
