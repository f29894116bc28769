"""Kinds at which a person sits: notebooks and development workspaces. Data."""

from webhook.policy import pod_counts as pods
from webhook.policy.kinds.row import Row, Templates, present
from webhook.policy.words import WorkloadType


def _notebook(group: str, source: str) -> Row:
    templates = (Templates("spec", "template"),)
    return Row(group, "Notebook", "notebooks", source, WorkloadType.INTERACTIVE, templates=templates)


def _unseen(group: str, kind: str, plural: str, source: str) -> Row:
    """A kind whose GPUs come from an option, a profile or a field of its own."""
    return Row(group, kind, plural, source, WorkloadType.INTERACTIVE)


INTERACTIVE_KINDS = (
    Row(
        "kubeflow.org",
        "Notebook",
        "notebooks",
        "https://github.com/kubeflow/kubeflow/tree/master/components/notebook-controller",
        WorkloadType.INTERACTIVE,
        labels=present("notebook-name"),
        templates=(Templates("", "spec.template", pods.notebook_pods),),
    ),
    Row(
        "workspace.devfile.io",
        "DevWorkspace",
        "devworkspaces",
        "https://github.com/devfile/devworkspace-operator",
        WorkloadType.INTERACTIVE,
        labels=present("controller.devfile.io/devworkspace_id"),
    ),
    _notebook("ml.oneblock.ai", "https://github.com/oneblock-ai/oneblock"),
    _notebook("tensorstack.dev", "https://t9k.github.io/user-manuals/latest/api-reference/notebook.html"),
    _unseen("kubeflow.org", "Workspace", "workspaces", "https://github.com/kubeflow/notebooks"),
    _unseen("substratus.ai", "Notebook", "notebooks", "https://github.com/substratusai/substratus"),
    _unseen(
        "amalthea.dev", "AmaltheaSession", "amaltheasessions", "https://github.com/SwissDataScienceCenter/amalthea"
    ),
    _unseen("amalthea.dev", "JupyterServer", "jupyterservers", "https://github.com/SwissDataScienceCenter/amalthea"),
    _unseen("run.ai", "InteractiveWorkload", "interactiveworkloads", "https://run-ai-docs.nvidia.com/"),
)
