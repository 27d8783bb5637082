"""BLAKE2 without OpenSSL, which `hashlib` would load: that takes 3 ms of a short command's 50 ms."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b
else:
    try:
        from _blake2 import blake2b  # CPython's module behind `hashlib.blake2b`
    except ImportError:
        from hashlib import blake2b

__all__ = ["blake2b"]
