"""Numbers, lists and arrays of other libraries become arrays."""

from . import _rlx


_kinds = (_rlx.Array, _rlx.Tracer, _rlx.DeviceArray)


def is_array(x):
    return isinstance(x, _rlx.Array)


def is_number(x):
    return isinstance(x, (bool, int, float, complex))


_NAMES = {"bool": "bool", "bool_": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
          "uint32": "u32", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "c64",
          "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}
_PYTHON = {bool: "bool", int: "i32", float: "f32", complex: "c64"}


def dtype_name(dtype):
    """Our name of a type given by ours, by NumPy's name, or as a type of NumPy, of Python or of PyTorch."""
    if isinstance(dtype, str):
        return _NAMES.get(dtype, dtype)
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    if name not in _NAMES:
        raise _rlx.Error(f"dtype: no element type for {dtype!r}; known: {', '.join(dict.fromkeys(_NAMES.values()))}")
    return _NAMES[name]


def as_array(x, dtype=None):
    """Arrays of others are borrowed, never copied. Whole numbers become i32, reals f32, unless dtype says otherwise."""
    dtype = None if dtype is None else dtype_name(dtype)
    if not isinstance(x, _kinds) and hasattr(x, "__dlpack_device__") and not _rlx.on_host(x):
        x = _rlx.device_array_from(x)
    if isinstance(x, _kinds):
        if dtype is not None and x.dtype != dtype:
            raise _rlx.Error(f"array: {x.dtype} given where {dtype} is asked for; cast it with .astype({dtype!r})")
        return x
    if is_number(x):
        if dtype is None:
            dtype = "bool" if isinstance(x, bool) else "i32" if isinstance(x, int) else "f32"
        if isinstance(x, complex):
            import numpy
            return _rlx.array_from(numpy.asarray(x, dtype=numpy.complex64))
        return number(x, dtype)
    if isinstance(x, (list, tuple)):
        import numpy
        if _has_traced(x):
            return _stacked(x)
        x = numpy.asarray(x)
        if x.dtype == numpy.float64:
            x = x.astype(numpy.float32)
        elif x.dtype == numpy.int64:
            small = -2**31 <= x.min() and x.max() < 2**31 if x.size else True
            x = x.astype(numpy.int32) if small else x
        elif x.dtype == numpy.complex128:
            x = x.astype(numpy.complex64)
    if not hasattr(x, "__dlpack__") and hasattr(x, "__array__"):  # numbers of NumPy
        x = x.__array__()
    out = _rlx.array_from(x)
    return out if dtype is None or out.dtype == dtype else _rlx.array_cast(out, dtype)


def from_dlpack(x):
    """The tensor of another library, where it lies: an Array on the host, a DeviceArray on the GPU. Nothing is copied."""
    if not hasattr(x, "__dlpack__"):
        raise _rlx.Error(f"from_dlpack: a {type(x).__name__} has no __dlpack__; rlx.array takes numbers and lists")
    return as_array(x)


def to_device(x):
    """x in the memory of the GPU. Functions of such arrays run there, and their results stay there."""
    x = as_array(x)
    return x if isinstance(x, (_rlx.DeviceArray, _rlx.Tracer)) else _rlx.device_array_of(x)


def _has_traced(x):
    return any(isinstance(v, _rlx.Tracer) or isinstance(v, (list, tuple)) and _has_traced(v) for v in x)


def _stacked(values):
    """A list with traced values in it, as one array."""
    from . import ops

    parts = [as_array(v) for v in values]
    like = next(p for p in parts if isinstance(p, _rlx.Tracer))
    parts = [number(v, like.dtype) if is_number(v) else p for v, p in zip(values, parts)]
    return ops.concat(*[ops.reshape(p, shape=(1,) + tuple(p.shape)) for p in parts], axis=0)


def number(x, dtype):
    """A number in the type of a partner: whole numbers fit every type, reals only real ones."""
    if isinstance(x, float) and dtype not in ("f16", "bf16", "f32", "f64", "c64", "f8e4m3", "f8e5m2"):
        if not x.is_integer():
            raise _rlx.Error(f"array: {x} is no {dtype}; cast the array first, for example with .astype('f32')")
    if isinstance(x, int) and abs(x) > 2**53:
        import numpy
        return _rlx.array_cast(_rlx.array_from(numpy.asarray(x, dtype=numpy.int64)), dtype)
    if isinstance(x, complex):
        import numpy
        if dtype != "c64":
            raise _rlx.Error(f"array: {x} is no {dtype}; cast the array first, with .astype('c64')")
        return _rlx.array_from(numpy.asarray(x, dtype=numpy.complex64))
    return _rlx.array_full(dtype, (), float(x))


def as_real(x):
    """Truths and whole numbers as reals: i64 as f64, others as f32. What is real or complex stays."""
    from . import ops

    x = as_array(x)
    if x.dtype != "bool" and x.dtype[0] not in "iu":
        return x
    return ops.cast(x, to="f64" if x.dtype == "i64" else "f32")


def pair_by(convert, a, b):
    """Two operands, made arrays by `convert`; a number takes the type of the array beside it."""
    if is_number(a) and not is_number(b):
        b = convert(b)
        return number(a, b.dtype), b
    a = convert(a)
    return a, number(b, a.dtype) if is_number(b) else convert(b)


def real_pair(a, b):
    """Two operands of a function whose values are real."""
    return pair_by(as_real, a, b)
