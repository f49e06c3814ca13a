"""Loads and runs models and nnpackages by the C interface of onert, each in a process of its own.

Takes a file of jobs: a list of objects with the `path` of a folder or a model, the `inputs` as lists
of 32-bit floats, or none for zeros of any type, and under `custom` the names of custom operators.
Each of those is registered as a kernel that doubles its first input. Prints for each job what there
is of the element types and shapes of inputs and outputs, the outputs, the call that failed with what
onert said, and the one that was made last where a signal ended the process.
"""

import ctypes
import json
import multiprocessing
import os
import sys
import tempfile

import onert

# Bytes of an element by the number of its type.
WIDTHS = [4, 4, 1, 1, 1, 8, 1, 2]
MAX_RANK = 6
SECONDS = 20


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int32 * MAX_RANK),
    ]

    def elements(self):
        count = 1
        for dim in self.dims[: self.rank]:
            # One that is not known is negative.
            count *= max(dim, 1) if dim else 0
        return count

    def plain(self):
        return [self.dtype, list(self.dims[: self.rank])]


class Operand(ctypes.Structure):
    _fields_ = [("info", TensorInfo), ("data", ctypes.c_void_p)]


class Parameters(ctypes.Structure):
    _fields_ = [
        ("input_count", ctypes.c_size_t),
        ("inputs", ctypes.POINTER(Operand)),
        ("output_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(Operand)),
    ]


Kernel = ctypes.CFUNCTYPE(None, ctypes.POINTER(Parameters), ctypes.c_void_p, ctypes.c_size_t)


class Registration(ctypes.Structure):
    _fields_ = [("kernel", Kernel)]


@Kernel
def double(parameters, _data, _len):
    operand, result = parameters.contents.inputs[0], parameters.contents.outputs[0]
    count = operand.info.elements()
    floats = ctypes.POINTER(ctypes.c_float)
    given, made = ctypes.cast(operand.data, floats), ctypes.cast(result.data, floats)
    for at in range(count):
        made[at] = 2 * given[at]


REGISTRATION = Registration(double)


class Failed(Exception):
    pass


class Session:
    def __init__(self, say):
        self.say = say
        folder = os.path.join(os.path.dirname(onert.__file__), "native")
        self.library = ctypes.CDLL(os.path.join(folder, "libonert.so"))
        self.session = ctypes.c_void_p()
        self.call("create_session", ctypes.byref(self.session), session=False)

    def call(self, name, *args, session=True):
        self.say(name)
        function = getattr(self.library, f"nnfw_{name}")
        status = function(self.session, *args) if session else function(*args)
        if status != 0:
            raise Failed(name)

    def infos(self, side):
        count = ctypes.c_uint32()
        self.call(f"{side}_size", ctypes.byref(count))
        infos = []
        for at in range(count.value):
            info = TensorInfo()
            self.call(f"{side}_tensorinfo", ctypes.c_uint32(at), ctypes.byref(info))
            infos.append(info)
        return infos


def buffers(infos, given):
    """Returns buffers of what is given, or of zeros."""
    made = []
    for at, info in enumerate(infos):
        if given is None:
            made.append((ctypes.c_char * (info.elements() * WIDTHS[info.dtype]))())
        else:
            made.append((ctypes.c_float * info.elements())(*given[at]))
    return made


def run(job, say):
    session, done = Session(say), {}
    try:
        for name in job.get("custom", []):
            session.call("register_custom_op_info", name.encode(), ctypes.byref(REGISTRATION))
        session.call("load_model_from_file", job["path"].encode())
        session.call("prepare")
        inputs, outputs = session.infos("input"), session.infos("output")
        done["inputs"] = [info.plain() for info in inputs]
        done["outputs"] = [info.plain() for info in outputs]
        given = job.get("inputs")
        zeros = None if given is None else [[0.0] * info.elements() for info in outputs]
        taken, made = buffers(inputs, given), buffers(outputs, zeros)
        sides = (("input", inputs, taken), ("output", outputs, made))
        for side, infos, there in sides:
            for at, (info, buffer) in enumerate(zip(infos, there)):
                size = ctypes.c_size_t(ctypes.sizeof(buffer))
                place = (ctypes.c_uint32(at), ctypes.c_int(info.dtype), buffer, size)
                session.call(f"set_{side}", *place)
        session.call("run")
        if given is not None:
            done["made"] = [list(buffer) for buffer in made]
    except Failed as failed:
        done["failed"] = str(failed)
    return done


def child(job, pipe):
    # What onert prints is not JSON.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        done = run(job, lambda name: pipe.send(name))
        said.seek(0)
        if "failed" in done:
            done["said"] = said.read().decode(errors="replace")
        pipe.send(done)
    pipe.close()
    os._exit(0)


def result(pipe):
    """Returns what comes out of a process in the end."""
    last = None
    try:
        while pipe.poll(SECONDS):
            found = pipe.recv()
            if isinstance(found, dict):
                return found
            last = found
        return {"late": last}
    except EOFError:
        return {"ended": last}


def outcomes(jobs):
    """Yields what comes of each job."""
    fork = multiprocessing.get_context("fork")
    for job in jobs:
        ours, theirs = fork.Pipe(duplex=False)
        process = fork.Process(target=child, args=(job, theirs))
        process.start()
        theirs.close()
        found = result(ours)
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        yield found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        jobs = json.load(file)
    print(json.dumps(list(outcomes(jobs))))


if __name__ == "__main__":
    main()
