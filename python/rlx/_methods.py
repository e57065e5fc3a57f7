"""Operators, methods and indexing of arrays and of traced values."""

from . import _rlx, ops
from ._convert import as_array, is_number, number


def _partner(x, like):
    return number(x, like.dtype) if is_number(x) else x


def _binary(name):
    def forward(self, other):
        return getattr(ops, name)(self, _partner(other, self))

    def backward(self, other):
        return getattr(ops, name)(_partner(other, self), self)

    return forward, backward


def _compare(kind):
    def method(self, other):
        return ops.compare(self, _partner(other, self), kind=kind)

    return method


def _floor_div(a, b):
    a, b = as_array(a), as_array(b)
    if a.dtype in ("f16", "bf16", "f32", "f64"):
        return ops.floor(ops.div(a, b))
    q = ops.div(a, b)
    wrong = ops.logical_and(ops.compare(ops.rem(a, b), number(0, a.dtype), kind="ne"),
                            ops.compare(ops.compare(a, number(0, a.dtype), kind="lt"),
                                        ops.compare(b, number(0, b.dtype), kind="lt"), kind="ne"))
    return ops.sub(q, ops.cast(wrong, to=a.dtype))


def _mod(a, b):
    return ops.sub(a, ops.mul(_floor_div(a, b), b))


def matmul(a, b):
    """NumPy's product: vectors stand for a row on the left and a column on the right."""
    a, b = as_array(a), as_array(b)
    left, right = a.ndim == 1, b.ndim == 1
    y = ops.matmul(ops.reshape(a, shape=(1,) + a.shape) if left else a, ops.reshape(b, shape=b.shape + (1,)) if right else b)
    shape = y.shape[:-1] if right else y.shape
    if left:
        shape = shape[:-1] if right else shape[:-2] + shape[-1:]
    return ops.reshape(y, shape=shape) if left or right else y


def axes_of(axis):
    return () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def reduce(x, op, axis=None, keepdims=False):
    x = as_array(x)
    if axis is not None and axes_of(axis) == ():
        return x
    axes = axes_of(axis) or tuple(range(x.ndim))
    return ops.reduce(x, kind=op, axes=axes, keep_dim=keepdims) if x.ndim else x


def _index(self, key):
    """NumPy's basic indexing, and one integer array among the indices."""
    key = key if isinstance(key, tuple) else (key,)
    taken = sum(1 for k in key if k is not None and k is not Ellipsis)
    if taken > self.ndim:
        raise IndexError(f"{taken} indices for an array of {self.ndim} axes")
    if any(k is Ellipsis for k in key):
        at = next(i for i, k in enumerate(key) if k is Ellipsis)
        key = key[:at] + (slice(None),) * (self.ndim - taken) + key[at + 1:]
    else:
        key = key + (slice(None),) * (self.ndim - taken)
    return key


def _getitem(self, key):
    x, axis, new, arrays = self, 0, [], []
    for k in _index(self, key):
        if k is None:
            new.append(axis)
            continue
        size = x.shape[axis]
        if isinstance(k, bool):
            raise IndexError("an index may not be a bool; use where")
        if isinstance(k, int):
            if not -size <= k < size:
                raise IndexError(f"index {k} of an axis of size {size}")
            x = ops.reshape(ops.narrow(x, axis=axis, start=k % size, len=1),
                            shape=x.shape[:axis] + x.shape[axis + 1:])
            continue
        if isinstance(k, slice):
            start, stop, step = k.indices(size)
            if (start, stop, step) != (0, size, 1):
                x = _slice(x, axis, start, stop, step)
            axis += 1
            continue
        index = as_array(k)
        if index.dtype == "bool":
            raise IndexError("a mask gives a size that depends on its contents; use where, or compress with NumPy")
        if arrays:
            raise IndexError("one index array at a time; chain two indexings or use take_along_axis")
        arrays.append(axis)
        index = ops.where(ops.compare(index, number(0, index.dtype), kind="lt"),
                          ops.add(index, number(size, index.dtype)), index)
        x = ops.gather(x, index, axis=axis)
        axis += index.ndim
    if new:
        shape, added = list(x.shape), 0
        for at in new:
            shape.insert(at + added, 1)
            added += 1
        x = ops.reshape(x, shape=tuple(shape))
    return x


def _slice(x, axis, start, stop, step):
    if step == 1:
        return ops.narrow(x, axis=axis, start=start, len=max(0, stop - start))
    count = max(0, (stop - start + (step - 1 if step > 0 else step + 1)) // step)
    if count == 0:
        return ops.narrow(x, axis=axis, start=0, len=0)
    if step < 0:
        last = start + (count - 1) * step
        part = ops.flip(ops.narrow(x, axis=axis, start=last, len=start - last + 1), axes=(axis,))
        step = -step
    else:
        part = ops.narrow(x, axis=axis, start=start, len=(count - 1) * step + 1)
    if step == 1:
        return part
    index = _rlx.array_from(_numpy().arange(0, (count - 1) * step + 1, step, dtype="int32"))
    return ops.gather(part, index, axis=axis)


def _numpy():
    import numpy
    return numpy


class At:
    """x.at[index].set(y) and .add(y): a changed copy."""

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
        flat = _rlx.array_from(np.arange(size, dtype=np.int32).reshape(self.x.shape))
        return flat[self.key]

    def _scatter(self, op, y):
        places = self._places()
        y = _partner(y, self.x)
        y = ops.expand(as_array(y), shape=places.shape) if tuple(as_array(y).shape) != tuple(places.shape) else as_array(y)
        flat = ops.reshape(self.x, shape=(-1,))
        out = op(flat, ops.reshape(places, shape=(-1,)), ops.reshape(y, shape=(-1,)))
        return ops.reshape(out, shape=self.x.shape)

    def set(self, y):
        return self._scatter(lambda x, i, y: ops.scatter(x, i, y, kind="set"), y)

    def add(self, y):
        return self._scatter(lambda x, i, y: ops.scatter(x, i, y, kind="add"), y)

    def multiply(self, y):
        return self.set(ops.mul(self.x[self.key], as_array(_partner(y, self.x))))

    def get(self):
        return self.x[self.key]


def _reshape(self, *shape):
    shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return ops.reshape(self, shape=tuple(shape))


def _transpose(self, *axes):
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return ops.transpose(self, perm=tuple(axes) if axes else tuple(reversed(range(self.ndim))))


def _pow(self, other):
    return ops.pow(self, _partner(other, self))


def _astype(self, dtype):
    return self if self.dtype == dtype else ops.cast(self, to=dtype)


def _numpy_of(self, dtype=None, copy=None):
    if self.dtype == "bf16":
        raise _rlx.Error("numpy: it has no bf16; use .astype('f32')")
    out = self._numpy()
    if not out.flags.writeable or copy:
        out = out.copy() if copy else out
    return out if dtype is None else out.astype(dtype)


def _repr(self):
    if self.dtype in ("bf16", "f8e4m3", "f8e5m2"):
        return f"Array({self.astype('f32')._numpy()}, {self.dtype})"
    text = _numpy().array2string(self._numpy(), separator=", ", prefix="Array(")
    return f"Array({text}, {self.dtype})"


def _traced_bool(self):
    raise _rlx.Error("a traced value has no contents while a function is traced; use rlx.where, rlx.cond or rlx.while_loop")


def install(cls):
    for name, (left, right) in {"add": ("__add__", "__radd__"), "sub": ("__sub__", "__rsub__"),
                                "mul": ("__mul__", "__rmul__"), "div": ("__truediv__", "__rtruediv__"),
                                "bitwise_and": ("__and__", "__rand__"), "bitwise_or": ("__or__", "__ror__"),
                                "bitwise_xor": ("__xor__", "__rxor__"), "shift_left": ("__lshift__", "__rlshift__"),
                                "shift_right": ("__rshift__", "__rrshift__")}.items():
        forward, backward = _logical(name) if name.startswith("bitwise") else _binary(name)
        setattr(cls, left, forward)
        setattr(cls, right, backward)
    for kind in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(cls, f"__{kind}__", _compare(kind))
    cls.__hash__ = object.__hash__
    cls.__neg__ = lambda self: ops.neg(self)
    cls.__abs__ = lambda self: ops.abs(self)
    cls.__invert__ = lambda self: ops.logical_not(self) if self.dtype == "bool" else ops.bitwise_not(self)
    cls.__matmul__ = matmul
    cls.__rmatmul__ = lambda self, other: matmul(other, self)
    cls.__pow__ = _pow
    cls.__rpow__ = lambda self, other: ops.pow(_partner(other, self), self)
    cls.__floordiv__ = lambda self, other: _floor_div(self, _partner(other, self))
    cls.__rfloordiv__ = lambda self, other: _floor_div(_partner(other, self), self)
    cls.__mod__ = lambda self, other: _mod(self, _partner(other, self))
    cls.__rmod__ = lambda self, other: _mod(_partner(other, self), self)
    cls.__getitem__ = _getitem
    cls.__len__ = _len
    cls.__iter__ = lambda self: (self[i] for i in range(len(self)))
    cls.at = property(At)
    cls.T = property(lambda self: _transpose(self))
    cls.reshape, cls.transpose, cls.astype = _reshape, _transpose, _astype
    cls.sum = lambda self, axis=None, keepdims=False: reduce(self, "sum", axis, keepdims)
    cls.mean = lambda self, axis=None, keepdims=False: reduce(self, "mean", axis, keepdims)
    cls.max = lambda self, axis=None, keepdims=False: reduce(self, "max", axis, keepdims)
    cls.min = lambda self, axis=None, keepdims=False: reduce(self, "min", axis, keepdims)
    cls.prod = lambda self, axis=None, keepdims=False: reduce(self, "prod", axis, keepdims)
    cls.argmax = lambda self, axis=-1: ops.argmax(self, axis=axis)
    cls.argmin = lambda self, axis=-1: ops.argmin(self, axis=axis)
    cls.flatten = lambda self: ops.reshape(self, shape=(-1,))


def _logical(name):
    def choose(a, b):
        kind = name.replace("bitwise", "logical") if as_array(a).dtype == "bool" else name
        return getattr(ops, kind)(a, b)

    return (lambda self, other: choose(self, _partner(other, self)),
            lambda self, other: choose(_partner(other, self), self))


def _len(self):
    if self.ndim == 0:
        raise TypeError("an array without axes has no length")
    return self.shape[0]


install(_rlx.Array)
install(_rlx.Tracer)
_rlx.Array.numpy = _numpy_of
_rlx.Array.__array__ = _numpy_of
_rlx.Array.tolist = lambda self: self._numpy().tolist()
_rlx.Array.__repr__ = _repr
_rlx.Array.__bool__ = lambda self: bool(self.item())
_rlx.Array.__int__ = lambda self: int(self.item())
_rlx.Array.__float__ = lambda self: float(self.item())
_rlx.Array.__index__ = lambda self: self.item()
_rlx.Array.__array_priority__ = 100
_rlx.Tracer.__bool__ = _traced_bool
_rlx.Tracer.__float__ = _traced_bool
_rlx.Tracer.__int__ = _traced_bool
_rlx.Tracer.__repr__ = lambda self: f"Tracer({self.dtype}{list(self.shape)})"
_rlx.Tracer.__array__ = lambda self, *a, **k: _traced_bool(self)
