"""SHA-256 of little: hashlib loads OpenSSL, several milliseconds for some thousand bytes."""

from __future__ import annotations

import sys


def hexdigest(data: bytes) -> str:
    """64 hex digits."""
    if sys.version_info >= (3, 12):
        module = "_sha2"
    else:
        module = "_sha256"
    try:
        digest: str = __import__(module).sha256(data).hexdigest()
    except (ImportError, AttributeError):
        from hashlib import sha256

        return sha256(data).hexdigest()
    return digest
