"""Uniform numbers that are a pure function of (key, row, node): no state, so no order of evaluation matters.

Blocks, threads and partitions of rows therefore all draw the same allocations. The mixing function is the finaliser
of SplitMix64 (Steele, Lea and Flood, 2014), applied to the key plus a multiple of the row, then plus one of the node.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel

_ROW = np.uint64(0x9E3779B97F4A7C15)
_NODE = np.uint64(0xD1B54A32D192ED03)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 1.0 / 9007199254740992.0


@kernel
def mix(z):
    """Return a 64-bit hash of a 64-bit number."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@kernel
def sweep_key(chain_key, sweep):
    """Return the key of one sweep of one chain."""
    # mixed before sweeps are added: keys a multiple of the step apart would share sweeps
    return mix(mix(np.uint64(chain_key)) + np.uint64(sweep) * _ROW)


@kernel
def uniform(key, row, node):
    """Return a number in [0, 1), a multiple of 2^-53."""
    z = mix(np.uint64(key) + np.uint64(row) * _ROW)
    z = mix(z + np.uint64(node) * _NODE)
    # the upper 53 bits, as many as a float holds
    return (z >> np.uint64(11)) * _UNIT


@kernel
def fill_uniform(key, first_row, rows, node, out):
    """Fill out[j] with the uniform number of row ``first_row + rows[j]`` at a node."""
    offset = np.uint64(node) * _NODE
    # modulo 2^64 this plus a row's multiple is the key plus the multiple of both numbers' sum
    base = np.uint64(key) + np.uint64(first_row) * _ROW
    for j in range(rows.size):
        z = mix(mix(base + np.uint64(rows[j]) * _ROW) + offset)
        out[j] = (z >> np.uint64(11)) * _UNIT


@kernel
def fill_uniform_of(key, number, rows, node, out):
    """Fill out[j] with the uniform number of row ``number[rows[j]]`` at a node."""
    for j in range(rows.size):
        out[j] = uniform(key, number[rows[j]], node)
