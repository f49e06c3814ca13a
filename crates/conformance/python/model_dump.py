"""Dumps Circle or TFLite models as the generated readers of a schema see them.

Takes the schema, `circle` or `tflite`, and files. Prints for each one everything that can be asked
of it, by name. Of the bytes of a buffer there are their digest and their number, whether they are
in the tables or outside; where they start is left out, and so is where large custom options do.
"""

import importlib
import json
import sys

from common import plain, sha256

PACKAGES = {"circle": "circle_schema.v0_10.circle", "tflite": "tflite"}
UNIONS = {
    "BuiltinOptions": "BuiltinOptions",
    "BuiltinOptions2": "BuiltinOptions2",
    "Details": "QuantizationDetails",
    "ArraySegments": "SparseIndexVector",
    "ArrayIndices": "SparseIndexVector",
}
# What is said of buffers in another way.
LEFT_OUT = {"Init", "Offset", "LargeCustomOptionsOffset"}


class Schema:
    def __init__(self, name):
        self.package = PACKAGES[name]

    def of(self, name):
        """Returns a generated class."""
        return getattr(importlib.import_module(f"{self.package}.{name}"), name)

    def member(self, union, tag):
        """Returns the class of a member of a union; None for one that the schema has not."""
        names = {value: name for name, value in vars(self.of(union)).items()}
        name = names.get(tag)
        return None if name in (None, "NONE") else self.of(name)

    def model(self, data):
        return self.table(self.of("Model").GetRootAs(data, 0), data)

    def table(self, table, data):
        names = [name for name in dir(type(table)) if name[0].isupper()]
        methods = [
            name
            for name in names
            if not name.startswith("GetRootAs")
            and not name.endswith(("AsNumpy", "IsNone", "BufferHasIdentifier"))
            and name not in LEFT_OUT
        ]
        if type(table).__name__ == "Buffer":
            return self.buffer(table, data)
        dumped = {}
        for name in methods:
            if name.endswith("Length") and name[: -len("Length")] in methods:
                continue
            if f"{name}Length" in methods:
                count = getattr(table, f"{name}Length")()
                parts = [getattr(table, name)(at) for at in range(count)]
                dumped[name] = [self.value(part, data) for part in parts]
            elif name in UNIONS and f"{name}Type" in methods:
                dumped[name] = self.union(table, name, data)
            else:
                dumped[name] = self.value(getattr(table, name)(), data)
        return dumped

    def union(self, table, name, data):
        tag, stored = getattr(table, f"{name}Type")(), getattr(table, name)()
        kind = self.member(UNIONS[name], tag)
        if kind is None or stored is None:
            return None
        member = kind()
        member.Init(stored.Bytes, stored.Pos)
        return {kind.__name__: self.table(member, data)}

    def buffer(self, buffer, data):
        start = buffer.Offset()
        if start > 1:
            stored = data[start : start + buffer.Size()]
        else:
            stored = bytes(buffer.Data(at) for at in range(buffer.DataLength()))
        return [len(stored), sha256(bytes(stored))]

    def value(self, value, data):
        if isinstance(value, bytes):
            return value.decode()
        if hasattr(value, "item"):
            return value.item()
        if hasattr(value, "Init"):
            return self.table(value, data)
        return value


def main():
    schema = Schema(sys.argv[1])
    dumps = []
    for path in sys.argv[2:]:
        with open(path, "rb") as file:
            dumps.append(plain(schema.model(file.read())))
    print(json.dumps(dumps))


main()
