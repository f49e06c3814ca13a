"""Runs TFLite models by the interpreter of LiteRT, without delegates.

Takes the paths of models. Each gets inputs that follow from their places alone: small numbers, the
same for models of equal inputs. Prints for each what inputs and outputs hold, the digest of what the
outputs hold, or the error that stopped it; of long ones the start.
"""

import hashlib
import json
import sys

import numpy
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def given(detail, seed):
    """Returns what an input gets."""
    random = numpy.random.default_rng(seed)
    shape, dtype = detail["shape"], detail["dtype"]
    if numpy.issubdtype(dtype, numpy.floating):
        return random.uniform(-1, 1, shape).astype(dtype)
    if dtype == numpy.bool_:
        return random.integers(0, 2, shape).astype(dtype)
    return random.integers(0, 4, shape).astype(dtype)


def start(tensors):
    return [tensor.reshape(-1)[:1024].tolist() for tensor in tensors]


def run(path):
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        interpreter = Interpreter(path, experimental_op_resolver_type=resolver, num_threads=1)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        inputs = [given(detail, seed) for seed, detail in enumerate(details)]
        for detail, tensor in zip(details, inputs):
            interpreter.set_tensor(detail["index"], tensor)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        outputs = [interpreter.get_tensor(detail["index"]) for detail in outputs]
    except (RuntimeError, ValueError) as error:
        return {"error": str(error).splitlines()[0]}
    digests = [hashlib.sha256(output.tobytes()).hexdigest() for output in outputs]
    return {"given": start(inputs), "made": start(outputs), "digests": digests}


json.dump([run(path) for path in sys.argv[1:]], sys.stdout)
