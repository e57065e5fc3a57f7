"""What the functions of this package share: how arguments become arrays, axes and shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, Union

from .. import _rlx, ops
from .._convert import as_array, as_real, dtype_name, is_number, number, pair_by, real_pair  # noqa: F401

if TYPE_CHECKING:
    from .._rlx import Array

    ArrayLike = Any
    Axis = Union[int, Sequence[int], None]

REALS = ("f16", "bf16", "f32", "f64")


def pair(a, b):
    """Two operands; a number takes the type of the array beside it."""
    return pair_by(as_array, a, b)


def shape_of(shape):
    if isinstance(shape, (int, str)):
        return (shape,)
    return tuple(d if isinstance(d, str) else d.__index__() for d in shape)


def axes_of(axis) -> tuple:
    return () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def axis_of(axis, ndim, where):
    """An axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise _rlx.Error(f"{where}: axis {axis} of an array of {ndim} axes")
    return axis % ndim


def known(x, where, what):
    """The contents of a value as a NumPy array, for what must be decided while a function is traced."""
    import numpy

    if isinstance(x, _rlx.Tracer):
        raise _rlx.Error(f"{where}: {what} depends on a traced value; give it as a constant, or call {where} outside of jit")
    return numpy.asarray(x)


def constant(values, dtype=None):
    """An array of NumPy's as one of ours; whole numbers as i32 where they fit, reals as f32, unless dtype says otherwise."""
    import numpy

    values = numpy.asarray(values)
    if dtype is not None:
        out = as_array(values)
        return ops.cast(out, to=dtype_name(dtype)) if out.dtype != dtype_name(dtype) else out
    if values.dtype == numpy.float64:
        return as_array(values.astype(numpy.float32))
    fits = values.dtype == numpy.int64 and (values.size == 0 or -2**31 <= values.min() and values.max() < 2**31)
    return as_array(values.astype(numpy.int32) if fits else values)


def zero_like(x):
    return number(0, x.dtype)
