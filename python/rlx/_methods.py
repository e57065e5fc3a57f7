"""Operators and methods of arrays and of traced values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _rlx, ops
from ._convert import as_array, dtype_name, is_number, number, real_pair
from ._indexing import At, getitem

if TYPE_CHECKING:
    import numpy

    from ._rlx import Array

_foreign = (str, bytes, dict, set, type(None))  # what no operator takes


def _partner(x, like):
    return number(x, like.dtype) if is_number(x) else x


def _operator(name, choose=None, partner=_partner):
    """The method for an operator and the one for its operands turned round; other classes get a chance of their own."""

    def forward(self, other: Any) -> Array:
        if isinstance(other, _foreign):
            return NotImplemented
        return (choose or getattr(ops, name))(self, partner(other, self))

    def backward(self, other: Any) -> Array:
        if isinstance(other, _foreign):
            return NotImplemented
        return (choose or getattr(ops, name))(partner(other, self), self)

    return forward, backward


def _compare(kind):
    def method(self, other: Any) -> Array:
        if isinstance(other, _foreign):
            return NotImplemented
        return ops.compare(self, _partner(other, self), kind=kind)

    return method


def _bits(name):
    return lambda a, b: getattr(ops, name.replace("bitwise", "logical") if as_array(a).dtype == "bool" else name)(a, b)


def true_div(a, b):
    """The quotient as a real number, that of whole numbers too."""
    return ops.div(*real_pair(a, b))


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
    """The remainder with the sign of b."""
    a, b = as_array(a), as_array(b)
    r = ops.rem(a, b)
    zero = number(0, a.dtype)
    other = ops.logical_and(ops.compare(r, zero, kind="ne"), ops.compare(ops.compare(r, zero, kind="lt"),
                                                                        ops.compare(b, zero, kind="lt"), kind="ne"))
    return ops.where(other, ops.add(r, b), r)


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
    if x.ndim == 0 and any(a not in (0, -1) for a in axes):
        raise _rlx.Error(f"{op}: axis {axis} of an array without axes")
    return ops.reduce(x, kind=op, axes=axes, keep_dim=keepdims) if x.ndim else x


def _reshape(self, *shape: Any) -> Array:
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return ops.reshape(self, shape=tuple(shape))


def _transpose(self, *axes: Any) -> Array:
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    axes = tuple(a % self.ndim for a in axes) if axes else tuple(reversed(range(self.ndim)))
    return ops.transpose(self, perm=axes)


def _astype(self, dtype: Any) -> Array:
    dtype = dtype_name(dtype)
    return self if self.dtype == dtype else ops.cast(self, to=dtype)


def _flatten(self) -> Array:
    return ops.reshape(self, shape=(-1,))


def _len(self) -> int:
    if self.ndim == 0:
        raise TypeError("an array without axes has no length")
    return self.shape[0]


def _iter(self) -> Any:
    return (getitem(self, i) for i in range(_len(self)))


def _unchangeable(self, key: Any, value: Any) -> None:
    raise TypeError("arrays do not change; x = x.at[index].set(value) makes a changed copy")


def _getitem(self, key: Any) -> Array:
    return getitem(self, key)


def _neg(self) -> Array:
    return ops.neg(self)


def _same(self) -> Array:
    return self


def _abs(self) -> Array:
    return ops.abs(self)


def _invert(self) -> Array:
    return ops.logical_not(self) if self.dtype == "bool" else ops.bitwise_not(self)


def _matmul(self, other: Any) -> Array:
    return matmul(self, other)


def _rmatmul(self, other: Any) -> Array:
    return matmul(other, self)


def _transposed(self) -> Array:
    return _transpose(self)


def _matrices_transposed(self) -> Array:
    order = list(range(self.ndim))
    order[-1], order[-2] = order[-2], order[-1]
    return ops.transpose(self, perm=tuple(order))


def _at(self) -> At:
    return At(self)


_OPERATORS = {"add": ("add", None), "sub": ("sub", None), "mul": ("mul", None), "pow": ("pow", None),
              "lshift": ("shift_left", None), "rshift": ("shift_right", None), "floordiv": ("", _floor_div), "mod": ("", _mod),
              "divmod": ("", lambda a, b: (_floor_div(a, b), _mod(a, b))), "and": ("", _bits("bitwise_and")),
              "or": ("", _bits("bitwise_or")), "xor": ("", _bits("bitwise_xor"))}
_METHODS = {"__neg__": _neg, "__pos__": _same, "__abs__": _abs, "__invert__": _invert, "__matmul__": _matmul,
            "__rmatmul__": _rmatmul, "__getitem__": _getitem, "__setitem__": _unchangeable, "__len__": _len, "__iter__": _iter,
            "__hash__": object.__hash__, "at": property(_at), "T": property(_transposed), "mT": property(_matrices_transposed),
            "reshape": _reshape, "transpose": _transpose, "astype": _astype, "flatten": _flatten}
# Functions of rlx.numpy that are methods too; their first argument is the array.
_NAMED = ("sum mean prod max min var std all any argmax argmin cumsum cumprod ptp sort argsort clip round squeeze swapaxes ravel "
          "repeat take dot diagonal trace conj conjugate copy nonzero").split()


def install(cls):
    for name, (operator, choose) in _OPERATORS.items():
        forward, backward = _operator(operator, choose)
        setattr(cls, f"__{name}__", forward)
        setattr(cls, f"__r{name}__", backward)
    cls.__truediv__, cls.__rtruediv__ = _operator("", true_div, lambda x, _: x)
    for kind in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(cls, f"__{kind}__", _compare(kind))
    for name, method in _METHODS.items():
        setattr(cls, name, method)


def install_named(module):
    for cls in (_rlx.Array, _rlx.Tracer, _rlx.DeviceArray):
        for name in _NAMED:
            setattr(cls, name, getattr(module, name))
        cls.real, cls.imag = property(module.real), property(module.imag)


# What only arrays with contents have.


def _numpy_of(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
    if self.dtype in ("bf16", "f8e4m3", "f8e5m2"):
        raise _rlx.Error(f"numpy: it has no {self.dtype}; use .astype('f32')")
    out = self._numpy()
    if dtype is not None and out.dtype != dtype:
        if copy is False:
            raise ValueError(f"an array of {self.dtype} becomes {dtype} only as a copy")
        return out.astype(dtype)
    return out.copy() if copy else out


def _repr(self) -> str:
    import numpy
    plain = self if self.dtype not in ("bf16", "f8e4m3", "f8e5m2") else _rlx.array_cast(self, "f32")
    text = numpy.array2string(plain._numpy(), separator=", ", prefix="Array(", threshold=200)
    shape = f", shape={self.shape}" if self.size > 200 or self.size == 0 else ""
    return f"Array({text}, {self.dtype}{shape})"


def _str(self) -> str:
    plain = self if self.dtype not in ("bf16", "f8e4m3", "f8e5m2") else _rlx.array_cast(self, "f32")
    return str(plain._numpy())


def _format(self, spec: str) -> str:
    return format(self.item(), spec) if self.ndim == 0 and spec else format(_str(self), spec)


def _tolist(self) -> Any:
    plain = self if self.dtype not in ("bf16", "f8e4m3", "f8e5m2") else _rlx.array_cast(self, "f32")
    return plain._numpy().tolist()


def _rebuilt(contents, dtype):
    return _rlx.array_cast(_rlx.array_from(contents), dtype)


def _reduce(self) -> Any:
    """How pickle and copy see an array; types that NumPy lacks travel as f32, which holds them exactly."""
    plain = self if self.dtype not in ("bf16", "f8e4m3", "f8e5m2") else _rlx.array_cast(self, "f32")
    return _rebuilt, (plain._numpy().copy(), self.dtype)


def _bool(self) -> bool:
    return bool(self.item())


def _int(self) -> int:
    return int(self.item())


def _float(self) -> float:
    return float(self.item())


def _complex(self) -> complex:
    return complex(self.item())


def _index(self) -> int:
    if self.ndim or self.dtype[0] not in "iu":
        raise TypeError(f"only an integer without axes is an index, not {self.dtype}{list(self.shape)}")
    return self.item()


def _nbytes(self) -> int:
    return self.size * _itemsize(self)


def _itemsize(self) -> int:
    return {"bool": 1, "f8e4m3": 1, "f8e5m2": 1}.get(self.dtype) or int(self.dtype.lstrip("abcfiu")) // 8


def _on_host(name):
    """The method of arrays, on a copy in the memory of the host."""

    def method(self, *args, **kwargs):
        return getattr(self.to_host(), name)(*args, **kwargs)

    return method


def _device_repr(self) -> str:
    return f"DeviceArray({self.dtype}{list(self.shape)})"


def _traced_value(self, *args, **kwargs):
    raise _rlx.Error("a traced value has no contents while a function is traced; use rlx.where, rlx.cond or rlx.while_loop")


def _traced_repr(self) -> str:
    return f"Tracer({self.dtype}{list(self.shape)})"


def _traced_size(self) -> int:
    n = 1
    for d in self.shape:
        n *= d
    return n


install(_rlx.Array)
install(_rlx.Tracer)
install(_rlx.DeviceArray)
for _name in ("item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__str__",
              "__format__"):
    setattr(_rlx.DeviceArray, _name, _on_host(_name))
_rlx.DeviceArray.__repr__ = _device_repr
_rlx.DeviceArray.__array_priority__ = 100
for _name, _method in {"numpy": _numpy_of, "__array__": _numpy_of, "tolist": _tolist, "__repr__": _repr, "__str__": _str,
                       "__format__": _format, "__bool__": _bool, "__int__": _int, "__float__": _float, "__complex__": _complex,
                       "__index__": _index, "__reduce__": _reduce, "nbytes": property(_nbytes),
                       "itemsize": property(_itemsize), "__array_priority__": 100}.items():
    setattr(_rlx.Array, _name, _method)
for _name in ("__bool__", "__float__", "__int__", "__index__", "__complex__", "__array__", "item", "tolist", "numpy"):
    setattr(_rlx.Tracer, _name, _traced_value)
_rlx.Tracer.__repr__ = _traced_repr
_rlx.Tracer.size = property(_traced_size)
