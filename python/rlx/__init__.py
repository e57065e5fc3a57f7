"""RLX: tensor functions that are traced, differentiated, batched, compiled and run.

    import rlx, rlx.numpy as rnp
    loss = lambda w, x, y: rnp.mean((x @ w - y) ** 2)
    step = rlx.jit(rlx.value_and_grad(loss))
"""

from ._rlx import Array, DeviceArray, Embedder, Error, Generation, Graph, LanguageModel, Program, __version__
from . import _methods
from . import _tree as tree
from . import numpy, onnx, ops, optim, random
from ._convert import as_array, from_dlpack, to_device
from ._loops import cond, fori_loop, scan, while_loop
from ._models import Model, load
from ._progress import progress
from ._trace import config, jit, show_config
from ._transforms import grad, hessian, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
from .numpy import array, where

_methods.install_named(numpy)


def stop_gradient(x):
    """x, as a constant for derivatives; a structure of arrays likewise."""
    return tree.map(ops.stop_gradient, x)


__all__ = ["Array", "DeviceArray", "Embedder", "Error", "Generation", "Graph", "LanguageModel", "Model", "Program",
           "__version__", "array", "as_array", "cond", "config", "fori_loop", "from_dlpack", "grad", "hessian",
           "jacfwd", "jacrev", "jit", "jvp", "load", "numpy", "onnx", "ops", "optim", "progress", "random", "scan",
           "show_config", "stop_gradient", "to_device", "tree", "value_and_grad", "vjp", "vmap", "where", "while_loop"]
