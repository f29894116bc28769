"""The table of rules."""

from webhook.readmodel.lint import (
    placing,
    priorities,
    quota_rows,
    registration,
    saving,
    serving_certificates,
    untiered_pods,
)
from webhook.readmodel.lint.rule import LintRule

RULES: tuple[LintRule, ...] = (
    *registration.RULES,
    *serving_certificates.RULES,
    *untiered_pods.RULES,
    *priorities.RULES,
    *quota_rows.RULES,
    *saving.RULES,
    *placing.RULES,
)
