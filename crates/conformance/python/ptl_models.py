"""Models of our own for PyTorch: what is in them, and what they are called with."""

import hashlib
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor
from torch.utils.mobile_optimizer import optimize_for_mobile


class Net(torch.nn.Module):
    """Layers with parameters and a buffer."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        return self.fc(x.mean([2, 3]))


class Zoo(torch.nn.Module):
    """Tensors of every plain type, and views that share a storage."""

    def __init__(self):
        super().__init__()
        plain = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                 torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bfloat16]
        for dtype in plain:
            name = str(dtype).rpartition(".")[2]
            self.register_buffer("as_" + name, torch.arange(6).reshape(2, 3).to(dtype))
        self.register_buffer("truth", torch.tensor([True, False, True]))
        whole = torch.arange(24, dtype=torch.float32).reshape(4, 6)
        self.register_buffer("whole", whole)
        self.register_buffer("turned", whole.t())
        self.register_buffer("part", whole[1:3, 2:5])
        self.register_buffer("strided", whole[::2, ::3])
        self.register_buffer("expanded", torch.tensor([[1.0], [2.0]]).expand(2, 4))
        self.register_buffer("number", torch.tensor(3.5))
        self.register_buffer("empty", torch.zeros(2, 0, 3))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.part.sum() + self.turned[5, 3] + self.expanded[1, 2]


class Quantized(torch.nn.Module):
    """Tensors whose integers stand for numbers."""

    def __init__(self):
        super().__init__()
        numbers = torch.arange(-6, 6, dtype=torch.float32).reshape(3, 4)
        scales = torch.tensor([0.1, 0.25, 0.5], dtype=torch.float64)
        zeros = torch.tensor([0, 1, -2])
        whole = torch.quantize_per_tensor
        self.register_buffer("i8", whole(numbers, 0.5, 3, torch.qint8))
        self.register_buffer("u8", whole(numbers, 0.25, 128, torch.quint8))
        self.register_buffer("i32", whole(numbers, 0.125, 0, torch.qint32))
        self.register_buffer("rows", torch.quantize_per_channel(numbers, scales, zeros, 0, torch.qint8))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.i8.dequantize().sum() + self.rows.dequantize().sum()


class Sparse(torch.nn.Module):
    """Tensors of which most elements are not stored."""

    def __init__(self):
        super().__init__()
        places = torch.tensor([[0, 1, 2], [2, 0, 3]])
        numbers = torch.tensor([1.0, 2.0, 3.0])
        self.register_buffer("listed", torch.sparse_coo_tensor(places, numbers, (3, 4)).coalesce())
        rows = torch.sparse_coo_tensor(places[:1], torch.arange(6.0).reshape(3, 2), (4, 2))
        self.register_buffer("rows", rows.coalesce())
        self.register_buffer("packed", torch.eye(3).to_sparse_csr())

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.sparse.sum(self.listed)


class Scalars(torch.nn.Module):
    """A tuple in, a tuple out."""

    def forward(self, x: Tuple[bool, int, float]) -> Tuple[float, int, bool]:
        truth, whole, number = x
        return number * 2.0, whole + 1, not truth


class Named(torch.nn.Module):
    """A text in, tensors by name out."""

    def forward(self, x: str) -> Dict[str, Tensor]:
        return {"length": torch.tensor([len(x)]), "one": torch.ones(1)}


class Listed(torch.nn.Module):
    """A list of tensors in, its sum and its items turned around out."""

    def forward(self, x: List[Tensor]) -> List[Tensor]:
        return [x[0] + x[1], x[1], x[0]]


class Inner(torch.nn.Module):
    """Lists of every kind."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.tensors: List[Tensor] = [torch.ones(1), torch.zeros(2)]
        self.texts: List[str] = ["a", "b"]
        self.perhaps = torch.jit.annotate(List[Optional[int]], [1, None])
        self.nested: List[List[int]] = [[1, 2], [3]]
        self.numbers: List[float] = [1.5]
        self.truths: List[bool] = [True, False]

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.weight.sum() + self.tensors[1].sum() + self.nested[0][1] + self.numbers[0]
        return x * len(self.texts) + len(self.perhaps) + int(self.truths[0])


class Held(torch.nn.Module):
    """Attributes of every kind, modules and tensors that are shared, constants of the code."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.other = self.inner
        self.tied = self.inner.weight
        self.by_number: Dict[int, Tensor] = {3: torch.ones(1), -1: torch.full((1,), 2.0)}
        self.by_name: Dict[str, Dict[str, int]] = {"a": {"b": 70000}}
        self.several: Tuple[int, str, Tensor] = (300, "x", torch.ones(1))
        self.complex = complex(3, 4)
        self.large = 1 << 40
        self.negative = -5
        self.number = 0.1
        self.nothing: Optional[Tensor] = None
        self.device = torch.device("cpu")
        whole = torch.arange(4.0)
        self.register_buffer("whole", whole)
        self.register_buffer("part", whole[1:3])

    def forward(self, x: Tensor) -> Tensor:
        # What is written through one view is read through the other.
        self.part.add_(1.0)
        x = self.inner(x) + self.other(x) + self.whole + self.tied[0]
        x = x + self.by_number[3] + self.by_number[-1] * 3 + self.by_name["a"]["b"] % 7
        x = x + self.several[0] + self.several[2] + abs(self.complex) + self.large % 1000
        if self.nothing is None:
            x = x + self.negative * self.number
        return x.to(self.device)


class Coded(torch.nn.Module):
    """Operators whose meaning has changed with versions of PyTorch."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.gelu(x / 3, approximate="tanh")


class Traced(torch.nn.Module):
    """A tensor that becomes a constant of the code."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tensor([1.0, 2.0, 3.0, 4.0])


def full_models():
    """Returns modules that the full runtime is to load, too, by name."""
    scripted = [Held(), Coded()]
    scripted = {type(one).__name__.lower(): torch.jit.script(one.eval()) for one in scripted}
    traced = torch.jit.trace(Traced().eval(), torch.ones(4))
    return {**models(), **scripted, "traced": traced}


def models():
    """Returns modules that are ready to be saved, by name."""
    torch.manual_seed(7)
    net = Net().eval()
    scripted = torch.jit.script(net)
    modules = [Zoo(), Quantized(), Sparse(), Scalars(), Named(), Listed()]
    others = {type(module).__name__.lower(): torch.jit.script(module.eval()) for module in modules}
    return {
        "net": scripted,
        "frozen": torch.jit.freeze(torch.jit.script(net)),
        "optimized": optimize_for_mobile(torch.jit.script(net)),
        **others,
    }


def inputs(model):
    """Returns what a model is called with."""
    if model in ("net", "frozen", "optimized"):
        return torch.arange(3 * 8 * 9, dtype=torch.float32).reshape(1, 3, 8, 9) / 100.0
    if model == "scalars":
        return (True, 41, 1.5)
    if model == "named":
        return "text"
    if model == "listed":
        return [torch.ones(2, 2), torch.arange(4.0).reshape(2, 2)]
    if model.startswith("Tuple[Tensor"):
        return (BY_TYPE["Tensor"],) * (model.count(",") + 1)
    if model in BY_TYPE:
        return BY_TYPE[model]
    return torch.arange(4.0)


# What models of any other making are called with, by the type of what they take: the lite interpreter
# does not look at it, and crashes.
BY_TYPE = {
    "Tensor": torch.arange(3 * 16 * 16, dtype=torch.float32).reshape(1, 3, 16, 16) / 1000.0,
    "Tuple[bool, int, float]": (True, 41, 1.5),
}


def digest(value):
    """Returns what tells values apart: every bit of a tensor, whatever else as Python shows it."""
    if isinstance(value, Tensor):
        return described(value)
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(digest, value)]
    if isinstance(value, dict):
        return {key: digest(one) for key, one in sorted(value.items())}
    return repr(value)


def described(tensor):
    """Returns type, shape and a digest of the elements of a dense tensor, row-major."""
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    dense = tensor.detach().contiguous()
    dtype = str(dense.dtype).rpartition(".")[2]
    # NumPy has no bfloat16, and no view of complex numbers as bytes is needed.
    raw = dense.view(torch.int16) if dense.dtype == torch.bfloat16 else dense
    raw = raw.numpy().tobytes()
    return {"dtype": dtype, "shape": list(dense.shape), "sha256": hashlib.sha256(raw).hexdigest()}


def state(module):
    """Describes parameters and buffers, with what belongs to quantized and sparse ones."""
    tensors = {}
    for name, tensor in module.state_dict().items():
        if tensor.layout == torch.sparse_coo:
            # What is loaded does not know that it is.
            tensor = tensor.coalesce()
            tensors[name + ".indices"] = described(tensor.indices())
            tensors[name + ".values"] = described(tensor.values())
            continue
        if tensor.layout == torch.sparse_csr:
            tensors[name + ".crow_indices"] = described(tensor.crow_indices())
            tensors[name + ".col_indices"] = described(tensor.col_indices())
            tensors[name + ".values"] = described(tensor.values())
            continue
        one = described(tensor)
        one["stride"] = list(tensor.stride())
        one["offset"] = tensor.storage_offset()
        if tensor.is_quantized:
            one["quantized"] = quantized(tensor)
        tensors[name] = one
    return tensors


def quantized(tensor):
    if tensor.qscheme() == torch.per_tensor_affine:
        return {"scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    return {
        "scales": described(tensor.q_per_channel_scales()),
        "zero_points": described(tensor.q_per_channel_zero_points()),
        "axis": tensor.q_per_channel_axis(),
    }
