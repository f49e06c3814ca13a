"""Prints the graphs of models as the generated readers of others see them.

Takes a kind, `tflite`, `circle`, `rten` or `onnx`, and files. Prints for each file a list of graphs: values as
[name, shape], and nodes as [operator, inputs, outputs] with positions of values, null for an input that
is left out. Of RTen models, of which constants, values and operators are numbered together, positions
are these numbers, and a value is null where there is an operator; the name of an operator that the
reader does not know is null. Of ONNX models values are named, not numbered, and nodes have their names and
the graphs that they hold.
"""

import importlib
import json
import struct
import sys


def text(stored):
    return None if stored is None else stored.decode()


def numbers(table, name):
    count = getattr(table, f"{name}Length")()
    return [int(getattr(table, name)(at)) for at in range(count)]


class Flat:
    """Circle and TFLite."""

    def __init__(self, package):
        self.package = package
        builtin = self.of("BuiltinOperator")
        self.names = {v: k for k, v in vars(builtin).items() if not k.startswith("_")}

    def of(self, name):
        return getattr(importlib.import_module(f"{self.package}.{name}"), name)

    def code(self, model, index):
        code = model.OperatorCodes(index)
        builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if self.names.get(builtin) == "CUSTOM":
            return f"CUSTOM:{text(code.CustomCode()) or ''}"
        return self.names.get(builtin, str(builtin))

    def graphs(self, data):
        model = self.of("Model").GetRootAs(data, 0)
        graphs = []
        for at in range(model.SubgraphsLength()):
            graph = model.Subgraphs(at)
            values = []
            for tensor in map(graph.Tensors, range(graph.TensorsLength())):
                signed = tensor.ShapeSignatureLength() > 0
                shape = numbers(tensor, "ShapeSignature" if signed else "Shape")
                values.append([text(tensor.Name()), shape])
            nodes = []
            for operator in map(graph.Operators, range(graph.OperatorsLength())):
                lists = [numbers(operator, side) for side in ("Inputs", "Outputs")]
                lists = [[None if at < 0 else at for at in ids] for ids in lists]
                nodes.append([self.code(model, operator.OpcodeIndex()), *lists])
            ends = [numbers(graph, side) for side in ("Inputs", "Outputs")]
            graphs.append({"values": values, "nodes": nodes, "ends": ends})
        return graphs


class Rten:
    """RTen, by the reader that its converter was made with."""

    def __init__(self):
        self.schema = importlib.import_module("rten_convert.schema_generated")
        kinds = vars(self.schema.OperatorType)
        self.names = {v: k for k, v in kinds.items() if not k.startswith("_")}

    def graphs(self, data):
        if data[:4] == b"RTEN":
            offset, length = struct.unpack_from("<QQ", data, 8)
            data = data[offset : offset + length]
        model = self.schema.Model.GetRootAs(data, 0)
        found = []
        self.graph(model.Graph(), found)
        return found

    def graph(self, graph, found):
        place = len(found)
        found.append(None)
        values, nodes, kinds = [], [], self.schema.NodeKind
        for node in map(graph.Nodes, range(graph.NodesLength())):
            name, kind, table = text(node.Name()), node.DataType(), node.Data()
            if kind == kinds.OperatorNode:
                operator = self.schema.OperatorNode()
                operator.Init(table.Bytes, table.Pos)
                lists = [numbers(operator, side) for side in ("Inputs", "Outputs")]
                lists = [[None if at < 0 else at for at in ids] for ids in lists]
                nodes.append([self.names.get(operator.Type()), *lists])
                values.append(None)
                continue
            shape = None
            if kind == kinds.ConstantNode:
                constant = self.schema.ConstantNode()
                constant.Init(table.Bytes, table.Pos)
                shape = numbers(constant, "Shape")
            values.append([name, shape])
        ends = [numbers(graph, side) for side in ("Inputs", "Outputs")]
        found[place] = {"values": values, "nodes": nodes, "ends": ends}


class Onnx:
    """ONNX, by its own package."""

    def __init__(self):
        self.onnx = importlib.import_module("onnx")

    def graphs(self, data):
        return [self.graph(self.onnx.load_model_from_string(data).graph)]

    def graph(self, graph):
        kind = self.onnx.AttributeProto
        nodes = []
        for node in graph.node:
            bodies = [self.graph(a.g) for a in node.attribute if a.type == kind.GRAPH]
            lists = [[name or None for name in side] for side in (node.input, node.output)]
            nodes.append([node.op_type, node.name or None, *lists, bodies])
        constants = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
        ends = [[value.name for value in side] for side in (graph.input, graph.output)]
        return {"name": graph.name, "nodes": nodes, "ends": ends, "constants": constants}


PACKAGES = {"circle": "circle_schema.v0_10.circle", "tflite": "tflite"}

kind, paths = sys.argv[1], sys.argv[2:]
reader = {"rten": Rten, "onnx": Onnx}.get(kind, lambda: Flat(PACKAGES[kind]))()
read = []
for path in paths:
    with open(path, "rb") as file:
        read.append(reader.graphs(file.read()))
json.dump(read, sys.stdout)
