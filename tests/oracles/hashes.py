"""The hash of a row and the draw by it, from their description in integers."""

import hashlib
import struct

import numpy as np


def mixed(h):
    """The finaliser of splitmix64."""
    h ^= h >> 30
    h = h * 0xBF58476D1CE4E5B9 % 2**64
    h ^= h >> 27
    h = h * 0x94D049BB133111EB % 2**64
    return h ^ (h >> 31)


def bits_by_hand(value, kind=np.float64):
    """The bits of a number, or of the digest of what is none; one pattern for missing ones."""
    form, nan = ("fI", 0x7F800001) if kind == np.float32 else ("dQ", 0x7FF0000000000001)
    if value is None or value != value:
        return nan
    if isinstance(value, float):
        return struct.unpack("<" + form[1], struct.pack("<" + form[0], value))[0]
    return int.from_bytes(hashlib.blake2b(str(value).encode(), digest_size=8).digest(), "little")


def hash_by_hand(row, kind=np.float64):
    h = 0x243F6A8885A308D3
    for j, value in enumerate(row):
        if value != 0:
            h = mixed(h ^ (bits_by_hand(value, kind) + (j + 1) * 0x9E3779B97F4A7C15) % 2**64)
    return h


def draw_by_hand(h, seed, n):
    return (mixed(mixed(h ^ mixed((seed + 0x9E3779B97F4A7C15) % 2**64))) >> 32) * n >> 32
