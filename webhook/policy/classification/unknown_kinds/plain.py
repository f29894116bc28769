"""Brings the containers of unknown kinds into the form of Kubernetes: such a kind may write a command as one text.

What the kind's operator makes of such fields is not known.
"""

from typing import Any

Tree = dict[str, Any]

_LISTS_OF_MAPS = ("env", "envFrom", "ports", "volumeMounts")
_MAPS = ("lifecycle", "livenessProbe", "readinessProbe", "securityContext", "startupProbe")


def plain(node: Any) -> Any:
    """The same tree with each container in it as Kubernetes has it."""
    if isinstance(node, list):
        return [plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {field: plain(value) for field, value in node.items()}
    return _container(made) if "image" in made and "apiVersion" not in made else made


def _container(node: Tree) -> Tree:
    made = {field: value for field, value in node.items() if _is_well(field, value)}
    for field in ("command", "args"):
        if field in node:
            made[field] = _texts(node[field])
    image = _image(node["image"])
    return {**made, "image": image} if image else {field: value for field, value in made.items() if field != "image"}


def _is_well(field: str, value: object) -> bool:
    if field in _LISTS_OF_MAPS:
        return isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return isinstance(value, dict) if field in (*_MAPS, "resources") else True


def _texts(value: object) -> list[str]:
    """`{epochs: 3}` becomes `--epochs=3`."""
    if isinstance(value, dict):
        return [f"--{name}={each}" for name, each in value.items()]
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _image(value: object) -> str:
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    name = value.get("repository") or value.get("name")
    tag = value.get("tag")
    return "" if not isinstance(name, str) else f"{name}:{tag}" if tag else name
