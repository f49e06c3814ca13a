//! Operators whose inputs are others in ONNX.

use crate::{
    Attributes, Constant, NodeKind, Operator, OperatorType,
    topology::node,
    types::{Element, named},
};

use super::{
    attributes,
    error::Result,
    lower::{Body, Lowering, Operand},
    operator::{Call, Made},
    proto::{AttributeProto, TensorProto},
    shapes::Dims,
};

impl Lowering<'_> {
    /// Takes away and moves inputs before their types are settled.
    pub(super) fn adjust(
        &self,
        scope: usize,
        call: &Call<'_>,
        operands: &mut Vec<Option<Operand>>,
    ) {
        if call.operator.operator_type == OperatorType::Resize {
            self.resize(scope, call.operator, operands);
        }
    }

    /// Returns the shapes of what an operator reads.
    pub(super) fn shapes(
        &self,
        scope: usize,
        operator: &Operator,
        operands: &[Option<Operand>],
    ) -> Vec<Option<Dims>> {
        let dims = operands.iter().map(|operand| operand.as_ref()?.dims.clone());
        let mut shapes: Vec<Option<Dims>> = dims.collect();
        if let (OperatorType::SequenceInsert, [first, second, ..]) =
            (operator.operator_type, &mut shapes[..])
            && self.is_made_empty(scope, operator)
        {
            // Whatever is put into it first is what its members are like.
            first.clone_from(second);
        }
        shapes
    }

    /// Tells whether the first input is a sequence without members.
    fn is_made_empty(&self, scope: usize, operator: &Operator) -> bool {
        let Some(&Some(id)) = operator.inputs.first() else { return false };
        let producers = self.scopes.topology().producers(scope, id);
        let graph = self.scopes.graph(scope);
        let mut producers = producers.iter().filter_map(|id| node(graph?, *id));
        producers.any(|node| match &node.kind {
            NodeKind::Operator(producer) => producer.operator_type == OperatorType::SequenceEmpty,
            _ => false,
        })
    }

    /// Leaves one of scales and sizes, as RTen does, and no region of interest, which it ignores.
    fn resize(&self, scope: usize, operator: &Operator, operands: &mut Vec<Option<Operand>>) {
        let input = |index: usize| operator.inputs.get(index).copied().flatten();
        let has_scales = input(2).is_some_and(|id| !self.is_empty(scope, id));
        operands.truncate(if has_scales { 3 } else { 4 });
        let dropped = if has_scales { 1..2 } else { 1..3 };
        operands.get_mut(dropped).unwrap_or_default().fill(None);
    }

    /// Tells whether a node is a constant without elements, which RTen takes as left out.
    fn is_empty(&self, scope: usize, id: u32) -> bool {
        let found = self.scopes.graph(scope).and_then(|graph| node(graph, id));
        match found.map(|node| &node.kind) {
            Some(NodeKind::Constant(Constant { shape, .. })) => shape.contains(&0),
            _ => false,
        }
    }

    /// Adds inputs that are attributes in the format, or have a value of their own where they are
    /// left out.
    pub(super) fn complete(
        &mut self,
        body: &mut Body,
        call: &Call<'_>,
        shapes: &[Option<Dims>],
        input: &mut Vec<String>,
    ) -> Result<()> {
        match (&call.operator.operator_type, &call.operator.attributes) {
            (_, Some(Attributes::ReduceMean(table))) => {
                let axes = table.axes.as_deref().unwrap_or_default();
                if input.len() == 1 && !axes.is_empty() {
                    let axes: Vec<i64> = axes.iter().map(|axis| i64::from(*axis)).collect();
                    input.push(self.integers(body, &format!("axes_{}", call.id), &axes));
                }
            }
            (OperatorType::Upsample, _) => input.insert(1, String::new()),
            (OperatorType::QuantizeLinear, _) if input.len() == 2 => {
                let element = named(call.operator).unwrap_or(Element::UInt8);
                if element != Element::UInt8 {
                    let zero_point = self.zero_point(body, input, element)?;
                    input.push(zero_point);
                }
            }
            (OperatorType::NonMaxSuppression, _) => self.boxes(body, call, input),
            (OperatorType::TopK, _) => self.count(body, shapes, input)?,
            _ => {}
        }
        Ok(())
    }

    /// Asks for as many boxes as there are where nothing says how many: ONNX would give none.
    fn boxes(&mut self, body: &mut Body, call: &Call<'_>, input: &mut Vec<String>) {
        input.resize(input.len().max(3), String::new());
        if let Some(count) = input.get_mut(2).filter(|count| count.is_empty()) {
            let all = [i64::from(i32::MAX)];
            *count = self.integers(body, &format!("boxes_{}", call.id), &all);
        }
    }

    /// Makes a list of a number: RTen takes either for the elements that are asked for.
    fn count(
        &mut self,
        body: &mut Body,
        shapes: &[Option<Dims>],
        input: &mut [String],
    ) -> Result<()> {
        let is_number = matches!(shapes.get(1), Some(Some(dims)) if dims.is_empty());
        if let Some(count) = input.get_mut(1).filter(|_| is_number) {
            let list = self.values.fresh(&format!("{count}_list"));
            let one = self.integers(body, &format!("{count}_shape"), &[1]);
            self.push(body, "Reshape", vec![count.clone(), one], vec![list.clone()], Vec::new())?;
            *count = list;
        }
        Ok(())
    }

    /// Makes the remainder of floats with the sign of the divisor, which ONNX has for integers alone,
    /// of the one with the sign of the dividend, as RTen does.
    pub(super) fn remainder(
        &mut self,
        body: &mut Body,
        call: &Call<'_>,
        input: Vec<String>,
        made: Vec<Made>,
    ) -> Result<()> {
        let divisor = input.get(1).cloned().unwrap_or_default();
        let zero = self.initializer(body, "zero", Element::Float, &[], vec![0; 4]);
        let fmod = vec![attributes::int("fmod", 1)];
        let rest = self.step(body, call, "Mod", input, fmod)?;
        let mut step = |op_type: &str, input: [&String; 2]| {
            let input = input.into_iter().filter(|name| !name.is_empty()).cloned().collect();
            self.step(body, call, op_type, input, Vec::new())
        };
        let none = String::new();
        let below = step("Less", [&rest, &zero])?;
        let divides_below = step("Less", [&divisor, &zero])?;
        let differs = step("Xor", [&below, &divides_below])?;
        let is_zero = step("Equal", [&rest, &zero])?;
        let is_some = step("Not", [&is_zero, &none])?;
        let moves = step("And", [&differs, &is_some])?;
        let moved = step("Add", [&rest, &divisor])?;
        let last = Call { rule: call.rule.named("Where"), ..call.clone() };
        self.node(body, &last, vec![moves, moved, rest], Vec::new(), made)
    }

    /// Adds one of several nodes that an operator becomes, and returns what it makes.
    fn step(
        &mut self,
        body: &mut Body,
        call: &Call<'_>,
        op_type: &str,
        input: Vec<String>,
        attribute: Vec<AttributeProto>,
    ) -> Result<String> {
        let output = self.values.fresh(&format!("{op_type}_{}", call.id));
        self.push(body, op_type, input, vec![output.clone()], attribute)?;
        Ok(output)
    }

    /// Adds an initialiser for a list of integers.
    fn integers(&mut self, body: &mut Body, name: &str, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let len = i64::try_from(values.len()).unwrap_or(i64::MAX);
        self.initializer(body, name, Element::Int64, &[len], bytes)
    }

    fn initializer(
        &mut self,
        body: &mut Body,
        name: &str,
        element: Element,
        dims: &[i64],
        bytes: Vec<u8>,
    ) -> String {
        let name = self.values.fresh(name);
        let tensor = TensorProto {
            dims: dims.to_vec(),
            data_type: Some(element.code()),
            name: Some(name.clone()),
            raw_data: Some(bytes.into()),
            ..Default::default()
        };
        body.graph.initializer.push(tensor.into());
        name
    }

    /// Adds nodes for a zero point of 0: as long as the scale, of the type of the output, which
    /// has no other way to be told before release 21 of the operator set.
    fn zero_point(
        &mut self,
        body: &mut Body,
        input: &[String],
        element: Element,
    ) -> Result<String> {
        let scale = input.get(1).cloned().unwrap_or_default();
        let shape = self.values.fresh(&format!("{scale}_shape"));
        self.push(body, "Shape", vec![scale.clone()], vec![shape.clone()], Vec::new())?;
        let zero_point = self.values.fresh(&format!("{scale}_zero_point"));
        let value = vec![attributes::one_element("value", element, vec![0])];
        self.push(body, "ConstantOfShape", vec![shape], vec![zero_point.clone()], value)?;
        Ok(zero_point)
    }
}
