"""One-line loops over 1-D views of a block of rows.

Small functions over contiguous views are what the compiler vectorises; the same expressions written with ``M[n, i]``
inside a large kernel are several times slower. Every function works on ``out.size`` (or the stated size) entries.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_exp, fast_log


@kernel
def add(x, out):
    """Add x to out."""
    for i in range(out.size):
        out[i] += x[i]


@kernel
def multiply(x, out):
    """Multiply out by x."""
    for i in range(out.size):
        out[i] *= x[i]


@kernel
def add_and_multiply(x, factor, m, s):
    """Add x to m, and multiply s by factor."""
    for i in range(s.size):
        m[i] += x[i]
        s[i] *= factor[i]


@kernel
def add_gathered(table, code, out):
    """Add table[code] to out."""
    for i in range(out.size):
        out[i] += table[code[i]]


@kernel
def gather(table, code, out):
    """Copy table[code] to out."""
    for i in range(out.size):
        out[i] = table[code[i]]


@kernel
def put_where(flags, value, out):
    """Set out to one value where a flag is raised."""
    for i in range(out.size):
        out[i] = value if flags[i] else out[i]


@kernel
def scatter(x, place, out):
    """Copy x to some places of out."""
    for i in range(x.size):
        out[place[i]] = x[i]


@kernel
def shifted(x, shift, out):
    """Copy x + shift to out."""
    for i in range(out.size):
        out[i] = x[i] + shift


@kernel
def max_shifted(x, shift, out):
    """Raise out to x + shift where that is larger."""
    for i in range(out.size):
        # a choice in place of max(), whose rules for NaN keep the loop from vectorising
        t = x[i] + shift
        out[i] = t if t > out[i] else out[i]


@kernel
def first_term(x, factor, shift, m, term, s):
    """Set term and s to factor * exp(x + shift - m)."""
    for i in range(s.size):
        t = fast_exp(x[i] + shift - m[i]) * factor[i]
        term[i] = t
        s[i] = t


@kernel
def next_term(x, factor, shift, m, term, s):
    """Set term to factor * exp(x + shift - m) and add it to s."""
    for i in range(s.size):
        t = fast_exp(x[i] + shift - m[i]) * factor[i]
        term[i] = t
        s[i] += t


@kernel
def first_leaf_term(x, shift, m, term, s):
    """Set term and s to exp(x + shift - m)."""
    for i in range(s.size):
        t = fast_exp(x[i] + shift - m[i])
        term[i] = t
        s[i] = t


@kernel
def next_leaf_term(x, shift, m, term, s):
    """Set term to exp(x + shift - m) and add it to s."""
    for i in range(s.size):
        t = fast_exp(x[i] + shift - m[i])
        term[i] = t
        s[i] += t


@kernel
def two_leaf_terms(x0, x1, w0, w1, m, s, e0, e1):
    """Fill the pair (s, m) and both terms of a weighted sum of two leaves, in one pass."""
    for i in range(s.size):
        a = x0[i] + w0
        b = x1[i] + w1
        t = a if a > b else b
        a = fast_exp(a - t)
        b = fast_exp(b - t)
        m[i] = t
        e0[i] = a
        e1[i] = b
        s[i] = a + b


@kernel
def three_leaf_terms(x0, x1, x2, w0, w1, w2, m, s, e0, e1, e2):
    """Fill the pair (s, m) and all terms of a weighted sum of three leaves, in one pass."""
    for i in range(s.size):
        a = x0[i] + w0
        b = x1[i] + w1
        c = x2[i] + w2
        t = a if a > b else b
        t = t if t > c else c
        a = fast_exp(a - t)
        b = fast_exp(b - t)
        c = fast_exp(c - t)
        m[i] = t
        e0[i] = a
        e1[i] = b
        e2[i] = c
        s[i] = (a + b) + c


@kernel
def scaled(x, factor, m, out):
    """Fill out with factor * exp(x - m)."""
    for i in range(out.size):
        out[i] = fast_exp(x[i] - m[i]) * factor[i]


@kernel
def add_times(x, weight, out):
    """Add weight * x to out."""
    for i in range(out.size):
        out[i] += weight * x[i]


@kernel
def divided(x, weight, by, out):
    """Fill out with weight * x / by."""
    for i in range(out.size):
        out[i] = weight * x[i] / by[i]


@kernel
def least(x):
    """Return the least entry."""
    value = np.inf
    for i in range(x.size):
        value = x[i] if x[i] < value else value
    return value


@kernel
def only_term(x, factor, shift, m, term, s):
    """Where x + shift is possible, set m to it and s and the term to factor; return in how many m was possible before.

    Where x + shift is impossible the term is 0.
    """
    n_more = 0
    for i in range(s.size):
        t = x[i] + shift
        n_more += (t > -np.inf) & (m[i] > -np.inf)
        m[i] = t if t > -np.inf else m[i]
        s[i] = factor[i] if t > -np.inf else s[i]
        term[i] = factor[i] if t > -np.inf else 0.0
    return n_more


@kernel
def only_of_two(x0, x1, f0, f1, w0, w1, m, s, e0, e1):
    """Do as `only_term` for both children of a sum, in one pass."""
    n_more = 0
    for i in range(s.size):
        a, b = x0[i] + w0, x1[i] + w1
        p, q = f0[i] if a > -np.inf else 0.0, f1[i] if b > -np.inf else 0.0
        n_more += (a > -np.inf) & (b > -np.inf)
        m[i] = b if b > -np.inf else a
        s[i] = p + q
        e0[i] = p
        e1[i] = q
    return n_more


@kernel
def chosen_terms(x, factor, shift, m, positions, term):
    """Set term to factor * exp(x + shift - m) at some positions."""
    for j in range(positions.size):
        i = positions[j]
        term[i] = fast_exp(x[i] + shift - m[i]) * factor[i]


@kernel
def fold(m, s):
    """Move the linear factor into the exponent: (s, m) -> (1, m + log s), impossible rows kept impossible."""
    for i in range(s.size):
        if s[i] > 0.0:
            m[i] += fast_log(s[i])
            s[i] = 1.0
        else:
            m[i] = -np.inf


@kernel
def log_value(m, s, out):
    """Fill out with log(s exp(m))."""
    for i in range(out.size):
        out[i] = m[i] + fast_log(s[i]) if s[i] > 0.0 else -np.inf


@kernel
def one_where_missing(missing, m, s):
    """Set the pair of missing cells to exactly one: they are marginalised."""
    for i in range(s.size):
        if missing[i]:
            m[i] = 0.0
            s[i] = 1.0


@kernel
def one_unless(seen, m, s):
    """Set the pair of rows without an observed cell to exactly one."""
    for i in range(s.size):
        if not seen[i]:
            m[i] = 0.0
            s[i] = 1.0


@kernel
def negate(flags, out):
    """Copy the opposite of flags to out."""
    for i in range(out.size):
        out[i] = not flags[i]


@kernel
def either(flags, out):
    """Raise out where a flag is raised."""
    for i in range(out.size):
        out[i] = out[i] or flags[i]


@kernel
def mask_atoms(at_atom, out):
    """Set the log density of entries at an atom to -inf: there the atom alone has a say."""
    for i in range(out.size):
        out[i] = -np.inf if at_atom[i] else out[i]


@kernel
def truncate(x, lo, hi, log_mass, out):
    """Divide densities by the mass of the closed interval lo ... hi, and set those of entries outside to 0 (logs)."""
    for i in range(out.size):
        out[i] = out[i] - log_mass if lo <= x[i] <= hi else -np.inf


@kernel
def at_point(x, point, value, out):
    """Set the log density to `value` at one point, and to -inf elsewhere."""
    for i in range(out.size):
        out[i] = value if x[i] == point else -np.inf


@kernel
def split_in_two(rows, u, e0, e1, out0, n0, out1, n1):
    """Append each row to one of two lists, without branches; u is uniform on [0, 1).

    ``u (e0 + e1) < e0`` chooses the first. Lists need one slot more than they can hold.
    """
    for j in range(rows.size):
        i = rows[j]
        # both lists get the row, one of them advances: cheaper than a branch that is mispredicted every other time
        left = u[j] * (e0[i] + e1[i]) < e0[i]
        out0[n0] = i
        out1[n1] = i
        n0 += left
        n1 += not left
    return n0, n1


@kernel
def split_in_three(rows, u, e, out0, n0, out1, n1, out2, n2):
    """Append each row to one of three lists, without branches."""
    e0, e1, e2 = e[0], e[1], e[2]
    for j in range(rows.size):
        i = rows[j]
        b = e0[i] + e1[i]
        t = u[j] * (b + e2[i])
        k0 = t < e0[i]
        # a target that rounds up to the total falls on the last
        k2 = (not k0) and t >= b
        out0[n0] = i
        out1[n1] = i
        out2[n2] = i
        n0 += k0
        n1 += not (k0 or k2)
        n2 += k2
    return n0, n1, n2


@kernel
def append_observed(rows, observed, out, n):
    """Append the rows with an observed cell to a list; return its new length."""
    for j in range(rows.size):
        out[n] = rows[j]
        n += observed[rows[j]]
    return n


@kernel
def append_all(rows, out, n):
    """Append all rows to a list; return its new length."""
    for j in range(rows.size):
        out[n + j] = rows[j]
    return n + rows.size


@kernel
def total_terms(term, positions, out):
    """Fill out with the sums of the terms, (n_child, ...), at some positions."""
    out[:] = 0.0
    for c in range(term.shape[0]):
        row = term[c]
        for j in range(out.size):
            out[j] += row[positions[j]]


@kernel
def count_reached(term, positions, target, reached, choice):
    """Add the term to what is reached, and one to the choice of every position whose target lies at or beyond it."""
    for j in range(choice.size):
        reached[j] += term[positions[j]]
        choice[j] += target[j] >= reached[j]
