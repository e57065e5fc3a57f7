"""Sums, extrema and the like of the elements that are numbers; those that are NaN count as missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import ops
from .._convert import as_array, as_real, number
from ._arrays import REALS, known
from ._elementwise import isnan, where
from ._reductions import argmax, argmin, between, cumprod, cumsum, last_axis, max, min, prod, sum

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike, Axis

__all__ = ["nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanvar", "nanstd", "nanmedian", "nanquantile", "nanpercentile",
           "nanargmax", "nanargmin", "nancumsum", "nancumprod"]


def _with(x, value):
    """x with a number in the place of each NaN."""
    x = as_array(x)
    return where(isnan(x), number(value, x.dtype), x) if x.dtype in REALS else x


def _count(x, axis, keepdims):
    return sum(ops.cast(ops.logical_not(isnan(x)), to=x.dtype), axis, keepdims=keepdims)


def nansum(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return sum(_with(x, 0), axis, keepdims=keepdims)


def nanprod(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return prod(_with(x, 1), axis, keepdims=keepdims)


def nancumsum(x: ArrayLike, axis: int | None = None) -> Array:
    return cumsum(_with(x, 0), axis)


def nancumprod(x: ArrayLike, axis: int | None = None) -> Array:
    return cumprod(_with(x, 1), axis)


def nanmean(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    x = as_real(x)
    return nansum(x, axis, keepdims) / _count(x, axis, keepdims)


def _extremum(choose, x, axis, keepdims, other):
    x = as_array(x)
    found = choose(_with(x, other), axis, keepdims)
    return found if x.dtype not in REALS else where(_count(x, axis, keepdims) == 0, number(math.nan, x.dtype), found)


def nanmax(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return _extremum(max, x, axis, keepdims, -math.inf)


def nanmin(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return _extremum(min, x, axis, keepdims, math.inf)


def nanargmax(x: ArrayLike, axis: int | None = None, keepdims=False) -> Array:
    return argmax(_with(x, -math.inf), axis, keepdims)


def nanargmin(x: ArrayLike, axis: int | None = None, keepdims=False) -> Array:
    return argmin(_with(x, math.inf), axis, keepdims)


def nanvar(x: ArrayLike, axis: Axis = None, ddof=0, keepdims=False) -> Array:
    x = as_real(x)
    d = where(isnan(x), number(0, x.dtype), x - nanmean(x, axis, True))
    return sum(d * d, axis, keepdims=keepdims) / (_count(x, axis, keepdims) - ddof)


def nanstd(x: ArrayLike, axis: Axis = None, ddof=0, keepdims=False) -> Array:
    return ops.sqrt(nanvar(x, axis, ddof, keepdims))


def nanquantile(x: ArrayLike, q, axis: Axis = None, keepdims=False) -> Array:
    """The values below which the shares q of the numbers lie, linear between two of them."""
    x, q = as_real(x), known(q, "nanquantile", "q")
    flat, wide = last_axis(x, axis)
    ordered = ops.sort(_with(flat, math.inf), axis=-1)[0]
    count = sum(ops.cast(ops.logical_not(isnan(flat)), to="i32"), -1, keepdims=True)
    last = ops.max(count - 1, number(0, "i32"))

    def one(share):
        if flat.shape[-1] == 0:
            return ops.full(shape=(x.dtype, wide if keepdims else flat.shape[:-1]), value=math.nan)
        at = ops.cast(last, to=x.dtype) * share
        low = ops.floor(at)
        part = at - low
        low = ops.cast(low, to="i32")
        a = ops.take_along(ordered, low, axis=-1)
        b = ops.take_along(ordered, ops.min(low + 1, last), axis=-1)
        y = where(part == 0, a, between(a, b, part))  # the next one may be infinite
        y = where(count == 0, number(math.nan, x.dtype), y)
        return ops.reshape(y, shape=wide if keepdims else flat.shape[:-1])

    if q.ndim == 0:
        return one(float(q))
    parts = [one(float(s)) for s in q.ravel()]
    stacked = ops.concat(*[ops.reshape(p, shape=(1,) + p.shape) for p in parts], axis=0)
    return ops.reshape(stacked, shape=q.shape + parts[0].shape)


def nanpercentile(x: ArrayLike, q, axis: Axis = None, keepdims=False) -> Array:
    return nanquantile(x, known(q, "nanpercentile", "q") / 100.0, axis, keepdims)


def nanmedian(x: ArrayLike, axis: Axis = None, keepdims=False) -> Array:
    return nanquantile(x, 0.5, axis, keepdims)
