"""Makes docs/lint.md of the table of rules."""

import re

from generators.tables import page, table
from webhook.report.lint import RULES
from webhook.report.lint.rule import ClusterRule

_WHY = """\
Why: a PriorityClass above the tiers, an empty caBundle or a quota that no gang fits is found on the night of the first
preemption, by whoever lost a week of training. `gpu-tiers lint` finds it on the day it is made, and says what to do."""

_HOW = """\
```sh
gpu-tiers lint                                   # the cluster of the kubeconfig
gpu-tiers lint --fail-on warning -o json         # ends with 1 if there is a warning: for a pipeline
gpu-tiers lint --ignore later-webhook            # without a rule
gpu-tiers lint --policy examples/policies/four-tier.yaml --tenants examples/tenants/   # the rules that need no cluster
```

It only reads, and sends one dry run of a pod, which stores nothing. What you may not read it names, and asks the other
rules. It ends with 0 where nothing is as severe as `--fail-on` (`error` unless you choose another), with 1 where
something is, and with 2 where the cluster can't be asked.
Pods are read in pages and kept as a few fields each, so that tens of thousands of them are no trouble.

What it can't see: whether a program listens to the file hook, which stands in a file within its container; what a
workload's program will do at SIGTERM; GPUs that ResourceSlices offer are not added up, so that two rules are left out
in a cluster that has some."""


def lint_page() -> str:
    """The page, whole."""
    index = table(("rule", "severity", "needs"), map(_row, RULES))
    return page("Lint", "`webhook/report/lint/`", _WHY, _HOW, index, *map(_section, RULES))


def _row(rule: ClusterRule) -> tuple[str, str, str]:
    needs = ", ".join(each.replace("_", " ") for each in rule.needs)
    return f"[{rule.id}](#{rule.id})", rule.severity, needs or "the policy"


def _section(rule: ClusterRule) -> str:
    return f"## {rule.id}\n\n{_linked(rule.why)}\n\nWhat to do: {_linked(rule.fix)}"


def _linked(text: str) -> str:
    return re.sub(r"docs/([\w-]+)\.md", r"[\1](\1.md)", text)
