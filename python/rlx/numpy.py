"""Functions under the names they have in NumPy, on arrays and on traced values. Types never change by themselves."""

import math as _math

from . import _functions, _rlx, ops
from ._convert import as_array, number
from ._methods import axes_of, matmul, reduce

pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan
newaxis = None
float32, float64, float16, bfloat16 = "f32", "f64", "f16", "bf16"
int8, int16, int32, int64, uint8, uint32, bool_ = "i8", "i16", "i32", "i64", "u8", "u32", "bool"
complex64 = "c64"


def array(x, dtype=None):
    """An array; contents of other libraries are borrowed."""
    x = as_array(x)
    return x if dtype is None else x.astype(dtype)


asarray = array


def _pair(a, b):
    from ._convert import is_number
    if is_number(a) and not is_number(b):
        b = as_array(b)
        return number(a, b.dtype), b
    a = as_array(a)
    return a, number(b, a.dtype) if is_number(b) else as_array(b)


def _shape(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def full(shape, value, dtype="f32"):
    return ops.full(shape=(dtype, _shape(shape)), value=value)


def zeros(shape, dtype="f32"):
    return full(shape, 0, dtype)


def ones(shape, dtype="f32"):
    return full(shape, 1, dtype)


def zeros_like(x):
    return zeros(x.shape, x.dtype)


def ones_like(x):
    return ones(x.shape, x.dtype)


def full_like(x, value):
    return full(x.shape, value, x.dtype)


def arange(start, stop=None, step=1, dtype=None):
    import numpy as np
    values = np.arange(start, stop, step) if stop is not None else np.arange(start)
    return array(as_array(values.astype(np.float32) if values.dtype == np.float64 else values.astype(np.int32)), dtype)


def linspace(start, stop, num=50, dtype="f32"):
    import numpy as np
    return array(as_array(np.linspace(start, stop, num, dtype=np.float32)), dtype)


def eye(n, m=None, dtype="f32"):
    import numpy as np
    return as_array(np.eye(n, m, dtype=np.float32)).astype(dtype)


identity = eye


def _unary(name, doc=None):
    def function(x):
        return getattr(ops, name)(as_array(x))

    function.__name__, function.__doc__ = name, _functions.document(name)
    return function


abs, exp, log, sqrt, sin, cos, tan, tanh = map(_unary, ("abs", "exp", "log", "sqrt", "sin", "cos", "tan", "tanh"))
floor, ceil, sign, log1p, expm1, isnan, isfinite = map(
    _unary, ("floor", "ceil", "sign", "log1p", "expm1", "is_nan", "is_finite"))
arctan, round, negative, real, imag, conj = map(_unary, ("atan", "round", "neg", "real", "imag", "conjugate"))
logical_not, invert = map(_unary, ("logical_not", "bitwise_not"))


def square(x):
    return ops.mul(x, x)


def reciprocal(x):
    return ops.div(number(1, x.dtype), x)


def sinh(x):
    return ops.mul(ops.sub(ops.exp(x), ops.exp(ops.neg(x))), 0.5)


def cosh(x):
    return ops.mul(ops.add(ops.exp(x), ops.exp(ops.neg(x))), 0.5)


def log2(x):
    return ops.mul(ops.log(x), 1 / _math.log(2))


def log10(x):
    return ops.mul(ops.log(x), 1 / _math.log(10))


def _binary(name):
    def function(a, b):
        return getattr(ops, name)(*_pair(a, b))

    function.__name__, function.__doc__ = name, _functions.document(name)
    return function


add, subtract, multiply, divide, power = map(_binary, ("add", "sub", "mul", "div", "pow"))
maximum, minimum, fmod = map(_binary, ("max", "min", "rem"))
logical_and, logical_or, logical_xor = map(_binary, ("logical_and", "logical_or", "logical_xor"))
bitwise_and, bitwise_or, bitwise_xor = map(_binary, ("bitwise_and", "bitwise_or", "bitwise_xor"))
true_divide = divide


def floor_divide(a, b):
    a, b = _pair(a, b)
    return a // b


def mod(a, b):
    a, b = _pair(a, b)
    return a % b


remainder = mod


def _compare(kind):
    return lambda a, b: ops.compare(*_pair(a, b), kind=kind)


equal, not_equal, less, less_equal, greater, greater_equal = map(_compare, ("eq", "ne", "lt", "le", "gt", "ge"))


def where(condition, a, b):
    a, b = _pair(a, b)
    return ops.where(condition, a, b)


def clip(x, lo=None, hi=None):
    return ops.clamp(x, lo=-inf if lo is None else lo, hi=inf if hi is None else hi)


def sum(x, axis=None, keepdims=False):
    return reduce(x, "sum", axis, keepdims)


def mean(x, axis=None, keepdims=False):
    return reduce(x, "mean", axis, keepdims)


def max(x, axis=None, keepdims=False):
    return reduce(x, "max", axis, keepdims)


def min(x, axis=None, keepdims=False):
    return reduce(x, "min", axis, keepdims)


def prod(x, axis=None, keepdims=False):
    return reduce(x, "prod", axis, keepdims)


amax, amin = max, min


def all(x, axis=None, keepdims=False):
    return ops.all(x, axes=axes_of(axis), keep_dim=keepdims)


def any(x, axis=None, keepdims=False):
    return ops.any(x, axes=axes_of(axis), keep_dim=keepdims)


def var(x, axis=None, ddof=0, keepdims=False):
    m = mean(x, axis, True)
    d = x - m
    n = 1
    for a in axes_of(axis) or range(x.ndim):
        n *= x.shape[a]
    return sum(d * d, axis, keepdims) / (n - ddof)


def std(x, axis=None, ddof=0, keepdims=False):
    return ops.sqrt(var(x, axis, ddof, keepdims))


def argmax(x, axis=None):
    return ops.argmax(x.flatten() if axis is None else x, axis=-1 if axis is None else axis)


def argmin(x, axis=None):
    return ops.argmin(x.flatten() if axis is None else x, axis=-1 if axis is None else axis)


def cumsum(x, axis=None):
    return ops.cumsum(x.flatten() if axis is None else x, axis=0 if axis is None else axis)


def cumprod(x, axis=None):
    return ops.cumprod(x.flatten() if axis is None else x, axis=0 if axis is None else axis)


def sort(x, axis=-1):
    out = ops.sort(x, axis=axis)
    return out[0] if isinstance(out, tuple) else out


def argsort(x, axis=-1):
    return ops.argsort(x, axis=axis)


def reshape(x, shape):
    return ops.reshape(x, shape=_shape(shape))


def ravel(x):
    return ops.reshape(x, shape=(-1,))


def transpose(x, axes=None):
    return x.transpose(*axes) if axes is not None else x.T


def swapaxes(x, a, b):
    perm = list(range(x.ndim))
    perm[a], perm[b] = perm[b], perm[a]
    return ops.transpose(x, perm=tuple(perm))


def moveaxis(x, source, destination):
    perm = [i for i in range(x.ndim) if i != source % x.ndim]
    perm.insert(destination % x.ndim, source % x.ndim)
    return ops.transpose(x, perm=tuple(perm))


def expand_dims(x, axis):
    shape = list(x.shape)
    shape.insert(axis % (x.ndim + 1), 1)
    return ops.reshape(x, shape=tuple(shape))


def squeeze(x, axis=None):
    gone = {a % x.ndim for a in axes_of(axis)} if axis is not None else {i for i, d in enumerate(x.shape) if d == 1}
    wrong = [a for a in gone if x.shape[a] != 1]
    if wrong:
        raise _rlx.Error(f"squeeze: axis {wrong[0]} has size {x.shape[wrong[0]]}, not 1")
    return ops.reshape(x, shape=tuple(d for i, d in enumerate(x.shape) if i not in gone))


def broadcast_to(x, shape):
    return ops.expand(x, shape=_shape(shape))


def concatenate(arrays, axis=0):
    return ops.concat(*arrays, axis=axis)


def stack(arrays, axis=0):
    return concatenate([expand_dims(as_array(a), axis) for a in arrays], axis)


def split(x, sections, axis=0):
    size = x.shape[axis]
    cuts = [size * i // sections for i in range(1, sections)] if isinstance(sections, int) else list(sections)
    if isinstance(sections, int) and size % sections:
        raise _rlx.Error(f"split: {size} along axis {axis} is no multiple of {sections}")
    edges = [0] + cuts + [size]
    return [ops.narrow(x, axis=axis, start=a, len=b - a) for a, b in zip(edges, edges[1:])]


def repeat(x, repeats, axis):
    axis %= x.ndim
    wide = ops.expand(expand_dims(x, axis + 1), shape=x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:])
    return ops.reshape(wide, shape=x.shape[:axis] + (x.shape[axis] * repeats,) + x.shape[axis + 1:])


def tile(x, reps):
    reps = _shape(reps)
    for axis, r in enumerate(reversed(reps)):
        if r != 1:
            x = concatenate([x] * r, x.ndim - 1 - axis)
    return x


def flip(x, axis=None):
    return ops.flip(x, axes=axes_of(axis))


def roll(x, shift, axis):
    size = x.shape[axis]
    shift %= size
    return concatenate(split(x, [size - shift], axis)[::-1], axis) if shift else x


def take(x, indices, axis=None):
    x = as_array(x)
    return ops.gather(x if axis is not None else x.flatten(), as_array(indices), axis=axis or 0)


def take_along_axis(x, indices, axis):
    return ops.take_along(x, indices, axis=axis)


def tril(x, k=0):
    return _triangle(x, lambda i, j: j <= i + k)


def triu(x, k=0):
    return _triangle(x, lambda i, j: j >= i + k)


def _triangle(x, keep):
    import numpy as np
    i, j = np.indices(x.shape[-2:])
    return ops.where(as_array(keep(i, j)), x, number(0, x.dtype))


def diagonal(x):
    import numpy as np
    n, m = x.shape[-2:]
    k = n if n < m else m
    flat = ops.reshape(x, shape=x.shape[:-2] + (n * m,))
    return ops.gather(flat, as_array((np.arange(k) * (m + 1)).astype(np.int32)), axis=-1)


def trace(x):
    return sum(diagonal(x), -1)


def dot(a, b):
    a, b = as_array(a), as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return ops.mul(a, b)
    return matmul(a, b)


def einsum(equation, *operands):
    return ops.einsum(*operands, equation=equation)


def outer(a, b):
    return expand_dims(ravel(a), 1) * expand_dims(ravel(b), 0)


def tensordot(a, b, axes=2):
    if isinstance(axes, int):
        axes = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))
    return ops.dot_general(a, b, lhs_contracting=axes_of(axes[0]), rhs_contracting=axes_of(axes[1]))


def allclose(a, b, rtol=1e-5, atol=1e-8):
    a, b = _pair(a, b)
    return bool(all(ops.compare(abs(a - b), abs(b) * rtol + atol, kind="le")))


class linalg:
    """Linear algebra over the last two axes."""

    @staticmethod
    def solve(a, b):
        return ops.batched_dense_solve(a, b) if a.ndim > 2 else ops.dense_solve(a, b)

    inv = staticmethod(lambda a: ops.inverse(a))
    det = staticmethod(lambda a: ops.det(a))
    slogdet = staticmethod(lambda a: ops.slogdet(a))
    cholesky = staticmethod(lambda a: ops.cholesky(a))
    qr = staticmethod(lambda a: ops.qr(a))
    svd = staticmethod(lambda a: ops.svd(a))
    eigh = staticmethod(lambda a: ops.eigh(a))

    @staticmethod
    def norm(x, axis=None, keepdims=False):
        return ops.sqrt(sum(x * x, axis, keepdims))
