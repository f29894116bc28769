"""The operators' programs: which module pins each, and which of its packages is built."""

from localcluster.binaries import Binary

JOBSET = Binary("jobset", "v0.12.0", "jobset", "jobset", "sigs.k8s.io/jobset", 4)
LWS = Binary("lws", "v0.9.0", "lws", "lws", "sigs.k8s.io/lws/cmd", 2)
KUEUE = Binary("kueue", "v0.19.2", "kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", 4)
KUBERAY = Binary("kuberay", "v1.6.2", "kuberay", "kuberay", "github.com/ray-project/kuberay/ray-operator", 2)
TRAINING_OPERATOR = Binary(
    "training-operator",
    "v1.9.3",
    "training-operator",
    "training-operator",
    "github.com/kubeflow/training-operator/cmd/training-operator.v1",
    2,
)
TRAINER = Binary(
    "trainer", "v2.3.0", "trainer", "trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager", 2
)
VOLCANO_CONTROLLERS = Binary(
    "volcano-controllers", "v1.14.1", "volcano", "volcano", "volcano.sh/volcano/cmd/controller-manager", 2
)
VOLCANO_WEBHOOKS = Binary(
    "volcano-webhooks", "v1.14.1", "volcano", "volcano", "volcano.sh/volcano/cmd/webhook-manager", 1
)
KAI_SCHEDULER = Binary("kai-scheduler", "v0.12.0", "kai", "kai", "github.com/NVIDIA/KAI-scheduler/cmd/scheduler", 4)
KAI_POD_GROUPER = Binary("kai-podgrouper", "v0.12.0", "kai", "kai", "github.com/NVIDIA/KAI-scheduler/cmd/podgrouper", 1)
KAI_BINDER = Binary("kai-binder", "v0.12.0", "kai", "kai", "github.com/NVIDIA/KAI-scheduler/cmd/binder", 1)
KNATIVE_WEBHOOK = Binary("knative-webhook", "v0.50.0", "knative", "knative", "knative.dev/serving/cmd/webhook", 3)
KNATIVE = Binary("knative", "v0.50.0", "knative", "knative", ".", 2)
