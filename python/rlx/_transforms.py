"""Derivatives and batches: functions of functions."""

import functools

from . import _rlx, _tree, ops
from ._convert import as_array
from ._trace import _Arguments, _call, _name_of, _type_of, call_graph, trace_flat


def _differentiable(function, args, kwargs, argnums, where):
    """The traced function of all arguments, and which of its inputs belong to argnums."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise _rlx.Error(f"{where}: argnums {n}, the call has {len(args)} positional arguments")
    numbers = tuple(n % len(args) for n in numbers)
    arguments = _Arguments(args, kwargs)
    wanted, at = [], 0
    spans = {}
    for i, a in enumerate(args):
        count = len(_tree.flatten(a)[0])
        spans[i] = (at, at + count)
        at += count
    for n in numbers:
        wanted += range(*spans[n])
    traced = trace_flat(lambda leaves: _call(function, arguments, leaves), [_type_of(x) for x in arguments.leaves], _name_of(function))
    structures = [_tree.flatten(args[n])[1] for n in numbers]
    return arguments, traced, wanted, structures, isinstance(argnums, int)


def _gradients(structures, flat, single):
    out, at = [], 0
    for s in structures:
        n = _tree.count(s)
        out.append(_tree.unflatten(s, flat[at:at + n]))
        at += n
    return out[0] if single else tuple(out)


def value_and_grad(function, argnums=0, has_aux=False):
    """A function that returns the value of a scalar function and its gradient by the arguments at argnums. With has_aux
    the function returns (value, anything else), and so does this one: ((value, aux), gradient)."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        arguments, traced, wanted, structures, single = _differentiable(function, args, kwargs, argnums,
                                                                        "value_and_grad")
        outputs = traced.graph.outputs
        name, dtype, shape = outputs[0]
        if shape != () or (not has_aux and len(outputs) != 1):
            more = f" and {len(outputs) - 1} more" if len(outputs) > 1 else ""
            raise _rlx.Error(f"grad: {_name_of(function)} returns {dtype}{list(shape)}{more}; "
                             "return one scalar, or (scalar, aux) with has_aux=True")
        graph = _rlx.grad(traced.graph, [f"x{i}" for i in wanted], name, True)
        results = call_graph(graph, arguments.leaves + traced.captured)
        value = _tree.unflatten(traced.structure, results[:len(outputs)])
        return value, _gradients(structures, results[len(outputs):], single)

    return wrapped


def grad(function, argnums=0, has_aux=False):
    """The gradient of a scalar function by the arguments at argnums; with has_aux: (gradient, aux)."""
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def jvp(function, primals, tangents):
    """(value, its derivative in the direction of the tangents); one tangent per argument."""
    arguments = _Arguments(tuple(primals), {})
    traced = trace_flat(lambda leaves: _call(function, arguments, leaves), [_type_of(x) for x in arguments.leaves],
                        _name_of(function))
    directions = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in _tree.flatten(list(tangents))[0]]
    if len(directions) != len(arguments.leaves):
        raise _rlx.Error(f"jvp: {len(directions)} tangents for {len(arguments.leaves)} arrays")
    graph = _rlx.jvp(traced.graph, [f"x{i}" for i in range(traced.inputs)])
    results = call_graph(graph, arguments.leaves + traced.captured + directions)
    half = len(traced.graph.outputs)
    return (_tree.unflatten(traced.structure, results[:half]), _tree.unflatten(traced.structure, results[half:]))


def vjp(function, *primals):
    """(value, function from cotangents of the value to a tuple of cotangents of the arguments)."""
    arguments = _Arguments(primals, {})
    traced = trace_flat(lambda leaves: _call(function, arguments, leaves), [_type_of(x) for x in arguments.leaves],
                        _name_of(function))
    count = len(traced.graph.outputs)
    value = _tree.unflatten(traced.structure, call_graph(traced.graph, arguments.leaves + traced.captured))
    graph = _rlx.vjp(traced.graph, [f"x{i}" for i in range(traced.inputs)])
    structures = [_tree.flatten(p)[1] for p in primals]

    def pull(cotangents):
        leaves = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in _tree.flatten(cotangents)[0]]
        results = call_graph(graph, arguments.leaves + traced.captured + leaves)
        return _gradients(structures, results[count:], False)

    return value, pull


def _axes_for(axes, tree, where):
    """One axis for each array of a tree; an axis above stands for all below it."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(_tree.flatten(tree)[0])
    if isinstance(tree, dict):
        if not isinstance(axes, dict) or set(axes) != set(tree):
            raise _rlx.Error(f"{where}: axes {axes!r} do not fit a dict with the keys {sorted(tree)}")
        return [a for k in sorted(tree) for a in _axes_for(axes[k], tree[k], where)]
    if isinstance(tree, (tuple, list)) and isinstance(axes, (tuple, list)) and len(axes) == len(tree):
        return [a for x, t in zip(axes, tree) for a in _axes_for(x, t, where)]
    if hasattr(type(tree), "__dataclass_fields__") and type(axes) is type(tree):
        return [a for f in tree.__dataclass_fields__ for a in _axes_for(getattr(axes, f), getattr(tree, f), where)]
    raise _rlx.Error(f"{where}: axes {axes!r} do not fit {type(tree).__name__}")


def vmap(function, in_axes=0, out_axes=0):
    """The function over a batch: in_axes says which axis of each argument counts the examples (None: shared), one entry per
    argument or one for all, each a number or a structure like the argument; out_axes likewise for the results. Arguments by
    name are counted along axis 0."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        axes = [in_axes] * len(args) if in_axes is None or isinstance(in_axes, int) else list(in_axes)
        if len(axes) != len(args):
            raise _rlx.Error(f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments")
        arguments = _Arguments(args, kwargs)
        flat_axes = [a for x, axis in zip(args, axes) for a in _axes_for(axis, x, "vmap")]
        flat_axes += [0] * (len(arguments.leaves) - len(flat_axes))
        types, sizes = [], []
        for x, axis in zip(arguments.leaves, flat_axes):
            shape = list(x.shape)
            if axis is not None:
                if not -len(shape) <= axis < len(shape):
                    raise _rlx.Error(f"vmap: axis {axis} of an argument of shape {tuple(shape)}")
                sizes.append(shape.pop(axis))
            types.append((x.dtype, tuple(shape)))
        if not sizes:
            raise _rlx.Error("vmap: no argument has a batch axis; give in_axes")
        if len(set(sizes)) != 1:
            raise _rlx.Error(f"vmap: batch axes of different sizes {sorted(set(sizes))}")
        traced = trace_flat(lambda leaves: _call(function, arguments, leaves), types, _name_of(function))
        batched = {f"x{i}": axis % len(x.shape) for i, (x, axis) in enumerate(zip(arguments.leaves, flat_axes))
                   if axis is not None}
        outs = [out_axes] if out_axes is None or isinstance(out_axes, int) else \
            _axes_for(out_axes, _tree.unflatten(traced.structure, traced.graph.outputs), "vmap: out_axes")
        graph = _rlx.vmap(traced.graph, batched, outs, sizes[0])
        results = call_graph(graph, arguments.leaves + traced.captured)
        return _tree.unflatten(traced.structure, results)

    return wrapped


def _basis(x):
    """One direction for each element of x."""
    import numpy

    n = 1
    for d in x.shape:
        n *= d
    return as_array(numpy.eye(n, dtype=numpy.float32).reshape((n,) + tuple(x.shape))).astype(x.dtype)


def _one_argument(function, args, argnums):
    """The function of the argument at argnums alone, and that argument; it must be one array."""
    rest = list(args)
    x = rest[argnums]
    if _tree.flatten(x)[1] is not _tree.Leaf:
        raise _rlx.Error("jacobian: the argument is a structure; it must be one array")

    def alone(v):
        rest[argnums] = v
        return function(*rest)

    return alone, x if isinstance(x, _rlx.Tracer) else as_array(x)


def jacfwd(function, argnums=0):
    """All derivatives of an array-valued function, by forward mode: shape of the result, then shape of the argument."""

    @functools.wraps(function)
    def wrapped(*args):
        alone, x = _one_argument(function, args, argnums)
        columns = vmap(lambda v: jvp(alone, (x,), (v,))[1], out_axes=-1)(_basis(x))
        return _tree.map(lambda c: ops.reshape(c, shape=tuple(c.shape[:-1]) + tuple(x.shape)), columns)

    return wrapped


def jacrev(function, argnums=0):
    """As jacfwd by reverse mode: cheaper where there are fewer results than arguments."""

    @functools.wraps(function)
    def wrapped(*args):
        alone, x = _one_argument(function, args, argnums)
        y, pull = vjp(alone, x)
        if _tree.flatten(y)[1] is not _tree.Leaf:
            raise _rlx.Error("jacrev: the function returns a structure; it must be one array")
        rows = vmap(lambda v: pull(v)[0])(_basis(y))
        return ops.reshape(rows, shape=tuple(y.shape) + tuple(x.shape))

    return wrapped


def hessian(function, argnums=0):
    """Second derivatives of a scalar function."""
    return jacfwd(jacrev(function, argnums), argnums)
