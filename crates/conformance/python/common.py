"""What the scripts share."""

import hashlib
import struct


def sha256(data):
    """Returns the digest of bytes, or of the elements of an array."""
    data = data if isinstance(data, bytes) else data.tobytes()
    return "sha256:" + hashlib.sha256(data).hexdigest()


def plain(value):
    """Returns what JSON can say of a value: it has no infinities, and does not tell 2 from 2.0."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return {"float": "nan" if value != value else struct.pack(">d", value).hex()}
    return value
