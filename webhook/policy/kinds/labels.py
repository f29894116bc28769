"""Labels that tell a type without a kind: charts and spawners write them on the pods that they make. Data."""

from webhook.policy.facts import WorkloadType

WELL_KNOWN_LABELS: tuple[tuple[str, str | None, WorkloadType, str], ...] = (
    ("component", "singleuser-server", WorkloadType.INTERACTIVE, "https://github.com/jupyterhub/kubespawner"),
    ("hub.jupyter.org/username", None, WorkloadType.INTERACTIVE, "https://github.com/jupyterhub/kubespawner"),
    ("llm-d.ai/inferenceServing", "true", WorkloadType.SERVING, "https://github.com/llm-d/llm-d"),
    ("app.kubernetes.io/name", "coder-workspace", WorkloadType.INTERACTIVE, "https://github.com/coder/coder"),
)
"""Key, value (None: any), type, source."""
