//! Tensors of a set as those of a file that is there already.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Write,
};

use bytes::Bytes;
use tensor_core::{Chain, TensorInfo};

use super::{
    options::ConvertOptions,
    plan::{self, Became, Fit, Item},
    refusal::{Note, Refusal},
    target::Target,
};
use crate::{
    AnyTensor, Result,
    set::{NamedTensor, TensorSet},
    weights::ElementType,
};

/// Tensors of a set that were found to fit into a file, each with its place there. Nothing is read
/// before they are put.
#[derive(Debug)]
pub struct Fitted<'s, 'a, P> {
    items: BTreeMap<P, Item<'s, 'a>>,
    notes: Vec<Note>,
}

impl<P> Default for Fitted<'_, '_, P> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), notes: Vec::new() }
    }
}

impl<P: Ord> Fitted<'_, '_, P> {
    /// Returns the names of the tensors that take elements, in the order of the file.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.items.values().map(|item| &*item.name)
    }

    /// Returns what becomes of tensors that are not put as they are.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Tells whether one of the tensors has its place there.
    #[must_use]
    pub fn is_for(&self, place: &P) -> bool {
        self.items.contains_key(place)
    }

    /// Adds tensors of another set.
    ///
    /// # Errors
    ///
    /// Where both sets have a tensor for one place, under one name or two.
    pub fn and(mut self, other: Self) -> Result<Self, Refusal> {
        for (place, item) in other.items {
            let name = item.name.clone();
            if let Some(first) = self.items.insert(place, item) {
                return Err(first.same_place(&name));
            }
        }
        self.notes.extend(other.notes);
        Ok(self)
    }
}

impl<'a> TensorSet<'a> {
    /// Finds the constants of an RTen model that tensors of this set are called as, each by its graph
    /// and its node; where this is the set of an RTen model too, those in graphs of the same path. In
    /// a set that was put together, `#12` is node 12 of the main graph, and every tensor has to be
    /// one of the model.
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
        let constants = model.tensors().map(|old| There {
            name: old.name(),
            id: (old.scope() == 0).then(|| format!("#{}", old.node())),
            place: (old.scope(), old.node()),
            tensor: AnyTensor::Rten(old),
        });
        self.fit(constants, options)
    }

    /// Finds the constants of a Circle or TFLite model that tensors of this set are called as, each by
    /// its graph and its place there; where this is the set of such a model too, those in the same
    /// graph. Of a set that was put together, every tensor has to be one.
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
        let constants = model.tensors().map(|old| There {
            name: old.name(),
            id: None,
            place: (old.subgraph(), old.index()),
            tensor: AnyTensor::Circle(old),
        });
        self.fit(constants, options)
    }

    /// Finds the tensors of a carton that tensors of this set are called as, each by the path of its
    /// file. Of a set that was put together, every tensor has to be one.
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
            let place = old.file().ok().flatten()?.path().to_owned();
            let (name, tensor) = (Some(old.name()), AnyTensor::Carton(old));
            Some(There { name, id: None, place, tensor })
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
    ) -> Result<Fitted<'_, 'a, usize>, Vec<Refusal>> {
        let (items, notes, refused) = plan::items(self, Target::ZTensor, options);
        if !refused.is_empty() {
            return Err(refused);
        }
        Ok(Fitted { items: items.into_iter().enumerate().collect(), notes })
    }

    fn fit<'n, P: Ord>(
        &self,
        there: impl Iterator<Item = There<'n, P>>,
        options: &ConvertOptions,
    ) -> Result<Fitted<'_, 'a, P>, Vec<Refusal>> {
        let (given, is_file) = (self.by_own_names(options), self.format().is_some());
        let (mut fitted, mut refused) = (Fitted::default(), Vec::new());
        let (mut taken, mut several) = (HashMap::<&str, usize>::new(), HashSet::<&str>::new());
        for there in there {
            let by_id = || there.id.as_deref().filter(|_| !is_file);
            let named = there.name.filter(|name| !name.is_empty() && given.contains_key(name));
            let found = named.or_else(by_id).and_then(|name| given.get_key_value(name));
            let Some((name, tensors)) = found else { continue };
            let is_meant = |new: &&&NamedTensor<'_>| !is_file || there.is_in_the_graph_of(new);
            let meant: Vec<_> = tensors.iter().filter(is_meant).collect();
            let places = taken.entry(name).or_default();
            let [tensor] = *meant.as_slice() else {
                *places = places.saturating_add(meant.len());
                several.extend((meant.len() > 1).then_some(name));
                continue;
            };
            *places = places.saturating_add(1);
            match item(tensor, name, there.tensor.info(), options) {
                Ok((item, effect)) => {
                    let tensor = || item.name.clone();
                    fitted.notes.extend(effect.map(|effect| Note { tensor: tensor(), effect }));
                    if let Some(first) = fitted.items.insert(there.place, item) {
                        refused.push(first.same_place(name));
                    }
                }
                Err(refusal) => refused.push(refusal),
            }
        }
        for (name, tensors) in &given {
            match taken.get(name).copied().unwrap_or_default() {
                0 if !is_file => {
                    refused.push(Refusal::of(name, "there is no constant of this name"));
                }
                count if count > tensors.len() || several.contains(name) => {
                    refused.push(Refusal::of(
                        name,
                        "is the name of several tensors, expected of one here and there",
                    ));
                }
                _ => {}
            }
        }
        if refused.is_empty() && fitted.items.is_empty() {
            refused.push(Refusal::file("there is no tensor that is called as one of these"));
        }
        if refused.is_empty() { Ok(fitted) } else { Err(refused) }
    }

    /// Returns the tensors by what they are called in their files, or are to be called.
    fn by_own_names<'n, 's: 'n>(
        &'s self,
        options: &'n ConvertOptions,
    ) -> BTreeMap<&'n str, Vec<&'s NamedTensor<'a>>> {
        let mut given: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for tensor in self.tensors() {
            // Of several of one name, the later ones are called otherwise in the set.
            let own = tensor.tensor().name().filter(|_| self.format().is_some());
            let name = options.names.get(tensor.name()).map(String::as_str).or(own);
            given.entry(name.unwrap_or(tensor.name())).or_default().push(tensor);
        }
        given
    }
}

/// A tensor of a file that is there.
struct There<'n, P> {
    name: Option<&'n str>,
    /// How it is meant without its name.
    id: Option<String>,
    place: P,
    tensor: AnyTensor<'n>,
}

impl<P> There<'_, P> {
    fn is_in_the_graph_of(&self, new: &NamedTensor<'_>) -> bool {
        match (self.tensor, new.tensor()) {
            #[cfg(feature = "rten")]
            (AnyTensor::Rten(old), AnyTensor::Rten(new)) => new.graph_path() == old.graph_path(),
            #[cfg(feature = "circle")]
            (AnyTensor::Circle(old), AnyTensor::Circle(new)) => new.subgraph() == old.subgraph(),
            _ => true,
        }
    }
}

/// Says how a tensor becomes one of an element type and shape, also in words where it is not put as it
/// is.
fn item<'s, 'a>(
    tensor: &'s NamedTensor<'a>,
    name: &str,
    wanted: Result<TensorInfo>,
    options: &ConvertOptions,
) -> Result<(Item<'s, 'a>, Option<String>), Refusal> {
    let refusal = |reason: String| Refusal::of(name, reason);
    let wanted = wanted.map_err(|error| refusal(Chain(&error).to_string()))?;
    let has = |element_type| element_type == ElementType::Plain(wanted.dtype);
    let lacks = |found| format!("its elements are {found}, expected {}", wanted.dtype);
    let fit = Fit { tensor, has: &has, lacks: &lacks, options };
    let Became { shape, step, effect, .. } =
        fit.step().map_err(|refused| Refusal { tensor: Some(name.to_owned()), ..refused })?;
    if *shape != wanted.shape {
        return Err(refusal(format!("its shape is {shape}, expected {}", wanted.shape)));
    }
    let byte_len = wanted.byte_len().map_err(|error| refusal(error.to_string()))?;
    let item = Item {
        tensor,
        name: name.to_owned(),
        element_type: ElementType::Plain(wanted.dtype),
        shape,
        byte_len,
        step,
    };
    Ok((item, effect))
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
    pub fn read(&self, wanted: &rten_format::Pending) -> Result<Bytes> {
        let place = (wanted.scope, wanted.node);
        self.items.get(&place).ok_or(rten_format::Error::NonePending)?.bytes()
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
        let read = self.items.values().map(Item::bytes);
        let read: Vec<Bytes> = read.collect::<Result<_>>()?;
        for ((graph, index), bytes) in self.items.keys().zip(read) {
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
impl Fitted<'_, '_, usize> {
    /// Returns names, element types and shapes of the objects.
    pub fn infos(&self) -> impl Iterator<Item = (&str, Option<TensorInfo>)> {
        self.items.values().map(|item| (item.name.as_str(), item.info()))
    }

    /// Writes the objects, in the place of those of the same names, and tells `progress` how many
    /// bytes of elements were done each time some are.
    ///
    /// # Errors
    ///
    /// Where they cannot be read or written.
    pub fn put<W: Write>(
        &self,
        editor: &mut ztensor::Editor<W>,
        progress: impl Fn(u64),
    ) -> Result<()> {
        for item in self.items.values() {
            if editor.writer().contains(&item.name) {
                editor.remove(&item.name)?;
            }
            item.add_to(editor.writer(), |sink| item.put(item.fetch()?, sink, &progress))?;
        }
        Ok(())
    }
}

impl Item<'_, '_> {
    /// Refuses another tensor for the place of this one.
    fn same_place(&self, name: &str) -> Refusal {
        Refusal::of(name, format!("is the tensor that {:?} is put in the place of", self.name))
    }

    fn bytes(&self) -> Result<Bytes> {
        let len = usize::try_from(self.byte_len);
        let mut bytes = Vec::new();
        let room = len.ok().and_then(|len| bytes.try_reserve_exact(len).ok());
        room.ok_or(tensor_core::Error::OutOfMemory { bytes: self.byte_len })?;
        self.put(self.fetch()?, &mut bytes, |_| ())?;
        Ok(bytes.into())
    }
}
