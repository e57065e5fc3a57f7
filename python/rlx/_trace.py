"""Functions become graphs: tracing, calling graphs, and what is made of both (jit, grad, vmap, loops)."""

import functools
import os
import sys
import threading

from . import _rlx, _tree
from ._convert import as_array, is_array

_here = os.path.dirname(__file__)
_state = threading.local()


def _stack():
    if not hasattr(_state, "traces"):
        _state.traces = []
    return _state.traces


def _user_line():
    """File and line of the innermost frame outside this package."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_here):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)


class Trace:
    """A graph that is being built. Values of other graphs that it meets become inputs behind its own."""

    def __init__(self, name):
        self.graph = _rlx.Graph(name)
        self.id = self.graph._id()
        self.captured = []  # values of graphs around this one
        self.inputs_of = {}
        self.constants = {}
        self.count = 0

    def input(self, dtype, shape):
        self.count += 1
        return self.graph.input(f"x{self.count - 1}", dtype, shape)

    def value(self, x):
        """x as a value of this graph."""
        if isinstance(x, _rlx.Tracer):
            if x._graph._id() == self.id:
                return x
            key = id(x)
            if key not in self.inputs_of:
                self.inputs_of[key] = self.input(x.dtype, x.shape)
                self.captured.append(x)
            return self.inputs_of[key]
        key = id(x)
        if key not in self.constants:
            self.constants[key] = (self.graph.constant(x), x)
        return self.constants[key][0]

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *_):
        _stack().pop()


def _innermost(values):
    """The trace that an operator on these values belongs to; None when all have contents and nothing is traced."""
    traces = _stack()
    if not traces:
        return None
    if any(isinstance(v, _rlx.Tracer) for v in values):
        return traces[-1]
    return None


@functools.lru_cache(maxsize=4096)
def _single(name, keywords, types):
    graph = _rlx.Graph(name)
    leaves = [graph.input(f"x{i}", dtype, shape) for i, (dtype, shape) in enumerate(types)]
    results = graph.apply(name, leaves, dict(keywords), "", 0)
    graph.set_outputs(results, [])
    return _rlx.Program(graph, config.device, config.threads)


def _frozen(value):
    return tuple(value) if isinstance(value, list) else value


def apply(name, operands, keywords):
    """The results of an operator, as a list. On arrays it runs at once, on traced values it becomes a node."""
    trace = _innermost(operands)
    if trace is not None:
        values = [trace.value(x if isinstance(x, _rlx.Tracer) else as_array(x)) for x in operands]
        return trace.graph.apply(name, values, keywords, *_user_line())
    arrays = [as_array(x) for x in operands]
    for a in arrays:
        if isinstance(a, _rlx.Tracer):
            raise _rlx.Error(f"{name}: a value of a function that has been traced was kept and used outside of it")
    if any(isinstance(v, _rlx.Graph) for v in keywords.values()):
        graph = _rlx.Graph(name)
        leaves = [graph.input(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arrays)]
        graph.set_outputs(graph.apply(name, leaves, keywords, *_user_line()), [])
        return _rlx.Program(graph, config.device, config.threads).run(arrays)
    key = tuple(sorted((k, _frozen(v)) for k, v in keywords.items() if v is not None))
    try:
        program = _single(name, key, tuple((a.dtype, a.shape) for a in arrays))
    except TypeError:  # an argument without a hash
        graph = _rlx.Graph(name)
        leaves = [graph.input(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arrays)]
        graph.set_outputs(graph.apply(name, leaves, keywords, *_user_line()), [])
        program = _rlx.Program(graph, config.device, config.threads)
    return program.run(arrays)


def apply_one(name, operands, keywords):
    results = apply(name, operands, keywords)
    return results[0] if len(results) == 1 else tuple(results)


class Config:
    """Where functions run."""

    device = "cpu"
    threads = 0


config = Config()


def show_config():
    """What this package runs on."""
    print(f"rlx: device {config.device}, threads {config.threads or os.cpu_count()}")


class Traced:
    """A function as a graph: its own inputs first, then captured values of the traces around it."""

    def __init__(self, graph, structure, captured, inputs):
        self.graph = graph
        self.structure = structure
        self.captured = captured
        self.inputs = inputs  # number of own inputs


def trace_flat(function, types, name):
    """function takes values of these types, in order, and returns a tree."""
    with Trace(name) as trace:
        values = [trace.input(dtype, shape) for dtype, shape in types]
        result = function(values)
        leaves, structure = _tree.flatten(result)
        if not leaves:
            raise _rlx.Error(f"{name}: the function returns no array")
        outputs = [trace.value(x if isinstance(x, _rlx.Tracer) else as_array(x)) for x in leaves]
        trace.graph.set_outputs(outputs, [])
        trace.graph.erase_dead()
    return Traced(trace.graph, structure, trace.captured, len(types))


def call_graph(graph, values):
    """The results of a graph on values for its inputs: inlined while something is traced, else compiled and run."""
    trace = _innermost(values)
    if trace is not None:
        return trace.graph.inline(graph, [trace.value(v if isinstance(v, _rlx.Tracer) else as_array(v)) for v in values])
    return _rlx.Program(graph, config.device, config.threads).run([as_array(v) for v in values])


def _type_of(x):
    return (x.dtype, x.shape)


def _name_of(function):
    name = getattr(function, "__name__", "function")
    return name if name.isidentifier() else "function"


class _Arguments:
    """Arguments of a call, split into arrays and the rest; the rest is part of the function."""

    def __init__(self, args, kwargs, static):
        self.static = tuple((i, a) for i, a in enumerate(args) if i in static)
        dynamic = [a for i, a in enumerate(args) if i not in static]
        leaves, self.structure = _tree.flatten((dynamic, kwargs))
        self.leaves = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in leaves]
        self.count = len(args)

    def key(self):
        return (self.structure, tuple(_type_of(x) for x in self.leaves), self.static, config.device, config.threads)

    def rebuild(self, leaves):
        dynamic, kwargs = _tree.unflatten(self.structure, leaves)
        dynamic, static = iter(dynamic), dict(self.static)
        args = [static[i] if i in static else next(dynamic) for i in range(self.count)]
        return args, kwargs


def jit(function=None, *, static_argnums=()):
    """The function compiled. It runs once on traced values for every new structure and types of its arguments; Python's
    own effects happen only then. Arguments named by static_argnums are plain Python values."""
    if function is None:
        return functools.partial(jit, static_argnums=static_argnums)
    static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
    table = {}

    def traced_for(arguments):
        key = arguments.key()
        if key not in table:
            traced = trace_flat(lambda leaves: _call(function, arguments, leaves), [_type_of(x) for x in arguments.leaves],
                                _name_of(function))
            table[key] = [traced, None]
        return table[key]

    def miss(*args, **kwargs):
        arguments = _Arguments(args, kwargs, static)
        if _innermost(arguments.leaves) is not None:
            traced, _ = traced_for(arguments)
            results = call_graph(traced.graph, arguments.leaves + traced.captured)
            return _tree.unflatten(traced.structure, results)
        entry = traced_for(arguments)
        traced = entry[0]
        if traced.captured:
            raise _rlx.Error(f"{_name_of(function)}: it uses values of another traced function, which has ended")
        if entry[1] is None:
            entry[1] = _rlx.Program(traced.graph, config.device, config.threads)
            plain = not kwargs and not static and all(is_array(a) for a in args)
            if plain:
                finish = None if traced.structure is _tree.Leaf else functools.partial(_tree.unflatten, traced.structure)
                compiled._add(arguments.leaves, entry[1], finish)
        return _tree.unflatten(traced.structure, entry[1].run(arguments.leaves))

    def inspected(args, kwargs):
        return traced_for(_Arguments(args, kwargs, static))

    compiled = _rlx.Function(miss)
    functools.update_wrapper(compiled, function, updated=())
    compiled.graph = lambda *args, **kwargs: inspected(args, kwargs)[0].graph
    compiled.text = lambda *args, **kwargs: inspected(args, kwargs)[0].graph.text()
    compiled.plan = lambda *args, **kwargs: _rlx.Program(inspected(args, kwargs)[0].graph, config.device,
                                                         config.threads).plan()
    return compiled


def _call(function, arguments, leaves):
    args, kwargs = arguments.rebuild(leaves)
    return function(*args, **kwargs)


def _differentiable(function, args, kwargs, argnums, where):
    """The traced function of all arguments, and which of its inputs belong to argnums."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise _rlx.Error(f"{where}: argnums {n}, the call has {len(args)} positional arguments")
    numbers = tuple(n % len(args) for n in numbers)
    arguments = _Arguments(args, kwargs, set())
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
            raise _rlx.Error(f"grad: {_name_of(function)} returns {len(outputs)} results, the first {dtype}{list(shape)}; "
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
    arguments = _Arguments(tuple(primals), {}, set())
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
    arguments = _Arguments(primals, {}, set())
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


def vmap(function, in_axes=0, out_axes=0):
    """The function over a batch: in_axes says which axis of each argument counts the examples (None: shared), one entry per
    argument or one for all; out_axes likewise for the results."""

    @functools.wraps(function)
    def wrapped(*args):
        axes = [in_axes] * len(args) if in_axes is None or isinstance(in_axes, int) else list(in_axes)
        if len(axes) != len(args):
            raise _rlx.Error(f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments")
        arguments = _Arguments(args, {}, set())
        flat_axes = []
        for a, axis in zip(args, axes):
            leaves, _ = _tree.flatten(a)
            if axis is None or isinstance(axis, int):
                flat_axes += [axis] * len(leaves)
            else:
                flat_axes += _tree.flatten(axis)[0]
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
        batched = {f"x{i}": axis % len(x.shape) if axis is not None and axis < 0 else axis
                   for i, (x, axis) in enumerate(zip(arguments.leaves, flat_axes)) if axis is not None}
        outs = [out_axes] if out_axes is None or isinstance(out_axes, int) else _tree.flatten(out_axes)[0]
        graph = _rlx.vmap(traced.graph, batched, outs, sizes[0])
        results = call_graph(graph, arguments.leaves + traced.captured)
        return _tree.unflatten(traced.structure, results)

    return wrapped


def _body(function, types, name, captured):
    """A body of control flow: inputs of `types`, then `captured`, which grows by what the function uses from outside."""
    traced = trace_flat(function, types, name)
    for value in traced.captured:
        if not any(value is c for c in captured):
            captured.append(value)
    return traced


def _with_captures(traced, types, captured, name, before):
    """The same body with every captured value as an input at position `before`, for loops that share a list of them."""
    with Trace(name) as trace:
        head = [trace.input(*t) for t in types[:before]]
        consts = [trace.input(c.dtype, c.shape) for c in captured]
        tail = [trace.input(*t) for t in types[before:]]
        own = {id(c): v for c, v in zip(captured, consts)}
        results = trace.graph.inline(traced.graph, head + tail + [own[id(c)] for c in traced.captured])
        trace.graph.set_outputs(results, [])
    return trace.graph


def scan(f, init, xs=None, length=None, reverse=False):
    """carry, y = f(carry, x) for every slice x of xs along axis 0; returns the last carry and all y stacked."""
    if not _stack():
        return jit(lambda init, xs: scan(f, init, xs, length, reverse))(init, xs)
    trace = _stack()[-1]
    carry, carry_structure = _tree.flatten(init)
    slices, xs_structure = _tree.flatten(xs)
    carry = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in carry]
    slices = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in slices]
    sizes = {x.shape[0] for x in slices} | ({length} if length is not None else set())
    if len(sizes) != 1:
        raise _rlx.Error(f"scan: lengths {sorted(sizes)} differ" if sizes else "scan: give xs or length")
    types = [_type_of(x) for x in carry] + [(x.dtype, x.shape[1:]) for x in slices]
    found = {}

    def step(values):
        state = _tree.unflatten(carry_structure, values[:len(carry)])
        x = _tree.unflatten(xs_structure, values[len(carry):]) if slices else None
        new, y = f(state, x)
        new_leaves, new_structure = _tree.flatten(new)
        if new_structure != carry_structure:
            raise _rlx.Error("scan: the function returns a carry of another structure than it takes")
        found["y"] = _tree.flatten(y)[1]
        return (new_leaves, y)

    captured = []
    traced = _body(step, types, "scan_body", captured)
    body = _with_captures(traced, types, captured, "scan_body", len(carry))
    operands = [trace.value(v) for v in carry + captured + slices]
    results = trace.graph.apply("scan", operands, dict(body=body, length=sizes.pop(), carries=len(carry),
                                                       consts=len(captured), reverse=reverse), *_user_line())
    return (_tree.unflatten(carry_structure, results[:len(carry)]),
            _tree.unflatten(found["y"], results[len(carry):]))


def while_loop(cond, body, init, max_iterations=None):
    """state = body(state) while cond(state). Reverse mode needs max_iterations."""
    if not _stack():
        return jit(lambda init: while_loop(cond, body, init, max_iterations))(init)
    trace = _stack()[-1]
    carry, structure = _tree.flatten(init)
    carry = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in carry]
    types = [_type_of(x) for x in carry]
    captured = []
    test = _body(lambda v: cond(_tree.unflatten(structure, v)), types, "while_cond", captured)
    step = _body(lambda v: body(_tree.unflatten(structure, v)), types, "while_body", captured)
    if step.structure != structure:
        raise _rlx.Error("while_loop: body returns another structure than it takes")
    keywords = dict(cond=_with_captures(test, types, captured, "while_cond", len(types)),
                    body=_with_captures(step, types, captured, "while_body", len(types)), carries=len(carry),
                    max_iterations=max_iterations)
    results = trace.graph.apply("while", [trace.value(v) for v in carry + captured], keywords, *_user_line())
    return _tree.unflatten(structure, results)


def cond(predicate, true_function, false_function, *operands):
    """true_function(*operands) or false_function(*operands); only one of them runs."""
    if not _stack():
        return jit(lambda p, ops: cond(p, true_function, false_function, *ops))(predicate, list(operands))
    trace = _stack()[-1]
    leaves, structure = _tree.flatten(list(operands))
    leaves = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in leaves]
    types = [_type_of(x) for x in leaves]
    captured = []
    sides = [_body(lambda v, f=f: f(*_tree.unflatten(structure, v)), types, name, captured)
             for f, name in ((true_function, "then_body"), (false_function, "else_body"))]
    if sides[0].structure != sides[1].structure:
        raise _rlx.Error("cond: the two functions return different structures")
    bodies = [_with_captures(s, types, captured, n, len(types)) for s, n in zip(sides, ("then_body", "else_body"))]
    predicate = predicate if isinstance(predicate, _rlx.Tracer) else as_array(predicate)
    results = trace.graph.apply("if", [trace.value(v) for v in [predicate] + leaves + captured],
                                dict(then_body=bodies[0], else_body=bodies[1]), *_user_line())
    return _tree.unflatten(sides[0].structure, results)
