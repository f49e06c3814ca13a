//! The tensors in the pickles of a model, with the path of each.

use std::collections::HashSet;

use tensor_core::{Budget, Limit, Limits, Shape, text::short};

use crate::{
    Place, Quantization,
    module::stored::{Channels, Listing, StorageId, Stored, StoredParts, StoredSparse, View},
    pickle::{Function, Global, Id, Node, Pickle, PickleFault},
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
    /// Tensors that are listed already, in another place.
    known: HashSet<View>,
    visits: Budget,
    listing: &'p mut Listing,
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
    pub(crate) fn new(
        pickle: &'p Pickle,
        place: Place,
        folder: &'static str,
        limits: &'p Limits,
        listing: &'p mut Listing,
    ) -> Self {
        let (path, seen, known) = (String::new(), HashSet::new(), HashSet::new());
        let visits = Budget::new("number of values", limits.tensors, Limit::Tensors);
        Self { pickle, place, folder, limits, path, seen, known, visits, listing }
    }

    /// Lists all tensors of the pickle.
    pub(crate) fn run(mut self) -> Walked<()> {
        self.visit(self.pickle.root(), 0)
    }

    /// Lists the tensors that are constants of methods, each under the name that `path` starts with,
    /// and that are not listed already.
    pub(crate) fn constants(mut self, methods: &[(String, &[Id])]) -> Walked<()> {
        self.known = self.listing.views();
        for (name, constants) in methods {
            for (index, id) in constants.iter().enumerate() {
                self.below(&format!("{name}<const>{index}"), |walk| walk.visit(*id, 0))?;
            }
        }
        Ok(())
    }

    fn visit(&mut self, id: Id, depth: u32) -> Walked<()> {
        self.limits.check(Limit::Depth, "nesting of objects", depth.into())?;
        self.visits.take(1)?;
        let deeper = depth.saturating_add(1);
        match self.pickle.node(id) {
            Node::Call { function: Function::Tensor | Function::QuantizedTensor, .. } => {
                let tensor = self.tensor(id)?;
                if self.known.contains(&tensor.view()) { Ok(()) } else { self.push(tensor) }
            }
            Node::Call { function: Function::SparseTensor, arguments } => self.sparse(*arguments),
            // Tags and lists are but wrappers.
            Node::Call { function: Function::TypeTag | Function::List, arguments } => {
                match self.pickle.tuple(*arguments) {
                    Some(&[inner, ..]) => self.visit(inner, deeper),
                    _ => Ok(()),
                }
            }
            Node::Object { state: Some(state), .. } if self.seen.insert(id) => {
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

    fn below<T>(&mut self, name: &str, visit: impl FnOnce(&mut Self) -> Walked<T>) -> Walked<T> {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let found = self.path.len() as u64;
        self.limits.check(Limit::NameBytes, "path of a tensor in bytes", found)?;
        let result = visit(self);
        self.path.truncate(len);
        result
    }

    /// Reads `(storage, offset, sizes, strides, …)`, with the scheme of a quantized tensor between.
    fn tensor(&mut self, id: Id) -> Walked<Stored> {
        let (arguments, is_quantized) = match self.pickle.node(id) {
            Node::Call { function: Function::Tensor, arguments } => (*arguments, false),
            Node::Call { function: Function::QuantizedTensor, arguments } => (*arguments, true),
            other => return Err(self.wrong("tensor", other.kind(), "a tensor").into()),
        };
        let (storage, scalar) = self.storage(self.argument(arguments, 0)?)?;
        let offset = self.whole(self.argument(arguments, 1)?, "storage offset")?;
        let shape: Shape = self.sizes(self.argument(arguments, 2)?, "sizes")?.into();
        let strides = self.sizes(self.argument(arguments, 3)?, "strides")?;
        if shape.rank() != strides.len() {
            let found = format!("{} numbers", strides.len());
            return Err(self.wrong("strides", &found, "one for each size").into());
        }
        let grad = self.argument(arguments, if is_quantized { 5 } else { 4 })?;
        let requires_grad = matches!(self.pickle.node(grad), Node::Bool(true));
        let (quantization, channels) = match is_quantized {
            true => self.quantization(self.argument(arguments, 4)?)?,
            false => (None, None),
        };
        Ok(Stored {
            place: self.place,
            name: self.place.name_of(&self.path),
            scalar,
            shape,
            strides,
            offset,
            storage,
            requires_grad,
            quantization,
            channels,
        })
    }

    /// Reads a tensor that is neither quantized nor sparse: a part of one that is.
    fn dense(&mut self, id: Id) -> Walked<Stored> {
        match self.pickle.node(id) {
            Node::Call { function: Function::Tensor, .. } => self.tensor(id),
            other => Err(self.wrong("part of a tensor", other.kind(), "a dense tensor").into()),
        }
    }

    /// Reads `(layout, sizes, requires_grad, part…, hooks)`.
    fn sparse(&mut self, arguments: Id) -> Walked<()> {
        let layout = self.whole(self.argument(arguments, 0)?, "layout")?;
        let shape: Shape = self.sizes(self.argument(arguments, 1)?, "sizes")?.into();
        let grad = self.argument(arguments, 2)?;
        let requires_grad = matches!(self.pickle.node(grad), Node::Bool(true));
        let mut part = |name, index| {
            let id = self.argument(arguments, index)?;
            let part = self.below(name, |walk| walk.dense(id))?;
            self.push(part.clone())?;
            Ok::<_, WalkFault>(part)
        };
        let parts = match layout {
            LAYOUT_COO => {
                StoredParts::Coo { indices: part("indices", 3)?, values: part("values", 4)? }
            }
            LAYOUT_CSR => StoredParts::Csr {
                crow_indices: part("crow_indices", 3)?,
                col_indices: part("col_indices", 4)?,
                values: part("values", 5)?,
            },
            other => {
                let expected = "1 (COO) or 2 (CSR)";
                return Err(self.wrong("layout", &other.to_string(), expected).into());
            }
        };
        let (place, name) = (self.place, self.place.name_of(&self.path));
        self.listing.sparse.push(StoredSparse { place, name, shape, requires_grad, parts });
        Ok(())
    }

    fn push(&mut self, tensor: Stored) -> Walked<()> {
        Ok(self.listing.push(tensor)?)
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

    /// Reads `(scheme, scale, zero point)` or `(scheme, scales, zero points, axis)`.
    fn quantization(&mut self, id: Id) -> Walked<(Option<Quantization>, Option<Box<Channels>>)> {
        let wrong =
            |walk: &Self| walk.wrong("quantization", "something else", "a scheme and its numbers");
        let parts = self.pickle.tuple(id).ok_or_else(|| wrong(self))?;
        let scheme = match parts.first().map(|id| self.pickle.node(*id)) {
            Some(Node::Global(Global::Scheme(scheme))) => *scheme,
            _ => return Err(wrong(self).into()),
        };
        match *parts {
            [_, scale, zero_point] => {
                let Node::Float(scale) = *self.pickle.node(scale) else {
                    return Err(wrong(self).into());
                };
                let zero_point = self.pickle.int(zero_point).ok_or_else(|| wrong(self))?;
                Ok((Some(Quantization::PerTensor { scheme, scale, zero_point }), None))
            }
            [_, scales, zero_points, axis] => {
                let axis = self.pickle.int(axis).ok_or_else(|| wrong(self))?;
                let scales = self.below("scales", |walk| walk.dense(scales))?;
                let zero_points = self.below("zero_points", |walk| walk.dense(zero_points))?;
                let channels = Box::new(Channels { scales, zero_points });
                Ok((Some(Quantization::PerChannel { scheme, axis }), Some(channels)))
            }
            _ => Err(wrong(self).into()),
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
            path => format!("{found} in {:?}", short(path)),
        };
        PickleFault::Value { what, found, expected }
    }
}

/// How the elements of a sparse tensor are stored, by the numbers that PyTorch gives layouts.
const LAYOUT_COO: u64 = 1;
const LAYOUT_CSR: u64 = 2;
