"""Changes a file with ztensor 1.2.3: appends "appended" and "typed", replaces the data of "replaced", and
writes all but "removed" to another file.

    edit_1_2.py FILE OUT
"""

import json
import sys

import numpy
import ztensor


def main():
    path, out = sys.argv[1:]
    with ztensor.Writer.append(path) as writer:
        writer.write_numpy("appended", numpy.arange(5, dtype="int16"))
        typed = ztensor.Tensor({"data": numpy.arange(7, dtype="uint8")}, type="f8_e5m2")
        writer.write("typed", typed, compress=True)
    ztensor.replace_tensor(path, "replaced", numpy.full(4, 9, "uint8"))
    ztensor.remove_tensors(path, out, ["removed"])
    json.dump(None, sys.stdout)


main()
