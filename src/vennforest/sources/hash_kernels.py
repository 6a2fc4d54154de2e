"""The hash that draws a calibration example for a row: arrays in, arrays out."""

import numpy as np

from vennforest._jit import kernel

# The digits of pi, and 2**64 divided by the golden ratio: no pattern that data could have.
START = 0x243F6A8885A308D3
STEP = 0x9E3779B97F4A7C15


@kernel
def mix(h):
    """Scramble 64 bits so each depends on all (the finaliser of splitmix64)."""
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@kernel
def add_value(h, column, bits, infinity):
    """Return the hash after one more number, given as bits; zeros of either sign change nothing.

    ``infinity``: the bits of infinity in the number's type. Whatever lies above is NaN.
    """
    # Without the sign: 0.0 and -0.0, dense or left out of a sparse row, are one number.
    magnitude = bits & (infinity | (infinity - np.uint64(1)))
    if magnitude == 0:
        return h
    # Every NaN is one number, whatever its payload.
    if magnitude > infinity:
        bits = infinity + np.uint64(1)
    # The column's number goes in, so the same numbers in other columns have another hash.
    return mix(h ^ (bits + (np.uint64(column) + np.uint64(1)) * np.uint64(STEP)))


@kernel
def hash_cells(bits, text, infinity, out):
    """Hash the rows of a table (n, d) of numbers and digests of text, given as bits.

    ``text`` (n, d) is true for the latter, or empty where there are none.
    """
    n, d = bits.shape
    numbers = text.size == 0
    for i in range(n):
        h = np.uint64(START)
        for j in range(d):
            cell = np.uint64(bits[i, j])
            if numbers or not text[i, j]:
                h = add_value(h, j, cell, infinity)
            else:  # any bits, those of NaN and zero included
                h = mix(h ^ (cell + (np.uint64(j) + np.uint64(1)) * np.uint64(STEP)))
        out[i] = h


@kernel
def hash_csr(pointers, columns, bits, infinity, out):
    """Hash the rows of a CSR table with sorted columns: as the dense table is hashed."""
    for i in range(len(out)):
        h = np.uint64(START)
        for at in range(pointers[i], pointers[i + 1]):
            h = add_value(h, columns[at], np.uint64(bits[at]), infinity)
        out[i] = h


@kernel
def draw_examples(hashes, seed, n_examples, out):
    """Draw an example for every row from its hash and the seed.

    hashes : (n,) uint64; out : (n,) intp in [0, n_examples).
    """
    # The seed is mixed before it meets the row's hash: seeds 0 and 1 give unrelated draws.
    start = mix(seed + np.uint64(STEP))
    for i in range(len(hashes)):
        # The upper 32 bits as a fraction: no draw is likelier than another by more than 2**-32.
        high = mix(mix(hashes[i] ^ start)) >> np.uint64(32)
        out[i] = np.intp((high * np.uint64(n_examples)) >> np.uint64(32))
