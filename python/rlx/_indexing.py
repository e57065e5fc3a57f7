"""NumPy's indexing: integers, slices, new axes, arrays of integers and masks; and changed copies by x.at[...]."""

from . import _rlx, ops
from ._convert import as_array, is_number, number


def _numpy():
    import numpy
    return numpy


def _positions(mask):
    """A mask as one array of integers an axis; its size depends on its contents, so they must be known."""
    if isinstance(mask, _rlx.Tracer):
        raise IndexError("a traced mask gives a size that depends on its contents; use where")
    np = _numpy()
    return [as_array(i.astype(np.int32)) for i in np.asarray(mask).nonzero()]


def _is_integer(k):
    return not isinstance(k, (bool, slice, list, tuple, _rlx.Array, _rlx.Tracer)) and hasattr(k, "__index__") and not \
        getattr(k, "ndim", 0)


def _parts(x, key):
    """One entry an axis of x, and None for each new axis."""
    out = []
    for k in key if isinstance(key, tuple) else (key,):
        if k is None or k is Ellipsis or isinstance(k, slice):
            out.append(k)
        elif _is_integer(k):
            out.append(k.__index__())
        elif isinstance(k, bool):
            raise IndexError("an index may not be a bool; use where")
        else:
            index = as_array(k)
            if index.dtype[0] not in "biu" or index.dtype == "bf16":
                raise IndexError(f"an index of {index.dtype}; indices are integers, slices, None, ... and arrays of integers or bools")
            out += _positions(index) if index.dtype == "bool" else [index]
    taken = sum(k is not None and k is not Ellipsis for k in out)
    if taken > x.ndim:
        raise IndexError(f"{taken} indices for an array of {x.ndim} axes")
    rest = [slice(None)] * (x.ndim - taken)
    at = next((i for i, k in enumerate(out) if k is Ellipsis), len(out))
    return out[:at] + rest + out[at + 1:]


def getitem(x, key):
    parts = _parts(x, key)
    if any(isinstance(k, (_rlx.Array, _rlx.Tracer)) for k in parts):
        return _with_arrays(x, parts)
    axis, shape = 0, []
    for k in parts:
        if k is None:
            shape.append(1)
        elif isinstance(k, slice):
            x = _slice(x, axis, k)
            shape.append(x.shape[axis])
            axis += 1
        else:
            x = ops.narrow(x, axis=axis, start=_inside(k, x.shape[axis]), len=1)
            axis += 1
    return ops.reshape(x, shape=tuple(shape)) if tuple(shape) != tuple(x.shape) else x


def _inside(k, size):
    if isinstance(size, str):  # an open size; running the graph checks that it is large enough
        return k if k >= 0 else f"{size}{k}"
    if not -size <= k < size:
        raise IndexError(f"index {k} of an axis of size {size}")
    return k % size


def _with_arrays(x, parts):
    """Slices first; then the axes that arrays (and integers beside them) pick from are one axis, picked from at once."""
    axis, picked, kept, places = 0, [], [], []
    for k in parts:
        if k is None:
            kept.append(None)
        elif isinstance(k, slice):
            x = _slice(x, axis, k)
            kept.append(axis)
            axis += 1
        else:
            places.append(len(kept) + len(picked))
            picked.append((axis, k))
            axis += 1
    together = places == list(range(places[0], places[0] + len(places)))
    first = places[0]  # where the picked axes stand in the result
    axes = [a for a, _ in picked]
    indices = [_wrapped(k, x.shape[a]) for a, k in picked]
    if len(picked) == 1 and None not in kept:
        return ops.gather(x, indices[0], axis=axes[0])
    rest = [a for a in kept if a is not None]
    sizes = [x.shape[a] for a in axes]
    x = ops.transpose(x, perm=tuple(axes + rest))
    total = 1
    for s in sizes:
        total *= s
    tail = tuple(x.shape[len(axes):])
    x = ops.reshape(x, shape=(total,) + tail)
    at = indices[0]
    for index, size in zip(indices[1:], sizes[1:]):
        index = index if index.dtype == at.dtype else ops.cast(index, to=at.dtype)
        at = ops.add(ops.mul(at, number(size, at.dtype)), index)
    y = ops.gather(x, at, axis=0)
    head = tuple(at.shape)
    sizes = iter(tail)
    wide = [1 if a is None else next(sizes) for a in kept]
    if not together or first == 0:
        return ops.reshape(y, shape=head + tuple(wide)) if None in kept else y
    before = sum(1 for a in kept[:first] if a is not None)
    n, m = len(head), len(tail)
    perm = tuple(range(n, n + before)) + tuple(range(n)) + tuple(range(n + before, n + m))
    y = ops.transpose(y, perm=perm)
    return ops.reshape(y, shape=tuple(wide[:first]) + head + tuple(wide[first:])) if None in kept else y


def _wrapped(k, size):
    """Negative positions count from the end."""
    if isinstance(size, str):
        if isinstance(k, int) and k >= 0:
            return number(k, "i32")
        if isinstance(k, _rlx.Array) and (not k.size or _numpy().asarray(k).min() >= 0):
            return k
        raise _rlx.Error(f"index: positions of an axis of open size '{size}' must be known and not negative; use rlx.ops.gather")
    if isinstance(k, int):
        return number(_inside(k, size), "i32")
    if isinstance(k, _rlx.Array) and size < 2**31:
        values = _numpy().asarray(k)
        if values.size and not (-size <= values.min() and values.max() < size):
            wrong = values.min() if values.min() < -size else values.max()
            raise IndexError(f"index {wrong} of an axis of size {size}")
        if not values.size or values.min() >= 0:
            return k
    return ops.where(ops.compare(k, number(0, k.dtype), kind="lt"), ops.add(k, number(size, k.dtype)), k)


def _open_slice(x, axis, k, size):
    """A slice of an axis whose size is a text; places are numbers, or the size and a number."""
    start, stop, step = k.start, k.stop, 1 if k.step is None else k.step
    if (start, stop) == (None, None) and step in (1, -1):
        return x if step == 1 else ops.flip(x, axes=(axis,))
    if step != 1:
        raise _rlx.Error(f"index: a step of {step} along an axis of open size '{size}'; take a slice without one")
    low, high = (0 if start is None else start), (size if stop is None else stop)
    from_end, to_end = start is not None and start < 0, stop is None or stop < 0
    if from_end and not to_end:
        raise _rlx.Error(f"index: {start}:{stop} of an axis of open size '{size}' has no size of its own; count both from one end")
    offset = (0 if stop is None else high) - low
    if from_end == to_end:
        return ops.narrow(x, axis=axis, start=_inside(low, size), len=max(0, offset))
    return ops.narrow(x, axis=axis, start=low, len=f"{size}{offset:+d}")


def _slice(x, axis, k):
    size = x.shape[axis]
    if isinstance(size, str):
        return _open_slice(x, axis, k, size)
    start, stop, step = k.indices(size)
    if (start, stop, step) == (0, size, 1):
        return x
    if step == 1:
        return ops.narrow(x, axis=axis, start=start, len=max(0, stop - start))
    count = len(range(start, stop, step))
    if count == 0:
        return ops.narrow(x, axis=axis, start=0, len=0)
    if step < 0:
        start = start + (count - 1) * step
        x = ops.narrow(x, axis=axis, start=start, len=(count - 1) * -step + 1)
        x, start, step = ops.flip(x, axes=(axis,)), 0, -step
    low, high, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    low[axis], high[axis], strides[axis] = start, start + (count - 1) * step + 1, step
    return x if step == 1 else ops.slice(x, start=tuple(low), limit=tuple(high), stride=tuple(strides))


class At:
    """x.at[index].set(y), .add(y) and so on: a changed copy."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, key):
        return AtIndex(self.x, key)


class AtIndex:
    def __init__(self, x, key):
        self.x, self.key = x, key

    def _places(self):
        """Positions of the chosen elements in the flat array, in their shape."""
        np = _numpy()
        size = 1
        for d in self.x.shape:
            size *= d
        flat = _rlx.array_from(np.arange(size, dtype=np.int32 if size < 2**31 else np.int64).reshape(self.x.shape))
        return getitem(flat, self.key)

    def _value(self, y):
        y = number(y, self.x.dtype) if is_number(y) else as_array(y)
        if y.dtype != self.x.dtype:
            raise _rlx.Error(f"at: {y.dtype} given for an array of {self.x.dtype}; cast it with .astype({self.x.dtype!r})")
        return y

    def _scatter(self, kind, y):
        places, y = self._places(), self._value(y)
        y = ops.expand(y, shape=places.shape) if tuple(y.shape) != tuple(places.shape) else y
        flat = ops.reshape(self.x, shape=(-1,))
        out = ops.scatter(flat, ops.reshape(places, shape=(-1,)), ops.reshape(y, shape=(-1,)), kind=kind)
        return ops.reshape(out, shape=self.x.shape)

    def set(self, y):
        return self._scatter("set", y)

    def add(self, y):
        return self._scatter("add", y)

    def subtract(self, y):
        return self._scatter("add", ops.neg(self._value(y)))

    def min(self, y):
        return self._scatter("min", y)

    def max(self, y):
        return self._scatter("max", y)

    def multiply(self, y):
        return self.set(ops.mul(self.get(), self._value(y)))

    def divide(self, y):
        return self.set(ops.div(self.get(), self._value(y)))

    def power(self, y):
        return self.set(ops.pow(self.get(), self._value(y)))

    def apply(self, function):
        return self.set(function(self.get()))

    def get(self):
        return getitem(self.x, self.key)
