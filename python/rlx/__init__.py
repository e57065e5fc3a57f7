"""RLX: tensor functions that are traced, differentiated, batched, compiled and run.

    import rlx, rlx.numpy as rnp
    loss = lambda w, x, y: rnp.mean((x @ w - y) ** 2)
    step = rlx.jit(rlx.value_and_grad(loss))
"""

from ._rlx import Array, Embedder, Error, Generation, Graph, LanguageModel, Program
from . import _methods  # noqa: F401 - operators of arrays
from . import _tree as tree
from . import numpy, onnx, ops, optim, random
from ._convert import as_array
from ._trace import cond, config, grad, jit, jvp, scan, show_config, value_and_grad, vjp, vmap, while_loop
from .numpy import array, where

load = LanguageModel.open

__all__ = ["Array", "Embedder", "Error", "Generation", "Graph", "LanguageModel", "Program", "array", "as_array", "cond",
           "config", "grad", "jit", "jvp", "load", "numpy", "onnx", "ops", "optim", "random", "scan", "show_config", "tree", "value_and_grad", "vjp", "vmap", "where", "while_loop"]
