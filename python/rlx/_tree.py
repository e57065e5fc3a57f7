"""Nested dicts, tuples, lists and dataclasses of arrays, flattened and put together again."""

Leaf = object()  # where an array stands in a structure


def flatten(tree):
    """The leaves in a fixed order, and the structure; dicts go by sorted keys."""
    leaves = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree, leaves):
    if tree is None:
        return None
    if isinstance(tree, dict):
        keys = sorted(tree)
        return (type(tree), tuple(keys), tuple(_flatten(tree[k], leaves) for k in keys))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return (type(tree), tree._fields, tuple(_flatten(v, leaves) for v in tree))
    if isinstance(tree, (tuple, list)):
        return (type(tree), None, tuple(_flatten(v, leaves) for v in tree))
    if hasattr(type(tree), "__dataclass_fields__"):
        import dataclasses

        names = tuple(f.name for f in dataclasses.fields(tree))
        return (type(tree), names, tuple(_flatten(getattr(tree, n), leaves) for n in names))
    leaves.append(tree)
    return Leaf


def unflatten(structure, leaves):
    """The inverse of flatten; takes as many leaves as the structure has."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure, leaves):
    if structure is Leaf:
        return next(leaves)
    if structure is None:
        return None
    kind, names, parts = structure
    values = [_unflatten(p, leaves) for p in parts]
    if names is None:
        return kind(values)
    if issubclass(kind, dict):
        return kind(zip(names, values))
    return kind(**dict(zip(names, values)))


def count(structure):
    """How many leaves a structure has."""
    if structure is Leaf:
        return 1
    return 0 if structure is None else sum(count(p) for p in structure[2])


def map(function, tree, *rest):
    """The structure of the first tree, with function over the leaves of all of them."""
    leaves, structure = flatten(tree)
    others = []
    for other in rest:
        found, shape = flatten(other)
        if shape != structure:
            raise ValueError("tree.map: the trees differ in structure")
        others.append(found)
    return unflatten(structure, [function(*x) for x in zip(leaves, *others)])
