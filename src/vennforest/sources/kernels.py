"""The hash that draws a calibration example for a row: arrays in, arrays out."""

import numpy as np

from vennforest._jit import kernel


@kernel
def mix(h):
    """Scramble 64 bits so that each depends on all (the finaliser of splitmix64)."""
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@kernel
def draw_examples(words, seed, n_draws, n_examples, out):
    """Draw ``n_draws`` examples for every row from a hash of its words and the seed.

    words : (n, d) uint32, the row's bits; out : (n_draws, n) intp in [0, n_examples).
    """
    n, d = words.shape
    for i in range(n):
        h = mix(seed)
        for j in range(d):
            h = mix((h ^ np.uint64(words[i, j])) + np.uint64(0x9E3779B97F4A7C15))
        for draw in range(n_draws):
            # The upper 32 bits as a fraction: no draw is likelier than another by more than 2**-32.
            high = mix(h + np.uint64(draw)) >> np.uint64(32)
            out[draw, i] = np.intp((high * np.uint64(n_examples)) >> np.uint64(32))
