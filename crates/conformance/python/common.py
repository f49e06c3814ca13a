"""What the scripts share."""

import hashlib


def sha256(data):
    """Returns the digest of bytes, or of the elements of an array."""
    data = data if isinstance(data, bytes) else data.tobytes()
    return "sha256:" + hashlib.sha256(data).hexdigest()
