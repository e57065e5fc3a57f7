"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array
from .._methods import matmul
from ._arrays import axes_of
from ._shape import expand_dims, moveaxis, ravel

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["matmul", "dot", "vdot", "vecdot", "inner", "outer", "tensordot", "einsum", "kron", "cross"]


def dot(a: ArrayLike, b: ArrayLike) -> Array:
    """Sum over the last axis of a and the last but one of b (its only one for a vector)."""
    a, b = as_array(a), as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return ops.mul(a, b)
    return matmul(a, b) if a.ndim <= 2 and b.ndim <= 2 else tensordot(a, b, ((a.ndim - 1,), (max(0, b.ndim - 2),)))


def vdot(a: ArrayLike, b: ArrayLike) -> Array:
    a = ravel(a)
    return matmul(ops.conjugate(a) if a.dtype == "c64" else a, ravel(b))


def vecdot(a: ArrayLike, b: ArrayLike, axis=-1) -> Array:
    a, b = as_array(a), as_array(b)
    return ops.reduce(ops.mul(a, b), kind="sum", axes=(axis,))


def inner(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = as_array(a), as_array(b)
    return ops.mul(a, b) if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, ((a.ndim - 1,), (b.ndim - 1,)))


def outer(a: ArrayLike, b: ArrayLike) -> Array:
    return ops.mul(expand_dims(ravel(a), 1), expand_dims(ravel(b), 0))


def tensordot(a: ArrayLike, b: ArrayLike, axes=2) -> Array:
    a, b = as_array(a), as_array(b)
    if isinstance(axes, int):
        axes = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))
    left, right = (tuple(i % x.ndim for i in axes_of(s)) for x, s in zip((a, b), axes))
    return ops.dot_general(a, b, lhs_contracting=left, rhs_contracting=right)


def einsum(equation, *operands: ArrayLike) -> Array:
    return ops.einsum(*[as_array(x) for x in operands], equation=equation)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = as_array(a), as_array(b)
    rank = max(a.ndim, b.ndim)
    a, b = (ops.reshape(x, shape=(1,) * (rank - x.ndim) + x.shape) for x in (a, b))
    left = tuple(d for n in a.shape for d in (n, 1))
    right = tuple(d for n in b.shape for d in (1, n))
    y = ops.mul(ops.reshape(a, shape=left), ops.reshape(b, shape=right))
    return ops.reshape(y, shape=tuple(n * m for n, m in zip(a.shape, b.shape)))


def cross(a: ArrayLike, b: ArrayLike, axis=-1) -> Array:
    """Of vectors of three numbers."""
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise _rlx.Error(f"cross: vectors of {a.shape[-1]} and {b.shape[-1]} numbers; it takes 3")
    x, y = [a[..., i] for i in range(3)], [b[..., i] for i in range(3)]
    parts = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    return moveaxis(ops.concat(*[expand_dims(p, -1) for p in parts], axis=-1), -1, axis)
