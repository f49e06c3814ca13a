//! Elements of constants from other files.

use std::{collections::HashMap, io, path::Path};

use anyhow::{anyhow, ensure};
use modelcrate::{
    AnyReader, NamedTensor,
    rten_format::{self, Constant, ConstantDataType, NodeKind, Pending, Reader},
    tensor_core::{self, Extent, Source, TensorInfo},
};

use crate::{
    failure::About,
    glob::{Glob, check_meant, is_meant},
    put::Put,
    rten::find,
};

/// Where the new elements of constants are, by graph and node.
#[derive(Default)]
pub(super) struct Weights {
    from: HashMap<(usize, u32), Place>,
    /// In the order in which they were asked for.
    pub(super) names: Vec<String>,
}

enum Place {
    /// A tensor of a file of another format.
    Named(Box<AnyReader>, String),
    Put(Box<AnyReader>, Put),
    Elements(Source),
}

impl Weights {
    /// Takes all constants that another file has: of an RTen model those at the same place, of any
    /// other format those of the same name, where only one constant has it.
    pub(super) fn all_of(
        &mut self,
        path: &Path,
        globs: &[Glob],
        reader: &Reader,
    ) -> anyhow::Result<()> {
        let before = self.names.len();
        let weights = AnyReader::open(path).about(path)?;
        let set = weights.tensor_set().about(path)?;
        check_meant(globs, "tensor", set.tensors().iter().map(NamedTensor::name)).about(path)?;
        match &weights {
            AnyReader::Rten(weights) => self.all_of_model(path, weights, globs, reader)?,
            weights => self.all_named(path, weights, globs, reader)?,
        }
        let has_any = self.names.len() > before;
        ensure!(
            has_any,
            "{}: has no tensor that is called as a constant of the model",
            path.display()
        );
        Ok(())
    }

    fn all_of_model(
        &mut self,
        path: &Path,
        weights: &Reader,
        globs: &[Glob],
        reader: &Reader,
    ) -> anyhow::Result<()> {
        let named = weights.tensors().filter(|tensor| tensor.name().is_some());
        let places: HashMap<_, _> =
            named.map(|tensor| ((tensor.graph_path(), tensor.name()), tensor)).collect();
        for old in reader.tensors() {
            let Some(name) = old.name().filter(|name| is_meant(globs, name)) else { continue };
            let Some(new) = places.get(&(old.graph_path(), old.name())) else { continue };
            same(name, &new.info().about(path)?, &old.info()?).about(path)?;
            let Some(extent) = new.extent().about(path)? else { continue };
            let source = weights.source().window(extent, "tensor data").about(path)?;
            self.put((old.scope(), old.node()), name, Place::Elements(source));
        }
        Ok(())
    }

    fn all_named(
        &mut self,
        path: &Path,
        weights: &AnyReader,
        globs: &[Glob],
        reader: &Reader,
    ) -> anyhow::Result<()> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for name in reader.tensors().filter_map(rten_format::Tensor::name) {
            let count = counts.entry(name).or_default();
            *count = count.saturating_add(1);
        }
        for old in reader.tensors() {
            let is_wanted = |name: &&str| !name.is_empty() && is_meant(globs, name);
            let Some(name) = old.name().filter(is_wanted) else { continue };
            let Some(new) = weights.tensor(name).about(path)? else { continue };
            let new = new.info().about(path)?;
            let count = counts.get(name).copied().unwrap_or_default();
            ensure!(count == 1, "{name:?} is the name of {count} constants, expected one");
            same(name, &new, &old.info()?).about(path)?;
            let place = Place::Named(Box::new(weights.clone()), name.to_owned());
            self.put((old.scope(), old.node()), name, place);
        }
        Ok(())
    }

    /// Takes one constant of the main graph from another file.
    pub(super) fn one(&mut self, put: Put, reader: &Reader) -> anyhow::Result<()> {
        let weights = put.open()?;
        let new = put.tensor(&weights).and_then(|tensor| Ok(tensor.info()?)).about(&put.path)?;
        let id = find(reader.model(), &put.name)?;
        let old = reader.tensors().find(|tensor| (tensor.scope(), tensor.node()) == (0, id));
        let old = old.ok_or_else(|| anyhow!("node {id} is not a constant"))?;
        same(&put.name, &new, &old.info()?)?;
        self.put((0, id), &put.name.clone(), Place::Put(Box::new(weights), put));
        Ok(())
    }

    fn put(&mut self, node: (usize, u32), name: &str, place: Place) {
        self.from.insert(node, place);
        self.names.push(name.to_owned());
    }

    /// Takes the elements of all constants away that are to get others.
    pub(super) fn describe(&self, model: &mut rten_format::Model) {
        let mut scopes: Vec<usize> = self.from.keys().map(|(scope, _)| *scope).collect();
        scopes.sort_unstable();
        scopes.dedup();
        for scope in scopes {
            let Some(graph) = model.graph_mut(scope) else { continue };
            for (id, node) in (0..).zip(&mut graph.nodes) {
                if let NodeKind::Constant(old) = &mut node.kind
                    && self.from.contains_key(&(scope, id))
                {
                    let inline = old.data.as_ref().filter(|_| old.data_offset.is_none());
                    let dtype =
                        inline.and_then(|data| ConstantDataType::from_dtype(data.dtype()?).ok());
                    let dtype = dtype.or(old.dtype);
                    let shape = std::mem::take(&mut old.shape);
                    *old = Constant { shape, dtype, data: None, data_offset: None };
                }
            }
        }
    }

    /// Reads the elements of a constant.
    pub(super) fn read(&self, pending: &Pending) -> rten_format::Result<bytes::Bytes> {
        match self.from.get(&(pending.scope, pending.node)) {
            Some(Place::Named(reader, name)) => {
                let tensor = reader.tensor(name).map_err(foreign)?;
                let tensor = tensor.ok_or(rten_format::Error::NonePending)?;
                Ok(tensor.read().map_err(foreign)?.into_bytes())
            }
            Some(Place::Put(reader, put)) => {
                let tensor = put.tensor(reader).map_err(io::Error::other).map_err(unread)?;
                Ok(tensor.bytes().map_err(foreign)?)
            }
            Some(Place::Elements(source)) => {
                Ok(source.read(Extent::first(source.len()), "elements")?)
            }
            None => Err(rten_format::Error::NonePending),
        }
    }
}

/// Wraps an error of another format.
fn foreign(error: modelcrate::Error) -> rten_format::Error {
    unread(io::Error::other(error))
}

fn unread(source: io::Error) -> rten_format::Error {
    let what = "elements";
    rten_format::Error::Core(tensor_core::Error::Read { what, offset: 0, source })
}

/// Refuses elements of another type or shape.
fn same(name: &str, new: &TensorInfo, old: &TensorInfo) -> anyhow::Result<()> {
    ensure!(new == old, "{name:?} is {new} there, expected {old}");
    Ok(())
}
