"""Polynomials as arrays of coefficients, the highest power first; and windows of signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array, as_real, number
from ._arrays import constant, pair
from ._ordering import convolve, polyval

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["polyval", "polyadd", "polysub", "polymul", "polyder", "polyint", "polyfit", "bartlett", "blackman", "hamming",
           "hanning", "kaiser"]


def _alike(a, b):
    """Both with as many coefficients, zeros in front of the shorter one."""
    a, b = pair(a, b)
    a, b = (ops.reshape(x, shape=(1,)) if x.ndim == 0 else x for x in (a, b))
    n = max(a.shape[0], b.shape[0])
    longer = lambda x: x if x.shape[0] == n else ops.concat(ops.full(shape=(x.dtype, (n - x.shape[0],)), value=0), x, axis=0)
    return longer(a), longer(b)


def polyadd(a: ArrayLike, b: ArrayLike) -> Array:
    return ops.add(*_alike(a, b))


def polysub(a: ArrayLike, b: ArrayLike) -> Array:
    return ops.sub(*_alike(a, b))


def polymul(a: ArrayLike, b: ArrayLike) -> Array:
    return convolve(as_real(a), as_real(b))


def polyder(p: ArrayLike, m=1) -> Array:
    """The coefficients of the m-th derivative."""
    p = as_array(p)
    for _ in range(m):
        n = p.shape[0]
        if n < 2:
            return ops.narrow(p, axis=0, start=0, len=0)
        p = ops.narrow(p, axis=0, start=0, len=n - 1) * constant(list(range(n - 1, 0, -1)), p.dtype)
    return p


def polyint(p: ArrayLike, m=1, k=0.0) -> Array:
    """The coefficients of the m-th integral with the constant k."""
    p = as_real(p)
    for _ in range(m):
        n = p.shape[0]
        p = ops.concat(p / constant(list(range(n, 0, -1)), p.dtype), ops.full(shape=(p.dtype, (1,)), value=k), axis=0)
    return p


def polyfit(x: ArrayLike, y: ArrayLike, degree) -> Array:
    """The coefficients whose polynomial is nearest to y at x, in the sum of squares."""
    from ._creation import vander
    from .linalg import lstsq

    x, y = as_real(x), as_real(y)
    if degree < 0 or x.shape[0] <= degree:
        raise _rlx.Error(f"polyfit: degree {degree} by {x.shape[0]} points; more points than the degree are needed")
    powers = vander(x, degree + 1)
    scale = ops.sqrt(ops.reduce(powers * powers, kind="sum", axes=(0,)))
    scale = ops.where(scale == 0, number(1, x.dtype), scale)
    found = lstsq(powers / scale, y)[0]
    return found / (scale if y.ndim == 1 else ops.reshape(scale, shape=(-1, 1)))


def _window(name):
    def function(size, *args) -> Array:
        import numpy as np
        return constant(getattr(np, name)(size, *args))

    function.__name__ = name
    return function


bartlett, blackman, hamming, hanning, kaiser = map(_window, ("bartlett", "blackman", "hamming", "hanning", "kaiser"))
