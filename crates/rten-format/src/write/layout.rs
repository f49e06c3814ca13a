//! Where a file of version 2 gets the elements of each constant: in the model data, or apart from
//! it in the tensor data. Format text: "Tensor data".

use bytes::Bytes;
use tensor_core::{DType, Extent, TensorInfo};

use crate::{
    Constant, ConstantData, ConstantDataType, Error, Fault, Graph, Model, NodeKind, Result,
    topology::{self, Scope},
};

/// A model as it will be stored, and what the tensor data will hold.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The model, whose constants have data offsets where they are in the tensor data.
    pub(crate) model: Model,
    /// The tensor data, by offset.
    pub(crate) parts: Vec<Part>,
}

/// A part of the tensor data.
#[derive(Debug)]
pub(crate) struct Part {
    /// Where it starts, in bytes from the start of the tensor data.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) elements: Elements,
}

/// Where a part comes from.
#[derive(Debug)]
pub(crate) enum Elements {
    Given(Bytes),
    Pending(Pending),
}

/// A constant whose elements a [`Writer`](crate::Writer) waits for, or several that share bytes in
/// the file that the model was read from: then all of their bytes, in one piece, with the path of
/// the first one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pending {
    /// The path of its node, such as `graph/then_branch/node 12 "w"`.
    pub path: String,
    /// The name of its node.
    pub name: Option<String>,
    /// Which graph it is in, as [`Topology::scopes`](crate::topology::Topology::scopes) counts them.
    pub scope: usize,
    /// The id of its node in that graph.
    pub node: u32,
    /// Element type and shape.
    pub info: TensorInfo,
    /// Where the elements are in the tensor data of the file that the model was read from, in bytes
    /// from the start of the tensor data there.
    pub data_offset: Option<u64>,
}

/// What decides where elements go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// A constant of up to so many elements stays in the model data.
    pub(crate) inline_elements: u64,
    /// What every part starts at a multiple of, in bytes.
    pub(crate) alignment: u32,
}

impl Layout {
    /// Finds a place for the elements of all constants, in the order of the file.
    ///
    /// Constants that shared bytes by their data offsets share them again: what overlaps is one
    /// part.
    pub(crate) fn new(model: &Model, rule: Rule) -> Result<Self> {
        let mut constants = Vec::new();
        let scopes = topology::walk(&model.graph, |scope, id, node| {
            if let NodeKind::Constant(constant) = &node.kind {
                constants.push((scope, id, node.name.as_deref(), constant));
            }
        });
        let fault = |scope: usize, node, fault| {
            let path = node_path(&scopes, scope, node);
            Error::Constant { path: path.into(), fault }
        };
        let mut shared = Vec::new();
        for &(scope, node, _, constant) in &constants {
            let extent = stored_extent(constant).map_err(|found| fault(scope, node, found))?;
            shared.extend(extent);
        }
        let mut plan = Plan { rule, end: 0, parts: Vec::new(), shared: joined(shared) };
        let mut places = Vec::with_capacity(constants.len());
        for (scope, node, name, constant) in constants {
            let pending = |info, data_offset| Pending {
                path: node_path(&scopes, scope, node),
                name: name.map(str::to_owned),
                scope,
                node,
                info,
                data_offset,
            };
            places.push(plan.place(constant, pending).map_err(|found| fault(scope, node, found))?);
        }
        Ok(Self { model: placed(model, places)?, parts: plan.parts })
    }
}

/// Returns where the elements of a constant are in the tensor data of another file; `None` where
/// they are not there.
fn stored_extent(constant: &Constant) -> Result<Option<Extent>, Fault> {
    let (Some(offset), Some(info)) = (constant.data_offset, constant.info()?) else {
        return Ok(None);
    };
    let extent = Extent::new(offset, info.byte_len()?)?;
    Ok(Some(extent).filter(|extent| !extent.is_empty()))
}

/// Joins what overlaps, and sorts it.
fn joined(mut extents: Vec<Extent>) -> Vec<Shared> {
    extents.sort_unstable();
    let mut joined: Vec<Shared> = Vec::new();
    for extent in extents {
        match joined.last_mut() {
            Some(Shared { old, .. }) if old.overlaps(extent) => {
                *old = Extent::between(old.offset(), old.end().max(extent.end()));
            }
            _ => joined.push(Shared { old: extent, new: None }),
        }
    }
    joined
}

/// Bytes of the tensor data of another file.
struct Shared {
    old: Extent,
    /// Where they are in the new tensor data, once that is known.
    new: Option<u64>,
}

fn node_path(scopes: &[Scope<'_>], scope: usize, node: u32) -> String {
    scopes.get(scope).map_or_else(String::new, |scope| scope.node_path(node))
}

/// Where the elements of a constant go.
enum Place {
    /// They stay in the model data.
    Inline,
    /// There are none, so nobody has to give them.
    Empty(ConstantDataType),
    /// Into the tensor data, this many bytes from its start.
    Apart(u64, ConstantDataType),
}

/// Returns the model with each constant where its place is.
fn placed(model: &Model, places: Vec<Place>) -> Result<Model> {
    let mut graph: Graph = model.graph.clone();
    let mut places = places.into_iter();
    graph.visit_constants(&mut |constant| {
        let (dtype, data, data_offset) = match places.next() {
            None | Some(Place::Inline) => return Ok(()),
            Some(Place::Empty(dtype)) => (dtype, ConstantData::new(dtype, Bytes::new()), None),
            Some(Place::Apart(offset, dtype)) => (dtype, None, Some(offset)),
        };
        let shape = std::mem::take(&mut constant.shape);
        *constant = Constant { shape, dtype: Some(dtype), data, data_offset };
        Ok(())
    })?;
    Ok(Model { graph, metadata: model.metadata.clone() })
}

/// Tensor data in the making.
struct Plan {
    rule: Rule,
    end: u64,
    parts: Vec<Part>,
    /// What is in another file, sorted, none overlapping another.
    shared: Vec<Shared>,
}

impl Plan {
    fn place(
        &mut self,
        constant: &Constant,
        pending: impl FnOnce(TensorInfo, Option<u64>) -> Pending,
    ) -> Result<Place, Fault> {
        let Some(info) = constant.info()? else {
            // What is in a table that is not known stays where it is.
            return Ok(Place::Inline);
        };
        constant.require_rank()?;
        let (len, elements) = (info.byte_len()?, info.shape.elements()?);
        let dtype = ConstantDataType::from_dtype(info.dtype).map_err(|_| Fault::NoDtype)?;
        if let Some(bytes) = constant.inline()? {
            if elements <= self.rule.inline_elements {
                return Ok(Place::Inline);
            }
            return Ok(Place::Apart(self.push(len, Elements::Given(bytes.clone()))?, dtype));
        }
        if len == 0 {
            return Ok(Place::Empty(dtype));
        }
        let offset = match constant.data_offset {
            None => self.push(len, Elements::Pending(pending(info, None)))?,
            Some(old) => self.place_shared(Extent::new(old, len)?, info, pending)?,
        };
        Ok(Place::Apart(offset, dtype))
    }

    /// Returns where bytes of another file are in the new tensor data.
    fn place_shared(
        &mut self,
        extent: Extent,
        info: TensorInfo,
        pending: impl FnOnce(TensorInfo, Option<u64>) -> Pending,
    ) -> Result<u64, Fault> {
        // All extents were joined, so that the last one that starts here or before holds this one.
        let at = self.shared.partition_point(|shared| shared.old.offset() <= extent.offset());
        let found = at.checked_sub(1).and_then(|at| Some((at, self.shared.get(at)?)));
        let (at, old, new) =
            found.map_or((at, extent, None), |(at, found)| (at, found.old, found.new));
        let start = match new {
            Some(start) => start,
            None => {
                let info = if old == extent { info } else { bytes(old.len()) };
                let pending = pending(info, Some(old.offset()));
                self.push(old.len(), Elements::Pending(pending))?
            }
        };
        if let Some(shared) = self.shared.get_mut(at) {
            shared.new = Some(start);
        }
        Ok(start.saturating_add(extent.offset().saturating_sub(old.offset())))
    }

    /// Adds a part behind all others and returns where it starts.
    fn push(&mut self, len: u64, elements: Elements) -> Result<u64, Fault> {
        let overflow = || tensor_core::Error::ExtentOverflow { offset: self.end, len };
        let aligned = self.end.checked_next_multiple_of(u64::from(self.rule.alignment));
        let offset = aligned.ok_or_else(overflow)?;
        self.end = offset.checked_add(len).ok_or_else(overflow)?;
        self.parts.push(Part { offset, len, elements });
        Ok(offset)
    }
}

/// Describes bytes that are more than one constant.
fn bytes(len: u64) -> TensorInfo {
    TensorInfo { dtype: DType::U8, shape: [len].into() }
}
