"""Optimisers as functions: init(params) -> state; update(gradients, state, params) -> (params, state)."""

import math
from typing import Any, Callable, NamedTuple

from . import _tree, ops
from . import numpy as rnp


class Optimizer(NamedTuple):
    init: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], Any]


def _rate(lr, step):
    return lr(step) if callable(lr) else lr


def _like(x, p):
    """A scalar of the step in the type of a weight."""
    return x if isinstance(x, (int, float)) or x.dtype == p.dtype else x.astype(p.dtype)


def _correction(b, t):
    """1 - b^t, exact where b is near 1."""
    return -ops.expm1(t * math.log(b)) if b > 0 else 1.0


def _zeros(params):
    return _tree.map(rnp.zeros_like, params)


def _each(count, function, *trees):
    """function over the leaves of the trees; `count` results a leaf, as trees."""
    lists = [_tree.flatten(t) for t in trees]
    results = [function(*leaves) for leaves in zip(*(l for l, _ in lists))]
    return tuple(_tree.unflatten(lists[0][1], [r[i] for r in results]) for i in range(count))


def sgd(lr, momentum=0.0, nesterov=False, weight_decay=0.0):
    def init(params):
        return {"step": rnp.zeros((), "i32"), "v": _zeros(params) if momentum else ()}

    def update(grads, state, params):
        rate = _rate(lr, state["step"])

        def one(g, p, v=None):
            g = g + p * weight_decay if weight_decay else g
            if v is None:
                return (p - g * _like(rate, p),)
            v = v * momentum + g
            return p - (g + v * momentum if nesterov else v) * _like(rate, p), v

        step = state["step"] + 1
        if not momentum:
            return _each(1, one, grads, params)[0], {"step": step, "v": ()}
        params, v = _each(2, one, grads, params, state["v"])
        return params, {"step": step, "v": v}

    return Optimizer(init, update)


def adam(lr, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0, decoupled=False):
    def init(params):
        return {"step": rnp.zeros((), "i32"), "m": _zeros(params), "v": _zeros(params)}

    def update(grads, state, params):
        step = state["step"] + 1
        t = step.astype("f32")
        rate = _rate(lr, state["step"])
        c1, c2 = _correction(b1, t), _correction(b2, t)

        def one(g, p, m, v):
            if weight_decay and not decoupled:
                g = g + p * weight_decay
            m = m * b1 + g * (1 - b1)
            v = v * b2 + g * g * (1 - b2)
            change = (m / _like(c1, p)) / (ops.sqrt(v / _like(c2, p)) + eps)
            if weight_decay and decoupled:
                change = change + p * weight_decay
            return p - change * _like(rate, p), m, v

        params, m, v = _each(3, one, grads, params, state["m"], state["v"])
        return params, {"step": step, "m": m, "v": v}

    return Optimizer(init, update)


def adamw(lr, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.01):
    return adam(lr, b1, b2, eps, weight_decay, decoupled=True)


def rmsprop(lr, decay=0.99, eps=1e-8):
    def init(params):
        return {"step": rnp.zeros((), "i32"), "v": _zeros(params)}

    def update(grads, state, params):
        rate = _rate(lr, state["step"])

        def one(g, p, v):
            v = v * decay + g * g * (1 - decay)
            return p - g * _like(rate, p) / (ops.sqrt(v) + eps), v

        params, v = _each(2, one, grads, params, state["v"])
        return params, {"step": state["step"] + 1, "v": v}

    return Optimizer(init, update)


def adagrad(lr, eps=1e-10):
    def init(params):
        return {"step": rnp.zeros((), "i32"), "v": _zeros(params)}

    def update(grads, state, params):
        rate = _rate(lr, state["step"])

        def one(g, p, v):
            v = v + g * g
            return p - g * _like(rate, p) / (ops.sqrt(v) + eps), v

        params, v = _each(2, one, grads, params, state["v"])
        return params, {"step": state["step"] + 1, "v": v}

    return Optimizer(init, update)


def lion(lr, b1=0.9, b2=0.99, weight_decay=0.0):
    def init(params):
        return {"step": rnp.zeros((), "i32"), "m": _zeros(params)}

    def update(grads, state, params):
        rate = _rate(lr, state["step"])

        def one(g, p, m):
            change = ops.sign(m * b1 + g * (1 - b1)) + p * weight_decay
            return p - change * _like(rate, p), m * b2 + g * (1 - b2)

        params, m = _each(2, one, grads, params, state["m"])
        return params, {"step": state["step"] + 1, "m": m}

    return Optimizer(init, update)


def muon(lr, momentum=0.95, steps=5):
    """Momentum orthogonalised by five steps of a quintic iteration for matrices; plain momentum for the rest."""
    a, b, c = 3.4445, -4.7750, 2.0315

    def orthogonal(g):
        flip = g.shape[0] > g.shape[1]
        x = g.T if flip else g
        x = x / (rnp.linalg.norm(x) + 1e-7)
        for _ in range(steps):
            s = rnp.matmul(x, x.T)
            x = x * a + rnp.matmul(s * b + rnp.matmul(s, s) * c, x)
        scale = max(1.0, g.shape[0] / g.shape[1]) ** 0.5
        return (x.T if flip else x) * scale

    def init(params):
        return {"step": rnp.zeros((), "i32"), "v": _zeros(params)}

    def update(grads, state, params):
        rate = _rate(lr, state["step"])

        def one(g, p, v):
            v = v * momentum + g
            change = g + v * momentum
            return p - (orthogonal(change) if p.ndim == 2 else change) * _like(rate, p), v

        params, v = _each(2, one, grads, params, state["v"])
        return params, {"step": state["step"] + 1, "v": v}

    return Optimizer(init, update)


def clip_by_global_norm(grads, limit):
    """Gradients scaled so that the norm of all of them together is at most `limit`."""
    leaves, structure = _tree.flatten(grads)
    if not leaves:
        return grads
    wide = "f64" if any(g.dtype == "f64" for g in leaves) else "f32"  # squares leave the range of 16 bits early
    squares = [rnp.sum(rnp.square(g.astype(wide))) for g in leaves]
    scale = rnp.minimum(limit / (ops.sqrt(sum(squares[1:], squares[0])) + 1e-6), 1.0)
    return _tree.unflatten(structure, [g * _like(scale, g) for g in leaves])
