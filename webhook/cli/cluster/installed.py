"""The policy that a user names, or an installation's: its file, and the active policy that its leader published."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from webhook.cli.cluster.target import role_for
from webhook.cli.command import warn
from webhook.cluster.listed import listed_trees
from webhook.cluster.webhook_configurations import OF_OURS
from webhook.config.errors import ConfigError
from webhook.config.load import parse, policy_of, preset_file, preset_policy, presets, read_file
from webhook.config.model import PolicyFile
from webhook.config.published import POLICY, TEXT, InstalledPolicy, Published, active_map_of, digest_of
from webhook.kube.client import Client, path
from webhook.kube.errors import Forbidden, NotFound
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import class_names


def policy_named(name: str | Path) -> TierPolicy:
    """Read the policy file or the preset of this name. Raises ConfigError if neither exists, or the file is wrong."""
    return policy_of(fields_named(name))


def fields_named(name: str | Path) -> PolicyFile:
    if Path(name).exists():
        return read_file(Path(name))
    if str(name) in presets():
        return preset_file(str(name))
    problem = f"there is no such file and no such preset; the presets are {', '.join(presets())}"
    raise ConfigError(str(name), [problem])


def policy_in(name: str | Path | None) -> TierPolicy:
    """Read a policy file or a preset; without a name the default preset. Raises ConfigError."""
    return preset_policy() if name is None else policy_named(name)


def mode_of_file(mode: str) -> str:
    """Return the mode of a policy file as text, with the note that the cluster's is unknown."""
    return f"--policy says mode {mode}; the cluster's mode is not known."


RELEASE = "gpu-tiers"

NAME_IT = "name the policy file with --policy"
ALONE = "--policy FILE looks only at a policy file, and asks no cluster"
"""The advice if a cluster has no or several installations: for commands that accept --policy, and for `lint`."""


def answering(found: InstalledPolicy) -> TierPolicy:
    """Return the published active policy, or else the file. Raises ConfigError.

    Warn the user which of them it is, unless the file is known to be active.
    """
    if not found.taken:
        warn(which_answers(found))
    return parse(found.text, f"ConfigMap {found.where}")


def arriving(found: InstalledPolicy) -> Collection[str]:
    """Return the names of the PriorityClasses of a policy file that is not active; none if it is active or invalid."""
    try:
        return {name for tier in parse(found.file).tiers for name in class_names(tier)} if not found.taken else ()
    except ConfigError:
        return ()


async def read_active_policy(client: Client, named: str | Path | None, *, instead: str = NAME_IT) -> TierPolicy:
    """Return the policy of a file or a preset, or else the installation's active one.

    `instead` is the advice if there is not exactly one installation. Raises ConfigError, ApiError.
    """
    try:
        return policy_named(named) if named is not None else answering(await installed_policy(client, instead))
    except Forbidden as error:
        raise ConfigError("the cluster", [f"{error.said or error}. {role_for(error)}. Without it: {instead}"]) from None


def which_answers(found: InstalledPolicy) -> str:
    """Return a sentence on the policy that an answer is from, if the policy file is not known to be active."""
    seen, file, record = found.published, f"the policy file in ConfigMap {found.where}", active_map_of(found.where)
    if found.unread:
        return f"you may not get ConfigMap {record}, so this is answered from {file}, which may not be active"
    if seen is None:
        return f"no replica has reported which policy is active, so this is answered from {file}"
    if found.gone:
        return f"ConfigMap {found.where} does not exist. This is answered from the active policy since {seen.since}"
    if seen.digest == digest_of(found.file):
        return f"{file} is active, but not as it should be: {seen.problem}"
    wrong = f"was not taken: {seen.problem}" if seen.problem else "was changed, and is not active yet"
    ended = wrong if wrong.endswith("?") else f"{wrong}."  # the end of a mistake may ask what was meant
    if seen.text:
        return f"{file} {ended} This is answered from the active policy since {seen.since}"
    return f"{file} {ended} The active policy is too long to be published, so this is answered from the file"


async def installed_policy(client: Client, instead: str = ALONE) -> InstalledPolicy:
    """Return the installation's policy file, and what its leader has published. Raises ApiError.

    If the file's ConfigMap was deleted, the leader's ConfigMap has the active policy. Raises ConfigError if there is
    not exactly one installation.
    """
    # Our ConfigMaps of all namespaces, or the default release's without the right to read all.
    unread = False
    try:
        listed = await listed_trees(client, path("v1", "configmaps"), OF_OURS)
    except Forbidden:
        listed = await _of_release(client, RELEASE)
        try:
            listed += await _of_release(client, active_map_of(RELEASE))
        except Forbidden:
            unread = True
    maps = {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in listed}
    data = {place: each.get("data") or {} for place, each in maps.items()}
    files = {place: each[POLICY] for place, each in data.items() if POLICY in each}
    left = {place.removesuffix(active_map_of("")): "" for place, each in data.items() if TEXT in each}
    found = files or left
    if len(found) != 1:
        none = "there is no ConfigMap of a gpu-tiers installation"
        problem = f"several installations: {', '.join(found)}" if found else none
        raise ConfigError("the cluster", [f"{problem}; {instead}"])
    ((where, file),) = found.items()
    return InstalledPolicy(where, file, Published.read(maps.get(active_map_of(where), {})), unread, gone=not files)


async def _of_release(client: Client, name: str) -> list[dict[str, Any]]:
    try:
        return [await client.get(path("v1", "configmaps", RELEASE, name))]
    except NotFound:
        return []
