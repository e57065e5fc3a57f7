"""Sorting, searching, counting; what gives sizes that depend on contents runs at once only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array, as_real, number, real_pair
from ._arrays import constant, known, pair
from ._elementwise import _truth, isclose, where
from ._reductions import all, sum

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["sort", "argsort", "partition", "argpartition", "searchsorted", "digitize", "bincount", "histogram", "interp", "nonzero",
           "flatnonzero", "argwhere", "unique", "compress", "extract", "allclose", "array_equal", "isin", "convolve", "correlate",
           "put_along_axis", "choose", "lexsort", "array_equiv"]


def sort(x: ArrayLike, axis=-1, descending=False) -> Array:
    x = as_array(x)
    return ops.sort(x if axis is not None else x.flatten(), axis=-1 if axis is None else axis, descending=descending)[0]


def argsort(x: ArrayLike, axis=-1, descending=False) -> Array:
    x = as_array(x)
    return ops.argsort(x if axis is not None else x.flatten(), axis=-1 if axis is None else axis, descending=descending)


def partition(x: ArrayLike, kth, axis=-1) -> Array:
    """Sorted altogether, which is a partition by every element."""
    return sort(x, axis)


def argpartition(x: ArrayLike, kth, axis=-1) -> Array:
    return argsort(x, axis)


def searchsorted(a: ArrayLike, v: ArrayLike, side="left") -> Array:
    """Where v would go into the sorted a, as i32."""
    a, v = pair(a, v)
    if side not in ("left", "right"):
        raise _rlx.Error(f"searchsorted: side '{side}'; it is left or right")
    wide = ops.reshape(v, shape=v.shape + (1,))
    return sum(a < wide if side == "left" else a <= wide, -1)


def digitize(x: ArrayLike, bins: ArrayLike, right=False) -> Array:
    """The number of the bin of each element; bins go up or down."""
    bins = as_array(bins)
    edges = known(bins, "digitize", "the order of bins")
    if len(edges) > 1 and edges[0] > edges[-1]:
        return len(edges) - searchsorted(ops.flip(bins, axes=(0,)), x, "right" if right else "left")
    return searchsorted(bins, x, "left" if right else "right")


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength=0, length=None) -> Array:
    """How often each number occurs. While a function is traced, length must say how many numbers there are."""
    x = as_array(x)
    if length is None:
        length = max(int(known(x, "bincount", "its length").max(initial=-1)) + 1, minlength)
    w = ops.full(shape=("i32", x.shape), value=1) if weights is None else as_array(weights)
    return ops.scatter(ops.full(shape=(w.dtype, (length,)), value=0), x, w, kind="add")


def histogram(x: ArrayLike, bins=10, range=None, weights: ArrayLike | None = None) -> tuple:
    import numpy as np
    x = as_real(x).flatten()
    if isinstance(bins, int):
        edges = np.histogram_bin_edges(known(x, "histogram", "its range") if range is None else np.zeros(0), bins, range)
    else:
        edges = known(bins, "histogram", "the edges")
    edges = constant(edges, x.dtype)
    n = edges.shape[0] - 1
    at = searchsorted(edges, x, "right") - 1
    at = ops.where(x == edges[-1], number(n - 1, "i32"), at)
    inside = ops.logical_and(at >= 0, at < n)
    w = ops.full(shape=("i32", x.shape), value=1) if weights is None else as_array(weights).flatten()
    w = ops.where(inside, w, number(0, w.dtype))
    return ops.scatter(ops.full(shape=(w.dtype, (n,)), value=0), ops.clamp(at, lo=0, hi=n - 1), w, kind="add"), edges


def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left=None, right=None) -> Array:
    """Linear between the points (xp, fp)."""
    x, xp = real_pair(x, xp)
    fp = as_real(fp)
    n = xp.shape[0]
    hi = ops.clamp(searchsorted(xp, x, "right"), lo=1, hi=n - 1)
    x0, x1 = ops.gather(xp, hi - 1, axis=0), ops.gather(xp, hi, axis=0)
    y0, y1 = ops.gather(fp, hi - 1, axis=0), ops.gather(fp, hi, axis=0)
    width = ops.where(x1 == x0, number(1, x.dtype), x1 - x0)
    y = y0 + (y1 - y0) * ((x - x0) / width)
    y = where(x < xp[0], fp[0] if left is None else left, y)
    return where(x > xp[-1], fp[-1] if right is None else right, y)


def nonzero(x: ArrayLike) -> tuple:
    return tuple(map(constant, known(x, "nonzero", "its size").nonzero()))


def flatnonzero(x: ArrayLike) -> Array:
    return nonzero(as_array(x).flatten())[0]


def argwhere(x: ArrayLike) -> Array:
    import numpy as np
    return constant(np.argwhere(known(x, "argwhere", "its size")))


def unique(x: ArrayLike, return_index=False, return_inverse=False, return_counts=False):
    import numpy as np
    x = as_array(x)
    found = np.unique(known(x, "unique", "its size"), return_index, return_inverse, return_counts)
    if not isinstance(found, tuple):
        return constant(found, x.dtype)
    return (constant(found[0], x.dtype),) + tuple(map(constant, found[1:]))


def compress(condition: ArrayLike, x: ArrayLike, axis=None) -> Array:
    x = as_array(x)
    keep = constant(known(condition, "compress", "its size").nonzero()[0])
    return ops.gather(x if axis is not None else x.flatten(), keep, axis=axis or 0)


def extract(condition: ArrayLike, x: ArrayLike) -> Array:
    return compress(as_array(condition).flatten(), x)


def choose(index: ArrayLike, choices) -> Array:
    index = as_array(index)
    out = as_array(choices[-1])
    for i in reversed(range(len(choices) - 1)):
        out = where(index == i, choices[i], out)
    return out


def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, axis) -> Array:
    """A changed copy: values at the indices along an axis."""
    import numpy as np
    x, indices = as_array(x), as_array(indices)
    axis %= x.ndim
    key = []
    for i, d in enumerate(indices.shape):
        shape = tuple(-1 if k == i else 1 for k in range(x.ndim))
        key.append(indices if i == axis else constant(np.arange(d).reshape(shape)))
    return x.at[tuple(key)].set(values)


def allclose(a: ArrayLike, b: ArrayLike, rtol=1e-5, atol=1e-8, equal_nan=False) -> bool:
    return bool(all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a: ArrayLike, b: ArrayLike) -> bool:
    a, b = as_array(a), as_array(b)
    return a.shape == b.shape and a.dtype == b.dtype and bool(all(a == b))


def isin(x: ArrayLike, values: ArrayLike, invert=False) -> Array:
    x, values = pair(x, values)
    found = ops.any(ops.reshape(x, shape=x.shape + (1,)) == values.flatten(), axes=(-1,))
    return ops.logical_not(found) if invert else found


def correlate(a: ArrayLike, v: ArrayLike, mode="valid") -> Array:
    """c[k] = sum over n of a[n + k] v[n]."""
    a, v = as_array(a), as_array(v)
    n, m = a.shape[0], v.shape[0]
    if m > n:
        return ops.flip(correlate(v, a, mode), axes=(0,))
    ends = {"valid": (0, 0), "same": (m // 2, m - 1 - m // 2), "full": (m - 1, m - 1)}
    if mode not in ends:
        raise _rlx.Error(f"correlate: mode '{mode}'; it is one of {', '.join(ends)}")
    y = ops.conv1d(ops.reshape(a, shape=(1, 1, n)), ops.reshape(v, shape=(1, 1, m)), padding=ends[mode])
    return ops.reshape(y, shape=(-1,))


def convolve(a: ArrayLike, v: ArrayLike, mode="full") -> Array:
    """c[k] = sum over n of a[k - n] v[n]."""
    a, v = as_array(a), as_array(v)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    n, m = a.shape[0], v.shape[0]
    ends = {"valid": (0, 0), "same": ((m - 1) - (m - 1) // 2, (m - 1) // 2), "full": (m - 1, m - 1)}
    if mode not in ends:
        raise _rlx.Error(f"convolve: mode '{mode}'; it is one of {', '.join(ends)}")
    low, high = ends[mode]
    if mode == "same":  # the middle of the full one
        low, high = m - 1 - (m - 1) // 2, (m - 1) // 2
    kernel = ops.reshape(ops.flip(v, axes=(0,)), shape=(1, 1, m))
    return ops.reshape(ops.conv1d(ops.reshape(a, shape=(1, 1, n)), kernel, padding=(low, high)), shape=(-1,))


def polyval(p: ArrayLike, x: ArrayLike) -> Array:
    """The polynomial with these coefficients, the highest power first."""
    p, x = as_array(p), as_array(x)
    out = ops.expand(p[0], shape=x.shape)
    for i in range(1, p.shape[0]):
        out = out * x + p[i]
    return out


def lexsort(keys, axis=-1) -> Array:
    """The order by the last key, that of equals by the one before it, and so on."""
    keys = [as_array(k) for k in keys]
    order = argsort(keys[0], axis)
    for key in keys[1:]:
        order = ops.take_along(order, argsort(ops.take_along(key, order, axis=axis), axis), axis=axis)
    return order


def array_equiv(a: ArrayLike, b: ArrayLike) -> bool:
    """Whether one is the other, repeated along axes of size 1."""
    import numpy as np
    a, b = as_array(a), as_array(b)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return a.dtype == b.dtype and bool(all(a == b))
