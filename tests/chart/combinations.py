"""Values as platform teams write them, one set for each kind of cluster or wish."""

from .helm import Manifest

DIGEST = f"sha256:{'ab' * 32}"
TENANTS = [
    {
        "name": "vision",
        "spec": {
            "namespaceSelector": {"matchLabels": {"example.com/tenant": "vision"}},
            "maxTier": "gpu-training",
            "quotas": [{"gpus": "16"}, {"tier": "gpu-training", "gpus": "6"}],
        },
    },
    {
        "name": "speech",
        "spec": {
            "namespaceSelector": {"matchLabels": {"example.com/tenant": "speech"}},
            "quotas": [{"gpus": 8}],
            "onExceed": "Demote",
            "backstop": "ResourceQuota",
        },
    },
]
FLAVORS = [{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}]
ON_NODES = {"webhook": 19443, "metrics": 19080, "pageTLS": 19091, "handOver": 19445}

COMBINATIONS: dict[str, Manifest] = {
    "defaults": {},
    "enforce-with-tenants": {"mode": "Enforce", "tenants": TENANTS, "backstop": {"enabled": True}},
    "warn-while-adopting": {"mode": "Warn", "adoption": True, "preset": "three-tier"},
    "inference-first": {"preset": "inference-first", "mode": "Enforce"},
    "eks-with-another-network-plugin": {"hostNetwork": True, "ports": ON_NODES},
    "eks-with-roles": {
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/gpu-tiers"}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    },
    "eks-ipv6": {"listenAddress": "::", "service": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}},
    "gke-private": {"ports": {"webhook": 10250}, "priorityClassName": "system-cluster-critical"},
    "gke-with-a-class-of-its-own": {"priorityClassName": "platform", "resourceQuota": {"enabled": False}},
    "aks": {
        "webhook": {"annotations": {"admissions.enforcer/disabled": "true"}},
        "exemptNamespaces": ["kube-system", "gatekeeper-system"],
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
    },
    "openshift": {
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None},
        "exemptNamespaces": ["openshift-monitoring", "nvidia-gpu-operator"],
    },
    "argo-cd": {
        "crds": {"enabled": False},
        "deploymentAnnotations": {"argocd.argoproj.io/sync-wave": "1"},
        "commonLabels": {"app.kubernetes.io/part-of": "platform"},
        "tenants": TENANTS[:1],
    },
    "air-gapped": {
        "image": {"registry": "registry.example.com:5000/mirror", "digest": DIGEST, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "global": {"imageRegistry": "elsewhere.example.com", "imagePullSecrets": [{"name": "umbrella"}]},
    },
    "behind-a-proxy": {
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"}],
        "extraEnvFrom": [{"secretRef": {"name": "proxy", "optional": True}}],
        "extraVolumes": [{"name": "company-ca", "configMap": {"name": "company-ca"}}],
        "extraVolumeMounts": [{"name": "company-ca", "mountPath": "/etc/company-ca", "readOnly": True}],
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
    },
    "cert-manager": {"certificates": {"source": "cert-manager"}, "mode": "Enforce"},
    "cert-manager-with-your-issuer": {
        "certificates": {"source": "cert-manager", "issuerRef": {"name": "internal-ca", "kind": "ClusterIssuer"}}
    },
    "certificates-of-your-own": {"certificates": {"source": "files", "secretName": "mine", "caBundle": "Q0E="}},
    "prometheus-and-grafana": {
        "metrics": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "endpoint": {"honorLabels": True}},
            "prometheusRule": {"enabled": True, "runbookUrl": "https://docs.example.com/alerts"},
            "dashboard": {"enabled": True, "namespace": "default"},
        }
    },
    "outside-the-cluster": {"webhook": {"url": "https://gpu-tiers.example.com:8443"}, "mode": "Enforce"},
    "one-replica-without-page": {"replicas": 1, "page": {"enabled": False}},
    "three-replicas-in-zones": {
        "replicas": 3,
        "podDisruptionBudget": {"minAvailable": 2},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "0%"}},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}]
                }
            }
        },
    },
    "very-large": {
        "startupProbe": {"failureThreshold": 600},
        "readinessProbe": {"timeoutSeconds": 3},
        "resources": {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
        "webhook": {"timeoutSeconds": 10},
        "createTimeoutSeconds": 315,
        "extraArgs": ["--lease-seconds=30"],
    },
    "kueue-flavors-and-placement": {
        "policy": {
            "kueue": {"workloadPriorityClasses": True, "manageJobsWithoutQueueName": True},
            "resourceFlavors": FLAVORS,
            "placement": {"gpu-training": {"strategy": "Pack", "topologyKey": "topology.kubernetes.io/rack"}},
            "templates": "Mutate",
            "tierAccess": "RBAC",
        }
    },
    "least-rights": {
        "serviceAccount": {"create": False, "name": "gpu-tiers-webhook"},
        "rbac": {"create": False},
        "networkPolicy": {
            "webhookFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}],
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        },
        "flowSchema": {"enabled": False},
    },
    "with-objects-of-your-own": {
        "rbac": {"aggregateToView": True},
        "extraObjects": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "{{ .Release.Name }}-notes", "namespace": "{{ .Release.Namespace }}"},
                "data": {"contact": "platform@example.com"},
            },
            "apiVersion: v1\nkind: Secret\nmetadata: {name: extra, namespace: {{ .Release.Namespace }}}\n",
        ],
        "extraContainers": [
            {
                "name": "log-shipper",
                "image": "example.com/log-shipper:1",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}
