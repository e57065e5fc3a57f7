"""ONNX models as functions: they can be compiled, differentiated and batched like any other."""

import os

from . import _rlx, _tree
from ._convert import as_array
from ._trace import call_graph, config, trace_flat


class _Import:
    """The graph of a model: for all sizes, or for those of the values that it was made with."""

    def __init__(self, graph, weights, notes, fixed, bounded):
        self.graph, self.weights, self.notes, self.fixed, self.bounded = graph, weights, notes, fixed, bounded
        self.names = [name for name, _, _ in graph.inputs]
        self.outputs = [name for name, _, _ in graph.outputs]
        self.programs = {}

    def bind(self, given):
        """Raises where the graph cannot have these sizes."""
        for name, dtype, dims in self.graph.inputs:
            if name in given and not _can_be(given[name].shape, dims):
                raise _rlx.Error(f"onnx: '{name}' is {dtype}[{', '.join(map(str, dims))}], the value is {given[name].shape}")
        self.graph.bind_to([(self.weights[n] if n in self.weights else given[n]).shape for n in self.names])

    def call(self, given):
        values = [self.weights[n] if n in self.weights else given[n] for n in self.names]
        shapes = [v.shape for v in values]
        if any(isinstance(v, _rlx.Tracer) for v in values):
            return dict(zip(self.outputs, call_graph(self.graph.bind_to(shapes), values)))
        key = (tuple(shapes), config.device, config.threads)
        if key not in self.programs:
            self.programs[key] = _rlx.Program(self.graph.bind_to(shapes), config.device, config.threads, self.weights)
        results = self.programs[key].run([v for v, n in zip(values, self.names) if n not in self.weights])
        return self.cut(dict(zip(self.outputs, results)))

    def cut(self, results):
        """Without the places that are not meant, where sizes depend on contents."""
        from . import ops

        for output, axis, count in self.bounded:
            results[output] = ops.narrow(results[output], axis=axis, start=0, len=results[count].item())
        return results


def _held(v):
    """Arrays of NumPy's unsigned types that rlx has not, in the types that models have them in here."""
    name = str(getattr(v, "dtype", ""))
    return v.astype("int32") if name == "uint16" else v.astype("int64") if name == "uint64" else v


def _can_be(shape, dims):
    """Whether a shape agrees with extents of which those given as texts are open."""
    return len(shape) == len(dims) and all(isinstance(d, str) or d == s for s, d in zip(shape, dims))


class Model:
    """A function of arrays by the names of the model's inputs; returns a dict by the names of its outputs.

    Where sizes cannot be followed as symbols, or depend on the contents of an input, there is a graph for each set of them,
    made when it is first called with it (`reason` says why). Sizes that depend on computed contents are cut to what is
    meant; inside of a traced function they stay as large as they can become, and the output NAME.count tells how much counts.
    """

    def __init__(self, path):
        self.path = path
        self.inputs, self.outputs = _rlx.describe_onnx(path)
        self._written = {name: dims for name, _, dims in self.inputs}  # sizes as the file has them
        found = _rlx.load_onnx(path)
        self.reason = found if isinstance(found, str) else None
        self._general = None if self.reason else _Import(*found)
        self._special = []
        self._usual, self._other = set(), set()  # sizes that the graph for all sizes has, and that it has not
        if self._general:
            weights = self._general.weights
            self.inputs = [i for i in self._general.graph.inputs if i[0] not in weights]
            self.outputs = self._general.graph.outputs

    def __repr__(self):
        port = lambda p: f"{p[0]}: {p[1]}[{','.join(map(str, p[2]))}]"
        return f"<rlx.onnx.Model ({', '.join(map(port, self.inputs))}) -> ({', '.join(map(port, self.outputs))})>"

    def _repr_svg_(self):
        return self.graph.svg()

    def _only(self):
        if self._general is None:
            raise _rlx.Error(f"onnx: the graph is another one for each size, and has none of its own ({self.reason})")
        return self._general

    @property
    def graph(self):
        return self._only().graph

    @property
    def weights(self):
        return self._only().weights

    @property
    def notes(self):
        """What is not quite as the file says."""
        return self._general.notes if self._general else [self.reason]

    def __call__(self, *args, **kwargs):
        names = [name for name, _, _ in self.inputs]
        if len(args) > len(names):
            raise _rlx.Error(f"onnx: {len(args)} arguments, the model has {len(names)} inputs: {', '.join(names)}")
        given = {**dict(zip(names, args)), **kwargs}
        unknown = [n for n in given if n not in names]
        missing = [n for n in names if n not in given]
        if unknown or missing:
            raise _rlx.Error(f"onnx: missing inputs {missing}, unknown inputs {unknown}; the model has {', '.join(names)}")
        given = {n: v if isinstance(v, _rlx.Tracer) else as_array(_held(v)) for n, v in given.items()}
        return self._found(given).call(given)

    def _found(self, given):
        """The graph for all sizes where it has these: it took sizes to be large enough for slices, and not to be 1 by chance."""
        shapes = tuple(given[n].shape for n, _, _ in self.inputs)
        if self._general is None or shapes in self._other:
            return self._for(given)
        if shapes not in self._usual:
            try:
                self._general.bind(given)
                self._usual.add(shapes)
            except _rlx.Error as e:
                if not all(map(_can_be, shapes, (self._written[n] for n, _, _ in self.inputs))):
                    raise
                try:
                    found = self._for(given)
                except _rlx.Error:
                    raise e from None
                self._other.add(shapes)
                return found
        return self._general

    def _for(self, given):
        """The graph for these sizes and, of the inputs that decide sizes, these contents."""
        shapes = {n: v.shape for n, v in given.items()}
        for known_shapes, contents, found in self._special:
            if known_shapes == shapes and all(not isinstance(given[n], _rlx.Tracer) and given[n].tolist() == c
                                              for n, c in contents.items()):
                return found
        values = {n: _rlx.array_full(v.dtype, v.shape, 0) if isinstance(v, _rlx.Tracer) else v for n, v in given.items()}
        found = _Import(*_rlx.load_onnx(self.path, values))
        traced = [n for n in found.fixed if isinstance(given[n], _rlx.Tracer)]
        if traced:
            raise _rlx.Error(f"onnx: sizes depend on the contents of '{traced[0]}', which is traced here; give it as a constant")
        self._special.append((shapes, {n: given[n].tolist() for n in found.fixed}, found))
        return found


def load(path):
    """The model of a file; its weights stay mapped."""
    return Model(os.fspath(path))


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
        while not set(outputs).isdisjoint(names):  # an argument of that name
            outputs = [f"{name}_" for name in outputs]
    graph.set_outputs(results, list(outputs))
    graph.erase_dead()
    return graph, {n: x for n, x, w in zip(names, leaves, is_weight) if w}


def save(path, function, *args, weights=(), outputs=None, opset=21, external_above=None):
    """Writes a function, a graph or a loaded model as an ONNX file.

    A function is traced on args: arrays, or Input(dtype, shape) where no values are at hand; sizes given as texts stay open.
    weights: numbers of the arguments that become initializers, for example the parameters of a network.
    outputs: names of the results; y, or y0, y1 and so on, with a _ behind where an argument is called so. external_above: weights of so many bytes go to PATH.data.
    """
    if isinstance(function, Model):
        graph, values = function.graph, function.weights
    elif isinstance(function, _rlx.Graph):
        graph, values = function, {}
    else:
        numbers = {weights} if isinstance(weights, int) else set(weights)
        graph, values = _traced(function, args, numbers, outputs)
    _rlx.save_onnx(os.fspath(path), graph, values, opset, external_above)
