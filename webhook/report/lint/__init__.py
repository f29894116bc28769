"""The table of rules about tiers, quotas, hooks and webhooks of a cluster or of manifests.

`lint` runs the rules that need no workloads. `audit` runs those that do, and `namespace-label`. `check` runs the rules
that have a line. Rules of one severity run in the order of the modules here, and of the functions in a module.
"""

from webhook.report.lint import installation, pod_rules, tier_and_quota_rules, workload_rules
from webhook.report.lint.rule import LintRule

_CHAPTERS = (installation, tier_and_quota_rules, pod_rules, workload_rules)
TABLE = tuple(each for chapter in _CHAPTERS for each in vars(chapter).values() if isinstance(each, LintRule))
RULES = tuple(each for each in TABLE if "workloads" not in each.needs)
AUDIT_RULES = (*(each for each in TABLE if "workloads" in each.needs), tier_and_quota_rules.namespace_label)
