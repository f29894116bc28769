"""Finds folders whose checkpoints would be lost with the pod.

A training that saves there is lost at an eviction, and ending early would be all that listening did.
"""

from __future__ import annotations

import os


def vanishes(path: str) -> str | None:
    """Return why `path` is gone with the pod: a container's layer, an emptyDir, a tmpfs. None: not, or unknown."""
    path = os.path.realpath(path)
    found = ("", "", "")
    try:
        with open("/proc/self/mountinfo") as file:
            for line in file:
                left, _, right = line.partition(" - ")
                root, point = (each.replace("\\040", " ") for each in left.split()[3:5])
                below = path == point or path.startswith(point.rstrip("/") + "/")
                if below and len(point) >= len(found[0]):
                    found = (point, root, right.split()[0])
    except OSError:
        return None
    point, root, kind = found
    if "kubernetes.io~empty-dir" in root:
        return "an emptyDir at %s" % point
    if kind == "tmpfs" or (kind == "overlay" and point == "/"):
        return "%s at %s" % (kind, point)
    return None
