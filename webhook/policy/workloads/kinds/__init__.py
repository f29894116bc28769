"""The table of workload kinds: what each is, the labels on its pods, where its pod templates lie.

A new operator is an entry in one of the YAML files beside this one and an example, not a class; a company's own is one
in its policy file.
"""

from webhook.objects.data_files import data_file
from webhook.policy.workloads.kinds.rows import rows_of
from webhook.policy.workloads.kinds.table import KindTable

_FILES = ("core", "training", "launchers", "serving", "llm_serving", "batch", "interactive", "wrappers")
"""Labels that several kinds have tell by the order of the rows."""

BUILT_IN = KindTable(()).with_rows(rows_of([entry for file in _FILES for entry in data_file(__name__, f"{file}.yaml")]))
"""The kinds that gpu-tiers knows by itself."""

__all__ = ["BUILT_IN", "KindTable"]
