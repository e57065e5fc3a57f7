"""Linear algebra over the last two axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .. import _rlx, ops
from .._convert import as_array, number
from ._products import cross, matmul, outer, tensordot, vecdot
from ._reductions import max as _max
from ._reductions import min as _min
from ._reductions import sum as _sum
from ._shape import diagonal as _diagonal
from ._shape import matrix_transpose, moveaxis

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["solve", "inv", "det", "slogdet", "cholesky", "qr", "svd", "svdvals", "eigh", "eigvalsh", "pinv", "lstsq", "matrix_rank",
           "matrix_power", "multi_dot", "norm", "vector_norm", "matrix_norm", "cond", "trace", "diagonal", "matmul", "outer",
           "tensordot", "vecdot", "cross", "matrix_transpose"]


class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    Q: Array
    R: Array


class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array


class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = as_array(a), as_array(b)
    if a.ndim == 2 and b.ndim <= 2:
        return ops.dense_solve(a, b)
    lead = a.shape[:-2] if a.ndim > 2 else b.shape[:-2]
    a = ops.expand(a, shape=lead + a.shape[-2:])
    if b.ndim == 1:
        return ops.batched_dense_solve(a, ops.expand(b, shape=lead + b.shape))
    return ops.batched_dense_solve(a, ops.expand(b, shape=lead + b.shape[-2:]))


def inv(a: ArrayLike) -> Array:
    return ops.inverse(as_array(a))


def det(a: ArrayLike) -> Array:
    return ops.det(as_array(a))


def slogdet(a: ArrayLike) -> SlogdetResult:
    return SlogdetResult(*ops.slogdet(as_array(a)))


def cholesky(a: ArrayLike, upper=False) -> Array:
    lower = ops.cholesky(as_array(a))
    return matrix_transpose(lower) if upper else lower


def qr(a: ArrayLike, mode="reduced"):
    q, r = ops.qr(as_array(a))
    if mode not in ("reduced", "r"):
        raise _rlx.Error(f"qr: mode '{mode}'; it is reduced or r")
    return r if mode == "r" else QRResult(q, r)


def svd(a: ArrayLike, full_matrices=False, compute_uv=True):
    """u, s, vt with min(M, N) columns of u and rows of vt."""
    a = as_array(a)
    if not compute_uv:
        return ops.svd_values(a)
    if full_matrices and a.shape[-1] != a.shape[-2]:
        raise _rlx.Error("svd: full_matrices is for square matrices only; the reduced form holds all that is not arbitrary")
    return SVDResult(*ops.svd(a))


def svdvals(a: ArrayLike) -> Array:
    return ops.svd_values(as_array(a))


def eigh(a: ArrayLike) -> EighResult:
    return EighResult(*ops.eigh(as_array(a)))


def eigvalsh(a: ArrayLike) -> Array:
    return ops.eigh_values(as_array(a))


def _small(s, shape, dtype, rcond):
    """Below which singular values count as 0."""
    if rcond is None:
        rcond = {"f64": 2.220446049250313e-16}.get(dtype, 1.1920928955078125e-07) * max(shape[-2:])
    return _max(s, -1, keepdims=True) * rcond


def pinv(a: ArrayLike, rcond=None) -> Array:
    a = as_array(a)
    u, s, vt = ops.svd(a)
    keep = s > _small(s, a.shape, a.dtype, 1e-15 if rcond is None and a.dtype == "f64" else rcond)
    inverse = ops.where(keep, 1.0 / ops.where(keep, s, number(1, s.dtype)), number(0, s.dtype))
    return matmul(matrix_transpose(vt) * ops.reshape(inverse, shape=s.shape[:-1] + (1, s.shape[-1])), matrix_transpose(u))


def lstsq(a: ArrayLike, b: ArrayLike, rcond=None) -> tuple:
    """(x, sums of squared residuals, rank, singular values)."""
    a, b = as_array(a), as_array(b)
    x = matmul(pinv(a, rcond), b)
    d = b - matmul(a, x)
    s = ops.svd_values(a)
    return x, _sum(d * d, 0, keepdims=b.ndim == 1), _sum(s > _small(s, a.shape, a.dtype, rcond), -1), s


def matrix_rank(a: ArrayLike, tol=None) -> Array:
    a = as_array(a)
    s = ops.svd_values(a)
    return _sum(s > (_small(s, a.shape, a.dtype, None) if tol is None else tol), -1)


def matrix_power(a: ArrayLike, n) -> Array:
    a = as_array(a)
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        import numpy as np
        return ops.expand(as_array(np.eye(a.shape[-1], dtype=np.float32)).astype(a.dtype), shape=a.shape)
    while n % 2 == 0:
        a, n = matmul(a, a), n // 2
    out = a
    while n := n // 2:
        a = matmul(a, a)
        out = matmul(out, a) if n % 2 else out
    return out


def multi_dot(arrays) -> Array:
    out = as_array(arrays[0])
    for a in arrays[1:]:
        out = matmul(out, as_array(a))
    return out


def vector_norm(x: ArrayLike, ord=2, axis=None, keepdims=False) -> Array:
    x = as_array(x)
    a = ops.abs(x)
    if ord == math.inf:
        return _max(a, axis, keepdims)
    if ord == -math.inf:
        return _min(a, axis, keepdims)
    if ord == 0:
        return ops.cast(_sum(x != 0, axis, keepdims=keepdims), to=a.dtype)
    if ord == 1:
        return _sum(a, axis, keepdims=keepdims)
    if ord == 2:
        return ops.sqrt(_sum(a * a, axis, keepdims=keepdims))
    return ops.pow(_sum(ops.pow(a, number(ord, a.dtype)), axis, keepdims=keepdims), number(1 / ord, a.dtype))


def matrix_norm(x: ArrayLike, ord="fro", keepdims=False) -> Array:
    x = as_array(x)
    if ord in ("nuc", 2, -2):
        s = ops.svd_values(x)
        y = _sum(s, -1) if ord == "nuc" else s[..., 0] if ord == 2 else s[..., -1]
    elif ord == "fro":
        y = vector_norm(x, 2, (-2, -1))
    elif ord in (1, -1, math.inf, -math.inf):
        sums = _sum(ops.abs(x), -2 if abs(ord) == 1 else -1)
        y = _max(sums, -1) if ord > 0 else _min(sums, -1)
    else:
        raise _rlx.Error(f"norm: {ord!r} is no norm of matrices; it is one of fro, nuc, 1, -1, 2, -2, inf, -inf")
    return ops.reshape(y, shape=y.shape + (1, 1)) if keepdims else y


def norm(x: ArrayLike, ord=None, axis=None, keepdims=False) -> Array:
    x = as_array(x)
    if ord is None or (axis is None and x.ndim == 1) or isinstance(axis, int):
        return vector_norm(x, 2 if ord is None else ord, axis, keepdims)
    axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in axis)
    if len(axes) != 2:
        raise _rlx.Error(f"norm: order {ord!r} over {len(axes)} axes; give one axis or two")
    y = matrix_norm(moveaxis(x, axes, (-2, -1)), ord)
    return ops.reshape(y, shape=tuple(1 if i in axes else d for i, d in enumerate(x.shape))) if keepdims else y


def cond(a: ArrayLike, p=None) -> Array:
    a = as_array(a)
    if p is None or p == 2:
        s = ops.svd_values(a)
        return s[..., 0] / s[..., -1]
    return matrix_norm(a, p) * matrix_norm(inv(a), p)


def diagonal(a: ArrayLike, offset=0) -> Array:
    return _diagonal(a, offset, -2, -1)


def trace(a: ArrayLike, offset=0) -> Array:
    return _sum(diagonal(a, offset), -1)
