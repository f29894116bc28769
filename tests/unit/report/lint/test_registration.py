"""The registration of gpu-tiers with the API server, and the other webhooks there."""

from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Any

import msgspec

from tests.builders import a_policy, a_tenant
from tests.unit.report.lint.asking import NOW, a_cluster, a_listed_pod, active, found
from webhook.cluster.webhook_configurations import KINDS, AdmissionPolicy, WebhookConfiguration, admission_policies
from webhook.kube.client import Page
from webhook.objects.view import view
from webhook.policy.values.facts import Namespace
from webhook.report.lint.snapshot import CertificateSeen, ClusterSnapshot

PODS = [{"apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"], "operations": ["CREATE"]}]
MUTATING, VALIDATING = KINDS
DENY = {"validationActions": ["Deny"]}


def configured(kind: str, entry: str, name: str = "zz-gpu-tiers", **fields: Any) -> WebhookConfiguration:
    """A configuration of one entry, as the chart renders it."""
    service = {"service": {"name": "gpu-tiers", "namespace": "gpu-tiers", "path": "/x/mutate"}, "caBundle": "Q0E="}
    exempt = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    default = {"clientConfig": service, "rules": PODS, "namespaceSelector": {"matchExpressions": [exempt]}}
    tree = {"kind": kind, "metadata": {"name": name}, "webhooks": [{"name": entry, **default, **fields}]}
    return view(tree, WebhookConfiguration)


def mutating(**fields: Any) -> WebhookConfiguration:
    return configured(MUTATING, "pods.mutate.gpu-tiers.dev", **{"failurePolicy": "Ignore", **fields})


def validating(**fields: Any) -> WebhookConfiguration:
    return configured(VALIDATING, "pods.validate.gpu-tiers.dev", **{"failurePolicy": "Fail", **fields})


def guards(*names: str, actions: Iterable[str] = ("Deny",)) -> tuple[AdmissionPolicy, ...]:
    """Admission policies of the release gpu-tiers."""
    return tuple(AdmissionPolicy(name=f"gpu-tiers-{each}", actions=frozenset(actions)) for each in names)


class Deleted:
    """An API server with the bindings of a release, and its policies but for those that somebody deleted."""

    def __init__(self, *deleted: str) -> None:
        self._deleted = deleted

    async def list_pages(self, place: str, _params: object) -> AsyncIterator[Page]:
        bindings, names = place.endswith("bindings"), ("hold", "ceilings", "claims-in-use", "own-account")
        trees = [
            {"metadata": {"name": f"gpu-tiers-{each}"}, "spec": {"policyName": f"gpu-tiers-{each}"} | DENY}
            for each in names
            if bindings or each not in self._deleted
        ]
        yield Page(items=[msgspec.Raw(msgspec.json.encode(each)) for each in trees])


def registered(*configurations: WebhookConfiguration, **parts: Any) -> ClusterSnapshot:
    return a_cluster(configurations=configurations, **parts)


def test_a_good_installation_is_silent() -> None:
    cluster = registered(mutating(), validating())
    for rule in ("webhook-missing", "address-incomplete", "failure-policy-differs", "later-webhook", "exempt-by-label"):
        assert found(rule, cluster) == []


def test_one_of_the_two_configurations_is_missing() -> None:
    foreign = configured(VALIDATING, "validate.kyverno.svc", "kyverno-resource-validating-webhook-cfg")
    assert found("webhook-missing", registered(mutating(), foreign)) == [
        "ValidatingWebhookConfiguration: gpu-tiers has none: nothing is refused, and no quota holds"
    ]
    (refuses,) = found("webhook-missing", registered(validating(), foreign))
    assert refuses.startswith("MutatingWebhookConfiguration: gpu-tiers has none: no pod gets a tier, ")
    assert refuses.endswith("and in Enforce GPU pods are refused")


def test_without_both_nothing_is_refused() -> None:
    assert found("webhook-missing", registered()) == [
        "MutatingWebhookConfiguration: gpu-tiers has none: no pod gets a tier",
        "ValidatingWebhookConfiguration: gpu-tiers has none: nothing is refused, and no quota holds",
    ]


def test_the_policy_that_keeps_gates_shut_is_missing_or_denies_no_more() -> None:
    own = guards("own-account", "ceilings", "claims-in-use")

    def with_guard(*actions: str) -> ClusterSnapshot:
        return registered(validating(), admission_policies=(*own, *guards("hold", actions=actions)))

    assert found("guard-missing", with_guard("Deny")) == []
    assert found("guard-missing", registered(validating(), admission_policies=own)) == [
        "ValidatingAdmissionPolicy: gpu-tiers has none whose name ends with -hold"
    ]
    assert found("guard-missing", with_guard()) == [
        "ValidatingAdmissionPolicy/gpu-tiers-hold: no binding names it, so the API server does not ask it"
    ]
    assert found("guard-missing", with_guard("Audit")) == [
        "ValidatingAdmissionPolicy/gpu-tiers-hold: its binding says Audit, not Deny"
    ]
    assert found("guard-missing", registered()) == [], "where nothing is installed webhook-missing says so"


async def test_a_policy_that_somebody_deleted_is_missed_by_its_binding() -> None:
    """`kubectl delete validatingadmissionpolicy gpu-tiers-ceilings`: a system class passes while gpu-tiers is down."""
    left = await admission_policies(Deleted("ceilings", "own-account"))  # type: ignore[arg-type]
    lost = [f"ValidatingAdmissionPolicy/gpu-tiers-{name}: does not exist" for name in ("ceilings", "own-account")]
    assert found("guard-missing", registered(validating(), admission_policies=left)) == [
        f"{each}, although a binding names it" for each in lost
    ]


def test_a_ceiling_without_policy_and_binding_is_missed_too() -> None:
    left = guards("hold", "claims-in-use", "own-account")
    assert found("guard-missing", registered(validating(), admission_policies=left)) == [
        "ValidatingAdmissionPolicy: gpu-tiers has none whose name ends with -ceilings"
    ]


def test_an_installation_whose_crd_was_deleted_has_no_quota() -> None:
    deleted = registered(validating(), has_crd=False)
    assert found("crd-missing", deleted) == [
        "CustomResourceDefinition/tenantquotas.gpu-tiers.dev: does not exist, so no quota holds"
    ]
    assert found("crd-missing", registered(validating())) == [], "its TenantQuotas may all be deleted on purpose"


def test_a_configuration_into_which_no_replica_has_written() -> None:
    bare = {"service": {"name": "gpu-tiers", "namespace": "gpu-tiers"}}
    assert found("address-incomplete", registered(mutating(clientConfig=bare), validating())) == [
        "MutatingWebhookConfiguration/zz-gpu-tiers: 1 of 1 webhook without caBundle: pods.mutate.gpu-tiers.dev",
        "MutatingWebhookConfiguration/zz-gpu-tiers: 1 of 1 webhook without path: pods.mutate.gpu-tiers.dev",
    ]
    outside = {"url": "https://gpu-tiers.example.com/mutate"}
    assert found("address-incomplete", registered(mutating(clientConfig=outside), validating())) == []


def test_a_failure_policy_against_the_mode() -> None:
    open_ = registered(mutating(), validating(failurePolicy="Ignore"))
    assert found("failure-policy-differs", open_) == [
        (
            "ValidatingWebhookConfiguration/zz-gpu-tiers: pods.validate.gpu-tiers.dev has failurePolicy Ignore; mode "
            "Enforce needs Fail"
        )
    ]
    audit = a_cluster(a_policy(mode="Audit"), configurations=(mutating(), validating()))
    assert found("failure-policy-differs", audit) == [
        (
            "ValidatingWebhookConfiguration/zz-gpu-tiers: pods.validate.gpu-tiers.dev has failurePolicy Fail; mode "
            "Audit needs Ignore"
        )
    ]


def test_another_webhook_that_is_asked_about_pods_after_ours() -> None:
    later = configured(MUTATING, "sidecar.example.com", "zzz-sidecars")
    earlier = configured(MUTATING, "istio.example.com", "istio-sidecar-injector")
    jobs = [{"apiGroups": ["batch"], "resources": ["jobs"], "operations": ["*"]}]
    others = (later, earlier, configured(MUTATING, "jobs.example.com", "zzz-jobs", rules=jobs))
    assert found("later-webhook", registered(mutating(), validating(), *others)) == [
        (
            "MutatingWebhookConfiguration/zzz-sidecars: is called after zz-gpu-tiers, and may change pods: "
            "sidecar.example.com"
        )
    ]


def test_a_label_by_which_a_namespace_or_a_pod_exempts_itself() -> None:
    by_label = {"matchLabels": {"gpu-tiers": "on"}}
    assert found("exempt-by-label", registered(mutating(namespaceSelector=by_label), validating())) == [
        "MutatingWebhookConfiguration/zz-gpu-tiers: leaves out namespaces or objects by the label gpu-tiers"
    ]
    assert found("exempt-by-label", registered(mutating(), validating(objectSelector=by_label))) != []


def test_gpus_in_an_exempt_namespace() -> None:
    spaces = tuple(Namespace(n, {"kubernetes.io/metadata.name": n}) for n in ("kube-system", "team-alpha"))
    a_pod = a_listed_pod("dcgm")
    pods = (a_pod, a_listed_pod("b", namespace="kube-system"))
    cluster = registered(mutating(), validating(), namespaces=spaces, pods=pods)
    assert found("gpus-in-exempt-namespace", cluster) == ["Namespace/kube-system: is exempt, and has 1 pod with GPUs"]


def test_gpu_pods_that_no_tier_was_given() -> None:
    old = a_listed_pod("old", job="llm", class_name="", tier_label="gpu-batch")
    pods = (a_listed_pod(), old, a_listed_pod("dcgm", namespace="kube-system", class_name=""))
    (without,) = found("pods-without-tier", registered(validating(), pods=pods))
    assert without == (
        "Namespace/team-alpha: 1 pod with GPUs and no tier's class, 1 of them with the label gpu-tiers.dev/tier: "
        "Job/llm in team-alpha"
    )
    assert found("pods-without-tier", a_cluster(a_policy(mode="Audit"), pods=pods)) == []
    home = Namespace("team-alpha", {"gpu-tiers.dev/mode": "enforce"})
    audited = a_cluster(a_policy(mode="Audit"), pods=pods, namespaces=(home,))
    assert found("pods-without-tier", audited) == [without], "its namespace is stricter"


def test_a_misspelt_label_is_reported_with_those_that_bear_it() -> None:
    train = [a_listed_pod(f"train-{each}", job="train", labels={"gpu-tiers.dev/teir": "x"}) for each in range(2)]
    web = a_listed_pod("web", labels={"gpu-tiers.dev/tier": "gpu-batch", "app": "web"})
    bearers = "2 pods with GPUs: Job/train in team-alpha"
    assert found("unknown-label", a_cluster(pods=(*train, web))) == [
        f"label gpu-tiers.dev/teir: means nothing, and is on {bearers}; did you mean gpu-tiers.dev/tier?"
    ]


def test_a_label_of_a_namespace_that_says_nothing() -> None:
    alpha = a_tenant("alpha", namespaceSelector={"matchLabels": {"gpu-tiers.dev/tenant": "alpha"}}).view()
    labels = {"gpu-tiers.dev/tenant": "alpha", "gpu-tiers.dev/mode": "Enfroce"}
    spaces = (Namespace("team-alpha", labels), Namespace("quiet", {"gpu-tiers.dev/mode": "warn"}))
    assert found("namespace-label", a_cluster(namespaces=spaces, tenants=active(alpha))) == [
        (
            'Namespace/team-alpha: label gpu-tiers.dev/mode: "Enfroce" is no mode, so the mode of the installation '
            "applies; did you mean Enforce?"
        )
    ]


def test_certificates_that_end() -> None:
    ends = {"old": timedelta(days=-1), "soon": timedelta(days=6, hours=1), "good": timedelta(days=60)}
    served = tuple(CertificateSeen(f"Secret/{name}", NOW + left) for name, left in ends.items())
    assert found("certificate-expired", a_cluster(certificates=served)) == ["Secret/old: expired on 2026-11-21"]
    assert found("certificate-expires", a_cluster(certificates=served)) == [
        "Secret/soon: expires on 2026-11-28, in 6 days"
    ]


def test_a_ca_that_ends_while_no_other_is_trusted() -> None:
    old, new = (CertificateSeen(VALIDATING, NOW + timedelta(days=left), ca=True) for left in (3, 3000))
    assert found("ca-expires", a_cluster(certificates=(old,))) == [
        f"{VALIDATING}: the CA in caBundle expires on 2026-11-25, in 3 days"
    ]
    assert found("ca-expires", a_cluster(certificates=(old, new))) == []
    assert found("certificate-expires", a_cluster(certificates=(old,))) == []
