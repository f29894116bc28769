"""The table of rules."""

from webhook.readmodel.lint import placing, priorities, quota_rows, registration, saving
from webhook.readmodel.lint.rule import LintRule

RULES: tuple[LintRule, ...] = (
    *registration.RULES,
    *priorities.RULES,
    *quota_rows.RULES,
    *saving.RULES,
    *placing.RULES,
)
