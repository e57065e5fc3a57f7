"""Numbers, lists and arrays of other libraries become arrays."""

from . import _rlx


def is_array(x):
    return isinstance(x, _rlx.Array)


def is_number(x):
    return isinstance(x, (bool, int, float, complex))


def as_array(x, dtype=None):
    """Arrays of others are borrowed, never copied. Whole numbers become i32, reals f32, unless dtype says otherwise."""
    if isinstance(x, (_rlx.Array, _rlx.Tracer)):
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
        x = numpy.asarray(x)
        if x.dtype == numpy.float64:
            x = x.astype(numpy.float32)
        elif x.dtype == numpy.int64:
            small = numpy.all(numpy.abs(x) < 2**31) if x.size else True
            x = x.astype(numpy.int32) if small else x
        elif x.dtype == numpy.complex128:
            x = x.astype(numpy.complex64)
    if not hasattr(x, "__dlpack__") and hasattr(x, "__array__"):  # numbers of NumPy
        x = x.__array__()
    out = _rlx.array_from(x)
    return out if dtype is None or out.dtype == dtype else _rlx.array_cast(out, dtype)


def number(x, dtype):
    """A number in the type of a partner: whole numbers fit every type, reals only real ones."""
    if isinstance(x, float) and dtype not in ("f16", "bf16", "f32", "f64", "c64", "f8e4m3", "f8e5m2"):
        if not x.is_integer():
            raise _rlx.Error(f"array: {x} is no {dtype}; cast the array first, for example with .astype('f32')")
    if isinstance(x, int) and abs(x) > 2**53:
        import numpy
        return _rlx.array_cast(_rlx.array_from(numpy.asarray(x, dtype=numpy.int64)), dtype)
    return _rlx.array_full(dtype, (), float(x))
