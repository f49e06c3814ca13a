"""Measures which operators onert gets through, with which inputs and element types.

Makes a model of one operator for each case, and runs each in a process of its own. Prints a table
with a line for each operator and outcome: the operator, what becomes of it, what onert says, and the
cases of which that is so. A case is a signature, the classes of inputs and outputs, where a class stands once
with a star behind it for any number of them in a row; a number of inputs; `no options`; the number of
a fused activation; or `any`.
"""

import itertools
import json
import math
import os
import re
import sys
import tempfile
from importlib import metadata

import circle_schema.v0_10.circle as schema
import flatbuffers
import numpy
from flatbuffers import flexbuffers

import onert_run

# Classes of tensors: numbers of element types, NumPy's names of them, and how many scales there are:
# one for the whole tensor, or one for each element along a dimension. Without any the outcomes are
# the same.
CLASSES = {
    "f32": (0, "f4", None),
    "f16": (1, "f2", None),
    "i32": (2, "i4", None),
    "i64": (4, "i8", None),
    "bool": (6, "?", None),
    "u32": (15, "u4", None),
    "u8": (3, "u1", "one"),
    "i8": (9, "i1", "one"),
    "i8/axis": (9, "i1", "each"),
    "i16": (7, "i2", "one"),
}
# What any tensor can be; only weights have scales along a dimension.
PLAIN = [name for name in CLASSES if name != "i8/axis"]
# What inputs and outputs of a model can be.
REPRESENTABLE = {"f32", "i32", "i64", "bool", "u8", "i8"}
ACTIVATIONS = range(1, 6)
# How many more inputs are tried than an operator has.
MORE = 2

# Operators with their options, inputs and outputs. A tensor has a class and a shape, and a value
# where it is a constant. T stands for every class, U for every other class than that, I for those
# of indices, W and B for weights and a bias that go with T. A tilde marks a variable, a dash what is
# left out, a star operators that have any number of inputs or outputs.
OPERATORS = """
ADD                 AddOptions                          T:1x4 T:1x4 > T:1x4
SUB                 SubOptions                          T:1x4 T:1x4 > T:1x4
MUL                 MulOptions                          T:1x4 T:1x4 > T:1x4
DIV                 DivOptions                          T:1x4 T:1x4=1,1,1,1 > T:1x4
POW                 -                                   T:1x4 T:1x4 > T:1x4
MAXIMUM             -                                   T:1x4 T:1x4 > T:1x4
MINIMUM             -                                   T:1x4 T:1x4 > T:1x4
FLOOR_DIV           -                                   T:1x4 T:1x4=1,1,1,1 > T:1x4
FLOOR_MOD           -                                   T:1x4 T:1x4=1,1,1,1 > T:1x4
SQUARED_DIFFERENCE  -                                   T:1x4 T:1x4 > T:1x4
LOGICAL_AND         -                                   T:1x4 T:1x4 > T:1x4
LOGICAL_OR          -                                   T:1x4 T:1x4 > T:1x4
EQUAL               -                                   T:1x4 T:1x4 > bool:1x4
NOT_EQUAL           -                                   T:1x4 T:1x4 > bool:1x4
LESS                -                                   T:1x4 T:1x4 > bool:1x4
LESS_EQUAL          -                                   T:1x4 T:1x4 > bool:1x4
GREATER             -                                   T:1x4 T:1x4 > bool:1x4
GREATER_EQUAL       -                                   T:1x4 T:1x4 > bool:1x4
ADD_N*              -                                   T:1x4 T:1x4 > T:1x4
ABS                 -                                   T:1x4 > T:1x4
COS                 -                                   T:1x4 > T:1x4
ELU                 -                                   T:1x4 > T:1x4
EXP                 -                                   T:1x4 > T:1x4
FLOOR               -                                   T:1x4 > T:1x4
GELU                GeluOptions                         T:1x4 > T:1x4
L2_NORMALIZATION    L2NormOptions                       T:1x4 > T:1x4
LEAKY_RELU          LeakyReluOptions(alpha=0.5)         T:1x4 > T:1x4
LOG                 -                                   T:1x4 > T:1x4
LOGICAL_NOT         -                                   T:1x4 > T:1x4
LOGISTIC            -                                   T:1x4 > T:1x4
LOG_SOFTMAX         -                                   T:1x4 > T:1x4
NEG                 -                                   T:1x4 > T:1x4
RELU                -                                   T:1x4 > T:1x4
RELU6               -                                   T:1x4 > T:1x4
RELU_N1_TO_1        -                                   T:1x4 > T:1x4
ROUND               -                                   T:1x4 > T:1x4
RSQRT               -                                   T:1x4 > T:1x4
SIN                 -                                   T:1x4 > T:1x4
SOFTMAX             SoftmaxOptions(beta=1)              T:1x4 > T:1x4
SQRT                -                                   T:1x4 > T:1x4
SQUARE              -                                   T:1x4 > T:1x4
TANH                -                                   T:1x4 > T:1x4
ZEROS_LIKE          -                                   T:1x4 > T:1x4
CUSTOM:Erf          {}                                  T:1x4 > T:1x4
CAST                CastOptions                         T:1x4 > U:1x4
DEQUANTIZE          -                                   T:1x4 > U:1x4
QUANTIZE            -                                   T:1x4 > U:1x4
RANK                -                                   T:2x4 > i32:
SHAPE               ShapeOptions(outType=2)             T:2x4 > i32:2
SHAPE               ShapeOptions(outType=4)             T:2x4 > i64:2
PRELU               -                                   T:1x2x2x4 T:1x1x4 > T:1x2x2x4
RMS_NORM            RmsNormOptions(epsilon=0.5)         T:1x2x4 T:4 > T:1x2x4
INSTANCE_NORM       InstanceNormOptions(epsilon=0.5)    T:1x2x2x3 T:3 T:3 > T:1x2x2x3
ROPE                RoPEOptions                         T:1x2x2x4 T:1x1x2x4 T:1x1x2x4 > T:1x2x2x4
CUSTOM:FusedBatchNormV3  {"epsilon":0.5,"is_training":false,"data_format":"NHWC"}  T:1x2x2x3 T:3 T:3 T:3 T:3 > T:1x2x2x3
AVERAGE_POOL_2D     Pool2DOptions(strideW=1,strideH=1,filterWidth=2,filterHeight=2)  T:1x4x4x2 > T:1x4x4x2
MAX_POOL_2D         Pool2DOptions(strideW=1,strideH=1,filterWidth=2,filterHeight=2)  T:1x4x4x2 > T:1x4x4x2
CONV_2D             Conv2DOptions(strideW=1,strideH=1)  T:1x4x4x2 W:3x1x1x2 B:3 > T:1x4x4x3
DEPTHWISE_CONV_2D   DepthwiseConv2DOptions(strideW=1,strideH=1,depthMultiplier=1)  T:1x4x4x2 W:1x1x1x2 B:2 > T:1x4x4x2
FULLY_CONNECTED     FullyConnectedOptions               T:1x4 W:2x4 B:2 > T:1x2
TRANSPOSE_CONV      TransposeConvOptions(strideW=1,strideH=1)  i32:4=1,4,4,3 W:3x1x1x2 T:1x4x4x2 > T:1x4x4x3
TRANSPOSE_CONV      TransposeConvOptions(strideW=1,strideH=1)  i32:4=1,4,4,3 W:3x1x1x2 T:1x4x4x2 B:3 > T:1x4x4x3
BATCH_MATMUL        BatchMatMulOptions                  T:1x2x4 T:1x4x2 > T:1x2x2
BCQ_FULLY_CONNECTED BCQFullyConnectedOptions(weightsHiddenSize=32)  f32:32x1 f32:2 i32:2x1 f32:2 i32:1x2 > f32:2x1
BCQ_GATHER          BCQGatherOptions(inputHiddenSize=32)  f32:2 i32:2x1 i32:1 i32:1x2 > f32:1x32
ARG_MAX             ArgMaxOptions(outputType=2)         T:2x4 I:=1 > i32:2
ARG_MAX             ArgMaxOptions(outputType=4)         T:2x4 I:=1 > i64:2
ARG_MIN             ArgMinOptions(outputType=2)         T:2x4 I:=1 > i32:2
ARG_MIN             ArgMinOptions(outputType=4)         T:2x4 I:=1 > i64:2
BATCH_TO_SPACE_ND   -                                   T:4x1x1x1 I:2=2,2 I:2x2=0,0,0,0 > T:1x2x2x1
SPACE_TO_BATCH_ND   -                                   T:1x2x2x1 I:2=2,2 I:2x2=0,0,0,0 > T:4x1x1x1
DEPTH_TO_SPACE      DepthToSpaceOptions(blockSize=2)    T:1x1x1x4 > T:1x2x2x1
SPACE_TO_DEPTH      SpaceToDepthOptions(blockSize=2)    T:1x2x2x1 > T:1x1x1x4
BROADCAST_TO        -                                   T:1x4 I:2=2,4 > T:2x4
CONCATENATION*      ConcatenationOptions                T:1x4 T:1x4 > T:2x4
PACK*               PackOptions(valuesCount=2)          T:4 T:4 > T:2x4
UNPACK*             UnpackOptions(num=2)                T:2x4 > T:4 T:4
SPLIT*              SplitOptions(numSplits=2)           i32:=1 T:2x4 > T:2x2 T:2x2
SPLIT_V*            SplitVOptions(numSplits=2)          T:2x4 I:2=2,2 i32:=1 > T:2x2 T:2x2
EMBEDDING_LOOKUP    -                                   I:2=0,1 T:4x2 > T:2x2
HASHTABLE_LOOKUP    -                                   i32:2=0,1 i32:4=0,1,2,3 T:4x2 > T:2x2 u8:2
EXPAND_DIMS         -                                   T:4 I:=0 > T:1x4
FILL                -                                   I:2=2,2 T:=1 > T:2x2
GATHER              GatherOptions                       T:2x4 I:2=0,1 > T:2x4
MEAN                ReducerOptions                      T:2x4 I:1=1 > T:2
SUM                 ReducerOptions                      T:2x4 I:1=1 > T:2
REDUCE_ALL          ReducerOptions                      T:2x4 I:1=1 > T:2
REDUCE_ANY          ReducerOptions                      T:2x4 I:1=1 > T:2
REDUCE_MAX          ReducerOptions                      T:2x4 I:1=1 > T:2
REDUCE_PROD         ReducerOptions                      T:2x4 I:1=1 > T:2
ONE_HOT             OneHotOptions(axis=-1)              I:2=0,1 i32:=4 T:=1 T:=0 > T:2x4
PAD                 -                                   T:2x4 I:2x2=0,0,0,0 > T:2x4
PADV2               -                                   T:2x4 I:2x2=0,0,0,0 T:=0 > T:2x4
RANGE               -                                   T:=0 T:=4 T:=1 > T:4
RESHAPE             ReshapeOptions                      T:2x4 I:2=4,2 > T:4x2
RESIZE_BILINEAR     ResizeBilinearOptions               f32:1x2x2x1 i32:2=4,4 > f32:1x4x4x1
RESIZE_BILINEAR     ResizeBilinearOptions               u8:1x2x2x1 i32:2=4,4 > u8:1x4x4x1
RESIZE_BILINEAR     ResizeBilinearOptions               i8:1x2x2x1 i32:2=4,4 > i8:1x4x4x1
RESIZE_NEAREST_NEIGHBOR  ResizeNearestNeighborOptions   T:1x2x2x1 i32:2=4,4 > T:1x4x4x1
REVERSE_V2          -                                   T:2x4 I:1=1 > T:2x4
SELECT              -                                   bool:2x4 T:2x4 T:2x4 > T:2x4
SELECT_V2           -                                   bool:2x4 T:2x4 T:2x4 > T:2x4
SLICE               -                                   T:2x4 I:2=0,0 I:2=2,2 > T:2x2
SQUEEZE             SqueezeOptions                      T:1x4 > T:4
STRIDED_SLICE       StridedSliceOptions                 T:2x4 I:2=0,0 I:2=2,2 I:2=1,1 > T:2x2
TILE                -                                   T:2x4 I:2=1,2 > T:2x8
TRANSPOSE           -                                   T:2x4 I:2=1,0 > T:4x2
CUSTOM:StatelessRandomUniform  {}                       i32:2=2,4 i32:2=1,2 > T:2x4
CUSTOM:TFLite_Detection_PostProcess  {"max_detections":1,"max_classes_per_detection":1,"detections_per_class":1,"nms_score_threshold":0.5,"nms_iou_threshold":0.5,"num_classes":1,"y_scale":1.0,"x_scale":1.0,"h_scale":1.0,"w_scale":1.0,"use_regular_nms":false}  f32:1x2x4 f32:1x2x2 f32:2x4=0,0,1,1,0,0,1,1 > f32:1x1x4 f32:1x1 f32:1x1 f32:1
UNIDIRECTIONAL_SEQUENCE_LSTM  UnidirectionalSequenceLSTMOptions(fusedActivationFunction=4,timeMajor=1)  f32:1x1x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 - - - f32:2 f32:2 f32:2 f32:2 - - f32:1x2 f32:1x2 > f32:1x1x2
UNIDIRECTIONAL_SEQUENCE_LSTM  UnidirectionalSequenceLSTMOptions(fusedActivationFunction=4,timeMajor=1)  f32:1x1x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 f32:2x2 - - - f32:2 f32:2 f32:2 f32:2 - - f32:1x2~ f32:1x2~ > f32:1x1x2
IF*                 IfOptions(thenSubgraphIndex=1,elseSubgraphIndex=1)  bool:1 f32:1 > f32:1
WHILE*              WhileOptions(condSubgraphIndex=2,bodySubgraphIndex=1)  f32:1 > f32:1
"""

# The classes of weights and biases that go with T.
WEIGHTED = [
    ("f32", "f32", "f32"),
    ("f32", "f32", "-"),
    ("f32", "i8", "f32"),
    ("f32", "i8/axis", "f32"),
    ("f16", "f16", "f16"),
    ("u8", "u8", "i32"),
    ("u8", "u8", "-"),
    ("i8", "i8", "i32"),
    ("i8", "i8", "-"),
    ("i8", "i8/axis", "i32"),
    ("i8", "i8/axis", "-"),
    ("i16", "i8", "i64"),
    ("i16", "i8/axis", "i64"),
]


def table_type(module, name):
    return getattr(getattr(module, name), f"{name}T")()


class Slot:
    """One input or output of an operator, as the list of operators describes it."""

    def __init__(self, text):
        self.is_variable = text.endswith("~")
        self.letter, _, rest = text.rstrip("~").partition(":")
        shape, _, values = rest.partition("=")
        self.shape = [int(dim) for dim in shape.split("x")] if shape else []
        self.values = [int(value) for value in values.split(",")] if values else None
        self.is_constant = self.values is not None or self.letter in "WB"

    def of(self, classes):
        """Returns the class of it."""
        return classes.get(self.letter, self.letter)


class Operator:
    """A line of the list."""

    def __init__(self, name, options, slots):
        self.name, self.is_variadic = name.rstrip("*"), name.endswith("*")
        builtin, _, self.custom = self.name.partition(":")
        self.code = getattr(schema.BuiltinOperator.BuiltinOperator, builtin)
        self.options = options
        sides = slots.partition(">")[::2]
        self.inputs, self.outputs = ([Slot(slot) for slot in side.split()] for side in sides)

    def bindings(self):
        """Yields the classes that letters stand for, the plain ones first."""
        letters = {slot.letter for slot in self.inputs + self.outputs}
        if "W" in letters:
            bound = [dict(zip("TWB", classes)) for classes in WEIGHTED]
            yield from (one for one in bound if "B" in letters or one["B"] != "-")
        elif "U" in letters:
            yield from (dict(zip("TU", pair)) for pair in itertools.product(PLAIN, repeat=2))
        elif "T" in letters:
            yield from ({"T": name, "I": "i32"} for name in PLAIN)
            if "I" in letters:
                yield {"T": "f32", "I": "i64"}
        else:
            yield {}


class Case:
    """A model of one operator."""

    def __init__(self, operator, classes, label=None, count=None, **changes):
        self.operator, self.label, self.changes = operator, label, changes
        inputs = operator.inputs
        if count is not None:
            inputs = (inputs + inputs[-1:] * MORE)[:count]
        self.inputs = [(slot, slot.of(classes)) for slot in inputs]
        self.outputs = [(slot, slot.of(classes)) for slot in operator.outputs]

    def signature(self):
        return " > ".join(self.side(side) for side in (self.inputs, self.outputs))

    def side(self, slots):
        names = [name + "~" * slot.is_variable for slot, name in slots]
        if self.operator.is_variadic:
            names = [f"{name}*" for name, _ in itertools.groupby(names)]
        return " ".join(names)

    def model(self):
        return Model(self).bytes()


class Model:
    def __init__(self, case):
        self.model = schema.Model.ModelT()
        self.model.version = 0
        self.model.buffers = [schema.Buffer.BufferT()]
        self.model.operatorCodes = []
        self.model.subgraphs = [self.main(case)]
        if case.operator.name in ("IF", "WHILE"):
            body = Operator("RELU", "-", "f32:1 > f32:1")
            condition = Operator("CAST", "CastOptions", "f32:1 > bool:1")
            self.model.subgraphs += [self.main(Case(called, {})) for called in (body, condition)]

    def main(self, case):
        graph = schema.SubGraph.SubGraphT()
        graph.tensors, graph.inputs, graph.outputs, graph.operators = [], [], [], []
        classes = {name for slot, name in case.inputs + case.outputs if not slot.is_constant}
        is_hidden = not classes - {"-"} <= REPRESENTABLE
        inputs = [self.input(graph, slot, name, is_hidden) for slot, name in case.inputs]
        outputs = [self.tensor(graph, slot, name) for slot, name in case.outputs]
        graph.operators.append(self.operator(case, inputs, outputs))
        if is_hidden or not outputs:
            # What the interface does not have stays inside.
            other = Operator("ADD", "AddOptions", "f32:1 f32:1 > f32:1")
            given = self.input(graph, other.inputs[0], "f32", False)
            outputs = [self.tensor(graph, other.outputs[0], "f32")]
            graph.operators.append(self.operator(Case(other, {}), [given, given], outputs))
        graph.outputs = outputs
        return graph

    def input(self, graph, slot, name, is_hidden):
        if name == "-":
            return -1
        is_constant = slot.is_constant or (is_hidden and not slot.is_variable)
        at = self.tensor(graph, slot, name, is_constant)
        if not is_constant and not slot.is_variable:
            graph.inputs.append(at)
        return at

    def tensor(self, graph, slot, name, is_constant=False):
        tensor = schema.Tensor.TensorT()
        tensor.type, dtype, scales = CLASSES[name]
        tensor.shape, tensor.isVariable = slot.shape, slot.is_variable
        tensor.name = f"t{len(graph.tensors)}"
        if scales:
            tensor.quantization = quantization = table_type(schema, "QuantizationParameters")
            # That of depthwise convolutions is the last one.
            axis = 3 if scales == "each" and slot.shape[0] == 1 else 0
            count = slot.shape[axis] if scales == "each" else 1
            quantization.quantizedDimension = axis
            quantization.scale, quantization.zeroPoint = [0.5] * count, [0] * count
        if is_constant:
            values = slot.values or [0] * math.prod(slot.shape)
            buffer = schema.Buffer.BufferT()
            buffer.data = numpy.frombuffer(numpy.array(values, dtype).tobytes(), numpy.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        graph.tensors.append(tensor)
        return len(graph.tensors) - 1

    def operator(self, case, inputs, outputs):
        named, code = case.operator, schema.OperatorCode.OperatorCodeT()
        code.builtinCode, code.version = named.code, 1
        code.deprecatedBuiltinCode = min(named.code, 127)
        code.customCode = named.custom or None
        operator = schema.Operator.OperatorT()
        operator.opcodeIndex = len(self.model.operatorCodes)
        operator.inputs, operator.outputs = inputs, outputs
        self.model.operatorCodes.append(code)
        self.options(case, operator)
        return operator

    def options(self, case, operator):
        text = case.operator.options
        if text == "-" or case.changes.get("without_options"):
            return
        if text.startswith("{"):
            operator.customOptions = numpy.frombuffer(custom_options(json.loads(text)), numpy.uint8)
            return
        name, _, fields = text.rstrip(")").partition("(")
        options = table_type(schema, name)
        fields = [field.split("=") for field in fields.split(",") if field]
        for field, value in [*fields, *case.changes.items()]:
            setattr(options, field, type(getattr(options, field))(float(value)))
        operator.builtinOptionsType = getattr(schema.BuiltinOptions.BuiltinOptions, name)
        operator.builtinOptions = options

    def bytes(self):
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"CIR0")
        return bytes(builder.Output())


def custom_options(fields):
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in fields.items():
            builder.Key(name)
            builder.Add(value)
    return bytes(builder.Finish())


def cases(forms):
    """Yields the cases of an operator, which may have several forms."""
    yield from (Case(form, classes) for form in forms for classes in form.bindings())
    operator, plain = forms[0], next(forms[0].bindings())
    counts = {len(form.inputs) for form in forms}
    # How many there are is among the options of those that have any number.
    tried = range(0 if operator.is_variadic else max(counts) + MORE + 1)
    for count in tried:
        if count not in counts:
            yield Case(operator, plain, f"inputs {count}", count=count)
    name = operator.options.partition("(")[0]
    if name.endswith("Options"):
        yield Case(operator, plain, "no options", without_options=True)
        if hasattr(table_type(schema, name), "fusedActivationFunction"):
            for number in ACTIVATIONS:
                yield Case(operator, plain, f"activation {number}", fusedActivationFunction=number)


STAGES = {"create_session": "load", "load_model_from_file": "load", "prepare": "prepare"}


def outcome(found):
    """Returns what became of a job, and what onert said."""
    for how, call in (("fails", "failed"), ("crashes", "ended"), ("hangs", "late")):
        if call in found:
            said = found.get("said", "").splitlines()
            message = re.sub(r"^(Fail to|Error during) .*? ?: ", "", said[-1]) if said else ""
            return f"{how} {STAGES.get(found[call], 'run')}", message
    return "runs", ""


def listed():
    """Returns the forms of each operator that the list has."""
    forms = {}
    for line in OPERATORS.strip().splitlines():
        operator = Operator(*re.fullmatch(r"(\S+) +(\S+) +(.+)", line).groups())
        forms.setdefault(operator.name, []).append(operator)
    return forms


def unlisted(known):
    """Returns the operators of the schema that the list does not have."""
    codes = vars(schema.BuiltinOperator.BuiltinOperator).items()
    codes = {name: code for name, code in codes if isinstance(code, int)}
    others = set(codes) - set(known) - NO_OPERATORS
    others = sorted(others, key=codes.get)
    return [Operator(name, "-", "f32:1x4 > f32:1x4") for name in others]


# What stands for no operator, or for many.
NO_OPERATORS = {"CUSTOM", "PLACEHOLDER_FOR_GREATER_OP_CODES"}


def table():
    forms = listed()
    tried = [case for operator in forms.values() for case in cases(operator)]
    tried += [Case(operator, {}, "any") for operator in unlisted(forms)]
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for at, case in enumerate(tried):
            path = os.path.join(folder, f"{at}.circle")
            with open(path, "wb") as file:
                file.write(case.model())
            jobs.append({"path": path})
        lines = {}
        for case, found in zip(tried, onert_run.outcomes(jobs)):
            became, said = outcome(found)
            if case.label == "any" and not said.startswith("Unsupported operation"):
                sys.exit(f"{case.operator.name} is loaded: the list has to have it")
            # That it gets through with more inputs, or without options, means that it ignores them.
            if case.label is None or became != "runs":
                line = lines.setdefault((case.operator.name, became, said), {})
                line[case.label or case.signature()] = None
    return "".join("\t".join([*key, ", ".join(labels)]) + "\n" for key, labels in lines.items())


if __name__ == "__main__":
    print(f"# onert {metadata.version('onert')}")
    sys.stdout.write(table())
