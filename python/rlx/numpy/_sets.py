"""Arrays as sets. What they hold decides their sizes: these run at once only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._convert import as_array
from ._arrays import constant, known

if TYPE_CHECKING:
    from ._arrays import Array, ArrayLike

__all__ = ["union1d", "intersect1d", "setdiff1d", "setxor1d", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


def _of_two(name):
    def function(a: ArrayLike, b: ArrayLike) -> Array:
        import numpy as np
        a, b = as_array(a), as_array(b)
        return constant(getattr(np, name)(known(a, name, "its size"), known(b, name, "its size")), a.dtype)

    function.__name__ = name
    return function


union1d, intersect1d, setdiff1d, setxor1d = map(_of_two, ("union1d", "intersect1d", "setdiff1d", "setxor1d"))


def _found(name, x):
    import numpy as np
    x = as_array(x)
    values, *places = getattr(np, name)(known(x, name, "its size"))
    return [constant(values, x.dtype)] + [constant(p) for p in places]


def unique_all(x: ArrayLike) -> UniqueAllResult:
    return UniqueAllResult(*_found("unique_all", x))


def unique_counts(x: ArrayLike) -> UniqueCountsResult:
    return UniqueCountsResult(*_found("unique_counts", x))


def unique_inverse(x: ArrayLike) -> UniqueInverseResult:
    return UniqueInverseResult(*_found("unique_inverse", x))


def unique_values(x: ArrayLike) -> Array:
    import numpy as np
    x = as_array(x)
    return constant(np.unique_values(known(x, "unique_values", "its size")), x.dtype)
