"""What is wrong with the tiers, quotas, hooks and webhooks of a cluster: the table of rules, one for each mistake."""

from webhook.report.lint import (
    not_running,
    placing,
    priorities,
    quota_rows,
    registration,
    running,
    saving,
    untiered_pods,
)
from webhook.report.lint.rule import ClusterRule

RULES: tuple[ClusterRule, ...] = (
    *registration.RULES,
    *running.RULES,
    *untiered_pods.RULES,
    *priorities.RULES,
    *quota_rows.RULES,
    *not_running.RULES,
    *saving.RULES,
    *placing.RULES,
)
