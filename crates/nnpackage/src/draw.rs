//! How models are connected, as text and for drawing programs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
};

use circle_format::model::{Subgraph, Tensor};
use tensor_core::{
    draw::{Direction, Drawing, Form, Language, lines},
    text::Quoted,
};

use crate::{IoRef, ModelFile, Partition, PartitionModel, Reader, Result, Wiring};

/// The models of a package or a partition, and what goes from one into the other.
///
/// Models are boxes; what goes into the package, from one model into another, and out of the package
/// are the arrows. Of a single model all inputs and outputs are those of the package, as onert takes
/// them, whatever the manifest says. Displayed, it is one line for each model and each connection.
///
/// # Examples
///
/// ```no_run
/// let reader = nnpackage::Reader::open("models.zip")?;
/// print!("{}", reader.diagram().dot());
/// # Ok::<(), nnpackage::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Diagram {
    models: Vec<Node>,
    wiring: Wiring,
}

/// A model and what is known of its inputs and outputs, for each subgraph.
#[derive(Clone, Debug)]
struct Node {
    path: String,
    graphs: Rc<[Ports]>,
}

#[derive(Clone, Debug, Default)]
struct Ports {
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl Reader {
    /// Returns how the models of the package are connected, to be drawn. Models are opened for the
    /// names and shapes of their inputs and outputs; what is wrong with one that cannot be opened is
    /// for [`lint`](Self::lint) to say.
    #[must_use]
    pub fn diagram(&self) -> Diagram {
        let manifest = self.manifest();
        // A manifest can name one file very often, which is looked into once.
        let mut known: BTreeMap<&str, Rc<[Ports]>> = BTreeMap::new();
        let models = self.models().map(|model| Node {
            path: model.path().to_owned(),
            graphs: Rc::clone(known.entry(model.path()).or_insert_with(|| Ports::of_model(model))),
        });
        let wiring = Wiring {
            pkg_inputs: manifest.pkg_inputs.clone(),
            pkg_outputs: manifest.pkg_outputs.clone(),
            connections: manifest.connections.clone(),
            missing: Vec::new(),
        };
        Diagram { models: models.collect(), wiring }.in_effect()
    }
}

impl Partition {
    /// Returns how the parts are connected, to be drawn.
    ///
    /// # Errors
    ///
    /// As for [`wiring`](Self::wiring).
    pub fn diagram(&self) -> Result<Diagram> {
        let node = |model: &PartitionModel| {
            let [inputs, outputs] = [&model.inputs, &model.outputs]
                .map(|names| names.iter().map(|name| Quoted(name).to_string()).collect());
            Node { path: model.file.clone(), graphs: [Ports { inputs, outputs }].into() }
        };
        let models = self.parts.iter().map(node).collect();
        Ok(Diagram { models, wiring: self.wiring()? }.in_effect())
    }
}

impl Ports {
    fn of_model(model: ModelFile<'_>) -> Rc<[Self]> {
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
    let name =
        tensor.name.as_deref().map_or_else(|| "?".to_owned(), |name| Quoted(name).to_string());
    // Where a dimension is unknown, the signature says so.
    let dims = tensor.shape_signature.as_deref().unwrap_or(&tensor.shape);
    let shown: Vec<_> = dims.iter().take(SHOWN_DIMS).map(i32::to_string).collect();
    let more = if dims.len() > SHOWN_DIMS { ", …" } else { "" };
    format!("{name} {} [{}{more}]", tensor.tensor_type, shown.join(", "))
}

impl Diagram {
    /// Returns it in the DOT language of Graphviz.
    #[must_use]
    pub fn dot(&self) -> String {
        self.draw(Language::Dot)
    }

    /// Returns it as a flowchart of Mermaid.
    #[must_use]
    pub fn mermaid(&self) -> String {
        self.draw(Language::Mermaid)
    }

    fn draw(&self, language: Language) -> String {
        let mut drawing = Drawing::new(language, "wiring", Direction::Right);
        for (index, model) in self.models.iter().enumerate() {
            let label = lines(&format!("model {index}"), &Quoted(&model.path).to_string());
            drawing.node(format_args!("m{index}"), Form::Box, &label);
        }
        for index in self.absent() {
            let label = format!("model {index}, which there is not");
            drawing.node(format_args!("m{index}"), Form::Dashed, &label);
        }
        for end in self.ends() {
            drawing.node(end.node(), Form::Ellipse, &end.text(self, Side::Input));
        }
        for arrow in self.arrows() {
            let label = arrow.labels(self).join("\n");
            drawing.edge(arrow.from.node(), arrow.to.node(), &label);
        }
        drawing.finish()
    }

    /// Makes of a single model all inputs and outputs those of the package.
    fn in_effect(mut self) -> Self {
        if let [model] = &self.models[..] {
            let ports = model.graphs.first();
            let all = |count: usize| (0_u32..).take(count).map(|io| IoRef::new(0, 0, io)).collect();
            self.wiring.pkg_inputs = all(ports.map_or(0, |ports| ports.inputs.len()));
            self.wiring.pkg_outputs = all(ports.map_or(0, |ports| ports.outputs.len()));
            self.wiring.connections = Vec::new();
        }
        self
    }

    /// Says what a reference leads to: itself, name, type and shape, as far as they are known.
    fn port(&self, reference: IoRef, side: Side) -> String {
        let model = self.models.get(usize::from(reference.model));
        let graph = model.and_then(|model| model.graphs.get(usize::from(reference.subgraph)));
        let list = graph.map(|graph| match side {
            Side::Input => &graph.inputs,
            Side::Output => &graph.outputs,
        });
        let position = usize::try_from(reference.io).ok();
        let known = list.and_then(|list| list.get(position?));
        known.map_or_else(|| format!("{reference} ?"), |port| format!("{reference} {port}"))
    }

    /// Returns every connection: of inputs, between models, of outputs, each in their order.
    fn arrows(&self) -> impl Iterator<Item = Arrow> {
        let Wiring { pkg_inputs, pkg_outputs, connections, .. } = &self.wiring;
        let inputs = pkg_inputs.iter().enumerate();
        let inputs = inputs.map(|(at, &to)| Arrow { from: End::Input(at), to: End::Model(to) });
        let edges = connections.iter().flat_map(|of| of.to.iter().map(move |&to| (of.from, to)));
        let edges = edges.map(|(from, to)| Arrow { from: End::Model(from), to: End::Model(to) });
        let outputs = pkg_outputs.iter().enumerate();
        let outputs =
            outputs.map(|(at, &from)| Arrow { from: End::Model(from), to: End::Output(at) });
        inputs.chain(edges).chain(outputs)
    }

    /// Returns the inputs and outputs of the package.
    fn ends(&self) -> impl Iterator<Item = End> {
        let inputs = (0..self.wiring.pkg_inputs.len()).map(End::Input);
        inputs.chain((0..self.wiring.pkg_outputs.len()).map(End::Output))
    }

    /// Returns the positions of models that connections name and that there are not.
    fn absent(&self) -> BTreeSet<u16> {
        let ends = self.arrows().flat_map(|arrow| [arrow.from, arrow.to]);
        let models = ends.filter_map(|end| match end {
            End::Model(reference) => Some(reference.model),
            _ => None,
        });
        models.filter(|&model| usize::from(model) >= self.models.len()).collect()
    }
}

impl fmt::Display for Diagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, model) in self.models.iter().enumerate() {
            writeln!(f, "  model {index}  {}", Quoted(&model.path))?;
        }
        let mut arrows = self.arrows().peekable();
        if arrows.peek().is_some() {
            writeln!(f)?;
        } else if self.models.len() > 1 {
            writeln!(f, "  not connected")?;
        }
        for Arrow { from, to } in arrows {
            let (from, to) = (from.text(self, Side::Output), to.text(self, Side::Input));
            writeln!(f, "  {from} -> {to}")?;
        }
        for name in &self.wiring.missing {
            let name = Quoted(name);
            writeln!(f, "  {name} is made by no part, and is not an input of the source")?;
        }
        Ok(())
    }
}

/// Which end of a model.
#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

/// One connection.
#[derive(Clone, Copy)]
struct Arrow {
    from: End,
    to: End,
}

/// Where a connection starts or ends.
#[derive(Clone, Copy)]
enum End {
    /// An input of the package, by its position.
    Input(usize),
    /// An output of the package, by its position.
    Output(usize),
    Model(IoRef),
}

impl Arrow {
    /// Returns the lines that are written at it.
    fn labels(self, diagram: &Diagram) -> Vec<String> {
        let is_model = |end: End| matches!(end, End::Model(_));
        let from = is_model(self.from).then(|| self.from.text(diagram, Side::Output));
        let to = is_model(self.to).then(|| self.to.text(diagram, Side::Input));
        from.into_iter().chain(to).collect()
    }
}

impl End {
    /// Says what it is; where it is a model's, on which side.
    fn text(self, diagram: &Diagram, side: Side) -> String {
        match self {
            Self::Input(index) => format!("input {index}"),
            Self::Output(index) => format!("output {index}"),
            Self::Model(reference) => diagram.port(reference, side),
        }
    }

    /// Returns the name of its node in a drawing.
    fn node(self) -> String {
        match self {
            Self::Input(index) => format!("i{index}"),
            Self::Output(index) => format!("o{index}"),
            Self::Model(reference) => format!("m{}", reference.model),
        }
    }
}

/// Dimensions of a shape that are shown.
const SHOWN_DIMS: usize = 8;
