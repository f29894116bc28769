"""The table of workload kinds: what each is, the labels on its pods, where its pod templates lie.

A new operator is a row in one of these files and an example, not a class; a company's own is one in its policy file.
"""

from webhook.policy.workloads.kinds.batch import BATCH_KINDS
from webhook.policy.workloads.kinds.core import CORE_KINDS
from webhook.policy.workloads.kinds.interactive import INTERACTIVE_KINDS
from webhook.policy.workloads.kinds.launchers import LAUNCHER_KINDS
from webhook.policy.workloads.kinds.llm_serving import LLM_SERVING_KINDS
from webhook.policy.workloads.kinds.serving import SERVING_KINDS
from webhook.policy.workloads.kinds.table import KindRow, KindTable, present
from webhook.policy.workloads.kinds.training import TRAINING_KINDS

_ROWS = (
    *CORE_KINDS,
    *TRAINING_KINDS,
    *LAUNCHER_KINDS,
    *SERVING_KINDS,
    *LLM_SERVING_KINDS,
    *BATCH_KINDS,
    *INTERACTIVE_KINDS,
)
_WRAPPERS = (
    KindRow(
        "workload.codeflare.dev",
        "AppWrapper",
        "appwrappers",
        "https://github.com/project-codeflare/appwrapper/tree/main/api/v1beta2",
        labels=present("workload.codeflare.dev/appwrapper"),
        gang=True,
        wraps="spec.components.*.template",
        wrapped=_ROWS,
    ),
)
"""Kinds that carry whole objects and create them, as the rows of those describe them."""
BUILT_IN = KindTable((*_ROWS, *_WRAPPERS))
"""The kinds that gpu-tiers knows by itself."""

__all__ = ["BUILT_IN", "KindTable"]
