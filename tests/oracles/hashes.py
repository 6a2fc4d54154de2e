"""The hash of a row and the draw by it, from their description in integers."""

import struct

import numpy as np


def mixed(h):
    """The finaliser of splitmix64."""
    h ^= h >> 30
    h = h * 0xBF58476D1CE4E5B9 % 2**64
    h ^= h >> 27
    h = h * 0x94D049BB133111EB % 2**64
    return h ^ (h >> 31)


def hash_by_hand(row, kind):
    h = 0x243F6A8885A308D3
    for j, value in enumerate(row):
        if value == 0:
            continue
        form, nan = ("fI", 0x7F800001) if kind == np.float32 else ("dQ", 0x7FF0000000000001)
        bits = struct.unpack("<" + form[1], struct.pack("<" + form[0], value))[0]
        bits = nan if value != value else bits
        h = mixed(h ^ (bits + (j + 1) * 0x9E3779B97F4A7C15) % 2**64)
    return h


def draw_by_hand(h, seed, n):
    return (mixed(mixed(h ^ mixed((seed + 0x9E3779B97F4A7C15) % 2**64))) >> 32) * n >> 32
