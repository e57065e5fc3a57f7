"""Functions of single elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable

from .. import _functions, _rlx, ops
from .._convert import as_array, as_real, number, real_pair
from .._methods import true_div
from ._arrays import pair

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["abs", "absolute", "exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "floor", "ceil", "sign", "log1p",
           "expm1", "isnan", "isfinite", "arctan", "rint", "negative", "logical_not", "invert", "fabs", "bitwise_not", "bitwise_invert",
           "atan", "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "fmod", "bitwise_and",
           "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "true_divide", "float_power", "pow",
           "bitwise_left_shift", "bitwise_right_shift", "equal", "not_equal", "less", "less_equal", "greater",
           "greater_equal", "logical_and", "logical_or", "logical_xor", "positive", "where", "clip", "round",
           "around", "trunc", "fix", "square", "reciprocal", "floor_divide", "mod", "remainder", "divmod", "sinh",
           "cosh", "arcsin", "arccos", "arctan2", "arcsinh", "arccosh", "arctanh", "asin", "acos", "atan2", "asinh",
           "acosh", "atanh", "log2", "log10", "exp2", "cbrt", "hypot", "logaddexp", "logaddexp2", "deg2rad",
           "rad2deg", "radians", "degrees", "heaviside", "signbit", "copysign", "fmax", "fmin", "isinf", "isposinf",
           "isneginf", "nan_to_num", "sinc", "isclose", "real", "imag", "conjugate", "conj", "angle", "select"]

_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}


def _unary(name, take=as_array) -> Callable[[ArrayLike], Array]:
    def function(x):
        return getattr(ops, name)(take(x))

    function.__name__, function.__doc__ = name, _functions.document(name)
    return function


def _real(name) -> Callable[[ArrayLike], Array]:
    """A function with real values, of whole numbers too."""
    return _unary(name, as_real)


def _to_whole(name) -> Callable[[ArrayLike], Array]:
    """A whole number near each element; what is whole already stays as it is."""
    function = _unary(name)

    def rounded(x):
        x = as_array(x)
        return function(x) if x.dtype in _LARGEST else x

    rounded.__name__, rounded.__doc__ = name, function.__doc__
    return rounded


def _binary(name) -> Callable[[ArrayLike, ArrayLike], Array]:
    def function(a, b):
        return getattr(ops, name)(*pair(a, b))

    function.__name__, function.__doc__ = name, _functions.document(name)
    return function


def _compare(kind) -> Callable[[ArrayLike, ArrayLike], Array]:
    def function(a, b):
        return ops.compare(*pair(a, b), kind=kind)

    function.__name__ = kind
    return function


abs = absolute = _unary("abs")
exp, log, sqrt, sin, cos, tan, tanh = map(_real, ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh"))
isnan, isfinite, arctan, log1p, expm1 = map(_real, ("is_nan", "is_finite", "atan", "log1p", "expm1"))
floor, ceil, rint = _to_whole("floor"), _to_whole("ceil"), _real("round")
sign, negative = map(_unary, ("sign", "neg"))
fabs, atan = abs, arctan

add, subtract, multiply, power = map(_binary, ("add", "sub", "mul", "pow"))
maximum, minimum, fmod = map(_binary, ("max", "min", "rem"))
bitwise_and, bitwise_or, bitwise_xor = map(_binary, ("bitwise_and", "bitwise_or", "bitwise_xor"))
left_shift, right_shift = map(_binary, ("shift_left", "shift_right"))
divide = true_divide = true_div
pow = power
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
equal, not_equal, less, less_equal, greater, greater_equal = map(_compare, ("eq", "ne", "lt", "le", "gt", "ge"))


def _truth(x):
    x = as_array(x)
    return x if x.dtype == "bool" else x != 0


def _logical(name) -> Callable[[ArrayLike, ArrayLike], Array]:
    def function(a, b):
        return getattr(ops, name)(_truth(a), _truth(b))

    function.__name__ = name
    return function


def logical_not(x: ArrayLike) -> Array:
    return ops.logical_not(_truth(x))


def invert(x: ArrayLike) -> Array:
    """Every bit turned; of truths the other one."""
    return ~as_array(x)


bitwise_not = bitwise_invert = invert


def float_power(a: ArrayLike, b: ArrayLike) -> Array:
    return ops.pow(*real_pair(a, b))


logical_and, logical_or, logical_xor = map(_logical, ("logical_and", "logical_or", "logical_xor"))


def positive(x: ArrayLike) -> Array:
    return as_array(x)


def where(condition: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    a, b = pair(a, b)
    return ops.where(_truth(condition), a, b)


def clip(x: ArrayLike, a_min=None, a_max=None, *, min=None, max=None) -> Array:
    """Elements limited to a range; the limits are numbers or arrays."""
    x = as_array(x)
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    plain = lambda v: v is None or isinstance(v, (int, float))
    if plain(low) and plain(high):
        return ops.clamp(x, lo=-math.inf if low is None else low, hi=math.inf if high is None else high)
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


def round(x: ArrayLike, decimals=0) -> Array:
    """Nearest number with so many decimals, halves to even."""
    x = as_array(x)
    if decimals == 0 or x.dtype not in _LARGEST:
        return x if x.dtype not in _LARGEST else ops.round(x)
    return ops.div(ops.round(ops.mul(x, 10.0 ** decimals)), 10.0 ** decimals)


around = round


def trunc(x: ArrayLike) -> Array:
    """Towards zero."""
    x = as_array(x)
    if x.dtype not in _LARGEST:
        return x
    return ops.where(x < 0, ops.ceil(x), ops.floor(x))


fix = trunc


def square(x: ArrayLike) -> Array:
    x = as_array(x)
    return ops.mul(x, x)


def reciprocal(x: ArrayLike) -> Array:
    x = as_real(x)
    return ops.div(number(1, x.dtype), x)


def floor_divide(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = pair(a, b)
    return a // b


def mod(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = pair(a, b)
    return a % b


remainder = mod


def divmod(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    a, b = pair(a, b)
    return a // b, a % b


def sinh(x: ArrayLike) -> Array:
    # Near 0 the difference of two exponentials cancels; u = e^x - 1 does not.
    x = as_real(x)
    near = ops.abs(x) < 1.0
    u = ops.expm1(ops.where(near, x, number(0, x.dtype)))
    return ops.where(near, (u + u / (u + 1.0)) * 0.5, (ops.exp(x) - ops.exp(-x)) * 0.5)


def cosh(x: ArrayLike) -> Array:
    x = as_real(x)
    return (ops.exp(x) + ops.exp(-x)) * 0.5


def arcsin(x: ArrayLike) -> Array:
    x = as_real(x)
    return ops.atan(x / ops.sqrt((1.0 - x) * (1.0 + x)))


def arccos(x: ArrayLike) -> Array:
    x = as_real(x)
    return ops.atan(ops.sqrt((1.0 - x) / (1.0 + x))) * 2.0


def arctan2(y: ArrayLike, x: ArrayLike) -> Array:
    """The angle of (x, y), from -pi to pi; zeros have signs."""
    y, x = real_pair(y, x)
    steep = ops.abs(y) > ops.abs(x)
    top, bottom = ops.where(steep, x, y), ops.where(steep, y, x)
    ratio = top / ops.where(bottom == 0, number(1, x.dtype), bottom)
    endless = ops.logical_and(ops.abs(x) == math.inf, ops.abs(y) == math.inf)
    a = ops.atan(ops.where(endless, ops.sign(x) * ops.sign(y), ratio))
    half = ops.where(signbit(y), number(-math.pi, x.dtype), number(math.pi, x.dtype))
    return ops.where(steep, half * 0.5 - a, ops.where(signbit(x), a + half, a))


def arcsinh(x: ArrayLike) -> Array:
    x = as_real(x)
    a = ops.where(x < 0, -x, x)
    large = a > 100.0  # where squares could overflow, the 1 beside them is nothing
    b, c = ops.where(large, number(1, x.dtype), a), ops.where(large, a, number(1, x.dtype))
    y = ops.where(large, ops.log(c) + math.log(2), ops.log1p(b + b * b / (1.0 + ops.sqrt(b * b + 1.0))))
    return ops.where(x < 0, -y, ops.where(x == 0, x, y))


def arccosh(x: ArrayLike) -> Array:
    x = as_real(x)
    return ops.log(x * 0.5 + ops.sqrt(x - 1.0) * ops.sqrt(x + 1.0) * 0.5) + math.log(2)  # x + x could overflow


def arctanh(x: ArrayLike) -> Array:
    x = as_real(x)
    return ops.log1p(2.0 * x / (1.0 - x)) * 0.5


asin, acos, atan2, asinh, acosh, atanh = arcsin, arccos, arctan2, arcsinh, arccosh, arctanh


def log2(x: ArrayLike) -> Array:
    return ops.log(as_real(x)) * (1 / math.log(2))


def log10(x: ArrayLike) -> Array:
    return ops.log(as_real(x)) * (1 / math.log(10))


def exp2(x: ArrayLike) -> Array:
    x = as_real(x)
    return ops.pow(number(2, x.dtype), x)


def cbrt(x: ArrayLike) -> Array:
    x = as_real(x)
    return ops.sign(x) * ops.pow(ops.abs(x), number(1 / 3, x.dtype))


def hypot(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = real_pair(a, b)
    a, b = ops.abs(a), ops.abs(b)
    large, small = ops.max(a, b), ops.min(a, b)
    ratio = small / ops.where(large == 0, number(1, a.dtype), large)
    return large * ops.sqrt(ratio * ratio + 1.0)


def logaddexp(a: ArrayLike, b: ArrayLike) -> Array:
    """log(e^a + e^b) without overflow."""
    a, b = real_pair(a, b)
    same = a == b
    apart = ops.where(same, number(0, a.dtype), ops.abs(a - b))
    return ops.max(a, b) + ops.log1p(ops.exp(-apart))


def logaddexp2(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = real_pair(a, b)
    return logaddexp(a * math.log(2), b * math.log(2)) * (1 / math.log(2))


def deg2rad(x: ArrayLike) -> Array:
    return as_real(x) * (math.pi / 180)


def rad2deg(x: ArrayLike) -> Array:
    return as_real(x) * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


def heaviside(x: ArrayLike, at_zero: ArrayLike) -> Array:
    x, at_zero = real_pair(x, at_zero)
    return ops.where(x == 0, at_zero, ops.where(x > 0, number(1, x.dtype), ops.where(x < 0, number(0, x.dtype), x)))


def signbit(x: ArrayLike) -> Array:
    """Whether the sign is negative, that of -0.0 too."""
    x = as_real(x)
    return ops.where(x == 0, 1.0 / x, x) < 0 if x.dtype in _LARGEST else x < 0


def copysign(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = real_pair(a, b)
    return ops.where(signbit(b), -ops.abs(a), ops.abs(a))


def fmax(a: ArrayLike, b: ArrayLike) -> Array:
    """The larger one; a NaN counts as missing."""
    a, b = pair(a, b)
    if a.dtype not in _LARGEST:
        return ops.max(a, b)
    return ops.where(ops.is_nan(a), b, ops.where(ops.is_nan(b), a, ops.max(a, b)))


def fmin(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = pair(a, b)
    if a.dtype not in _LARGEST:
        return ops.min(a, b)
    return ops.where(ops.is_nan(a), b, ops.where(ops.is_nan(b), a, ops.min(a, b)))


def isinf(x: ArrayLike) -> Array:
    x = as_array(x)
    return ops.abs(x) == math.inf if x.dtype in _LARGEST else x != x


def isposinf(x: ArrayLike) -> Array:
    return as_real(x) == math.inf


def isneginf(x: ArrayLike) -> Array:
    return as_real(x) == -math.inf


def nan_to_num(x: ArrayLike, nan=0.0, posinf=None, neginf=None) -> Array:
    x = as_array(x)
    if x.dtype not in _LARGEST:
        return x
    most = _LARGEST[x.dtype]
    x = ops.where(ops.is_nan(x), number(nan, x.dtype), x)
    x = ops.where(x == math.inf, number(most if posinf is None else posinf, x.dtype), x)
    return ops.where(x == -math.inf, number(-most if neginf is None else neginf, x.dtype), x)


def sinc(x: ArrayLike) -> Array:
    """sin(pi x) / (pi x)."""
    x = as_real(x)
    y = ops.where(x == 0, number(1, x.dtype), x) * math.pi
    return ops.where(x == 0, number(1, x.dtype), ops.sin(y) / y)


def isclose(a: ArrayLike, b: ArrayLike, rtol=1e-5, atol=1e-8, equal_nan=False) -> Array:
    a, b = real_pair(a, b)
    near = ops.logical_or(a == b, ops.logical_and(ops.abs(a - b) <= ops.abs(b) * rtol + atol, isfinite(b)))
    return ops.logical_or(near, ops.logical_and(isnan(a), isnan(b))) if equal_nan else near


def real(x: ArrayLike) -> Array:
    x = as_array(x)
    return ops.real(x) if x.dtype == "c64" else x


def imag(x: ArrayLike) -> Array:
    x = as_array(x)
    return ops.imag(x) if x.dtype == "c64" else ops.full(shape=(x.dtype, x.shape), value=0)


def conjugate(x: ArrayLike) -> Array:
    x = as_array(x)
    return ops.conjugate(x) if x.dtype == "c64" else x


conj = conjugate


def angle(x: ArrayLike) -> Array:
    return arctan2(imag(x), real(x))


def select(conditions, choices, default=0) -> Array:
    """The choice of the first condition that holds."""
    if len(conditions) != len(choices):
        raise _rlx.Error(f"select: {len(conditions)} conditions for {len(choices)} choices")
    first = as_array(choices[0])
    out = number(default, first.dtype) if isinstance(default, (int, float)) else as_array(default)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        out = where(condition, choice, out)
    return out
