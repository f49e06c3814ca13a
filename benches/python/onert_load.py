"""Unpacks an nnpackage into an empty folder and loads it with onert.

Prints the seconds that both took together; starting Python and importing onert are left out.
"""

import sys
import time
import zipfile

import onert

package, folder = sys.argv[1:]
started = time.perf_counter()
with zipfile.ZipFile(package) as archive:
    archive.extractall(folder)
session = onert.infer.session(folder, "cpu")
took = time.perf_counter() - started
assert session.input_size() == 1 and session.output_size() == 1
print(took)
