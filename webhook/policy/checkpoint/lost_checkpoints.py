"""Which checkpoint paths of a container surely lie on an emptyDir that dies with its pod.

The name says checkpoint, the path lies in the volume, and no other container mounts it to carry the files away.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from webhook.objects.containers import Container
from webhook.objects.pods import Pod

_CHECKPOINT = re.compile(
    r"-{0,2}([a-z]+[-_])*(checkpoint|ckpt)s?([-_](dir|path|folder|directory|root))?", re.IGNORECASE
)


def lost_checkpoints(container: Container, pod: Pod) -> Iterator[tuple[str, str]]:
    """Each path with the name of its volume."""
    emptydirs = {volume.name for volume in pod.spec.volumes if volume.empty_dir is not None}
    for path in _checkpoint_paths(container) if emptydirs else ():
        volume = _volume_of(path, container)
        if volume in emptydirs and not _shared(volume, container, pod):
            yield path, volume


def _checkpoint_paths(container: Container) -> Iterator[str]:
    """Paths under a name that says checkpoint: variables, `--ckpt-dir=/x`, `--ckpt-dir /x`."""
    words = (*container.command, *container.args)
    pairs = [(each.name, each.value) for each in container.env]
    pairs += [(name, value) for name, _, value in (word.partition("=") for word in words)]
    pairs += [(word, after) for word, after in pairwise(words) if word.startswith("-")]
    for name, value in pairs:
        if isinstance(value, str) and value.startswith("/") and _CHECKPOINT.fullmatch(name[:100]):
            yield value


def _volume_of(path: str, container: Container) -> str:
    """The volume in which a path lies: the one that is mounted deepest."""
    mounts = [each for each in container.volume_mounts if f"{path}/".startswith(f"{each.mount_path.rstrip('/')}/")]
    return max(mounts, key=lambda mount: len(mount.mount_path)).name if mounts else ""


def _shared(volume: str, container: Container, pod: Pod) -> bool:
    others = (each for _, each in pod.spec.every_container() if each is not container)
    return any(mount.name == volume for other in others for mount in other.volume_mounts)
