"""Which values can reach each node, for all nodes at once: from the cells of the leaves upwards, as arrays.

      node 7, hard            bits of column a    001 or 010 = 011       what a node's rows may be in a column of labels
      ├─ product  a = 0                           001                    is a word of flags, one a code; in a column of
      └─ product  a = 1                           010                    numbers an interval

Sums and products alike take what their children have together: below a product one child alone knows a column. A hard
sum is decided by the first column in which its children are apart from each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, read_only_arrays
from bayesjpt.families import registry
from bayesjpt.numerics.jit import kernel, read_only

LABEL_FAMILIES = (registry.number("categorical"), registry.number("label"))
"""Families of labels whose constants are the codes, and then which of them may occur."""

_BITS = 64


class Interval(NamedTuple):
    """A closed interval in the user's units; open ends are neighbouring floats or integers."""

    lo: float
    hi: float


Labels = tuple[int, ...]
"""Codes of labels, ascending."""

_Array = np.ndarray
_Search = tuple[_Array, _Array, _Array, _Array, _Array, _Array, _Array, _Array]


class Possible(NamedTuple):
    """What can reach each node.

    Attributes
    ----------
    bits : uint64 (n_node, n_word)
        Codes of each column of labels that some leaf restricts to some of them; nothing where the node is not about it.
    word : int64 (n_flagged + 1,)
        Where the words of each of these columns begin.
    shift, n_code : int64 (n_flagged,)
        The place of its first code there, and how many codes it has. Columns with many codes have words of their own.
    flagged, bounded : int64
        These columns, and those of numbers in which some leaf has a cell; ascending.
    lower, upper : float64 (n_node, n_bounded)
        The interval of numbers; empty (inf, -inf) where the node is not about the column.
    """

    bits: np.ndarray
    word: np.ndarray
    shift: np.ndarray
    n_code: np.ndarray
    flagged: np.ndarray
    bounded: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def words(self, place: int) -> slice:
        """Return the words of a column, by its place in `flagged`."""
        n_word = -(-int(self.shift[place] + self.n_code[place]) // _BITS)
        return slice(int(self.word[place]), int(self.word[place]) + n_word)

    def mask(self, place: int) -> np.uint64:
        """Return its flags in a word; all of them where it has words of its own."""
        # of 64 codes the shift would leave the word
        n, shift = int(self.n_code[place]), int(self.shift[place])
        return np.uint64(2**_BITS - 1 if n >= _BITS else ((1 << n) - 1) << shift)

    def reaches(self, node: int, place: int) -> np.ndarray:
        """Return bool (n_code,): which codes reach a node in a column of labels; by its place in `flagged`."""
        at = self.shift[place] + np.arange(self.n_code[place])
        flags = self.bits[node, self.word[place] + at // _BITS] >> (at % _BITS).astype(np.uint64)
        return (flags & np.uint64(1)).astype(bool)

    def codes(self, node: int, place: int) -> np.ndarray:
        """Return the codes that reach a node in a column of labels, ascending; by its place in `flagged`."""
        return np.flatnonzero(self.reaches(node, place))

    def region(self, node: int) -> dict[int, Interval | Labels]:
        """Return what is left of each column that is restricted at a node: an interval, or codes of labels."""
        found: dict[int, Interval | Labels] = {}
        for place, column in enumerate(self.flagged.tolist()):
            codes = self.codes(node, place)
            if 0 < codes.size < self.n_code[place]:
                found[column] = tuple(codes.tolist())
        for place, column in enumerate(self.bounded.tolist()):
            lo, hi = float(self.lower[node, place]), float(self.upper[node, place])
            if lo <= hi and (lo, hi) != (-np.inf, np.inf):
                found[column] = Interval(lo, hi)
        return found

    def separating_column(self, nodes: np.ndarray) -> int:
        """Return the first column in which all of some nodes are apart from each other, -1 where there is none."""
        return int(_separating(*self._search(), np.asarray(nodes, np.int64)))

    def split_columns(self, circuit: Circuit) -> np.ndarray:
        """Return int32 (n_node,): the column that decides at each hard sum of several children; -1 elsewhere."""
        graph = map(read_only, (circuit.kind, circuit.child_ptr, circuit.child))
        return _split_columns(*self._search(), *self._flags(), *graph)

    def _flags(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the first and the last flags of columns that share their words, uint64 (n_word,), and int64
        (n_word, 64): the place of the column whose last flag a bit is.
        """
        first, last = np.zeros(self.bits.shape[1], np.uint64), np.zeros(self.bits.shape[1], np.uint64)
        place_of = np.zeros((self.bits.shape[1], _BITS), np.int64)
        for place in np.flatnonzero(self.n_code < _BITS).tolist():
            word, lo = int(self.word[place]), int(self.shift[place])
            hi = lo + int(self.n_code[place]) - 1
            first[word] |= np.uint64(1 << lo)
            last[word] |= np.uint64(1 << hi)
            place_of[word, hi] = place
        return first, last, place_of

    def _search(self) -> _Search:
        order = np.argsort(np.concatenate([self.flagged, self.bounded]), kind="stable")
        mask = [self.mask(place) for place in range(self.flagged.size)]
        columns = np.concatenate([self.flagged, self.bounded]).astype(np.int64)
        n_word = -(-(self.shift + self.n_code) // _BITS)
        return self.bits, self.word, n_word, np.array(mask, np.uint64), self.lower, self.upper, columns, order


def possible(circuit: Circuit) -> Possible:
    """Return what can reach each node of a circuit. Cost: n_edge times the columns that leaves restrict, in words."""
    circuit = read_only_arrays(circuit)
    column = circuit.leaf_var.astype(np.int64)
    lower, upper = circuit.leaf_interval().T.copy()
    listed = arrays.one_of(circuit.leaf_family, LABEL_FAMILIES)
    size = np.where(listed, circuit.const_len // 2, 0)
    some = np.zeros(circuit.n_leaf, bool)
    leaf, code = _codes(np.arange(circuit.n_leaf), size)
    some[leaf[~(circuit.const[circuit.const_at[leaf] + size[leaf] + code] > 0.0)]] = True
    n_column = int(column.max(initial=-1)) + 1
    is_flagged, is_bounded = np.zeros(n_column, bool), np.zeros(n_column, bool)
    is_flagged[column[some]] = True
    is_bounded[column[circuit.leaf_cell >= 0]] = True
    is_bounded &= ~is_flagged
    flagged, bounded = np.flatnonzero(is_flagged), np.flatnonzero(is_bounded)
    n_of_column = np.zeros(n_column, np.int64)
    n_of_column[column[listed]] = size[listed]
    n_code = n_of_column[flagged]
    word, shift = _layout(n_code)
    bits = np.zeros((circuit.n_leaf, int(word[-1])), np.uint64)
    place, of_flagged = np.searchsorted(flagged, column), np.flatnonzero(is_flagged[column])
    leaf, code = _codes(of_flagged, n_code[place[of_flagged]])
    occurs = (code >= lower[leaf]) & (code <= upper[leaf])
    own = np.flatnonzero(listed[leaf])
    at = circuit.const_at[leaf[own]] + size[leaf[own]] + code[own]
    occurs[own] &= circuit.const[at] > 0.0
    leaf, at = leaf[occurs], shift[place[leaf[occurs]]] + code[occurs]
    # several codes may fall into one word, of which indexing alone would keep the last
    of_leaf = leaf, word[place[leaf]] + at // _BITS
    np.bitwise_or.at(bits, of_leaf, np.uint64(1) << (at % _BITS).astype(np.uint64))
    place = np.where(is_bounded[column], np.searchsorted(bounded, column), -1)
    below = _upward(
        circuit.kind, circuit.child_ptr, circuit.child, circuit.leaf_of, bits, place, bounded.size, lower, upper
    )
    return Possible(below[0], word, shift, n_code, flagged, bounded, below[1], below[2])


def _codes(leaves: np.ndarray, n_code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each of some leaves once a code, and the codes 0, 1 ... that each has, int64."""
    ends = np.cumsum(n_code)
    code = np.arange(int(n_code.sum())) - np.repeat(ends - n_code, n_code)
    return np.repeat(leaves, n_code), code


def _layout(n_code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where columns have their words and their first bits: side by side as long as a word has room."""
    word, shift = np.zeros(n_code.size + 1, np.int64), np.zeros(n_code.size, np.int64)
    at, used = 0, 0
    for place, n in enumerate(n_code.tolist()):
        if used + n > _BITS and used > 0:
            at, used = at + 1, 0
        word[place], shift[place] = at, used
        used += n
        if used >= _BITS:
            at, used = at + -(-used // _BITS), 0
    word[-1] = at + (used > 0)
    return word, shift


@kernel
def _upward(kind, child_ptr, child, leaf_of, leaf_bits, place, n_bounded, leaf_lower, leaf_upper):
    n_node = kind.size
    bits = np.zeros((n_node, leaf_bits.shape[1]), np.uint64)
    lower, upper = np.full((n_node, n_bounded), np.inf), np.full((n_node, n_bounded), -np.inf)
    for node in range(n_node):
        leaf = leaf_of[node]
        if leaf >= 0:
            for k in range(bits.shape[1]):
                bits[node, k] = leaf_bits[leaf, k]
            if place[leaf] >= 0:
                lower[node, place[leaf]], upper[node, place[leaf]] = leaf_lower[leaf], leaf_upper[leaf]
            continue
        for e in range(child_ptr[node], child_ptr[node + 1]):
            below = child[e]
            for k in range(bits.shape[1]):
                bits[node, k] |= bits[below, k]
            for k in range(n_bounded):
                lower[node, k] = min(lower[node, k], lower[below, k])
                upper[node, k] = max(upper[node, k], upper[below, k])
    return bits, lower, upper


@kernel
def _apart_in_labels(bits, first, n_word, mask, nodes):
    """Return whether no code is shared by two of the nodes, and each has one."""
    for i in range(nodes.size):
        has_one = False
        for k in range(first, first + n_word):
            word = bits[nodes[i], k] & mask
            has_one |= word != 0
            for j in range(i):
                if word & bits[nodes[j], k] != 0:
                    return False
        if not has_one:
            return False
    return True


@kernel
def _apart_in_numbers(lower, upper, nodes):
    """Return whether no number is shared by the intervals of two nodes, and each has one."""
    for i in range(nodes.size):
        if not lower[nodes[i]] <= upper[nodes[i]]:
            return False
        for j in range(i):
            if not (upper[nodes[i]] < lower[nodes[j]] or upper[nodes[j]] < lower[nodes[i]]):
                return False
    return True


@kernel
def _separating(bits, word, n_word, mask, lower, upper, columns, order, nodes):
    n_flagged = mask.size
    for at in order:
        if at < n_flagged:
            apart = _apart_in_labels(bits, word[at], n_word[at], mask[at], nodes)
        else:
            apart = _apart_in_numbers(lower[:, at - n_flagged], upper[:, at - n_flagged], nodes)
        if apart:
            return columns[at]
    return np.int64(-1)


@kernel
def _first_of_shared_words(bits, first, last, place_of, nodes):
    """Return the place of the first column, of those that share words, in which all nodes are apart; -1 without one.

    All columns of a word at once: in ``(x & ~last) + (last - first)`` the last flag of a column is set where one of its
    flags before was, and nothing is carried into the next column.
    """
    for k in range(last.size):
        if last[k] == 0:
            continue
        fill = last[k] - first[k]
        all_have, union, twice = last[k], np.uint64(0), np.uint64(0)
        for node in nodes:
            x = bits[node, k]
            all_have &= ((x & ~last[k]) + fill) | x
            twice |= union & x
            union |= x
        apart = all_have & ~(((twice & ~last[k]) + fill) | twice) & last[k]
        if apart != 0:
            bit = 0
            while (apart >> np.uint64(bit)) & np.uint64(1) == 0:
                bit += 1
            return place_of[k, bit]
    return np.int64(-1)


@kernel
def _split_columns(
    bits, word, n_word, mask, lower, upper, columns, order, first, last, place_of, kind, child_ptr, child
):
    out = np.full(kind.size, -1, np.int32)
    n_flagged = mask.size
    others, n_other = np.empty(order.size, np.int64), 0
    for at in order:
        if at >= n_flagged or n_word[at] > 1 or last[word[at]] == 0:
            others[n_other] = at
            n_other += 1
    others = others[:n_other]
    for node in range(kind.size):
        if kind[node] == arrays.HARD and child_ptr[node + 1] - child_ptr[node] > 1:
            nodes = child[child_ptr[node] : child_ptr[node + 1]]
            place = _first_of_shared_words(bits, first, last, place_of, nodes)
            out[node] = columns[place] if place >= 0 else -1
            if others.size > 0:
                found = _separating(bits, word, n_word, mask, lower, upper, columns, others, nodes.astype(np.int64))
                # of both searches the column that comes first
                if found >= 0 and (out[node] < 0 or found < out[node]):
                    out[node] = found
    return out
