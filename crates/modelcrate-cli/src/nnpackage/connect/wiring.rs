//! Models and what goes from one to the other.

use std::{collections::BTreeMap, rc::Rc};

use modelcrate::nnpackage::{
    self, Connection, IoRef, Partition, PartitionModel, Reader,
    model::{Subgraph, Tensor},
};
use serde::{Serialize, Serializer};

use crate::escape::escape_up_to;

/// How models are connected.
pub(super) struct Wiring {
    pub(super) models: Vec<Part>,
    pub(super) inputs: Vec<IoRef>,
    pub(super) outputs: Vec<IoRef>,
    pub(super) connections: Vec<Connection>,
    /// Names that are read or put out, and that nothing makes.
    pub(super) missing: Vec<String>,
}

/// A model and what is known of its inputs and outputs, for each subgraph.
pub(super) struct Part {
    pub(super) path: String,
    graphs: Rc<[Ports]>,
}

#[derive(Default)]
struct Ports {
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// The attributes of a manifest, under their names there.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Attributes<'a> {
    models: Vec<&'a str>,
    #[serde(serialize_with = "references")]
    pkg_inputs: &'a [IoRef],
    #[serde(serialize_with = "references")]
    pkg_outputs: &'a [IoRef],
    model_connect: Vec<Pair<'a>>,
}

#[derive(Serialize)]
struct Pair<'a> {
    #[serde(serialize_with = "reference")]
    from: IoRef,
    #[serde(serialize_with = "references")]
    to: &'a [IoRef],
}

/// Which end of a model.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Input,
    Output,
}

impl Wiring {
    pub(super) fn of_package(package: &Reader) -> Self {
        let manifest = package.manifest();
        // A manifest can name one file very often, which is looked into once.
        let mut known: BTreeMap<&str, Rc<[Ports]>> = BTreeMap::new();
        let parts = package.models().map(|model| Part {
            path: model.path().to_owned(),
            graphs: Rc::clone(known.entry(model.path()).or_insert_with(|| Ports::of_model(model))),
        });
        Self {
            models: parts.collect(),
            inputs: manifest.pkg_inputs.clone(),
            outputs: manifest.pkg_outputs.clone(),
            connections: manifest.connections.clone(),
            missing: Vec::new(),
        }
    }

    /// Returns what happens: of a single model all inputs and outputs are those of the package,
    /// whatever the manifest says.
    pub(super) fn in_effect(mut self) -> Self {
        if let [part] = &self.models[..] {
            let ports = part.graphs.first();
            let all = |count: usize| (0_u32..).take(count).map(|io| IoRef::new(0, 0, io)).collect();
            self.inputs = all(ports.map_or(0, |ports| ports.inputs.len()));
            self.outputs = all(ports.map_or(0, |ports| ports.outputs.len()));
            self.connections = Vec::new();
        }
        self
    }

    pub(super) fn of_partition(partition: &Partition, found: nnpackage::Wiring) -> Self {
        let part = |model: &PartitionModel| {
            let [inputs, outputs] = [&model.inputs, &model.outputs]
                .map(|names| names.iter().map(|name| quoted(name)).collect());
            Part { path: model.file.clone(), graphs: [Ports { inputs, outputs }].into() }
        };
        Self {
            models: partition.parts.iter().map(part).collect(),
            inputs: found.pkg_inputs,
            outputs: found.pkg_outputs,
            connections: found.connections,
            missing: found.missing,
        }
    }

    /// Returns connections one by one, in order.
    pub(super) fn edges(&self) -> impl Iterator<Item = (IoRef, IoRef)> {
        let pairs = |of: &Connection| of.to.iter().map(|&to| (of.from, to)).collect::<Vec<_>>();
        self.connections.iter().flat_map(pairs)
    }

    /// Says what a reference leads to: itself, name, type and shape, as far as they are known.
    pub(super) fn port(&self, reference: IoRef, side: Side) -> String {
        let part = self.models.get(usize::from(reference.model));
        let graph = part.and_then(|part| part.graphs.get(usize::from(reference.subgraph)));
        let list = graph.map(|graph| match side {
            Side::Input => &graph.inputs,
            Side::Output => &graph.outputs,
        });
        let position = usize::try_from(reference.io).ok();
        let known = list.and_then(|list| list.get(position?));
        known.map_or_else(|| format!("{reference} ?"), |port| format!("{reference} {port}"))
    }

    pub(super) fn attributes(&self) -> Attributes<'_> {
        let pairs = self.connections.iter().map(|of| Pair { from: of.from, to: &of.to });
        Attributes {
            models: self.models.iter().map(|part| part.path.as_str()).collect(),
            pkg_inputs: &self.inputs,
            pkg_outputs: &self.outputs,
            model_connect: pairs.collect(),
        }
    }
}

impl Ports {
    /// Describes all graphs of a model. What is wrong with one that cannot be opened is for check to
    /// say.
    fn of_model(model: nnpackage::ModelFile<'_>) -> Rc<[Self]> {
        let graphs = model.open().map(|reader| reader.model().subgraphs.as_slice());
        graphs.unwrap_or_default().iter().map(Self::of_graph).collect()
    }

    fn of_graph(graph: &Subgraph) -> Self {
        Self {
            inputs: graph.input_tensors().map(port).collect(),
            outputs: graph.output_tensors().map(port).collect(),
        }
    }
}

/// Describes an input or output.
fn port(tensor: Option<&Tensor>) -> String {
    let Some(tensor) = tensor else { return "?".to_owned() };
    let name = tensor.name.as_deref().map_or_else(|| "?".to_owned(), quoted);
    // Where a dimension is unknown, the signature says so.
    let dims = tensor.shape_signature.as_deref().unwrap_or(&tensor.shape);
    let shown: Vec<_> = dims.iter().take(SHOWN_DIMS).map(i32::to_string).collect();
    let more = if dims.len() > SHOWN_DIMS { ", …" } else { "" };
    format!("{name} {} [{}{more}]", tensor.tensor_type, shown.join(", "))
}

/// Writes a text of a file in quotes, cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", escape_up_to(NAME, text))
}

fn reference<S: Serializer>(of: &IoRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(of)
}

fn references<S: Serializer>(of: &&[IoRef], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(of.iter().map(IoRef::to_string))
}

/// Characters of a name that are shown.
const NAME: usize = 72;

/// Dimensions of a shape that are shown.
const SHOWN_DIMS: usize = 8;
