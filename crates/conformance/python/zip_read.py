"""Prints what Python's zipfile reads of archives: for each entry, in order, name, method, size, mode,
whether a data descriptor follows, and where its data starts.

    zip_read.py FILE...

All content is read and compared with its checksum, and with MANIFEST where there is one.
"""

import hashlib
import io
import json
import posixpath
import stat
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import zstandard

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
DESCRIPTOR = struct.Struct("<4sLLL")
LARGE_DESCRIPTOR = struct.Struct("<4sLQQ")
ZSTD = 93


class Archive:
    def __init__(self, path):
        self.bytes = Path(path).read_bytes()
        self.zip = zipfile.ZipFile(io.BytesIO(self.bytes))
        self.entries = self.zip.infolist()

    def read(self):
        names = self.zip.namelist()
        assert len(names) == len(set(names)), "a name comes twice"
        methods = {entry.compress_type for entry in self.entries}
        if ZSTD not in methods:
            assert self.zip.testzip() is None
        contents, entries = {}, []
        for entry in self.entries:
            start, is_large = self.data(entry)
            end = start + entry.compress_size
            contents[entry.filename] = self.content(entry, self.bytes[start:end])
            entries.append({
                "name": entry.filename,
                "method": entry.compress_type,
                "size": entry.file_size,
                "mode": entry.external_attr >> 16,
                "data_offset": start,
                "has_descriptor": self.has_descriptor(entry, end, is_large),
            })
        return {"entries": entries, "manifest": self.manifest(contents)}

    def data(self, entry):
        """Returns where the data starts, and whether sizes behind it have eight bytes."""
        header = LOCAL_HEADER.unpack_from(self.bytes, entry.header_offset)
        magic, _, flags, method, *_, name_len, extra_len = header
        assert (magic, flags, method) == (b"PK\3\4", entry.flag_bits, entry.compress_type)
        extra = entry.header_offset + LOCAL_HEADER.size + name_len
        return extra + extra_len, self.bytes.startswith(b"\1\0", extra, extra + extra_len)

    def content(self, entry, stored):
        if entry.compress_type != ZSTD:
            return self.zip.read(entry)
        decoder = zstandard.ZstdDecompressor().decompressobj()
        content = decoder.decompress(stored)
        assert decoder.eof and not decoder.unused_data, "expected one frame of zstd"
        assert len(content) == entry.file_size and zlib.crc32(content) == entry.CRC
        return content

    def has_descriptor(self, entry, at, is_large):
        if not entry.flag_bits & 1 << 3:
            return False
        descriptor = LARGE_DESCRIPTOR if is_large else DESCRIPTOR
        found = descriptor.unpack_from(self.bytes, at)
        assert found == (b"PK\7\x08", entry.CRC, entry.compress_size, entry.file_size)
        return True

    def manifest(self, contents):
        """Compares MANIFEST with hashlib's digests, links followed; returns its own digest."""
        text = contents.get("MANIFEST")
        if text is None:
            return None
        links = {e.filename for e in self.entries if stat.S_ISLNK(e.external_attr >> 16)}
        listed = []
        for line in text.decode().removesuffix("\n").split("\n"):
            name, digest = line.rsplit("=", 1)
            listed.append(name)
            at = name
            while at in links:
                at = posixpath.normpath(posixpath.join(posixpath.dirname(at), contents[at].decode()))
            if at in contents:
                assert hashlib.sha256(contents[at]).hexdigest() == digest, name
            else:
                assert digest in contents["LINKS"].decode(), name
        here = contents.keys() - {"MANIFEST", "LINKS"}
        assert here <= set(listed) and listed == sorted(listed, key=str.encode)
        return hashlib.sha256(text).hexdigest()


json.dump([Archive(path).read() for path in sys.argv[1:]], sys.stdout)
