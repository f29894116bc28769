"""Manifests that the API server refuses, with what `review` says of them, and the like that it takes."""

from typing import NamedTuple

GPU = ", resources: {limits: {nvidia.com/gpu: 1}}"


class Invalid(NamedTuple):
    """A manifest, what `review` says of it, and words of the API server's refusal."""

    name: str
    manifest: str
    said: str
    refused: str


def pod(more: str = GPU, *, version: str = "v1", spec: str = "") -> str:
    """Return a Pod with `more` in its one container, and `spec` before the containers."""
    head = f"apiVersion: {version}\nkind: Pod\nmetadata: {{name: x, namespace: team-alpha}}\nspec:\n{spec}"
    return head + f"  containers:\n  - {{name: main, image: registry.example.com/x:1, command: [torchrun]{more}}}\n"


def of_template(version: str, kind: str, *, spec: str = "", pods: str = "", labels: str = "{app: x}") -> str:
    """A workload with a pod template of one GPU."""
    return (
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x, namespace: team-alpha}}\nspec:\n{spec}"
        f"  template:\n    metadata: {{labels: {labels}}}\n    spec:\n{pods}"
        f"      containers:\n      - {{name: main, image: registry.example.com/x:1{GPU}}}\n"
    )


SELECTS = "  selector: {matchLabels: {app: x}}\n"
NEVER = "      restartPolicy: Never\n"
ONE, LIMITS = "spec.containers[0]", "resources: {limits: {nvidia.com/gpu: %s}"

NO_SUCH_KIND = "no matches for kind"
INVALID = (
    Invalid("a Pod of apps", pod(version="apps/v1"), 'apiVersion: "apps/v1" has no Pod; write v1', NO_SUCH_KIND),
    Invalid(
        "a Deployment of batch",
        of_template("batch/v1", "Deployment", spec=SELECTS),
        'apiVersion: "batch/v1" has no Deployment; write apps/v1',
        NO_SUCH_KIND,
    ),
    Invalid(
        "a Deployment of extensions",
        of_template("extensions/v1beta1", "Deployment", spec=SELECTS),
        'apiVersion: "extensions/v1beta1" has no Deployment; write apps/v1',
        NO_SUCH_KIND,
    ),
    Invalid(
        "a Job of the core",
        of_template("v1", "Job", pods=NEVER),
        'apiVersion: "v1" has no Job; write batch/v1',
        NO_SUCH_KIND,
    ),
    Invalid(
        "a JobSet of batch",
        "apiVersion: batch/v1\nkind: JobSet\nmetadata: {name: x}\nspec: {}\n",
        'apiVersion: "batch/v1" has no JobSet; write an apiVersion of jobset.x-k8s.io',
        NO_SUCH_KIND,
    ),
    Invalid(
        "GPUs in requests alone",
        pod(", resources: {requests: {nvidia.com/gpu: 2}}"),
        (
            f"{ONE}.resources.limits.nvidia.com/gpu: absent; the API server takes such a request only with an equal "
            'limit: write "2" in limits'
        ),
        "Limit must be set for non overcommitable resources",
    ),
    Invalid(
        "fewer GPUs requested than the limit",
        pod(", resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}"),
        (
            f'{ONE}.resources.requests.nvidia.com/gpu: "1", but the limit is "2"; the API server takes the same number '
            "in both"
        ),
        "must be equal to nvidia.com/gpu limit",
    ),
    Invalid(
        "GPUs by a short name",
        pod(", resources: {limits: {gpu: 1}}"),
        (
            f"{ONE}.resources.limits.gpu: the API server knows no resource gpu; write its full name, such as "
            "nvidia.com/gpu"
        ),
        "must be a standard resource",
    ),
    Invalid(
        "a claim that the pod does not declare",
        pod(", resources: {claims: [{name: gpus}]}"),
        f'{ONE}.resources.claims[0].name: "gpus" is none of spec.resourceClaims: none',
        "must be one of the names in pod.spec.resourceClaims",
    ),
    Invalid(
        "a preemptionPolicy without a class",
        pod(spec="  preemptionPolicy: Never\n"),
        (
            "spec.preemptionPolicy: Never, but no PriorityClass is named; the API server writes this field from the "
            "class: leave it out"
        ),
        "must not be provided in pod spec",
    ),
    Invalid(
        "a priority without a class",
        pod(spec="  priority: 1000\n"),
        (
            "spec.priority: 1000, but no PriorityClass is named; the API server writes this field from the class: "
            "leave it out"
        ),
        "must not be provided in pod spec",
    ),
    Invalid(
        "a variable that is a number",
        pod(f"{GPU}, env: [{{name: NPROC, value: 8}}]"),
        f'{ONE}.env[0].value: 8 is not text; write it in quotes: "8"',
        "cannot unmarshal number into Go struct field EnvVar",
    ),
    Invalid(
        "a Job that says nothing of restarts",
        of_template("batch/v1", "Job"),
        "spec.template.spec.restartPolicy: absent, which means Always; a Job takes Never or OnFailure",
        "spec.template.spec.restartPolicy",
    ),
    Invalid(
        "a Job that restarts always",
        of_template("batch/v1", "Job", pods="      restartPolicy: Always\n"),
        "spec.template.spec.restartPolicy: Always; a Job takes Never or OnFailure",
        "spec.template.spec.restartPolicy",
    ),
    Invalid(
        "a podFailurePolicy beside restarts",
        of_template(
            "batch/v1",
            "Job",
            spec="  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}\n",
            pods="      restartPolicy: OnFailure\n",
        ),
        "spec.template.spec.restartPolicy: OnFailure; a Job with a podFailurePolicy takes only Never",
        'only "Never" is supported when podFailurePolicy is specified',
    ),
    Invalid(
        "a Deployment that ends",
        of_template("apps/v1", "Deployment", spec=SELECTS, pods=NEVER),
        "spec.template.spec.restartPolicy: Never; a Deployment takes only Always: leave the field out",
        'supported values: "Always"',
    ),
    Invalid(
        "a Deployment that selects nothing",
        of_template("apps/v1", "Deployment"),
        "spec.selector: absent; a Deployment selects its pods by labels of its template: write them as matchLabels",
        "spec.selector: Required value",
    ),
    Invalid(
        "a StatefulSet that selects other pods",
        of_template("apps/v1", "StatefulSet", spec=SELECTS, labels="{app: other}"),
        (
            "spec.selector.matchLabels.app: x, but the template's label app differs or is absent; the two have to be "
            "the same"
        ),
        "`selector` does not match template `labels`",
    ),
)

VALID = (
    pod(),
    pod(spec="  priority: 0\n  preemptionPolicy: PreemptLowerPriority\n"),
    pod(
        ", resources: {requests: {cpu: 1, nvidia.com/gpu: 1, hugepages-2Mi: 2Mi}, limits: {nvidia.com/gpu: 1, cpu: 2, "
        "hugepages-2Mi: 2Mi}}"
    ),
    of_template("batch/v1", "Job", pods=NEVER),
    of_template("batch/v1", "Job", pods="      restartPolicy: OnFailure\n"),
    of_template("apps/v1", "Deployment", spec=SELECTS, pods="      restartPolicy: Always\n"),
    of_template("apps/v1", "DaemonSet", spec="  selector: {matchExpressions: [{key: app, operator: Exists}]}\n"),
)
"""Manifests that the API server takes."""

PATCH = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec: {template: {spec: {containers: [{name: main, resources: {requests: {nvidia.com/gpu: 1}}}]}}}
"""
"""A patch for kustomize: the rest stands in its base."""
ANOTHERS = "apiVersion: inference.example.com/v1\nkind: Pod\nmetadata: {name: x}\nspec: {}\n"
"""An operator's kind that is called as one of Kubernetes' own."""
