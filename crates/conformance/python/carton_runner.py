"""A runner of Carton, interface version 1, that takes any model and does nothing with it.

    carton_runner.py LOG --uds-path SOCKET

It answers requests to pack with the folder that it was given, and requests to load after it wrote
into LOG what it was asked to load. Anything else is refused.

The other side sends descriptors over SOCKET, each with an identifier of eight bytes; the one with
identifier 0 is a stream of requests and responses. They are serialized by bincode 1: integers of
fixed size, little-endian; eight bytes for a length; four bytes for the place of a variant. In front
of each stands its length, big-endian.
"""

import array
import json
import socket
import struct
import sys

from common import plain

LOAD, PACK, ERROR = 0, 1, 4


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        length = self.take("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def option(self, read):
        return read() if self.take("B") else None

    def pairs(self, read):
        return {self.text(): read() for _ in range(self.take("Q"))}

    def runner_option(self):
        read = [lambda: self.take("q"), lambda: self.take("d"), self.text, lambda: self.take("?")]
        return read[self.take("I")]()

    def end(self):
        assert self.at == len(self.data), (self.at, self.data)


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def load(request, log):
    request.take("Q")  # a token for the files of the model
    loaded = {
        "runner_name": request.text(),
        "required_framework_version": request.text(),
        "runner_compat_version": request.take("Q"),
        "opts": request.option(lambda: request.pairs(request.runner_option)),
    }
    assert request.take("I") == 0, "expected the processor as the device"
    loaded["model_hash"] = request.option(request.text)
    request.end()
    with open(log, "w") as file:
        json.dump(plain(loaded), file)
    return struct.pack("<I", LOAD)


def pack(request):
    request.take("Q")  # a token for the files of this machine
    folder = request.text()
    request.text()  # a folder for what would be made
    request.end()
    return struct.pack("<I", PACK) + text(folder)


def answer(request, log):
    number, kind = request.take("Q"), request.take("I")
    if kind == LOAD:
        response = load(request, log)
    elif kind == PACK:
        response = pack(request)
    else:
        response = struct.pack("<I", ERROR) + text("not done by this runner")
    # One byte says that there are no more responses to the request.
    return struct.pack("<Q?", number, True) + response


def exactly(stream, count):
    data = b""
    while len(data) < count:
        received = stream.recv(count - len(data))
        if not received:
            sys.exit()
        data += received
    return data


def requests_stream(path):
    """Waits for the descriptor of the requests; the others are not used."""
    bootstrap = socket.socket(socket.AF_UNIX)
    bootstrap.connect(path)
    size = array.array("i").itemsize
    while True:
        data, ancillary, _, _ = bootstrap.recvmsg(8, socket.CMSG_LEN(size))
        if not data:
            sys.exit()
        descriptors = array.array("i", ancillary[0][2][:size])
        if data == bytes(8):
            stream = socket.socket(fileno=descriptors[0])
            stream.setblocking(True)
            return bootstrap, stream


def main():
    log, _, path = sys.argv[1:]
    _bootstrap, stream = requests_stream(path)
    while True:
        (length,) = struct.unpack(">Q", exactly(stream, 8))
        response = answer(Cursor(exactly(stream, length)), log)
        stream.sendall(struct.pack(">Q", len(response)) + response)


main()
