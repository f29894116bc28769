"""Makes docs/warnings.md of the table of warnings."""

from generators.tables import page
from webhook.sentences.warnings import LONGEST, WARNINGS, WarningText

_WHY = """\
Why: a tier that was only guessed, a hook that can't work, or a Job that a preemption ends for good, is easy to correct
on the day it is applied, and expensive on the day it is preempted. So `kubectl apply` warns of it, in one line that
starts with an id. Look for that id here."""

_WHEN = f"""\
A warning has {LONGEST} characters at most; a longer name is cut. A workload gets its warnings when it is applied; an
update gets only those that were not true before. A pod gets them if no workload created it. A warning refuses nothing,
and in Audit there are no warnings. `examples/warnings/` has a manifest for each warning: `gpu-tiers review -f` shows it
without a cluster.

[Troubleshooting](troubleshooting.md#warnings) lists the other warnings: about tiers, quotas and TenantQuotas."""


def warnings_page() -> str:
    """The page, whole."""
    return page("Warnings", "`webhook/sentences/warnings.py`", _WHY, _WHEN, *map(_section, WARNINGS))


def _section(warning: WarningText) -> str:
    shown = warning.text.replace("{", "<").replace("}", ">")
    example = f"Example: [{warning.id}.yaml](../examples/warnings/{warning.id}.yaml)."
    return f"## {warning.id}\n\n```\n[{warning.id}] {shown}\n```\n\n{warning.docs}\n\n{example}"
