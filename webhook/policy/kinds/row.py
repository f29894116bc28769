"""What a row of the table of workload kinds says; no row stands here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.policy.facts import WorkloadType
from webhook.policy.pod_counts import PodCount, one

Form = Literal["template", "spec", "container", "resources"]
"""What lies at a template's place: a pod template, a pod spec without metadata, one container, or its resources."""

Source = Literal["command", "name", "image", "port"]
"""Where a guess comes from."""

EVERY_SOURCE: tuple[Source, ...] = ("command", "image", "name", "port")
"""What runs tells more than what it is packed in, and that more than what it is called."""


@dataclass(frozen=True, slots=True)
class Templates:
    """Where pod templates lie: at `path` below each `holder`; `*` in that is each list item or map value.

    `count` tells from the holder how many pods each makes. `containers` are fields beside `containers` that hold one
    container each, as KServe has them.
    """

    holder: str
    path: str
    count: PodCount = one
    form: Form = "template"
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of workload.

    `type` is what the kind proves. `fields` are places in the object that prove a type where they are filled. `usual`
    is what a general launcher is mostly used for; `before_usual` are the guesses that tell more than that.
    `labels` are those that the operator puts on its pods, a value where only that one tells. `gang_label` is the one
    by which a member that asks for no GPU is known to share its gang's tier. `source` is where all this is from.
    """

    group: str
    kind: str
    plural: str
    source: str
    type: WorkloadType | None = None
    usual: WorkloadType | None = None
    fields: tuple[tuple[str, WorkloadType], ...] = ()
    before_usual: tuple[Source, ...] = EVERY_SOURCE
    labels: Mapping[str, str | None] = field(default_factory=dict)
    gang_label: str | None = None
    templates: tuple[Templates, ...] = ()


def present(*keys: str) -> Mapping[str, str | None]:
    """Labels that tell by being there, whatever their value."""
    return dict.fromkeys(keys)
