"""Kinds at which a person sits: notebooks and development workspaces. Data."""

from collections.abc import Mapping

from webhook.policy.workloads import pod_counts as pods
from webhook.policy.workloads.kinds.table import KindRow, Templates, present
from webhook.policy.workloads.pod_counts import if_started
from webhook.policy.workloads.workload_types import WorkloadType


def _sits(
    group: str, kind: str, plural: str, source: str, labels: Mapping[str, str | None], *templates: Templates
) -> KindRow:
    """Without templates its GPUs come from an option, a profile or a field of its own."""
    return KindRow(group, kind, plural, source, WorkloadType.INTERACTIVE, labels=labels, templates=templates)


def _virtual_machine(kind: str, plural: str, spec: str) -> KindRow:
    """A machine may be for anything; mostly somebody logs in, and a hook in its pod saves nothing."""
    return KindRow(
        "kubevirt.io",
        kind,
        plural,
        "https://kubevirt.io/user-guide/compute/host-devices/",
        usual=WorkloadType.INTERACTIVE,
        before_usual=("name",),
        gpu_fields=(f"{spec}.domain.devices.gpus",),
        labels=present("vm.kubevirt.io/name"),
    )


INTERACTIVE_KINDS = (
    _virtual_machine("VirtualMachine", "virtualmachines", "spec.template.spec"),
    _virtual_machine("VirtualMachineInstance", "virtualmachineinstances", "spec"),
    KindRow(
        "kubeflow.org",
        "Notebook",
        "notebooks",
        "https://github.com/kubeflow/notebooks/tree/notebooks-v1/components/notebook-controller",
        WorkloadType.INTERACTIVE,
        labels=present("notebook-name"),
        templates=(Templates("", "spec.template", pods.notebook_pods),),
    ),
    KindRow(
        "workspace.devfile.io",
        "DevWorkspace",
        "devworkspaces",
        "https://github.com/devfile/devworkspace-operator/tree/main/deploy/templates/crd/bases",
        WorkloadType.INTERACTIVE,
        gpu_fields=("spec.template.parent",),
        labels=present("controller.devfile.io/devworkspace_id"),
        templates=(
            Templates("spec.template.attributes", "pod-overrides", times=if_started),
            Templates(
                "spec.template.components.*.attributes", "container-overrides", form="container", times=if_started
            ),
        ),
    ),
    _sits(
        "kubeflow.org",
        "Workspace",
        "workspaces",
        "https://github.com/kubeflow/notebooks/tree/notebooks-v2/workspaces/controller",
        present("notebooks.kubeflow.org/workspace-name"),
    ),
    _sits(
        "amalthea.dev",
        "AmaltheaSession",
        "amaltheasessions",
        "https://github.com/SwissDataScienceCenter/amalthea/tree/main/config/crd/bases",
        {"app.kubernetes.io/name": "AmaltheaSession"},
        Templates("spec", "session", pods.unless_hibernated, "container"),
    ),
    _sits(
        "workspace.jupyter.org",
        "Workspace",
        "workspaces",
        "https://github.com/jupyter-infra/jupyter-k8s/tree/main/config/crd/bases",
        {},
        Templates("spec", "resources", form="resources"),
    ),
    _sits("run.ai", "InteractiveWorkload", "interactiveworkloads", "https://github.com/run-ai/docs", {}),
)
