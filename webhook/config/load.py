"""Reads a policy file from YAML, merged with its preset, into the policy's values.

1. The sections of model.py check each field by itself.
2. `crosscheck` looks for contradictions between fields, such as unknown and duplicate names.
"""

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from webhook.config.errors import ConfigError, sentence, steps_to, unreadable
from webhook.config.model import PolicyFile
from webhook.config.yaml_text import NotYaml, trees
from webhook.objects.data_files import data_file
from webhook.objects.view import Tree, view
from webhook.policy.quota.tenant_quotas import LabelSelector, requirements_of
from webhook.policy.saves.node_signals import signals_with
from webhook.policy.values import tier_policy as values
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier, Tiers
from webhook.policy.workloads.kind_table import BUILT_IN, WorkloadType

DEFAULT_PRESET = "four-tier"
_NAMES_TIERS = ("workloadTypes", "defaultTier", "allowedTiersByType", "demoteTo", "rules")
"""Fields of a preset that name its tiers. A file with its own tiers does not inherit them."""


def presets() -> list[str]:
    folder = resources.files("webhook.config").joinpath("presets").iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in folder if entry.name.endswith(".yaml"))


def load(path: Path) -> TierPolicy:
    """Return the policy in a file. Raises ConfigError with every problem, also if the file can't be read."""
    return policy_of(read_file(path))


def parse(text: str, source: str = "policy") -> TierPolicy:
    """Return the policy in a text. Raises ConfigError with every problem, each with the field's path."""
    return policy_of(_fields(text, source))


def preset_policy(name: str = DEFAULT_PRESET) -> TierPolicy:
    """Return the policy of a preset alone. Raises ConfigError if there is none of that name."""
    return policy_of(preset_file(name))


def preset_file(name: str) -> PolicyFile:
    """Return the fields of a file that only names its preset. Raises ConfigError if there is none of that name."""
    head = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy"}
    return _fields(json.dumps(head | {"preset": name}), f"preset {name}")


def read_file(path: Path) -> PolicyFile:
    """Return the fields of a file, merged with its preset. Raises ConfigError like `load`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), [unreadable(error)]) from None
    return _fields(text, str(path))


def _fields(text: str, source: str) -> PolicyFile:
    # 1. The file is one mapping.
    try:
        found = [tree for tree in trees(text) if tree is not None]
    except NotYaml as error:
        raise ConfigError(source, [str(error)]) from None
    if len(found) > 1:
        raise ConfigError(source, [f"holds {len(found)} documents; a policy file is one"])
    tree = found[0] if found else None
    if not isinstance(tree, dict):
        raise ConfigError(source, ["not a TierPolicy: expected a mapping with apiVersion and kind"])

    # 2. It is merged over its preset, whose files are our own and need no checks.
    name = tree.get("preset", DEFAULT_PRESET)
    if name != "" and name not in presets():
        raise ConfigError(source, [f'preset: "{name}" does not exist; write one of {", ".join(presets())}'])
    if name != "":
        preset = data_file(__name__, "gpu_resources.yaml") | data_file(__name__, f"presets/{name}.yaml")
        own = {key: value for key, value in tree.items() if (key, value) != ("tiers", [])}
        # A preset's mode is the model's default. It is left out, so that only a mode of the file counts as written.
        left_out = ("apiVersion", "kind", "mode", *(_NAMES_TIERS if "tiers" in own else ()))
        tree = _merged({key: value for key, value in preset.items() if key not in left_out}, own)

    # 3. Each field is valid, and the fields agree.
    try:
        file = PolicyFile.model_validate(tree)
    except ValidationError as error:
        problems = [sentence(each) + accepted(each, PolicyFile) for each in error.errors()]
        raise ConfigError(source, problems + crosschecked_rest(tree, error.errors())) from None
    if problems := list(crosscheck(file)):
        raise ConfigError(source, problems)
    return file


def accepted(error: ErrorDetails, model: type[BaseModel]) -> str:
    """Return which fields a file of `model` has instead of an unknown one: the most similar one, or all.

    "" for any other error.
    """
    if error["type"] != "extra_forbidden":
        return ""
    whole = model.model_json_schema()

    def resolved(schema: Tree) -> Tree:
        """Follow a reference, also behind "this or nothing"."""
        one = next((each for each in schema.get("anyOf", ()) if "$ref" in each or "items" in each), schema)
        return dict(whole["$defs"][one["$ref"].rpartition("/")[2]]) if "$ref" in one else one

    *above, name = steps_to(error)
    place = whole
    for step in above:
        below = place.get("items") if isinstance(step, int) else place.get("properties", {}).get(step)
        place = resolved(below or place.get("additionalProperties") or {})
    known = list(place.get("properties", ()))
    near = get_close_matches(str(name), known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; write one of {', '.join(known)}" if known else ""


def _merged(below: Tree, above: Tree) -> Tree:
    """Merge maps key by key, as Helm does, and replace anything else."""
    merged = dict(below)
    for key, value in above.items():
        there = merged.get(key)
        merged[key] = _merged(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return merged


def policy_of(file: PolicyFile) -> TierPolicy:
    kueue = None
    if file.kueue.workload_priority_classes:
        selector = view(file.kueue.managed_jobs_namespace_selector.model_dump(by_alias=True), LabelSelector)
        kueue = values.Kueue(tuple(requirements_of(selector)) if file.kueue.manage_jobs_without_queue_name else None)
    rules = []
    for match, tier in ((each.match, each.tier) for each in file.rules):
        kinds = tuple(each.group_kind for each in match.kinds)
        rules.append(values.Rule(values.Match(kinds, match.labels, match.namespaces, match.service_accounts), tier))
    flavors = (values.Flavor(each.name, each.node_labels, each.gpu_hour_price) for each in file.resource_flavors)
    checkpoint, resources = file.checkpoint, file.resources
    return TierPolicy(
        tiers=Tiers(
            Tier(each.name, each.value, each.preemption_policy, each.description, file.tier_access == "RBAC")
            for each in file.tiers
        ),
        default_tier=file.default_tier,
        mode=values.Mode[file.mode],
        adoption=file.adoption,
        resources={each.name: each.weight for each in resources if each.name},
        device_classes={each.device_class_name: each.weight for each in resources if each.device_class_name},
        shares=tuple(
            values.GpuShare(each.annotation, each.weight, each.mebibytes) for each in resources if each.annotation
        ),
        flavor_unnamed=file.flavor_unnamed,
        uncounted=file.uncounted,
        flavors=tuple(flavors),
        tier_of_type=file.workload_types,
        allowed_by_type=file.allowed_tiers_by_type,
        demote_to=file.demote_to,
        rules=tuple(rules),
        unmanaged_classes=file.unmanaged_classes,
        unreadable_owners=file.unreadable_owners,
        namespaces_without_tenant=file.namespaces_without_tenant,
        untiered=file.untiered,
        tier_access=file.tier_access,
        raise_by=values.Grade[file.raise_by],
        quota_release_strategy=file.quota_release_strategy,
        checkpoint=values.Checkpoint(
            hooks={each: hook.hook() for each in WorkloadType if (hook := getattr(checkpoint, each.value)) is not None},
            tiers={tier: hook.hook() for tier, hook in checkpoint.tiers.items()},
            margin=checkpoint.margin_seconds,
            max_grace_period=checkpoint.max_grace_period_seconds,
            tier_caps=checkpoint.max_grace_period_seconds_by_tier,
            listener_image=checkpoint.listener_image,
            pod_failure_policy=checkpoint.pod_failure_policy,
        ),
        saves=values.Saves(file.saves.max_at_risk_seconds, file.saves.at_once.made(values.AtOnce)),
        placement={tier: section.made(values.Placement) for tier, section in file.placement.items()},
        scheduling={tier: section.made(values.Scheduling) for tier, section in file.scheduling.items()},
        autoscaler=file.autoscaler,
        templates=file.templates,
        kueue=kueue,
        eviction_cost={"Kueue": file.eviction_cost.kueue, "Volcano": file.eviction_cost.volcano},
        device_preemption=file.preemption.dra,
        node_signals=signals_with(each.model_dump(exclude_none=True) for each in file.node_signals),
        kinds=BUILT_IN.with_rows(tuple(each.row() for each in file.kinds)),
    )


def crosscheck(file: PolicyFile) -> Iterator[str]:  # noqa: C901, PLR0912 - one list of rules
    """Yield every contradiction between fields, each with its path."""
    # 1. Required lists are not empty.
    if not file.tiers:
        yield "tiers: at least one is required"
    if not file.resources:
        yield "resources: at least one is required, or nothing counts as a GPU"

    # 2. No name is listed twice. A PriorityClass can't have the name of another tier's second class, nor the API
    #    server's own prefix.
    for path, what, names in (
        ("tiers[{}].name", "another tier has that name", [each.name for each in file.tiers]),
        ("tiers[{}].value", "another tier has that value", [str(each.value) for each in file.tiers]),
        ("resourceFlavors[{}].name", "listed twice", [each.name for each in file.resource_flavors]),
        ("kinds[{}]", "listed twice", [str(each) for each in file.kinds]),
        ("nodeSignals[{}].id", "listed twice", [each.id for each in file.node_signals]),
        ("resources[{}]", "listed twice", [each.title for each in file.resources]),
    ):
        for index, name in enumerate(names):
            if name in names[:index]:
                yield f"{path.format(index)}: {name}: {what}"
    classes = {f"{tier.name}-nonpreempting": tier.name for tier in file.tiers}
    for index, tier in enumerate(file.tiers):
        if tier.name in classes:
            other = f"the name of the non-preempting class of tier {classes[tier.name]}"
            yield f"tiers[{index}].name: {tier.name} is {other}; write another"
        if tier.name.startswith("system-"):
            yield f"tiers[{index}].name: {tier.name}: names that begin with system- are Kubernetes' own; write another"

    # 3. All names exist.
    tiers = [tier.name for tier in file.tiers]
    for path, name in _mentions(file):
        if name not in tiers:
            yield f'{path}: unknown tier "{name}"; known tiers: {", ".join(tiers)}'
    known = {*BUILT_IN.by_kind, *(each.group_kind for each in file.kinds)}
    for index, rule in enumerate(file.rules):
        for place, each in enumerate(rule.match.kinds):
            if each.group_kind not in known:
                why = "(docs/workloads.md), so the rule could never apply; add it under kinds"
                yield f"rules[{index}].match.kinds[{place}]: {each} is not in the table of workload kinds {why}"

    # 4. No field asks for what another one forbids.
    for workload_type, name in file.workload_types.items():
        allowed = file.allowed_tiers_by_type.get(workload_type)
        if allowed is not None and name not in allowed:
            only = f"only {', '.join(allowed)}" if allowed else "none"
            yield f"workloadTypes.{workload_type}: {name}, but allowedTiersByType.{workload_type} allows {only}"
    highest = max(file.tiers, key=lambda tier: tier.value).name if file.tiers else ""
    for index, name in enumerate(file.demote_to):
        if name in file.demote_to[:index]:
            yield f"demoteTo[{index}]: {name} stands there twice; keep one"
        if name == highest:
            yield f"demoteTo[{index}]: {name} is the highest tier, so nothing is demoted to it; write a lower one"
    if file.eviction_cost.kueue == "Write" and not file.kueue.workload_priority_classes:
        yield "evictionCost.kueue: Write needs kueue.workloadPriorityClasses: true, or Kueue may not know the tiers"
    if file.tier_access == "RBAC" and file.templates == "Off":
        yield "tierAccess: RBAC needs templates: ValidateOnly or Mutate, which ask at the workload"


REFERRED_TO = ("tiers", "kinds")
"""Lists whose names are used in other fields. If the key of one is misspelt, uses of its names are no mistakes."""


def crosschecked_rest(tree: Tree, errors: Iterable[ErrorDetails]) -> list[str]:
    """Return the contradictions between the fields without these errors, if they can be checked without the others."""
    rest = deepcopy(tree)
    try:
        for *above, name in map(steps_to, errors):
            holder: Any = rest
            for step in above:
                holder = holder[step]
            if isinstance(holder, list) or (holder is rest and get_close_matches(str(name), REFERRED_TO)):
                return []
            del holder[name]
        return list(crosscheck(PolicyFile.model_validate(rest)))
    except (LookupError, TypeError, ValueError):  # an error is not about one field, or the rest is wrong too
        return []


def _mentions(file: PolicyFile) -> Iterator[tuple[str, str]]:
    yield from ((f"saves.maxAtRiskSeconds.{name}", name) for name in file.saves.max_at_risk_seconds)
    yield "defaultTier", file.default_tier
    yield from ((f"workloadTypes.{workload_type}", name) for workload_type, name in file.workload_types.items())
    for workload_type, names in file.allowed_tiers_by_type.items():
        yield from ((f"allowedTiersByType.{workload_type}[{index}]", name) for index, name in enumerate(names))
    yield from ((f"demoteTo[{index}]", name) for index, name in enumerate(file.demote_to))
    yield from ((f"rules[{index}].tier", rule.tier) for index, rule in enumerate(file.rules))
    yield from ((f"checkpoint.tiers.{name}", name) for name in file.checkpoint.tiers)
    caps = file.checkpoint.max_grace_period_seconds_by_tier
    yield from ((f"checkpoint.maxGracePeriodSecondsByTier.{name}", name) for name in caps)
    yield from ((f"placement.{name}", name) for name in file.placement)
    yield from ((f"scheduling.{name}", name) for name in file.scheduling)
    yield from ((f"autoscaler.{name}", name) for name in file.autoscaler)
