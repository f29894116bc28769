"""Labels that tell a type without a kind: charts, spawners and platforms write them on the pods they make. Data."""

from webhook.policy.workloads.workload_types import WorkloadType

_TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

WELL_KNOWN_LABELS: tuple[tuple[str, str | None, WorkloadType, str], ...] = (
    ("component", "singleuser-server", INTERACTIVE, "https://github.com/jupyterhub/kubespawner"),
    ("hub.jupyter.org/username", None, INTERACTIVE, "https://github.com/jupyterhub/kubespawner"),
    ("llm-d.ai/inferenceServing", "true", SERVING, "https://github.com/llm-d/llm-d"),
    ("llm-d.ai/inference-serving", "true", SERVING, "https://github.com/llm-d/llm-d"),
    ("app.kubernetes.io/name", "coder-workspace", INTERACTIVE, "https://github.com/coder/coder"),
    ("determined.ai/task_type", "TRIAL", _TRAINING, "https://github.com/determined-ai/determined"),
    ("determined.ai/task_type", "NOTEBOOK", INTERACTIVE, "https://github.com/determined-ai/determined"),
    ("interactive.dev.okteto.com", None, INTERACTIVE, "https://github.com/okteto/okteto"),
    ("kernel_id", None, INTERACTIVE, "https://github.com/jupyter-server/enterprise_gateway"),
    ("jenkins/label", None, BATCH, "https://github.com/jenkinsci/kubernetes-plugin"),
    ("job.runner.gitlab.com/pod", None, BATCH, "https://docs.gitlab.com/runner/executors/kubernetes/"),
    ("actions-ephemeral-runner", None, BATCH, "https://github.com/actions/actions-runner-controller"),
    ("com.coder.workspace.id", None, INTERACTIVE, "https://github.com/coder/coder"),
    ("com.coder.workspace.name", None, INTERACTIVE, "https://github.com/coder/coder"),
    ("model.aibrix.ai/name", None, SERVING, "https://github.com/vllm-project/aibrix"),
)
"""Key, value (None: any), type, source."""

LAUNCHER_LABELS: tuple[tuple[str, WorkloadType, str], ...] = (
    ("pipeline/runid", BATCH, "https://github.com/kubeflow/pipelines"),
    ("airflow_version", BATCH, "https://airflow.apache.org/docs/apache-airflow-providers-cncf-kubernetes/"),
    ("dag_id", BATCH, "https://airflow.apache.org/docs/apache-airflow-providers-cncf-kubernetes/"),
    ("prefect.io/flow-run-id", BATCH, "https://github.com/PrefectHQ/prefect"),
    ("dagster/run-id", BATCH, "https://github.com/dagster-io/dagster"),
    ("execution-id", BATCH, "https://github.com/flyteorg/flyte"),
    ("skypilot-cluster", INTERACTIVE, "https://github.com/skypilot-org/skypilot"),
    ("skypilot-cluster-name", INTERACTIVE, "https://github.com/skypilot-org/skypilot"),
)
"""Labels of pipelines, runners and launchers without a kind of their own: key, usual use, source."""
