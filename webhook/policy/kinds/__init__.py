"""The table of workload kinds: what each is, the labels on its pods, where its pod templates lie. Data, no decision.

A new operator is a row in one of these files and an example, not a class; a company's own is one in its policy file.
"""

from webhook.policy.kinds.batch import BATCH_KINDS
from webhook.policy.kinds.core import CORE_KINDS
from webhook.policy.kinds.interactive import INTERACTIVE_KINDS
from webhook.policy.kinds.launchers import LAUNCHER_KINDS
from webhook.policy.kinds.llm_serving import LLM_SERVING_KINDS
from webhook.policy.kinds.serving import SERVING_KINDS
from webhook.policy.kinds.table import KindTable
from webhook.policy.kinds.training import TRAINING_KINDS

BUILT_IN = KindTable(
    (
        *CORE_KINDS,
        *TRAINING_KINDS,
        *LAUNCHER_KINDS,
        *SERVING_KINDS,
        *LLM_SERVING_KINDS,
        *BATCH_KINDS,
        *INTERACTIVE_KINDS,
    )
)
"""The kinds that gpu-tiers knows by itself."""

__all__ = ["BUILT_IN", "KindTable"]
