"""Kinds at which a person sits: notebooks and development workspaces. Data."""

from webhook.policy import pod_counts as pods
from webhook.policy.facts import WorkloadType
from webhook.policy.kinds.row import Row, Templates, present

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
)
