"""Makes docs/warnings.md of the table of warnings; decides nothing about them."""

from generators.tables import page
from webhook.policy.checkpoint.warning_texts import LONGEST, WARNINGS, WarningText

_WHY = """\
Why: a hook that can't work, or a Job that preemption ends for good, is cheap to mend on the day it is applied, and dear
on the day it is preempted. So `kubectl apply` says it, on one line that starts with an id: look for that id here."""

_WHEN = f"""\
A warning has {LONGEST} characters at most; of longer names the beginning is shown. It is said of a workload when it is
applied, and on an update only where it was not true before; of a pod when no workload makes it. Nothing is refused, and
in Audit nothing is said. `examples/warnings/` has a manifest for each: `gpu-tiers review -f` says it without a cluster.

Warnings about tiers and quotas have no id: [troubleshooting](troubleshooting.md#warnings) lists them."""


def warnings_page() -> str:
    """The page, whole."""
    return page("Warnings", "`webhook/policy/warning_texts.py`", _WHY, _WHEN, *map(_section, WARNINGS))


def _section(warning: WarningText) -> str:
    shown = warning.text.replace("{", "<").replace("}", ">")
    example = f"Example: [{warning.id}.yaml](../examples/warnings/{warning.id}.yaml)."
    return f"## {warning.id}\n\n```\n[{warning.id}] {shown}\n```\n\n{warning.docs}\n\n{example}"
