"""The operators that are known here. Versions are in binaries.py and localcluster/go."""

from localcluster.operators import binaries, kai, knative
from localcluster.operators.operator import Operator

PROBE = "--health-probe-bind-address=127.0.0.1:$probe"

JOBSET = Operator(
    binary=binaries.JOBSET,
    module="sigs.k8s.io/jobset",
    manifests=("config/default",),
    namespace="jobset-system",
    account="jobset-controller-manager",
    arguments=("--config=$config",),
    configuration="""
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {host: 127.0.0.1, port: $webhook, certDir: $certificates}
health: {healthProbeBindAddress: "127.0.0.1:$probe"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
""",
    serving_certificate="jobset-webhook-server-cert",
)

LWS = Operator(
    binary=binaries.LWS,
    module="sigs.k8s.io/lws",
    manifests=("config/default",),
    namespace="lws-system",
    account="lws-controller-manager",
    arguments=("--config=$config",),
    configuration="""
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
webhook: {host: 127.0.0.1, port: $webhook, certDir: $certificates}
health: {healthProbeBindAddress: "127.0.0.1:$probe"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
""",
    serving_certificate="lws-webhook-server-cert",
)

KUEUE = Operator(
    binary=binaries.KUEUE,
    module="sigs.k8s.io/kueue",
    manifests=("config/default",),
    namespace="kueue-system",
    account="kueue-controller-manager",
    arguments=("--config=$config", "--feature-gates=VisibilityOnDemand=false,PriorityBoost=true"),
    configuration="""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
webhook: {host: 127.0.0.1, port: $webhook, certDir: $certificates}
health: {healthProbeBindAddress: "127.0.0.1:$probe"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
clientConnection: {qps: 200, burst: 400}
integrations:
  frameworks:
  - batch/job
  - jobset.x-k8s.io/jobset
  - kubeflow.org/pytorchjob
  - ray.io/rayjob
  - ray.io/raycluster
  - trainer.kubeflow.org/trainjob
  - pod
  - deployment
  - statefulset
  - leaderworkerset.x-k8s.io/leaderworkerset
""",
    serving_certificate="kueue-webhook-server-cert",
)

TRAINING_OPERATOR = Operator(
    binary=binaries.TRAINING_OPERATOR,
    module="github.com/kubeflow/training-operator",
    manifests=("manifests/overlays/standalone",),
    namespace="kubeflow",
    account="training-operator",
    arguments=(
        PROBE,
        "--metrics-bind-address=0",
        "--webhook-server-port=$webhook",
        "--webhook-service-name=training-operator",
        "--webhook-secret-name=training-operator-webhook-cert",
    ),
    environment={"MY_POD_NAMESPACE": "kubeflow", "TMPDIR": "$folder"},
    serving_certificate="training-operator-webhook-cert",
    mounted_at="k8s-webhook-server/serving-certs",
)

KUBERAY = Operator(
    binary=binaries.KUBERAY,
    module="github.com/ray-project/kuberay/ray-operator",
    manifests=("config/default",),
    namespace="default",
    account="kuberay-operator",
    arguments=(PROBE, "--metrics-addr=0", "--enable-leader-election=false"),
)

TRAINER = Operator(
    binary=binaries.TRAINER,
    module="github.com/kubeflow/trainer/v2",
    manifests=(
        "manifests/overlays/manager/namespace.yaml",
        "manifests/base/crds",
        "manifests/base/rbac",
        "manifests/base/webhook",
    ),
    kustomization="""
namespace: kubeflow-system
secretGenerator:
- name: kubeflow-trainer-webhook-cert
  options: {disableNameSuffixHash: true}
""",
    namespace="kubeflow-system",
    account="kubeflow-trainer-controller-manager",
    arguments=("--config=$config",),
    configuration="""
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
webhook: {host: 127.0.0.1, port: $webhook}
health: {healthProbeBindAddress: "127.0.0.1:$probe"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
""",
    environment={"TMPDIR": "$folder"},
    serving_certificate="kubeflow-trainer-webhook-cert",
    mounted_at="k8s-webhook-server/serving-certs",
)
"""Trainer, without the manifests of JobSet, which is an operator of its own here."""

ASKED_OF_VOLCANO = (
    "/jobs/mutate",
    "/jobs/validate",
    "/podgroups/validate",
    "/queues/mutate",
    "/queues/validate",
    "/hypernodes/validate",
    "/cronjobs/validate",
)
"""The webhooks that Volcano's manifests register; without the option the process serves others."""

VOLCANO_WEBHOOKS = Operator(
    binary=binaries.VOLCANO_WEBHOOKS,
    module="volcano.sh/volcano",
    manifests=("installer/volcano-development.yaml",),
    namespace="volcano-system",
    account="volcano-admission",
    arguments=(
        "--tls-cert-file=$certificates/tls.crt",
        "--tls-private-key-file=$certificates/tls.key",
        "--ca-cert-file=$certificates/ca.crt",
        "--admission-conf=$config",
        f"--enabled-admission={','.join(ASKED_OF_VOLCANO)}",
        "--webhook-namespace=volcano-system",
        "--webhook-service-name=volcano-admission-service",
        "--listen-address=127.0.0.1",
        "--port=$webhook",
        "--logtostderr",
    ),
    certificate_of="volcano-admission-service",
    ready="",
)
"""Volcano's webhooks. They install all of its manifests, so they start before the controllers."""

VOLCANO_CONTROLLERS = Operator(
    binary=binaries.VOLCANO_CONTROLLERS,
    module="volcano.sh/volcano",
    manifests=(),
    namespace="volcano-system",
    account="volcano-controllers",
    arguments=("--leader-elect=false", "--enable-healthz", "--healthz-address=127.0.0.1:$probe", "--logtostderr"),
    ready="/healthz",
)
"""Volcano's controllers, without its scheduler: pods bind by the scheduler that their job names."""

OPERATORS = (
    *(JOBSET, KUEUE, LWS, KUBERAY, TRAINING_OPERATOR, TRAINER, VOLCANO_WEBHOOKS, VOLCANO_CONTROLLERS),
    *(kai.SCHEDULER, kai.POD_GROUPER, kai.BINDER),
    *(knative.WEBHOOK, knative.CONTROLLERS),
)
