"""Arrays from numbers and shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import ops
from .._convert import as_array, dtype_name
from ._arrays import constant, shape_of

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["array", "asarray", "full", "zeros", "ones", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "arange",
           "linspace", "logspace", "geomspace", "eye", "identity", "tri", "meshgrid", "indices", "fromfunction", "vander"]


def array(x: ArrayLike, dtype=None) -> Array:
    """An array; contents of other libraries are borrowed."""
    x = as_array(x)
    return x if dtype is None else x.astype(dtype)


asarray = array


def full(shape, value, dtype="f32") -> Array:
    return ops.full(shape=(dtype_name(dtype), shape_of(shape)), value=value)


def zeros(shape, dtype="f32") -> Array:
    return full(shape, 0, dtype)


def ones(shape, dtype="f32") -> Array:
    return full(shape, 1, dtype)


empty = zeros


def full_like(x: ArrayLike, value, dtype=None) -> Array:
    x = as_array(x)
    return full(x.shape, value, dtype or x.dtype)


def zeros_like(x: ArrayLike, dtype=None) -> Array:
    return full_like(x, 0, dtype)


def ones_like(x: ArrayLike, dtype=None) -> Array:
    return full_like(x, 1, dtype)


empty_like = zeros_like


def arange(start, stop=None, step=1, dtype=None) -> Array:
    import numpy as np
    return constant(np.arange(start, stop, step) if stop is not None else np.arange(0, start, step), dtype)


def linspace(start, stop, num=50, endpoint=True, dtype="f32") -> Array:
    import numpy as np
    return constant(np.linspace(start, stop, num, endpoint), dtype)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype="f32") -> Array:
    import numpy as np
    return constant(np.logspace(start, stop, num, endpoint, base), dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype="f32") -> Array:
    import numpy as np
    return constant(np.geomspace(start, stop, num, endpoint), dtype)


def eye(n, m=None, k=0, dtype="f32") -> Array:
    import numpy as np
    return constant(np.eye(n, m, k, dtype=np.float32), dtype)


def identity(n, dtype="f32") -> Array:
    return eye(n, dtype=dtype)


def tri(n, m=None, k=0, dtype="f32") -> Array:
    """Ones at and below the k-th diagonal."""
    import numpy as np
    return constant(np.tri(n, m, k, dtype=np.float32), dtype)


def meshgrid(*xs: ArrayLike, indexing="xy", sparse=False) -> list[Array]:
    """Coordinates of a grid: each array along an axis of its own."""
    flat = [as_array(x).flatten() for x in xs]
    order = list(range(len(flat)))
    if indexing == "xy" and len(flat) > 1:
        order[0], order[1] = 1, 0
    elif indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is '{indexing}'; it is 'xy' or 'ij'")
    shape = [0] * len(flat)
    for x, axis in zip(flat, order):
        shape[axis] = x.shape[0]
    out = []
    for x, axis in zip(flat, order):
        thin = tuple(d if i == axis else 1 for i, d in enumerate(shape))
        x = ops.reshape(x, shape=thin)
        out.append(x if sparse else ops.expand(x, shape=tuple(shape)))
    return out


def indices(dimensions, dtype="i32") -> Array:
    import numpy as np
    return constant(np.indices(tuple(dimensions)), dtype)


def fromfunction(function, shape, dtype="f32") -> Array:
    return function(*indices(shape, dtype))


def vander(x: ArrayLike, n=None, increasing=False) -> Array:
    """Powers of x as columns, the highest first."""
    x = as_array(x)
    n = x.shape[0] if n is None else n
    columns, power = [], ones_like(x)
    for _ in range(n):
        columns.append(ops.reshape(power, shape=(x.shape[0], 1)))
        power = ops.mul(power, x)
    return ops.concat(*(columns if increasing else columns[::-1]), axis=1)
