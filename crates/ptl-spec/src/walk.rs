//! The tensors in the pickles of a model, with the path of each.

use std::collections::HashSet;

use tensor_core::{Limits, Shape};

use crate::{
    Place, Quantization,
    pickle::{Function, Global, Id, Node, Pickle, PickleFault},
    stored::{StorageId, Stored},
};

/// Collects the tensors of a pickle, in its order: attributes of objects by name, items by number.
/// An object that is shared is walked once, under the first of its paths.
pub(crate) struct Walk<'p> {
    pickle: &'p Pickle,
    place: Place,
    /// What stands before the key of a storage in the name of its record.
    folder: &'static str,
    limits: &'p Limits,
    path: String,
    seen: HashSet<Id>,
    pub(crate) tensors: Vec<Stored>,
}

type Walked<T> = Result<T, WalkFault>;

/// What ends a walk.
pub(crate) enum WalkFault {
    Pickle(PickleFault),
    Core(tensor_core::Error),
}

impl From<PickleFault> for WalkFault {
    fn from(fault: PickleFault) -> Self {
        Self::Pickle(fault)
    }
}

impl From<tensor_core::Error> for WalkFault {
    fn from(error: tensor_core::Error) -> Self {
        Self::Core(error)
    }
}

impl<'p> Walk<'p> {
    pub(crate) fn new(pickle: &'p Pickle, place: Place, limits: &'p Limits) -> Self {
        let folder = match place {
            Place::State => "data/",
            Place::Constants => "constants/",
        };
        let (path, seen, tensors) = (String::new(), HashSet::new(), Vec::new());
        Self { pickle, place, folder, limits, path, seen, tensors }
    }

    pub(crate) fn run(&mut self) -> Walked<()> {
        self.visit(self.pickle.root(), 0)
    }

    fn visit(&mut self, id: Id, depth: u32) -> Walked<()> {
        if depth > self.limits.depth {
            let (what, limit, field) = ("nesting of objects", self.limits.depth.into(), "depth");
            let found = depth.into();
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        let deeper = depth.saturating_add(1);
        match self.pickle.node(id) {
            Node::Call { function: Function::Tensor, arguments } => self.tensor(*arguments, None),
            Node::Call { function: Function::QuantizedTensor, arguments } => {
                let scheme = self.argument(*arguments, 4)?;
                self.tensor(*arguments, Some(scheme))
            }
            Node::Call { function: Function::SparseTensor, .. } => {
                Err(self.wrong("tensor", "a sparse one", "a dense one").into())
            }
            // Tags and lists are but wrappers.
            Node::Call { function: Function::TypeTag | Function::List, arguments } => {
                match self.pickle.tuple(*arguments) {
                    Some(&[inner, ..]) => self.visit(inner, deeper),
                    _ => Ok(()),
                }
            }
            Node::Object { state: Some(state) } if self.seen.insert(id) => {
                self.visit(*state, deeper)
            }
            Node::Tuple(items) | Node::List(items) if self.seen.insert(id) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(&index.to_string(), |walk| walk.visit(*item, deeper))?;
                }
                Ok(())
            }
            Node::Dict(members) if self.seen.insert(id) => {
                for (key, value) in members {
                    let name = self.pickle.text(*key).map(str::to_owned);
                    let name = name.or_else(|| self.pickle.int(*key).map(|key| key.to_string()));
                    let name = name.unwrap_or_else(|| "?".to_owned());
                    self.below(&name, |walk| walk.visit(*value, deeper))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn below(&mut self, name: &str, visit: impl FnOnce(&mut Self) -> Walked<()>) -> Walked<()> {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let found = self.path.len() as u64;
        let limit = self.limits.name_bytes;
        if found > limit {
            let (what, field) = ("path of a tensor in bytes", "name_bytes");
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        let result = visit(self);
        self.path.truncate(len);
        result
    }

    /// Reads `(storage, offset, sizes, strides, …)`, with the scheme of a quantized tensor between.
    fn tensor(&mut self, arguments: Id, scheme: Option<Id>) -> Walked<()> {
        let (storage, scalar) = self.storage(self.argument(arguments, 0)?)?;
        let offset = self.whole(self.argument(arguments, 1)?, "storage offset")?;
        let shape: Shape = self.sizes(self.argument(arguments, 2)?, "sizes")?.into();
        let strides = self.sizes(self.argument(arguments, 3)?, "strides")?;
        if shape.rank() != strides.len() {
            let found = format!("{} numbers", strides.len());
            return Err(self.wrong("strides", &found, "one for each size").into());
        }
        let grad = self.argument(arguments, if scheme.is_some() { 5 } else { 4 })?;
        let requires_grad = matches!(self.pickle.node(grad), Node::Bool(true));
        let quantization = scheme.map(|scheme| self.quantization(scheme)).transpose()?;
        let found = (self.tensors.len() as u64).saturating_add(1);
        let limit = self.limits.tensors;
        if found > limit {
            let (what, field) = ("number of tensors", "tensors");
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        self.tensors.push(Stored {
            place: self.place,
            path: self.path.clone(),
            scalar,
            shape,
            strides,
            offset,
            storage,
            requires_grad,
            quantization,
        });
        Ok(())
    }

    /// Reads `("storage", class, key, device, elements)`.
    fn storage(&self, id: Id) -> Result<(StorageId, crate::ScalarType), PickleFault> {
        let wrong = |found: &str| {
            self.wrong("storage", found, "(\"storage\", class, key, device, elements)")
        };
        let Node::Persistent(id) = self.pickle.node(id) else {
            return Err(wrong(self.pickle.node(id).kind()));
        };
        let parts = self.pickle.tuple(*id).ok_or_else(|| wrong(self.pickle.node(*id).kind()))?;
        let &[tag, class, key, _, elements, ..] = parts else { return Err(wrong("a short tuple")) };
        let Node::Global(Global::Storage(scalar)) = self.pickle.node(class) else {
            return Err(wrong("a tuple without a class"));
        };
        match (self.pickle.text(tag), self.pickle.text(key)) {
            (Some("storage"), Some(key)) => {
                let elements = self.whole(elements, "number of elements")?;
                let name = format!("{}{key}", self.folder);
                Ok((StorageId::Record { name, elements }, *scalar))
            }
            _ => Err(wrong("a tuple without a key")),
        }
    }

    fn quantization(&self, id: Id) -> Result<Quantization, PickleFault> {
        let wrong = || self.wrong("quantization", "something else", "a scheme and its numbers");
        let parts = self.pickle.tuple(id).ok_or_else(wrong)?;
        let scheme = match parts.first().map(|id| self.pickle.node(*id)) {
            Some(Node::Global(Global::Scheme(scheme))) => *scheme,
            _ => return Err(wrong()),
        };
        match *parts {
            [_, scale, zero_point] => {
                let Node::Float(scale) = *self.pickle.node(scale) else { return Err(wrong()) };
                let zero_point = self.pickle.int(zero_point).ok_or_else(wrong)?;
                Ok(Quantization::PerTensor { scheme, scale, zero_point })
            }
            [_, _, _, axis] => {
                let axis = self.pickle.int(axis).ok_or_else(wrong)?;
                Ok(Quantization::PerChannel { scheme, axis })
            }
            _ => Err(wrong()),
        }
    }

    fn argument(&self, arguments: Id, index: usize) -> Result<Id, PickleFault> {
        let argument = self.pickle.tuple(arguments).and_then(|items| items.get(index)).copied();
        argument
            .ok_or_else(|| self.wrong("tensor", "too little", "storage, offset, sizes, strides"))
    }

    fn sizes(&self, id: Id, what: &'static str) -> Result<Vec<u64>, PickleFault> {
        let items = self.pickle.items(id);
        let items =
            items.ok_or_else(|| self.wrong(what, self.pickle.node(id).kind(), "a tuple"))?;
        items.iter().map(|item| self.whole(*item, what)).collect()
    }

    fn whole(&self, id: Id, what: &'static str) -> Result<u64, PickleFault> {
        let number = self.pickle.int(id);
        number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| {
            let found =
                number.map_or_else(|| self.pickle.node(id).kind().to_owned(), |n| n.to_string());
            self.wrong(what, &found, "a whole number from 0 on")
        })
    }

    fn wrong(&self, what: &'static str, found: &str, expected: &'static str) -> PickleFault {
        let found = match self.path.as_str() {
            "" => found.to_owned(),
            path => format!("{found} in {:?}", crate::json::short(path)),
        };
        PickleFault::Value { what, found, expected }
    }
}
