//! Tensors of a set as those of a file that is there already.

use bytes::Bytes;
use tensor_core::{Chain, TensorInfo};

use super::{
    options::ConvertOptions,
    plan::{self, Became, Fit, Item},
    refusal::Refusal,
    target::Target,
};
use crate::{
    Result,
    set::{NamedTensor, TensorSet},
    weights::ElementType,
};

/// Tensors of a set that were found to fit into a file, each with its place there. Nothing is read
/// before they are put.
#[derive(Debug)]
pub struct Fitted<'s, 'a, P> {
    items: Vec<(P, Item<'s, 'a>)>,
}

impl<P> Fitted<'_, '_, P> {
    /// Returns the names of the tensors that take elements, in the order of the file.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.items.iter().map(|(_, item)| &*item.name)
    }
}

impl<'a> TensorSet<'a> {
    /// Finds the constants of an RTen model that tensors of this set are called as, each by its graph
    /// and its node; where this is one of an RTen model too, those in graphs of the same path.
    ///
    /// # Errors
    ///
    /// Every tensor that is of another element type or shape, or is called as several; where there is
    /// none at all.
    #[cfg(feature = "rten")]
    pub fn fit_rten(
        &self,
        model: &rten_format::Reader,
        options: &ConvertOptions,
    ) -> Result<Fitted<'_, 'a, (usize, u32)>, Vec<Refusal>> {
        use crate::AnyTensor;
        let constants = model.tensors().filter_map(|old| {
            let name = old.name().filter(|name| !name.is_empty())?;
            let path = old.graph_path();
            let is_there = move |new: &NamedTensor<'_>| match new.tensor() {
                AnyTensor::Rten(new) => new.graph_path() == path,
                _ => true,
            };
            Some((
                name,
                (old.scope(), old.node()),
                move || old.info().map_err(Into::into),
                is_there,
            ))
        });
        self.fit(constants, options)
    }

    /// Finds the constants of a Circle or TFLite model that tensors of this set are called as, each by
    /// its graph and its place there.
    ///
    /// # Errors
    ///
    /// As for [`fit_rten`](Self::fit_rten).
    #[cfg(feature = "circle")]
    pub fn fit_circle(
        &self,
        model: &circle_format::Reader,
        options: &ConvertOptions,
    ) -> Result<Fitted<'_, 'a, (u32, u32)>, Vec<Refusal>> {
        let constants = model.tensors().filter_map(|old| {
            let name = old.name().filter(|name| !name.is_empty())?;
            let place = (old.subgraph(), old.index());
            Some((name, place, move || old.info().map_err(Into::into), |_: &NamedTensor<'_>| true))
        });
        self.fit(constants, options)
    }

    /// Finds the tensors of a carton that tensors of this set are called as, each by the path of its
    /// file.
    ///
    /// # Errors
    ///
    /// As for [`fit_rten`](Self::fit_rten); where the index of the carton cannot be read.
    #[cfg(feature = "carton")]
    pub fn fit_carton(
        &self,
        carton: &carton_format::Reader,
        options: &ConvertOptions,
    ) -> Result<Fitted<'_, 'a, String>, Vec<Refusal>> {
        let tensors = carton.tensors().map_err(|error| vec![Refusal::file(Chain(&error))])?;
        let numeric = tensors.filter_map(|old| {
            let file = old.file().ok().flatten()?;
            let place = file.path().to_owned();
            let info = move || old.info().map_err(Into::into);
            Some((old.name(), place, info, |_: &NamedTensor<'_>| true))
        });
        self.fit(numeric, options)
    }

    /// Finds out whether all tensors can be objects of a zTensor file.
    ///
    /// # Errors
    ///
    /// As for [`convert_to`](Self::convert_to).
    #[cfg(feature = "ztensor")]
    pub fn fit_ztensor(
        &self,
        options: &ConvertOptions,
    ) -> Result<Fitted<'_, 'a, ()>, Vec<Refusal>> {
        let (items, _, refused) = plan::items(self, Target::ZTensor, options);
        if !refused.is_empty() {
            return Err(refused);
        }
        Ok(Fitted { items: items.into_iter().map(|item| ((), item)).collect() })
    }

    fn fit<'n, P>(
        &self,
        there: impl Iterator<
            Item = (&'n str, P, impl Fn() -> Result<TensorInfo>, impl Fn(&NamedTensor<'_>) -> bool),
        >,
        options: &ConvertOptions,
    ) -> Result<Fitted<'_, 'a, P>, Vec<Refusal>> {
        use std::collections::HashMap;
        let mut given: HashMap<&str, Vec<&NamedTensor<'a>>> = HashMap::new();
        for tensor in self.tensors() {
            // Of several of one name, the later ones are called otherwise in the set.
            let own = tensor.tensor().name().filter(|_| self.format().is_some());
            let name = options.names.get(tensor.name()).map(String::as_str).or(own);
            given.entry(name.unwrap_or(tensor.name())).or_default().push(tensor);
        }
        let (mut items, mut refused) = (Vec::new(), Vec::new());
        let mut taken: HashMap<&str, usize> = HashMap::new();
        for (name, place, info, is_there) in there {
            let fitting = given.get(name).and_then(|all| all.iter().find(|one| is_there(one)));
            let Some(tensor) = fitting else { continue };
            let count = taken.entry(name).or_default();
            *count = count.saturating_add(1);
            match item(tensor, name, info(), options) {
                Ok(item) => items.push((place, item)),
                Err(refusal) => refused.push(refusal),
            }
        }
        let twice = taken.iter().filter(|(name, count)| {
            **count > 1 && given.get(**name).is_none_or(|all| all.len() < **count)
        });
        refused.extend(twice.map(|(name, count)| {
            Refusal::of(name, format!("is the name of {count} tensors there, expected one"))
        }));
        if refused.is_empty() && items.is_empty() {
            refused.push(Refusal::file("there is no tensor that is called as one of these"));
        }
        if refused.is_empty() { Ok(Fitted { items }) } else { Err(refused) }
    }
}

/// Says how a tensor becomes one of an element type and shape.
fn item<'s, 'a>(
    tensor: &'s NamedTensor<'a>,
    name: &str,
    wanted: Result<TensorInfo>,
    options: &ConvertOptions,
) -> Result<Item<'s, 'a>, Refusal> {
    let refusal = |reason: String| Refusal::of(name, reason);
    let wanted = wanted.map_err(|error| refusal(Chain(&error).to_string()))?;
    let has = |element_type| element_type == ElementType::Plain(wanted.dtype);
    let fit = Fit { tensor, has: &has, target: &"the constant", options };
    let Became { shape, step, .. } =
        fit.step().map_err(|refused| Refusal { tensor: Some(name.to_owned()), ..refused })?;
    if *shape != wanted.shape {
        return Err(refusal(format!("its shape is {shape}, expected {}", wanted.shape)));
    }
    let byte_len = wanted.byte_len().map_err(|error| refusal(error.to_string()))?;
    Ok(Item {
        tensor,
        name: name.to_owned(),
        element_type: ElementType::Plain(wanted.dtype),
        shape,
        byte_len,
        step,
        #[cfg(feature = "ztensor")]
        convention: options.convention,
    })
}

#[cfg(feature = "rten")]
impl Fitted<'_, '_, (usize, u32)> {
    /// Takes the elements of the constants out of a model, so that
    /// [`Editor::rewrite`](rten_format::Editor::rewrite) asks for them.
    pub fn describe(&self, model: &mut rten_format::Model) {
        use rten_format::{Constant, ConstantDataType, NodeKind};
        for ((scope, node), item) in &self.items {
            let ElementType::Plain(dtype) = item.element_type else { continue };
            let graph = model.graph_mut(*scope);
            let node = usize::try_from(*node).ok();
            let node = graph.and_then(|graph| graph.nodes.get_mut(node?));
            if let Some(NodeKind::Constant(old)) = node.map(|node| &mut node.kind) {
                let dtype = ConstantDataType::from_dtype(dtype).ok();
                let shape = std::mem::take(&mut old.shape);
                *old = Constant { shape, dtype, data: None, data_offset: None };
            }
        }
    }

    /// Reads the elements of a constant that a rewrite asks for.
    ///
    /// # Errors
    ///
    /// [`rten_format::Error::NonePending`] where it is none of these; where they cannot be read.
    pub fn read(&self, wanted: &rten_format::Pending) -> rten_format::Result<Bytes> {
        let place = (wanted.scope, wanted.node);
        let found = self.items.binary_search_by_key(&place, |(place, _)| *place);
        let item = found.ok().and_then(|at| self.items.get(at)).map(|(_, item)| item);
        item.ok_or(rten_format::Error::NonePending)?.bytes().map_err(|error| {
            let (what, source) = ("elements", std::io::Error::other(error));
            rten_format::Error::Core(tensor_core::Error::Read { what, offset: 0, source })
        })
    }
}

#[cfg(feature = "circle")]
impl Fitted<'_, '_, (u32, u32)> {
    /// Gives the constants of a model their elements, which are then in memory.
    ///
    /// # Errors
    ///
    /// Where they cannot be read; the model is as it was.
    pub fn put(&self, model: &mut circle_format::model::Model) -> Result<()> {
        let read = self.items.iter().map(|(_, item)| item.bytes());
        let read: Vec<Bytes> = read.collect::<Result<_>>()?;
        for (((graph, index), _), bytes) in self.items.iter().zip(read) {
            let buffer = model.add_buffer(bytes);
            let at = |index: u32| usize::try_from(index).ok();
            let graph = at(*graph).and_then(|graph| model.subgraphs.get_mut(graph));
            let tensor = graph.and_then(|graph| graph.tensors.get_mut(at(*index)?));
            if let Some(tensor) = tensor {
                (tensor.buffer, tensor.external_buffer) = (buffer, 0);
            }
        }
        model.drop_unused_buffers();
        Ok(())
    }
}

#[cfg(feature = "carton")]
impl Fitted<'_, '_, String> {
    /// Gives tensors of a carton their elements, which are then in memory.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn put(&self, editor: &mut carton_format::Editor) -> Result<()> {
        for (path, item) in &self.items {
            editor.put(path, item.bytes()?)?;
        }
        Ok(())
    }
}

#[cfg(feature = "ztensor")]
impl Fitted<'_, '_, ()> {
    /// Writes the objects, in the place of those of the same names, and tells `progress` how many
    /// bytes of elements were done each time some are.
    ///
    /// # Errors
    ///
    /// Where they cannot be read or written.
    pub fn put(&self, editor: &mut ztensor::Editor, progress: impl Fn(u64)) -> Result<()> {
        for (_, item) in &self.items {
            if editor.writer().contains(&item.name) {
                editor.remove(&item.name)?;
            }
            item.add_to(editor.writer(), |sink| item.put(item.fetch()?, sink, &progress))?;
        }
        Ok(())
    }
}

impl Item<'_, '_> {
    fn bytes(&self) -> Result<Bytes> {
        let len = usize::try_from(self.byte_len);
        let mut bytes = Vec::new();
        let room = len.ok().and_then(|len| bytes.try_reserve_exact(len).ok());
        room.ok_or(tensor_core::Error::OutOfMemory { bytes: self.byte_len })?;
        self.put(self.fetch()?, &mut bytes, |_| ())?;
        Ok(bytes.into())
    }
}
