"""Shapes: moved, joined, cut and repeated elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array, number
from ._arrays import axes_of, axis_of, constant, known, shape_of

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike, Axis

__all__ = ["reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "swapaxes", "moveaxis", "rollaxis", "expand_dims",
           "squeeze", "broadcast_to", "broadcast_arrays", "broadcast_shapes", "concatenate", "concat", "stack", "vstack", "hstack",
           "dstack", "column_stack", "row_stack", "unstack", "split", "array_split", "hsplit", "vsplit", "dsplit", "repeat", "tile",
           "flip", "fliplr", "flipud", "rot90", "roll", "take", "take_along_axis", "tril", "triu", "diag", "diagonal", "diagflat",
           "trace", "append", "insert", "delete", "pad", "atleast_1d", "atleast_2d", "atleast_3d", "ndim", "shape", "size",
           "copy", "astype", "unravel_index", "ravel_multi_index", "tril_indices", "triu_indices", "diag_indices", "resize"]


def reshape(x: ArrayLike, shape, order="C") -> Array:
    x = as_array(x)
    if order == "F":
        return transpose(ops.reshape(transpose(x), shape=tuple(reversed(shape_of(shape)))))
    return ops.reshape(x, shape=shape_of(shape))


def ravel(x: ArrayLike) -> Array:
    return ops.reshape(as_array(x), shape=(-1,))


def transpose(x: ArrayLike, axes=None) -> Array:
    x = as_array(x)
    return ops.transpose(x, perm=tuple(reversed(range(x.ndim))) if axes is None else tuple(a % x.ndim for a in axes))


permute_dims = transpose


def swapaxes(x: ArrayLike, axis1, axis2) -> Array:
    x = as_array(x)
    perm = list(range(x.ndim))
    perm[axis1], perm[axis2] = perm[axis2], perm[axis1]
    return ops.transpose(x, perm=tuple(perm))


def matrix_transpose(x: ArrayLike) -> Array:
    return swapaxes(x, -1, -2)


def moveaxis(x: ArrayLike, source, destination) -> Array:
    x = as_array(x)
    source = [axis_of(a, x.ndim, "moveaxis") for a in axes_of(source)]
    destination = [axis_of(a, x.ndim, "moveaxis") for a in axes_of(destination)]
    perm = [i for i in range(x.ndim) if i not in source]
    for to, axis in sorted(zip(destination, source)):
        perm.insert(to, axis)
    return ops.transpose(x, perm=tuple(perm))


def rollaxis(x: ArrayLike, axis, start=0) -> Array:
    x = as_array(x)
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if start > axis else start)


def expand_dims(x: ArrayLike, axis) -> Array:
    x = as_array(x)
    axes = axes_of(axis)
    rank = x.ndim + len(axes)
    new = {axis_of(a, rank, "expand_dims") for a in axes}
    old = iter(x.shape)
    return ops.reshape(x, shape=tuple(1 if i in new else next(old) for i in range(rank)))


def squeeze(x: ArrayLike, axis: Axis = None) -> Array:
    x = as_array(x)
    gone = {a % x.ndim for a in axes_of(axis)} if axis is not None else {i for i, d in enumerate(x.shape) if d == 1}
    wrong = [a for a in gone if x.shape[a] != 1]
    if wrong:
        raise _rlx.Error(f"squeeze: axis {wrong[0]} has size {x.shape[wrong[0]]}, not 1")
    return ops.reshape(x, shape=tuple(d for i, d in enumerate(x.shape) if i not in gone))


def broadcast_shapes(*shapes) -> tuple:
    import numpy as np
    return np.broadcast_shapes(*map(shape_of, shapes))


def broadcast_to(x: ArrayLike, shape) -> Array:
    return ops.expand(as_array(x), shape=shape_of(shape))


def broadcast_arrays(*xs: ArrayLike) -> list[Array]:
    arrays = [as_array(x) for x in xs]
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


# Joined and cut.


def concatenate(arrays, axis=0) -> Array:
    arrays = [as_array(a) for a in arrays]
    if axis is None:
        return ops.concat(*[ravel(a) for a in arrays], axis=0)
    return arrays[0] if len(arrays) == 1 else ops.concat(*arrays, axis=axis)


concat = concatenate


def stack(arrays, axis=0) -> Array:
    return concatenate([expand_dims(a, axis) for a in arrays], axis)


def unstack(x: ArrayLike, axis=0) -> tuple:
    x = moveaxis(x, axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


def atleast_1d(x: ArrayLike) -> Array:
    x = as_array(x)
    return x if x.ndim else ops.reshape(x, shape=(1,))


def atleast_2d(x: ArrayLike) -> Array:
    x = atleast_1d(x)
    return x if x.ndim > 1 else ops.reshape(x, shape=(1,) + x.shape)


def atleast_3d(x: ArrayLike) -> Array:
    x = as_array(x)
    if x.ndim < 2:
        return ops.reshape(x, shape=(1, -1, 1))
    return x if x.ndim > 2 else ops.reshape(x, shape=x.shape + (1,))


def vstack(arrays) -> Array:
    return concatenate([atleast_2d(a) for a in arrays], 0)


row_stack = vstack


def hstack(arrays) -> Array:
    arrays = [atleast_1d(a) for a in arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def dstack(arrays) -> Array:
    return concatenate([atleast_3d(a) for a in arrays], 2)


def column_stack(arrays) -> Array:
    arrays = [as_array(a) for a in arrays]
    return concatenate([a if a.ndim > 1 else ops.reshape(a, shape=(-1, 1)) for a in arrays], 1)


def append(x: ArrayLike, values: ArrayLike, axis=None) -> Array:
    return concatenate([x, values], axis)


def split(x: ArrayLike, sections, axis=0) -> list[Array]:
    x = as_array(x)
    size = x.shape[axis]
    if isinstance(sections, int) and size % sections:
        raise _rlx.Error(f"split: {size} along axis {axis} is no multiple of {sections}")
    return array_split(x, sections, axis)


def array_split(x: ArrayLike, sections, axis=0) -> list[Array]:
    """Parts of nearly equal size, or cut at the given positions."""
    x = as_array(x)
    size = x.shape[axis]
    if isinstance(sections, int):
        small, more = divmod(size, sections)
        cuts = [i * small + (i if i < more else more) for i in range(1, sections)]
    else:
        cuts = [min(max(c + size if c < 0 else c, 0), size) for c in map(int, sections)]
    edges = [0] + cuts + [size]
    return [ops.narrow(x, axis=axis, start=a, len=max(0, b - a)) for a, b in zip(edges, edges[1:])]


def hsplit(x: ArrayLike, sections) -> list[Array]:
    x = as_array(x)
    return split(x, sections, 0 if x.ndim == 1 else 1)


def vsplit(x: ArrayLike, sections) -> list[Array]:
    return split(x, sections, 0)


def dsplit(x: ArrayLike, sections) -> list[Array]:
    return split(x, sections, 2)


def delete(x: ArrayLike, places, axis=None) -> Array:
    """Without the elements at these places."""
    import numpy as np
    x = as_array(x)
    x, axis = (x.flatten(), 0) if axis is None else (x, axis)
    return take(x, constant(np.delete(np.arange(x.shape[axis]), known(places, "delete", "what stays"))), axis)


def insert(x: ArrayLike, place, values: ArrayLike, axis=None) -> Array:
    """With values before one place."""
    x, values = as_array(x), as_array(values)
    x, axis = (x.flatten(), 0) if axis is None else (x, axis_of(axis, x.ndim, "insert"))
    if values.ndim < x.ndim:
        values = values.flatten() if x.ndim == 1 else expand_dims(values, axis) if values.ndim else values
    shape = tuple(values.shape[axis] if i == axis and values.ndim == x.ndim else 1 if i == axis else d
                  for i, d in enumerate(x.shape))
    before, after = array_split(x, [place], axis)
    return ops.concat(before, ops.expand(values, shape=shape), after, axis=axis)


# Repeated and moved.


def repeat(x: ArrayLike, repeats, axis=None) -> Array:
    import numpy as np
    x = as_array(x)
    x, axis = (x.flatten(), 0) if axis is None else (x, axis_of(axis, x.ndim, "repeat"))
    if isinstance(repeats, int):
        wide = ops.expand(expand_dims(x, axis + 1), shape=x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:])
        return ops.reshape(wide, shape=x.shape[:axis] + (x.shape[axis] * repeats,) + x.shape[axis + 1:])
    return take(x, constant(np.repeat(np.arange(x.shape[axis]), known(repeats, "repeat", "the result's size"))), axis)


def tile(x: ArrayLike, reps) -> Array:
    x, reps = as_array(x), shape_of(reps)
    if len(reps) > x.ndim:
        x = ops.reshape(x, shape=(1,) * (len(reps) - x.ndim) + x.shape)
    for axis, r in enumerate(reversed(reps)):
        at = x.ndim - 1 - axis
        if r == 0:
            x = ops.narrow(x, axis=at, start=0, len=0)
        elif r != 1:
            x = ops.concat(*[x] * r, axis=at)
    return x


def resize(x: ArrayLike, shape) -> Array:
    """The elements again and again until the shape is full."""
    x, shape = ravel(x), shape_of(shape)
    n = 1
    for d in shape:
        n *= d
    copies = -(-n // x.shape[0])
    return ops.reshape(ops.narrow(tile(x, copies), axis=0, start=0, len=n), shape=shape)


def flip(x: ArrayLike, axis: Axis = None) -> Array:
    x = as_array(x)
    return ops.flip(x, axes=axes_of(axis) if axis is not None else tuple(range(x.ndim)))


def fliplr(x: ArrayLike) -> Array:
    return flip(x, 1)


def flipud(x: ArrayLike) -> Array:
    return flip(x, 0)


def rot90(x: ArrayLike, k=1, axes=(0, 1)) -> Array:
    a, b = axes
    k %= 4
    if k == 2:
        return flip(x, (a, b))
    return x if k == 0 else swapaxes(flip(x, b), a, b) if k == 1 else flip(swapaxes(x, a, b), b)


def roll(x: ArrayLike, shift, axis: Axis = None) -> Array:
    x = as_array(x)
    if axis is None:
        return ops.reshape(roll(x.flatten(), shift, 0), shape=x.shape)
    axes = axes_of(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    for s, a in zip(shifts, axes):
        size = x.shape[a]
        s = s % size if size else 0
        if s:
            front, back = array_split(x, [size - s], a)
            x = ops.concat(back, front, axis=a)
    return x


def pad(x: ArrayLike, pad_width, mode="constant", constant_values=0) -> Array:
    """Modes: constant, edge, reflect, symmetric, wrap; one width, one pair, or one pair an axis."""
    import numpy as np
    x = as_array(x)
    widths = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (x.ndim, 2)).tolist()
    if mode == "constant" and np.ndim(constant_values) == 0:
        return ops.pad(x, low=tuple(w[0] for w in widths), high=tuple(w[1] for w in widths), value=constant_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise _rlx.Error(f"pad: mode '{mode}'; it is one of constant, edge, reflect, symmetric, wrap")
    for axis, (low, high) in enumerate(widths):
        if low or high:
            x = take(x, constant(np.pad(np.arange(x.shape[axis]), (low, high), mode)), axis)
    return x


# Picked.


def take(x: ArrayLike, indices: ArrayLike, axis=None, mode=None) -> Array:
    """mode: None, an index outside is an error; "clip" moves it to the nearest end, "wrap" around."""
    x, indices = as_array(x), as_array(indices)
    x, axis = (x.flatten(), 0) if axis is None else (x, axis)
    size = number(x.shape[axis], indices.dtype)
    if mode == "wrap":
        indices = indices % size
    elif mode != "clip":
        indices = ops.where(indices < 0, indices + size, indices)
    return ops.gather(x, indices, axis=axis, mode="clamp" if mode == "clip" else "error")


def take_along_axis(x: ArrayLike, indices: ArrayLike, axis=-1) -> Array:
    x, indices = as_array(x), as_array(indices)
    if axis is None:
        x, axis = x.flatten(), 0
    indices = ops.where(indices < 0, indices + number(x.shape[axis], indices.dtype), indices)
    return ops.take_along(x, indices, axis=axis)


def _triangle(x, keep):
    import numpy as np
    x = as_array(x)
    if x.ndim == 1:
        x = ops.expand(x, shape=x.shape * 2)
    i, j = np.indices(x.shape[-2:])
    return ops.where(as_array(keep(i, j)), x, number(0, x.dtype))


def tril(x: ArrayLike, k=0) -> Array:
    return _triangle(x, lambda i, j: j <= i + k)


def triu(x: ArrayLike, k=0) -> Array:
    return _triangle(x, lambda i, j: j >= i + k)


def diagonal(x: ArrayLike, offset=0, axis1=0, axis2=1) -> Array:
    import numpy as np
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    n, m = x.shape[-2:]
    places = np.diagonal(np.arange(n * m, dtype=np.int32).reshape(n, m), offset).copy()
    return ops.gather(ops.reshape(x, shape=x.shape[:-2] + (n * m,)), as_array(places), axis=-1)


def diag(x: ArrayLike, k=0) -> Array:
    """The diagonal of a matrix, or a matrix with this diagonal."""
    import numpy as np
    x = as_array(x)
    if x.ndim == 2:
        return diagonal(x, k)
    n = x.shape[0] + abs(k)
    on = np.eye(n, k=k, dtype=bool)
    places = np.where(on, np.arange(n)[:, None] if k >= 0 else np.arange(n)[None, :], 0).astype(np.int32)
    return ops.where(as_array(on), ops.gather(x, as_array(places), axis=0), number(0, x.dtype))


def diagflat(x: ArrayLike, k=0) -> Array:
    return diag(ravel(x), k)


def trace(x: ArrayLike, offset=0, axis1=0, axis2=1) -> Array:
    return ops.reduce(diagonal(x, offset, axis1, axis2), kind="sum", axes=(-1,))


# Positions.


def unravel_index(indices: ArrayLike, shape) -> tuple:
    indices, out = as_array(indices), []
    for d in reversed(shape_of(shape)):
        out.append(indices % d)
        indices = indices // d
    return tuple(reversed(out))


def ravel_multi_index(indices, shape) -> Array:
    out = as_array(indices[0])
    for index, d in zip(indices[1:], shape_of(shape)[1:]):
        out = out * d + as_array(index)
    return out


def tril_indices(n, k=0, m=None) -> tuple:
    import numpy as np
    return tuple(map(constant, np.tril_indices(n, k, m)))


def triu_indices(n, k=0, m=None) -> tuple:
    import numpy as np
    return tuple(map(constant, np.triu_indices(n, k, m)))


def diag_indices(n, ndim=2) -> tuple:
    import numpy as np
    return (constant(np.arange(n)),) * ndim


def ndim(x: ArrayLike) -> int:
    return as_array(x).ndim


def shape(x: ArrayLike) -> tuple:
    return as_array(x).shape


def size(x: ArrayLike, axis=None) -> int:
    n = 1
    for d in as_array(x).shape if axis is None else (as_array(x).shape[axis],):
        n *= d
    return n


def copy(x: ArrayLike) -> Array:
    """Arrays do not change, so it is the same one."""
    return as_array(x)


def astype(x: ArrayLike, dtype) -> Array:
    return as_array(x).astype(dtype)
