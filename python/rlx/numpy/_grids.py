"""Blocks, grids of indices, diagonals, lines along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array
from ._arrays import axis_of, constant, known
from ._shape import concatenate, diag_indices, moveaxis, tril_indices, triu_indices

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["block", "ix_", "tril_indices_from", "triu_indices_from", "diag_indices_from", "fill_diagonal", "trim_zeros",
           "apply_along_axis"]


def block(parts) -> Array:
    """Nested lists as one array: the innermost are joined along the last axis, those around them along the one before."""
    depth = lambda p: 1 + max(map(depth, p), default=0) if isinstance(p, list) else 0
    leaves = lambda p: [v for q in p for v in leaves(q)] if isinstance(p, list) else [as_array(p)]
    levels = depth(parts)
    ndim = max([levels] + [v.ndim for v in leaves(parts)])

    def joined(p, level):
        if not isinstance(p, list):
            if level != levels:
                raise _rlx.Error(f"block: an array inside of {level} lists, others inside of {levels}")
            p = as_array(p)
            return ops.reshape(p, shape=(1,) * (ndim - p.ndim) + p.shape)
        if not p:
            raise _rlx.Error("block: an empty list")
        return concatenate([joined(q, level + 1) for q in p], axis=ndim - levels + level)

    return joined(parts, 0)


def ix_(*indices: ArrayLike) -> tuple:
    """Indices of a grid, each along an axis of its own."""
    out = []
    for i, index in enumerate(map(as_array, indices)):
        index = constant(known(index, "ix_", "its size").nonzero()[0]) if index.dtype == "bool" else index
        out.append(ops.reshape(index, shape=tuple(-1 if k == i else 1 for k in range(len(indices)))))
    return tuple(out)


def tril_indices_from(x: ArrayLike, k=0) -> tuple:
    return tril_indices(as_array(x).shape[-2], k, as_array(x).shape[-1])


def triu_indices_from(x: ArrayLike, k=0) -> tuple:
    return triu_indices(as_array(x).shape[-2], k, as_array(x).shape[-1])


def diag_indices_from(x: ArrayLike) -> tuple:
    x = as_array(x)
    if len(set(x.shape)) != 1:
        raise _rlx.Error(f"diag_indices_from: axes of sizes {list(x.shape)}; all of one size are needed")
    return diag_indices(x.shape[0], x.ndim)


def fill_diagonal(x: ArrayLike, value: ArrayLike) -> Array:
    """A changed copy, since arrays do not change."""
    import numpy as np
    x = as_array(x)
    at = constant(np.arange(min(x.shape)))
    return x.at[(at,) * x.ndim].set(value)


def trim_zeros(x: ArrayLike, trim="fb") -> Array:
    """Without the zeros at the front (f) and the back (b)."""
    x = as_array(x)
    at = known(x, "trim_zeros", "its size").nonzero()[0]
    if len(at) == 0:
        return x[:0]
    return x[int(at[0]) if "f" in trim.lower() else 0:int(at[-1]) + 1 if "b" in trim.lower() else None]


def apply_along_axis(function, axis, x: ArrayLike, *args, **kwargs) -> Array:
    """The function of each line along an axis; what it returns stands in the place of the axis."""
    from .._transforms import vmap

    x = as_array(x)
    axis = axis_of(axis, x.ndim, "apply_along_axis")
    lines = moveaxis(x, axis, -1)
    out = vmap(lambda line: as_array(function(line, *args, **kwargs)))(ops.reshape(lines, shape=(-1, x.shape[axis])))
    out = ops.reshape(out, shape=lines.shape[:-1] + out.shape[1:])
    found = out.ndim - (x.ndim - 1)
    return moveaxis(out, tuple(range(x.ndim - 1, out.ndim)), tuple(range(axis, axis + found))) if found else out
