"""Sums, means, extrema and what is made of them, over axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array, as_real, dtype_name, number
from .._methods import reduce
from ._arrays import axes_of, axis_of, known
from ._elementwise import _truth, isnan, where

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike, Axis

__all__ = ["sum", "mean", "max", "min", "amax", "amin", "prod", "all", "any", "var", "std", "argmax", "argmin", "cumsum",
           "cumprod", "ptp", "average", "count_nonzero", "median", "quantile", "percentile", "diff", "ediff1d", "trapezoid", "cov", "corrcoef", "gradient",
           "cumulative_sum", "cumulative_prod"]


def _counted(x, dtype):
    """Truths are counted as whole numbers; dtype asks for another type."""
    x = as_array(x)
    wanted = dtype_name(dtype) if dtype is not None else "i32" if x.dtype == "bool" else x.dtype
    return ops.cast(x, to=wanted) if x.dtype != wanted else x


def _size(x, axis):
    n = 1
    for a in axes_of(axis) if axis is not None else range(x.ndim):
        n *= x.shape[a]
    return n


def _only(x, chosen, other):
    """x where it is chosen, elsewhere a number that takes no part."""
    return x if chosen is None else where(as_array(chosen), x, number(other, x.dtype))


def _count(x, chosen, axis, keepdims):
    """How many are chosen."""
    return reduce(ops.cast(ops.expand(as_array(chosen), shape=x.shape), to=x.dtype), "sum", axis, keepdims)


def sum(x: ArrayLike, axis: Axis = None, keepdims=False, *, dtype=None, initial=None, where=None) -> Array:
    found = reduce(_only(_counted(x, dtype), where, 0), "sum", axis, keepdims)
    return found if initial is None else found + initial


def mean(x: ArrayLike, axis: Axis = None, keepdims=False, *, dtype=None, where=None) -> Array:
    x = as_real(x) if dtype is None else _counted(x, dtype)
    if where is None:
        return reduce(x, "mean", axis, keepdims)
    return reduce(_only(x, where, 0), "sum", axis, keepdims) / _count(x, where, axis, keepdims)


def prod(x: ArrayLike, axis: Axis = None, keepdims=False, *, dtype=None, initial=None, where=None) -> Array:
    found = reduce(_only(_counted(x, dtype), where, 1), "prod", axis, keepdims)
    return found if initial is None else found * initial


def _extremum(x, kind, axis, keepdims, initial, chosen):
    x = as_array(x)
    if x.dtype == "bool":  # false < true
        x = ops.cast(x, to="u8")
        return _extremum(x, kind, axis, keepdims, initial, chosen).astype("bool")
    if chosen is not None and initial is None:
        raise _rlx.Error(f"{kind}: where leaves nothing to choose from if it is false everywhere; give initial as well")
    found = reduce(x if chosen is None else _only(as_array(x), chosen, initial), kind, axis, keepdims)
    return found if initial is None else getattr(ops, kind)(found, number(initial, found.dtype))


def max(x: ArrayLike, axis: Axis = None, keepdims=False, *, initial=None, where=None) -> Array:
    return _extremum(x, "max", axis, keepdims, initial, where)


def min(x: ArrayLike, axis: Axis = None, keepdims=False, *, initial=None, where=None) -> Array:
    return _extremum(x, "min", axis, keepdims, initial, where)


amax, amin = max, min


def ptp(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def _of_truths(op, x, axis, keepdims):
    return x if axis == () else op(x, axes=axes_of(axis), keep_dim=keepdims)  # the operators take no axes for all of them


def all(x: ArrayLike, axis: Axis = None, keepdims=False, *, where=None) -> Array:
    return _of_truths(ops.all, _only(_truth(x), where, True), axis, keepdims)


def any(x: ArrayLike, axis: Axis = None, keepdims=False, *, where=None) -> Array:
    return _of_truths(ops.any, _only(_truth(x), where, False), axis, keepdims)


def count_nonzero(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return sum(_truth(x), axis, keepdims=keepdims)


def var(x: ArrayLike, axis: Axis = None, ddof=0, keepdims=False, *, where=None) -> Array:
    x = as_real(x)
    if axis != () and where is None:
        return ops.variance(x, axes=axes_of(axis), keep_dim=keepdims, correction=float(ddof))
    chosen = True if where is None else where
    apart = x - mean(x, axis, True, where=chosen)
    return sum(apart * apart, axis, keepdims, where=chosen) / (_count(x, chosen, axis, keepdims) - float(ddof))


def std(x: ArrayLike, axis: Axis = None, ddof=0, keepdims=False, *, where=None) -> Array:
    return ops.sqrt(var(x, axis, ddof, keepdims, where=where))


def average(x: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, keepdims=False) -> Array:
    x = as_real(x)
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    w = as_real(weights)
    if w.ndim != x.ndim and w.ndim == 1 and isinstance(axis, int):
        w = ops.reshape(w, shape=tuple(-1 if i == axis % x.ndim else 1 for i in range(x.ndim)))
        w = ops.expand(w, shape=x.shape)
    return sum(x * w, axis, keepdims=keepdims) / sum(w, axis, keepdims=keepdims)


def _arg(op, x, axis, keepdims):
    x = as_array(x)
    if axis is None:
        at = op(x.flatten(), axis=0)
        return ops.reshape(at, shape=(1,) * x.ndim) if keepdims else at
    return op(x, axis=axis, keep_dim=keepdims)


def argmax(x: ArrayLike, axis: int | None = None, keepdims=False) -> Array:
    return _arg(ops.argmax, x, axis, keepdims)


def argmin(x: ArrayLike, axis: int | None = None, keepdims=False) -> Array:
    return _arg(ops.argmin, x, axis, keepdims)


def cumsum(x: ArrayLike, axis: int | None = None, dtype=None) -> Array:
    x = _counted(x, dtype)
    return ops.cumsum(x.flatten() if axis is None else x, axis=0 if axis is None else axis)


def cumprod(x: ArrayLike, axis: int | None = None, dtype=None) -> Array:
    x = _counted(x, dtype)
    return ops.cumprod(x.flatten() if axis is None else x, axis=0 if axis is None else axis)


cumulative_sum, cumulative_prod = cumsum, cumprod


def last_axis(x, axis):
    """The reduced axes as one, behind the others; and the shape with them as 1."""
    axes = tuple(range(x.ndim)) if axis is None else tuple(axis_of(a, x.ndim, "quantile") for a in axes_of(axis))
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    flat = ops.reshape(ops.transpose(x, perm=kept + axes), shape=tuple(x.shape[i] for i in kept) + (_size(x, axes),))
    return flat, tuple(1 if i in axes else d for i, d in enumerate(x.shape))


def between(a, b, part):
    """The number that lies so far from a to b; infinite ones have no difference."""
    return where(ops.is_finite(b - a), a + (b - a) * part, where(part == 0, a, a * (1.0 - part) + b * part))


def quantile(x: ArrayLike, q, axis: Axis = None, method="linear", keepdims=False) -> Array:
    """The values below which the shares q of the elements lie; between two elements as `method` says."""
    x, q = as_real(x), known(q, "quantile", "q")
    flat, wide = last_axis(x, axis)
    ordered = ops.sort(flat, axis=-1)[0]
    n = flat.shape[-1]

    def one(share):
        if n == 0:
            return ops.full(shape=(x.dtype, wide if keepdims else flat.shape[:-1]), value=math.nan)
        at = share * (n - 1)
        low = int(math.floor(at))
        high = low + 1 if low + 1 < n else low
        part = {"linear": at - low, "lower": 0.0, "higher": float(at > low), "midpoint": 0.5 * (at > low),
                "nearest": float(round(at) > low)}
        if method not in part:
            raise _rlx.Error(f"quantile: method '{method}'; it is one of {', '.join(part)}")
        a, b = ordered[..., low], ordered[..., high]
        y = between(a, b, number(part[method], a.dtype)) if part[method] else a
        y = where(any(isnan(flat), -1), number(math.nan, y.dtype), y)
        return ops.reshape(y, shape=wide) if keepdims else y

    if q.ndim == 0:
        return one(float(q))
    parts = [one(float(s)) for s in q.ravel()]
    stacked = ops.concat(*[ops.reshape(p, shape=(1,) + p.shape) for p in parts], axis=0)
    return ops.reshape(stacked, shape=q.shape + parts[0].shape)


def percentile(x: ArrayLike, q, axis: Axis = None, method="linear", keepdims=False) -> Array:
    return quantile(x, known(q, "percentile", "q") / 100.0, axis, method, keepdims)


def median(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return quantile(x, 0.5, axis, keepdims=keepdims)


# Of neighbours.


def diff(x: ArrayLike, n=1, axis=-1) -> Array:
    x = as_array(x)
    axis = axis_of(axis, x.ndim, "diff")
    for _ in range(n):
        size = x.shape[axis]
        if size == 0:
            break
        x = ops.narrow(x, axis=axis, start=1, len=size - 1) - ops.narrow(x, axis=axis, start=0, len=size - 1)
    return x


def ediff1d(x: ArrayLike) -> Array:
    return diff(as_array(x).flatten())


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx=1.0, axis=-1) -> Array:
    y = as_real(y)
    axis = axis_of(axis, y.ndim, "trapezoid")
    step = dx if x is None else diff(as_real(x))
    if x is not None and step.ndim == 1:
        step = ops.reshape(step, shape=tuple(-1 if i == axis else 1 for i in range(y.ndim)))
    n = y.shape[axis] - 1
    both = ops.narrow(y, axis=axis, start=1, len=n) + ops.narrow(y, axis=axis, start=0, len=n)
    return sum(both * step * 0.5, axis)


def gradient(x: ArrayLike, spacing=1.0, axis=None):
    """Central differences inside, one-sided ones at the ends; a list of one array an axis where there are several."""
    x = as_real(x)
    axes = range(x.ndim) if axis is None else axes_of(axis)

    def along(k):
        n = x.shape[k]
        if n < 2:
            raise _rlx.Error(f"gradient: axis {k} has size {n}; it needs at least 2")
        part = lambda start, count: ops.narrow(x, axis=k, start=start, len=count)
        ends = [part(1, 1) - part(0, 1), part(n - 1, 1) - part(n - 2, 1)]
        inner = [(part(2, n - 2) - part(0, n - 2)) * 0.5] if n > 2 else []
        return ops.concat(ends[0], *inner, ends[1], axis=k) / spacing

    out = [along(k) for k in axes]
    return out[0] if len(out) == 1 else out


def cov(x: ArrayLike, y: ArrayLike | None = None, rowvar=True, ddof=1) -> Array:
    """Covariances of the rows."""
    rows = [as_real(v) for v in (x, y) if v is not None]
    rows = [ops.reshape(r, shape=(1,) + r.shape) if r.ndim == 1 else r if rowvar else r.T for r in rows]
    m = ops.concat(*rows, axis=0) if len(rows) > 1 else rows[0]
    d = m - mean(m, 1, keepdims=True)
    c = ops.matmul(d, d.T) / float(m.shape[1] - ddof)
    return ops.reshape(c, shape=()) if c.shape == (1, 1) else c


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar=True) -> Array:
    from ._shape import diagonal

    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    s = ops.sqrt(diagonal(c))
    return c / (ops.reshape(s, shape=(-1, 1)) * ops.reshape(s, shape=(1, -1)))
