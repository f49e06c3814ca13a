//! Where a file of version 2 gets the elements of each constant: in the model data, or apart from
//! it in the tensor data. Format text: "Tensor data".

use std::collections::HashMap;

use bytes::Bytes;
use tensor_core::TensorInfo;

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
    Wanted(Wanted),
}

/// A constant whose elements a [`Writer`](crate::Writer) waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Wanted {
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
    /// Constants that shared a data offset share it again.
    pub(crate) fn new(model: &Model, rule: Rule) -> Result<Self> {
        let mut constants = Vec::new();
        let scopes = topology::walk(&model.graph, |scope, id, node| {
            if let NodeKind::Constant(constant) = &node.kind {
                constants.push((scope, id, node.name.as_deref(), constant));
            }
        });
        let mut plan = Plan { rule, end: 0, parts: Vec::new(), shared: HashMap::new() };
        let mut places = Vec::with_capacity(constants.len());
        for (scope, node, name, constant) in constants {
            let wanted = |info, data_offset| Wanted {
                path: node_path(&scopes, scope, node),
                name: name.map(str::to_owned),
                scope,
                node,
                info,
                data_offset,
            };
            let place = plan.place(constant, wanted).map_err(|fault| {
                let path = node_path(&scopes, scope, node);
                Error::Constant { path, fault }
            })?;
            places.push(place);
        }
        Ok(Self { model: placed(model, places)?, parts: plan.parts })
    }
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
    /// The new data offset of an old one with a length.
    shared: HashMap<(u64, u64), u64>,
}

impl Plan {
    fn place(
        &mut self,
        constant: &Constant,
        wanted: impl FnOnce(TensorInfo, Option<u64>) -> Wanted,
    ) -> Result<Place, Fault> {
        let Some(info) = constant.info()? else {
            // What is in a table that is not known stays where it is.
            return Ok(Place::Inline);
        };
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
        let Some(old) = constant.data_offset else {
            let offset = self.push(len, Elements::Wanted(wanted(info, None)))?;
            return Ok(Place::Apart(offset, dtype));
        };
        let offset = match self.shared.get(&(old, len)) {
            Some(offset) => *offset,
            None => self.push(len, Elements::Wanted(wanted(info, Some(old))))?,
        };
        self.shared.insert((old, len), offset);
        Ok(Place::Apart(offset, dtype))
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
