"""Random numbers from a key and a counter (Philox4x32-10): the same numbers everywhere, no hidden state."""

from . import ops
from ._convert import is_number, number


def key(seed):
    """A key from a seed."""
    return number(seed, "i64")


def fold_in(k, data):
    """Another key, from a key and a number."""
    words = ops.random_bits(k, _counter(data), shape=(2,)).astype("i64")
    return words[0] + words[1] * 2**31


def split(k, num=2):
    """So many keys."""
    return [fold_in(k, i + 1) for i in range(num)]


def _counter(n):
    return number(n, "i64") if is_number(n) else n


def uniform(k, shape=(), dtype="f32", low=0.0, high=1.0):
    return ops.random_uniform(k, _counter(0), shape=(dtype, tuple(shape)), low=low, high=high)


def normal(k, shape=(), dtype="f32"):
    return ops.random_normal(k, _counter(0), shape=(dtype, tuple(shape)))
