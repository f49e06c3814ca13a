//! How the models of a package are connected.

use std::collections::{BTreeMap, BTreeSet};

use circle_format::{
    Diagnoses,
    model::{Subgraph, Tensor},
};

use crate::{Diagnosis, IoRef, Reaction, Reader, Stage};

use super::models::at_manifest;

pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    let manifest = reader.manifest();
    let edges: Vec<(IoRef, IoRef)> = manifest.edges().take(MAX_EDGES).collect();
    let is_wired =
        !(manifest.pkg_inputs.is_empty() && manifest.pkg_outputs.is_empty() && edges.is_empty());
    if reader.models().len() < 2 {
        if is_wired {
            let message = "connections are ignored in a package of one model";
            let diagnosis = Diagnosis::warning("nnp/wiring-ignored", message).ignored();
            findings.push(at_manifest(diagnosis, "/model-connect"));
        }
        return;
    }
    if !is_wired {
        let message = "has several models without connections: onert loads them, with 0 inputs and 0 \
                       outputs, and cannot run them";
        let diagnosis = Diagnosis::warning("nnp/unconnected-models", message);
        let diagnosis = diagnosis.run_fails("Cannot find 1st model's input buffer");
        findings.push(at_manifest(diagnosis, "/model-connect"));
        return;
    }
    let message = "has several connected models, which onert 0.1.0 runs through its C interface; its \
                   Python function infer() crashes on them";
    findings.push(at_manifest(Diagnosis::note("nnp/multi-model", message), "/model-connect"));
    let inputs = manifest.pkg_inputs.iter().copied().collect();
    let outputs = manifest.pkg_outputs.iter().copied().collect();
    let wiring = Wiring { reader, edges, inputs, outputs, findings };
    wiring.check();
}

struct Wiring<'a> {
    reader: &'a Reader,
    edges: Vec<(IoRef, IoRef)>,
    inputs: BTreeSet<IoRef>,
    outputs: BTreeSet<IoRef>,
    findings: &'a mut Diagnoses,
}

impl<'a> Wiring<'a> {
    fn check(mut self) {
        let manifest = self.reader.manifest();
        self.list("pkg-inputs", &manifest.pkg_inputs, Side::Input);
        self.list("pkg-outputs", &manifest.pkg_outputs, Side::Output);
        let edges = self.edges.clone();
        let mut seen = BTreeSet::new();
        for (index, &(from, to)) in edges.iter().enumerate() {
            if !seen.insert((from, to)) {
                let message = format!("edge \"{from}\" -> \"{to}\" is there twice");
                let diagnosis = Diagnosis::warning("nnp/edge-twice", message).ignored();
                self.findings.push(at_manifest(diagnosis, "/model-connect"));
                continue;
            }
            self.edge(index, from, to);
        }
        self.fed();
        self.used();
    }

    /// Checks that each reference of a list exists, once.
    fn list(&mut self, name: &str, list: &[IoRef], side: Side) {
        let mut seen = BTreeSet::new();
        for (index, &reference) in list.iter().enumerate() {
            let pointer = format!("/{name}/{index}");
            if !seen.insert(reference) {
                let message = format!("{name}[{index}] is \"{reference}\", which is listed before");
                let diagnosis = Diagnosis::warning("nnp/reference-twice", message);
                // Only one of several inputs is read, or of several outputs filled.
                let diagnosis = diagnosis.onert(Reaction::Garbage);
                self.findings.push(at_manifest(diagnosis, &pointer));
            }
            self.exists(&format!("{name}[{index}]"), &pointer, reference, side);
        }
    }

    /// Checks that a reference leads to something; says what is wrong otherwise.
    fn exists(&mut self, what: &str, pointer: &str, reference: IoRef, side: Side) {
        let models = self.reader.models().len();
        if usize::from(reference.model) >= models {
            let message = format!("{what} is \"{reference}\", but the package has {models} models");
            let diagnosis = Diagnosis::error("nnp/reference-model", message);
            self.findings.push(at_manifest(diagnosis.prepare_fails("unordered_map::at"), pointer));
            return;
        }
        // What cannot be opened has its own finding.
        let Some(model) = self.reader.model(reference.model.into()) else { return };
        let Ok(model) = model.open() else { return };
        let graphs = &model.model().subgraphs;
        let Some(graph) = graphs.get(usize::from(reference.subgraph)) else {
            let count = graphs.len();
            let message = format!("{what} is \"{reference}\", but that model has {count} graphs");
            let diagnosis = Diagnosis::error("nnp/reference-subgraph", message);
            self.findings.push(at_manifest(diagnosis.prepare_fails("unordered_map::at"), pointer));
            return;
        };
        if io(graph, side, reference).is_none() {
            let count = side.list(graph).len();
            let message =
                format!("{what} is \"{reference}\", but that graph has {count} {}", side.name());
            let diagnosis = Diagnosis::error("nnp/reference-position", message);
            self.findings.push(at_manifest(diagnosis.undefined(Stage::Prepare), pointer));
        }
    }

    fn edge(&mut self, index: usize, from: IoRef, to: IoRef) {
        let pointer = format!("/model-connect/{index}");
        let what = format!("edge \"{from}\" -> \"{to}\"");
        self.exists(&format!("{what}: from"), &pointer, from, Side::Output);
        self.exists(&format!("{what}: to"), &pointer, to, Side::Input);
        let mut push = |diagnosis: Diagnosis| self.findings.push(at_manifest(diagnosis, &pointer));
        if self.inputs.contains(&to) {
            let message = format!("{what} leads to an input that is in pkg-inputs too");
            let failed =
                "Invalid edge information. NNPkg inputs and Edge `to` cannot be duplicated";
            push(Diagnosis::error("nnp/edge-to-input", message).load_fails(failed));
        }
        if from.model == to.model {
            let message = format!("{what} stays in one model");
            let failed = "Multi model's edge set has invalid edge";
            push(Diagnosis::error("nnp/edge-in-model", message).run_fails(failed));
        } else if from.model > to.model || from.subgraph != 0 || to.subgraph != 0 {
            let message =
                format!("{what} leads back to an earlier model, or is not between first graphs");
            let failed = "NYI: Multi model execution for this edge set is not supported yet";
            push(Diagnosis::warning("nnp/edge-order", message).run_fails(failed));
        }
        if self.outputs.contains(&from) {
            let message = format!(
                "{what} starts at an output that is in pkg-outputs too, which the format allows"
            );
            let failed = "Multi model execution does not support duplicating nnpkg outputs with \
                          `from` of edges yet";
            push(Diagnosis::warning("nnp/edge-from-output", message).run_fails(failed));
        }
        self.fits(&what, &pointer, from, to);
    }

    /// Compares both ends of an edge.
    fn fits(&mut self, what: &str, pointer: &str, from: IoRef, to: IoRef) {
        let (Some(a), Some(b)) = (self.tensor(from, Side::Output), self.tensor(to, Side::Input))
        else {
            return;
        };
        if !a.is_dynamic() && !b.is_dynamic() && a.shape != b.shape {
            let message = format!(
                "{what} joins shapes {:?} and {:?}, which are not converted",
                Dims(&a.shape),
                Dims(&b.shape)
            );
            let diagnosis = Diagnosis::error("nnp/edge-shape", message);
            self.findings.push(at_manifest(diagnosis.onert(Reaction::Garbage), pointer));
        }
        if a.tensor_type != b.tensor_type {
            let message = format!("{what} joins {} and {}", a.tensor_type, b.tensor_type);
            let diagnosis = Diagnosis::note("nnp/edge-type", message).hint("onert converts it");
            self.findings.push(at_manifest(diagnosis.ignored(), pointer));
        }
    }

    /// Checks that every input of every model gets something.
    fn fed(&mut self) {
        let mut fed: BTreeMap<IoRef, BTreeSet<IoRef>> = BTreeMap::new();
        for &(from, to) in &self.edges {
            fed.entry(to).or_default().insert(from);
        }
        for (to, sources) in &fed {
            if sources.len() > 1 {
                let message = format!("input \"{to}\" is fed by {} outputs", sources.len());
                let diagnosis = Diagnosis::error("nnp/input-fed-twice", message);
                let diagnosis = diagnosis.onert(Reaction::Garbage);
                self.findings.push(at_manifest(diagnosis, "/model-connect"));
            }
        }
        let used = self.sources();
        let mut left = MAX_INPUTS;
        for model in self.reader.models() {
            let (Ok(reader), Ok(index)) = (model.open(), u16::try_from(model.index())) else {
                continue;
            };
            let Some(graph) = reader.model().subgraphs.first() else { continue };
            let count = graph.inputs.len().min(left);
            left = left.saturating_sub(count);
            for io in (0_u32..).take(count) {
                let input = IoRef::new(index, 0, io);
                if fed.contains_key(&input) || self.inputs.contains(&input) {
                    continue;
                }
                let message = format!(
                    "input \"{input}\" gets nothing: it is in neither pkg-inputs nor an edge"
                );
                let diagnosis = Diagnosis::error("nnp/input-unfed", message);
                let diagnosis = at_manifest(diagnosis, "/model-connect");
                self.findings.push(if index == 0 {
                    diagnosis.run_fails("Cannot find 1st model's input buffer")
                } else if used.contains(&index) {
                    diagnosis.crashes(Stage::Run)
                } else {
                    diagnosis.run_fails("Cannot find edge for model input")
                });
            }
        }
    }

    /// Finds models of which nothing is used.
    fn used(&mut self) {
        let used = self.sources();
        let fed: BTreeSet<u16> = self.edges.iter().map(|(_, to)| to.model).collect();
        for model in self.reader.models() {
            let index = u16::try_from(model.index()).ok();
            if index.is_some_and(|index| used.contains(&index)) {
                continue;
            }
            let message = format!("nothing of models[{}] is used", model.index());
            let diagnosis = Diagnosis::warning("nnp/unused-model", message);
            let pointer = format!("/models/{}", model.index());
            // What is not fed has a finding of its own.
            let is_fed = index.is_some_and(|index| fed.contains(&index));
            let diagnosis = if is_fed { diagnosis.crashes(Stage::Run) } else { diagnosis };
            self.findings.push(at_manifest(diagnosis, &pointer));
        }
        if self.outputs.is_empty() {
            let message = "has connected models and no pkg-outputs";
            let diagnosis = Diagnosis::error("nnp/no-outputs", message).crashes(Stage::Run);
            self.findings.push(at_manifest(diagnosis, "/pkg-outputs"));
        }
    }

    /// Returns the models of which an output is used.
    fn sources(&self) -> BTreeSet<u16> {
        let edges = self.edges.iter().map(|(from, _)| from.model);
        edges.chain(self.outputs.iter().map(|output| output.model)).collect()
    }

    fn tensor(&self, reference: IoRef, side: Side) -> Option<&'a Tensor> {
        let model = self.reader.model(reference.model.into())?.open().ok()?;
        let graph = model.model().subgraphs.get(usize::from(reference.subgraph))?;
        io(graph, side, reference)
    }
}

/// Which end of a model.
#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

impl Side {
    fn list(self, graph: &Subgraph) -> &[i32] {
        match self {
            Self::Input => &graph.inputs,
            Self::Output => &graph.outputs,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Input => "inputs",
            Self::Output => "outputs",
        }
    }
}

fn io(graph: &Subgraph, side: Side, reference: IoRef) -> Option<&Tensor> {
    let position = usize::try_from(reference.io).ok()?;
    graph.tensor(*side.list(graph).get(position)?)
}

/// Dimensions as far as they are worth showing.
struct Dims<'a>(&'a [i32]);

impl std::fmt::Debug for Dims<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.0.get(..self.0.len().min(16)).unwrap_or_default();
        f.debug_list().entries(shown).finish()
    }
}

/// Edges that are looked at.
const MAX_EDGES: usize = 10_000;
/// Inputs of all models that are looked at: one model may be named very often.
const MAX_INPUTS: usize = 1_000_000;
