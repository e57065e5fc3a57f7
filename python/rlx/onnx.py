"""ONNX models as functions: they can be compiled, differentiated and batched like any other."""

from . import _rlx
from ._convert import as_array
from ._trace import call_graph, config


class Model:
    """A function of arrays by the names of the model's inputs; returns a dict by the names of its outputs."""

    def __init__(self, graph, weights, notes):
        self.graph, self.weights, self.notes = graph, weights, notes
        self.inputs = [i for i in graph.inputs if i[0] not in weights]
        self.outputs = graph.outputs
        self._programs = {}

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
