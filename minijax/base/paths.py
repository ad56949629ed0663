"""The paths of a tree's leaves as texts, for names and messages; calls no constructor of a user's class."""

from typing import Any

from minijax.base import tree

Path = tuple[str, ...]
_ABSENT = object()


def leaf_paths(treedef: Any, value: Any = _ABSENT) -> list[Path]:
    """The path of each leaf, a text for each key; `value`, a tree of this structure, tells the keys of users' nodes."""
    if value is not _ABSENT and has_own_keys(treedef):
        try:
            pairs = tree.registry.flatten_with_path(value, None)[0]
        except Exception:
            pairs = []
        if len(pairs) == treedef.num_leaves:
            return [tuple(map(_text, path)) for path, _ in pairs]
    paths: list[Path] = []
    _walk(treedef, (), paths)
    return paths


def has_own_keys(treedef: Any) -> bool:
    """Returns whether a node of the structure is of a user's class that names its children itself."""
    if not tree.keyed_types or treedef.num_nodes == treedef.num_leaves:
        return False
    pending = [treedef]
    while pending:
        part = pending.pop()
        node = part.node_data()
        if node is not None and node[0] in tree.keyed_types:
            return True
        pending += part.children()
    return False


def _walk(treedef: Any, path: Path, paths: list[Path]) -> None:
    node = treedef.node_data()
    if node is None:
        paths.append(path)
        return
    children = treedef.children()
    for key, child in zip(tree.child_keys(*node, len(children)), children, strict=True):
        _walk(child, (*path, _text(key)), paths)


def _text(key: Any) -> str:
    return f"[{key.key}]" if isinstance(key, tree.FlattenedIndexKey) else str(key)
