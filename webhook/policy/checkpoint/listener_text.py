"""Temporary."""

from collections.abc import Mapping


def listener_texts() -> Mapping[str, str]:
    """The texts of the listener's files, by name."""
    return {"sitecustomize.py": "import gpu_tiers_listen\n", "gpu_tiers_listen.py": "print('listening')\n"}
