"""ONNX models as functions: they can be compiled, differentiated and batched like any other."""

from . import _rlx, _tree
from ._convert import as_array
from ._trace import call_graph, config, trace_flat


class Model:
    """A function of arrays by the names of the model's inputs; returns a dict by the names of its outputs."""

    def __init__(self, graph, weights, notes):
        self.graph, self.weights, self.notes = graph, weights, notes
        self.inputs = [i for i in graph.inputs if i[0] not in weights]
        self.outputs = graph.outputs
        self._programs = {}

    def __repr__(self):
        port = lambda p: f"{p[0]}: {p[1]}[{','.join(map(str, p[2]))}]"
        return f"<rlx.onnx.Model ({', '.join(map(port, self.inputs))}) -> ({', '.join(map(port, self.outputs))})>"

    def _repr_svg_(self):
        return self.graph.svg()

    def __call__(self, *args, **kwargs):
        names = [name for name, _, _ in self.inputs]
        if len(args) > len(names):
            raise _rlx.Error(f"onnx: {len(args)} arguments, the model has {len(names)} inputs: {', '.join(names)}")
        given = {**dict(zip(names, args)), **kwargs}
        unknown = [n for n in given if n not in names]
        missing = [n for n in names if n not in given]
        if unknown or missing:
            raise _rlx.Error(f"onnx: missing inputs {missing}, unknown inputs {unknown}; the model has {', '.join(names)}")
        values = [self.weights[name] if name in self.weights else given[name] for name, _, _ in self.graph.inputs]
        values = [v if isinstance(v, _rlx.Tracer) else as_array(v) for v in values]
        shapes = tuple(v.shape for v in values)
        if any(isinstance(v, _rlx.Tracer) for v in values):
            results = call_graph(self.graph.bind_to(list(shapes)), values)
        else:
            key = (shapes, config.device, config.threads)
            if key not in self._programs:
                self._programs[key] = _rlx.Program(self.graph.bind_to(list(shapes)), config.device, config.threads, self.weights)
            results = self._programs[key].run([v for v, (n, _, _) in zip(values, self.graph.inputs) if n not in self.weights])
        return {name: r for (name, _, _), r in zip(self.outputs, results)}


def load(path):
    """The model of a file; its weights stay mapped."""
    return Model(*_rlx.load_onnx(str(path)))


class Input:
    """The type of an argument of save: Input("f32", ("batch", 3)). Texts in the shape are sizes left open."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, tuple(shape)


def _paths(name, tree):
    """A name for each array of an argument: its own, and behind it the keys on the way."""
    if isinstance(tree, dict):
        return [p for k in sorted(tree) for p in _paths(f"{name}.{k}", tree[k])]
    if isinstance(tree, (tuple, list)):
        fields = getattr(tree, "_fields", range(len(tree)))
        return [p for k, v in zip(fields, tree) for p in _paths(f"{name}.{k}", v)]
    leaves = _tree.flatten(tree)[0]
    return [name] if len(leaves) == 1 else [f"{name}.{i}" for i in range(len(leaves))]


def _argument_names(function, count):
    import inspect

    try:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        names = []
    return names[:count] + [f"x{i}" for i in range(len(names[:count]), count)]


def _traced(function, args, weights, outputs):
    """The graph of a function with names, and the weights among its arguments."""
    leaves, structure = _tree.flatten(list(args))
    names, is_weight = [], []
    for i, (name, arg) in enumerate(zip(_argument_names(function, len(args)), args)):
        paths = _paths(name, arg)
        names += paths
        is_weight += [i in weights] * len(paths)
    leaves = [x if isinstance(x, Input) else as_array(x) for x in leaves]
    traced = trace_flat(lambda values: function(*_tree.unflatten(structure, values)), [(x.dtype, x.shape) for x in leaves],
                        getattr(function, "__name__", "main").strip("<>"))
    if traced.captured:
        raise _rlx.Error("onnx.save: the function uses values of another function that is being traced")
    graph = _rlx.Graph(traced.graph.name)
    ports = [(graph.param if w else graph.input)(n, x.dtype, x.shape) for n, x, w in zip(names, leaves, is_weight)]
    results = graph.inline(traced.graph, ports)
    if outputs is None:
        outputs = ["y"] if len(results) == 1 else [f"y{i}" for i in range(len(results))]
    graph.set_outputs(results, list(outputs))
    graph.erase_dead()
    return graph, {n: x for n, x, w in zip(names, leaves, is_weight) if w}


def save(path, function, *args, weights=(), outputs=None, opset=21, external_above=None):
    """Writes a function, a graph or a loaded model as an ONNX file.

    A function is traced on args: arrays, or Input(dtype, shape) where no values are at hand; sizes given as texts stay open.
    weights: numbers of the arguments that become initializers, for example the parameters of a network.
    outputs: names of the results. external_above: weights of so many bytes go to PATH.data.
    """
    if isinstance(function, Model):
        graph, values = function.graph, function.weights
    elif isinstance(function, _rlx.Graph):
        graph, values = function, {}
    else:
        numbers = {weights} if isinstance(weights, int) else set(weights)
        graph, values = _traced(function, args, numbers, outputs)
    _rlx.save_onnx(str(path), graph, values, opset, external_above)
