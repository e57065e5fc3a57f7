"""Numbers taken apart: fractions and powers of two, common divisors, angles without jumps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array, as_real, is_number, number
from ._arrays import axis_of, constant, pair
from ._elementwise import mod, trunc, where
from ._reductions import any, cumsum, diff

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["modf", "frexp", "ldexp", "gcd", "lcm", "unwrap", "piecewise", "isreal", "iscomplex", "isrealobj", "iscomplexobj",
           "isscalar"]


def modf(x: ArrayLike) -> tuple[Array, Array]:
    """What is behind the point, and the whole number before it."""
    x = as_real(x)
    whole = trunc(x)
    return where(ops.is_finite(x), x - whole, where(ops.is_nan(x), x, number(0, x.dtype))), whole


_LARGEST_POWER = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}


def _power_of_two(k, dtype):
    """2^k exactly, for whole numbers k within the powers of the type."""
    import numpy as np
    top = _LARGEST_POWER[dtype]
    table = as_array(np.exp2(np.arange(1 - top, top + 1, dtype=np.float64)))
    return ops.gather(table if dtype == "f64" else ops.cast(table, to=dtype), k + (top - 1), axis=0)


def ldexp(x: ArrayLike, k: ArrayLike) -> Array:
    """x 2^k, where 2^k itself may be out of range."""
    x, k = as_real(x), as_array(k)
    k = k if k.dtype == "i32" else ops.cast(k, to="i32")
    top = _LARGEST_POWER[x.dtype] - 1
    for _ in range(4):
        part = ops.clamp(k, lo=-top, hi=top)
        x, k = x * _power_of_two(part, x.dtype), k - part
    return x


def frexp(x: ArrayLike) -> tuple[Array, Array]:
    """m and k with x = m 2^k, m from 0.5 to below 1; zeros and what is not finite stay as they are, with k = 0."""
    x = as_real(x)
    plain = ops.logical_and(ops.is_finite(x), x != 0)
    lift = {"f16": 12, "bf16": 24, "f32": 24, "f64": 54}[x.dtype]
    small = ops.abs(x) < 2.0 ** (2 - _LARGEST_POWER[x.dtype])  # lifted, so that its logarithm and its power are exact enough
    m = where(plain, where(small, x * 2.0 ** lift, x), number(1, x.dtype))
    k = ops.cast(ops.floor(ops.log(ops.abs(m)) * (1 / math.log(2))), to="i32") + 1
    m = ldexp(m, -k)
    high, low = ops.abs(m) >= 1.0, ops.abs(m) < 0.5  # the logarithm was rounded
    m = where(high, m * 0.5, where(low, m * 2.0, m))
    k = k + ops.cast(high, to="i32") - ops.cast(low, to="i32") - where(small, number(lift, "i32"), number(0, "i32"))
    return where(plain, m, x), where(plain, k, number(0, "i32"))


def gcd(a: ArrayLike, b: ArrayLike) -> Array:
    """The greatest common divisor."""
    from .._loops import while_loop

    a, b = pair(a, b)
    if a.dtype[0] not in "iu" or b.dtype != a.dtype:
        raise _rlx.Error(f"gcd: of {a.dtype} and {b.dtype}; it is for whole numbers of one type")
    a, b = ops.abs(a), ops.abs(b)
    a, b = a + ops.sub(b, b), b + ops.sub(a, a)  # one shape
    step = lambda s: (s[1], where(s[1] == 0, s[1], mod(s[0], where(s[1] == 0, number(1, a.dtype), s[1]))))
    keep = lambda s: (where(s[1] == 0, s[0], step(s)[0]), step(s)[1])
    return while_loop(lambda s: any(s[1] != 0), keep, (a, b))[0]


def lcm(a: ArrayLike, b: ArrayLike) -> Array:
    """The least common multiple."""
    a, b = pair(a, b)
    divisor = gcd(a, b)
    return ops.abs(ops.mul(ops.div(a, where(divisor == 0, number(1, a.dtype), divisor)), b))


def unwrap(x: ArrayLike, discont=None, axis=-1, *, period=2 * math.pi) -> Array:
    """Angles without jumps: neighbours differ by at most half a period, where they differed by more than discont."""
    x = as_real(x)
    axis = axis_of(axis, x.ndim, "unwrap")
    if x.shape[axis] < 2:
        return x
    half = period / 2
    step = diff(x, axis=axis)
    near = mod(step + half, period) - half
    near = where(ops.logical_and(near == -half, step > 0), number(half, x.dtype), near)
    change = where(ops.abs(step) < (half if discont is None else max(discont, half)), number(0, x.dtype), near - step)
    first = ops.narrow(x, axis=axis, start=0, len=1)
    rest = ops.narrow(x, axis=axis, start=1, len=x.shape[axis] - 1)
    return ops.concat(first, rest + cumsum(change, axis), axis=axis)


def piecewise(x: ArrayLike, conditions, functions, *args, **kwargs) -> Array:
    """Each function where its condition holds, a later one before an earlier; one function more is for the rest."""
    x = as_array(x)
    conditions = list(conditions) if isinstance(conditions, (list, tuple)) else [conditions]
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise _rlx.Error(f"piecewise: {len(functions)} functions for {len(conditions)} conditions; as many, or one more")
    value = lambda f: f(x, *args, **kwargs) if callable(f) else number(f, x.dtype) if is_number(f) else as_array(f)
    out = value(functions[-1]) if len(functions) > len(conditions) else number(0, x.dtype)
    for condition, function in zip(conditions, functions):
        out = where(condition, value(function), out)
    return ops.expand(out, shape=x.shape)


def isreal(x: ArrayLike) -> Array:
    x = as_array(x)
    return ops.imag(x) == 0 if x.dtype == "c64" else ops.full(shape=("bool", x.shape), value=1)


def iscomplex(x: ArrayLike) -> Array:
    return ops.logical_not(isreal(x))


def iscomplexobj(x: ArrayLike) -> bool:
    return as_array(x).dtype == "c64"


def isrealobj(x: ArrayLike) -> bool:
    return not iscomplexobj(x)


def isscalar(x) -> bool:
    return is_number(x) or hasattr(x, "dtype") and getattr(x, "ndim", None) == 0 and not isinstance(x, _rlx.Array)
