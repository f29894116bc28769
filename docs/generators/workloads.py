"""Makes docs/workloads.md of the table of kinds and of the guesses; decides nothing about them."""

from collections.abc import Iterator

from generators.tables import code, page, table
from webhook.policy.guesses import GUESSES, LONGEST
from webhook.policy.kinds import KINDS, Row, Templates

SOURCES = {
    "": "https://kubernetes.io/docs/concepts/workloads/",
    "apps": "https://kubernetes.io/docs/concepts/workloads/controllers/",
    "batch": "https://kubernetes.io/docs/concepts/workloads/controllers/job/",
    "kubeflow.org": "https://github.com/kubeflow/trainer/tree/release-1.9",
    "trainer.kubeflow.org": "https://github.com/kubeflow/trainer",
    "jobset.x-k8s.io": "https://github.com/kubernetes-sigs/jobset",
    "leaderworkerset.x-k8s.io": "https://github.com/kubernetes-sigs/lws",
    "ray.io": "https://github.com/ray-project/kuberay",
    "serving.kserve.io": "https://github.com/kserve/kserve",
}
"""Where each group's API is defined: labels, template places and counts are read from there."""

SOURCES_OF_KINDS = {
    "MPIJob": "https://github.com/kubeflow/mpi-operator",
    "Notebook": "https://github.com/kubeflow/kubeflow/tree/master/components/notebook-controller",
}
"""Where a project of its own defines a kind of a shared group."""

_WHY = """\
Why: the type of a workload decides its tier where nobody named one, so it must be plain what makes us say so. A kind
that *is* something (a PyTorchJob trains) proves it. A general launcher (a Job, a JobSet) is only *usually* something:
that chooses a tier and binds nobody. Names and images are guesses, and are called so."""

_ORDER = """\
The order of trust: the kind of any owner that proves it, a label that only pods of one type bear, the usual use of the
outermost owner, a guess. [What each may do](decisions/evidence.md)."""

_KINDS = """\
## Kinds

Pods of any other kind get a tier too; only their type has to come from a label or a guess, and the object itself is
not checked when it is applied."""

_TEMPLATES = """\
## Pods of a workload

Where the webhook finds a workload's pod templates, and how many pods each makes: this is what a workload is checked
for when it is applied."""

_GUESSES = f"""\
## Guesses

The first pattern that matches decides. A guess may lower a workload below its default tier and never raises it above,
unless the policy says `guessesMayRaise`. Of each text the first {LONGEST} characters are searched."""


def workloads() -> str:
    """The page, whole."""
    return page(
        "Workloads",
        "`webhook/policy/kinds.py` and `webhook/policy/guesses.py`",
        _WHY,
        _ORDER,
        _KINDS,
        table(("kind", "API group", "type", "labels on its pods"), (_kind(row) for row in KINDS)),
        _TEMPLATES,
        table(("kind", "pod template", "pods"), (_place(row, each) for row in KINDS for each in row.templates)),
        _GUESSES,
        table(("looks at", "pattern", "type"), _guesses()),
    )


def _kind(row: Row) -> tuple[str, str, str, str]:
    group = f"[{row.group or 'core'}]({SOURCES_OF_KINDS.get(row.kind, SOURCES[row.group])})"
    kind = f"{row.type}, proven" if row.type else f"{row.usual}, usually" if row.usual else "whatever its pods are"
    labels = (code(f"{key}={value}" if value else key) for key, value in row.labels.items())
    return row.kind, group, kind, ", ".join(labels)


def _place(row: Row, templates: Templates) -> tuple[str, str, str]:
    place = ".".join(filter(None, (templates.holder, templates.path)))
    return row.kind, code(place) or "the object itself", (templates.count.__doc__ or "").strip().rstrip(".")


def _guesses() -> Iterator[tuple[str, str, str]]:
    for where, pattern, kind in GUESSES:
        yield where, code(pattern.pattern), kind
