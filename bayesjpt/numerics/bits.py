"""Words of bits, counted."""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel


@kernel
def n_set(word):
    """Return how many bits of a word are set: sums of neighbours, in place (compilers know it as one instruction)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # the product adds up all bytes in the highest one
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def count_bits(words):
    """Return how many bits are set in a row of words."""
    n = np.int64(0)
    for k in range(words.size):
        n += np.int64(n_set(words[k]))
    return n


@kernel
def count_both_bits(one, other):
    """Return how many bits are set in both of two rows of words."""
    n = np.int64(0)
    for k in range(one.size):
        n += np.int64(n_set(one[k] & other[k]))
    return n
