"""The table of workload kinds: what each is, the labels on its pods, where its pod templates lie. Data, no decision.

A new operator is a row in one of these files and an example, not a class.
"""

from webhook.policy.facts import Kind
from webhook.policy.kinds.batch import BATCH_KINDS
from webhook.policy.kinds.core import CORE_KINDS
from webhook.policy.kinds.interactive import INTERACTIVE_KINDS
from webhook.policy.kinds.launchers import LAUNCHER_KINDS
from webhook.policy.kinds.row import Form, Row, Source, Templates
from webhook.policy.kinds.serving import SERVING_KINDS
from webhook.policy.kinds.training import TRAINING_KINDS

KINDS: tuple[Row, ...] = (
    *CORE_KINDS,
    *TRAINING_KINDS,
    *LAUNCHER_KINDS,
    *SERVING_KINDS,
    *BATCH_KINDS,
    *INTERACTIVE_KINDS,
)

ROW_OF: dict[Kind, Row] = {Kind(row.group, row.kind): row for row in KINDS}
"""Group and kind go together: Job, Service, Workspace, InferenceService exist in several groups."""

__all__ = ["KINDS", "ROW_OF", "Form", "Row", "Source", "Templates"]
