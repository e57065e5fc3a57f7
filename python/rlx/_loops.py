"""Loops and branches inside of compiled functions."""

from . import _rlx, _tree
from ._convert import as_array
from ._trace import Trace, _stack, _type_of, _user_line, jit, trace_flat


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
    if any(len(x.shape) == 0 for x in slices):
        raise _rlx.Error("scan: an array of xs has no axes; each is cut along its axis 0")
    sizes = {x.shape[0] for x in slices} | ({length} if length is not None else set())
    if len(sizes) != 1:
        raise _rlx.Error(f"scan: lengths {sorted(sizes)} differ" if sizes else "scan: give xs or length")
    types = [_type_of(x) for x in carry] + [(x.dtype, x.shape[1:]) for x in slices]
    found = {}

    def step(values):
        state = _tree.unflatten(carry_structure, values[:len(carry)])
        x = _tree.unflatten(xs_structure, values[len(carry):]) if slices else None
        result = f(state, x)
        if not isinstance(result, tuple) or len(result) != 2:
            given = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
            raise _rlx.Error(f"scan: the function returns {given}; (carry, y) expected, y may be None")
        new, y = result
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


def fori_loop(lower, upper, body, init):
    """state = body(i, state) for i from lower to upper - 1."""
    if isinstance(lower, int) and isinstance(upper, int):  # the count is known, so it has a gradient
        def step(carry, _):
            i, state = carry
            return (i + 1, body(i, state)), None

        return scan(step, (as_array(lower), init), None, length=max(0, upper - lower))[0][1]
    start = lower if isinstance(lower, _rlx.Tracer) else as_array(lower)
    state = while_loop(lambda s: s[0] < upper, lambda s: (s[0] + 1, body(s[0], s[1])), (start, init))
    return state[1]
