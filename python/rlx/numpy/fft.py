"""Discrete Fourier transforms; spectra are c64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _rlx, ops
from .._convert import as_array, number
from ._arrays import axes_of, axis_of, constant
from ._shape import moveaxis, roll

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "fftfreq", "rfftfreq",
           "fftshift", "ifftshift"]


def _sized(x, n, axis):
    """The first n places of an axis, with zeros behind where there are fewer."""
    size = x.shape[axis]
    if n is None or n == size:
        return x
    if n < size:
        return ops.narrow(x, axis=axis, start=0, len=n)
    shape = x.shape[:axis] + (n - size,) + x.shape[axis + 1:]
    zeros = ops.full(shape=("f32" if x.dtype == "c64" else x.dtype, shape), value=0)
    return ops.concat(x, ops.make_complex(zeros, zeros) if x.dtype == "c64" else zeros, axis=axis)


def _complex(x):
    x = as_array(x)
    if x.dtype == "c64":
        return x
    if x.dtype != "f32":
        raise _rlx.Error(f"fft: it is for f32 and c64, not {x.dtype}; cast it first")
    return ops.make_complex(x, ops.sub(x, x))


def _transform(x, n, axis, norm, inverse):
    x = as_array(x)
    axis = axis_of(axis, x.ndim, "fft")
    x = moveaxis(_sized(_complex(x), n, axis), axis, -1)
    norm = norm or "backward"
    y = ops.fft(x, inverse=inverse, norm=norm)
    if inverse and norm == "backward":  # the operator leaves 1 / N to the forward direction's name
        y = _scaled(y, 1.0 / x.shape[-1])
    elif not inverse and norm == "forward":
        y = _scaled(y, 1.0 / x.shape[-1])
    elif inverse and norm == "forward":
        y = _scaled(y, float(x.shape[-1]))
    return moveaxis(y, -1, axis)


def _scaled(z, factor):
    return ops.make_complex(ops.real(z) * factor, ops.imag(z) * factor)


def fft(x: ArrayLike, n=None, axis=-1, norm=None) -> Array:
    return _transform(x, n, axis, norm, False)


def ifft(x: ArrayLike, n=None, axis=-1, norm=None) -> Array:
    return _transform(x, n, axis, norm, True)


def rfft(x: ArrayLike, n=None, axis=-1, norm=None) -> Array:
    x = as_array(x)
    axis = axis_of(axis, x.ndim, "rfft")
    y = fft(x, n, axis, norm)
    return ops.narrow(y, axis=axis, start=0, len=y.shape[axis] // 2 + 1)


def irfft(x: ArrayLike, n=None, axis=-1, norm=None) -> Array:
    """A real signal of n places from the first half of its spectrum."""
    x = _complex(x)
    axis = axis_of(axis, x.ndim, "irfft")
    n = 2 * (x.shape[axis] - 1) if n is None else n
    x = _sized(x, n // 2 + 1, axis)
    # The first place, and for even n the last, are real; the rest is mirrored.
    count = n - x.shape[axis]
    tail = ops.flip(ops.conjugate(ops.narrow(x, axis=axis, start=1, len=count)), axes=(axis,))
    return ops.real(ifft(ops.concat(_real_ends(x, axis, n), tail, axis=axis), None, axis, norm))


def _real_ends(x, axis, n):
    place = ops.iota(shape=("i32", (x.shape[axis],)), axis=0)
    place = ops.reshape(place, shape=tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    ends = ops.logical_or(place == 0, place == n // 2 if n % 2 == 0 else place < 0)
    im = ops.imag(x)
    return ops.make_complex(ops.real(x), ops.where(ends, number(0, "f32"), im))


def fftn(x: ArrayLike, s=None, axes=None, norm=None) -> Array:
    return _many(fft, x, s, axes, norm)


def ifftn(x: ArrayLike, s=None, axes=None, norm=None) -> Array:
    return _many(ifft, x, s, axes, norm)


def _many(one, x, s, axes, norm):
    x = as_array(x)
    axes = (tuple(range(x.ndim)) if s is None else tuple(range(-len(s), 0))) if axes is None else axes_of(axes)
    for i, axis in enumerate(axes):
        x = one(x, None if s is None else s[i], axis, norm)
    return x


def fft2(x: ArrayLike, s=None, axes=(-2, -1), norm=None) -> Array:
    return fftn(x, s, axes, norm)


def ifft2(x: ArrayLike, s=None, axes=(-2, -1), norm=None) -> Array:
    return ifftn(x, s, axes, norm)


def rfft2(x: ArrayLike, s=None, axes=(-2, -1), norm=None) -> Array:
    n, m = (None, None) if s is None else s
    return fft(rfft(x, m, axes[1], norm), n, axes[0], norm)


def irfft2(x: ArrayLike, s=None, axes=(-2, -1), norm=None) -> Array:
    n, m = (None, None) if s is None else s
    return irfft(ifft(x, n, axes[0], norm), m, axes[1], norm)


def fftfreq(n, d=1.0) -> Array:
    import numpy as np
    return constant(np.fft.fftfreq(n, d))


def rfftfreq(n, d=1.0) -> Array:
    import numpy as np
    return constant(np.fft.rfftfreq(n, d))


def fftshift(x: ArrayLike, axes=None) -> Array:
    x = as_array(x)
    axes = tuple(range(x.ndim)) if axes is None else axes_of(axes)
    return roll(x, tuple(x.shape[a] // 2 for a in axes), axes)


def ifftshift(x: ArrayLike, axes=None) -> Array:
    x = as_array(x)
    axes = tuple(range(x.ndim)) if axes is None else axes_of(axes)
    return roll(x, tuple(-(x.shape[a] // 2) for a in axes), axes)
