"""Every operator as a function, made from its record: operands first, then attributes by keyword."""

from . import _functions


def __getattr__(name):
    function = _functions.make(name)
    if function is None:
        raise AttributeError(f"rlx has no operator '{name}'")
    globals()[name] = function
    return function


def __dir__():
    return _functions.names()
