"""Functions become graphs: tracing, calling graphs, compiling."""

import functools
import os
import sys
import threading

from . import _rlx, _tree
from ._convert import as_array, is_array, to_device

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
            here = x.to_host() if isinstance(x, _rlx.DeviceArray) else x
            self.constants[key] = (self.graph.constant(here), x)
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


def _any_there(values):
    return any(isinstance(v, _rlx.DeviceArray) for v in values)


def _compiled(graph, there):
    """Where an argument lies on the GPU, all go there and results stay there."""
    return _rlx.DeviceProgram(graph) if there else _rlx.Program(graph, config.device, config.threads)


def _run(program, arrays):
    return program.run([to_device(a) for a in arrays] if isinstance(program, _rlx.DeviceProgram) else arrays)


@functools.lru_cache(maxsize=4096)
def _single(name, keywords, types, there):
    graph = _rlx.Graph(name)
    leaves = [graph.input(f"x{i}", dtype, shape) for i, (dtype, shape) in enumerate(types)]
    results = graph.apply(name, leaves, dict(keywords), "", 0)
    graph.set_outputs(results, [])
    return _compiled(graph, there)


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
    there = _any_there(arrays)
    if any(isinstance(v, _rlx.Graph) for v in keywords.values()):
        graph = _rlx.Graph(name)
        leaves = [graph.input(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arrays)]
        graph.set_outputs(graph.apply(name, leaves, keywords, *_user_line()), [])
        return _run(_compiled(graph, there), arrays)
    key = tuple(sorted((k, _frozen(v)) for k, v in keywords.items() if v is not None))
    try:
        program = _single(name, key, tuple((a.dtype, a.shape) for a in arrays), there)
    except TypeError:  # an argument without a hash
        graph = _rlx.Graph(name)
        leaves = [graph.input(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arrays)]
        graph.set_outputs(graph.apply(name, leaves, keywords, *_user_line()), [])
        program = _compiled(graph, there)
    return _run(program, arrays)


def apply_one(name, operands, keywords):
    results = apply(name, operands, keywords)
    return results[0] if len(results) == 1 else tuple(results)


class Config:
    """Where functions run: a device of rlx.show_config(), or "auto", the GPU where there is one; how many threads (0: all that the process
    may use)."""

    def __init__(self):
        self._device = "cpu"
        self._threads = 0

    @property
    def device(self) -> str:
        return self._device

    @device.setter
    def device(self, name: str):
        known = _rlx.devices()
        if name == "auto":
            name = "cuda" if known.get("cuda", "not built") is None else "cpu"
        if name not in known:
            raise _rlx.Error(f"config: unknown device {name!r}; known: {', '.join(known)}, auto")
        if known[name] is not None:
            raise _rlx.Error(f"config: device {name!r} is not there: {known[name]}")
        self._device = name

    @property
    def threads(self) -> int:
        return self._threads

    @threads.setter
    def threads(self, count: int):
        if not isinstance(count, int) or count < 0:
            raise _rlx.Error(f"config: {count!r} threads; 1 or more expected, or 0 for all that the process may use")
        self._threads = count

    def __repr__(self):
        return f"Config(device={self.device!r}, threads={self.threads})"


config = Config()


def show_config():
    """Prints the version, where functions run now and where they could."""
    import platform

    print(f"rlx {_rlx.__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    print(f"functions run on {config.device} with {config.threads or _rlx.threads()} threads (rlx.config)")
    for name, reason in _rlx.devices().items():
        print(f"  {name}: {'ready' if reason is None else reason}")


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
    arrays = [as_array(v) for v in values]
    return _run(_compiled(graph, _any_there(arrays)), arrays)


def _type_of(x):
    return (x.dtype, x.shape)


def _name_of(function):
    name = getattr(function, "__name__", "function")
    return name if name.isidentifier() else "function"


class _Arguments:
    """Arguments of a call, split into arrays and the rest; the rest is part of the function."""

    def __init__(self, args, kwargs, static=(), static_names=()):
        self.static = tuple((i, a) for i, a in enumerate(args) if i in static)
        self.named = tuple((k, v) for k, v in sorted(kwargs.items()) if k in static_names)
        kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
        dynamic = [a for i, a in enumerate(args) if i not in static]
        leaves, self.structure = _tree.flatten((dynamic, kwargs))
        self.leaves = [x if isinstance(x, _rlx.Tracer) else as_array(x) for x in leaves]
        self.there = _any_there(self.leaves)
        self.count = len(args)

    def key(self):
        return (self.structure, tuple(_type_of(x) for x in self.leaves), self.static, self.named, self.there,
                config.device, config.threads)

    def rebuild(self, leaves):
        dynamic, kwargs = _tree.unflatten(self.structure, leaves)
        dynamic, static = iter(dynamic), dict(self.static)
        args = [static[i] if i in static else next(dynamic) for i in range(self.count)]
        return args, {**kwargs, **dict(self.named)}


def _positions_of(function, names):
    import inspect

    parameters = list(inspect.signature(function).parameters)
    unknown = [n for n in names if n not in parameters]
    if unknown:
        raise _rlx.Error(f"jit: {_name_of(function)} has no argument '{unknown[0]}'; it has {', '.join(parameters)}")
    return {parameters.index(n) for n in names}


def jit(function=None, *, static_argnums=(), static_argnames=()):
    """The function compiled. It runs once on traced values for every new structure and types of its arguments; Python's
    own effects happen only then. Arguments named by static_argnums and static_argnames are plain Python values.

    f.graph(*args), f.text(*args): what was traced. f.plan(*args), f.report(*args): how it runs, and why."""
    if function is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames)
    static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
    static_names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    if static_names:
        static |= _positions_of(function, static_names)
    table = {}

    def traced_for(arguments):
        key = arguments.key()
        if key not in table:
            traced = trace_flat(lambda leaves: _call(function, arguments, leaves), [_type_of(x) for x in arguments.leaves],
                                _name_of(function))
            table[key] = [traced, None]
        return table[key]

    def miss(*args, **kwargs):
        arguments = _Arguments(args, kwargs, static, static_names)
        if _innermost(arguments.leaves) is not None:
            traced, _ = traced_for(arguments)
            results = call_graph(traced.graph, arguments.leaves + traced.captured)
            return _tree.unflatten(traced.structure, results)
        entry = traced_for(arguments)
        traced = entry[0]
        if traced.captured:
            raise _rlx.Error(f"{_name_of(function)}: it uses values of another traced function, which has ended")
        if entry[1] is None:
            entry[1] = _compiled(traced.graph, arguments.there)
            plain = not kwargs and not static and all(is_array(a) for a in args)
            if plain:
                finish = None if traced.structure is _tree.Leaf else functools.partial(_tree.unflatten, traced.structure)
                compiled._add(arguments.leaves, entry[1], finish)
        return _tree.unflatten(traced.structure, _run(entry[1], arguments.leaves))

    def inspected(args, kwargs):
        return traced_for(_Arguments(args, kwargs, static, static_names))

    compiled = _rlx.Function(miss)
    functools.update_wrapper(compiled, function, updated=())
    compiled.graph = lambda *args, **kwargs: inspected(args, kwargs)[0].graph
    compiled.text = lambda *args, **kwargs: inspected(args, kwargs)[0].graph.text()
    program = lambda args, kwargs: _rlx.Program(inspected(args, kwargs)[0].graph, config.device, config.threads)
    compiled.plan = lambda *args, **kwargs: program(args, kwargs).plan()
    compiled.report = lambda *args, **kwargs: program(args, kwargs).report()
    return compiled


def _call(function, arguments, leaves):
    args, kwargs = arguments.rebuild(leaves)
    return function(*args, **kwargs)
