"""The end of a review: so many of each grade, and which a label would settle."""

from tests.unit.cli.reviewing import WORLD, review
from webhook.sentences.sentence import address

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: team-alpha}}
spec:
  selector: {{matchLabels: {{app: x}}}}
  template:
    metadata: {{labels: {{app: x}}}}
    spec:
      containers:
      - {{name: main, image: {image}, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}
"""
SHOWN = DEPLOYMENT.format(name="llama", image="vllm/vllm-openai:v0.11.0")
HINTED = DEPLOYMENT.format(name="chat-server", image="registry.example.com/product:4")
UNKNOWN = DEPLOYMENT.format(name="main", image="registry.example.com/product:4")
HINT = 'its name ("server") hints at serving'
IF_SO = "if so, label it gpu-tiers.dev/tier: gpu-serving"
LABEL_IT = "label it gpu-tiers.dev/tier: gpu-training, gpu-serving or gpu-batch"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
MEANINGS = f"what each warning means, by its id: {address('docs/warnings.md')}"
REFUSED = SHOWN.replace("metadata: {", "metadata: {labels: {gpu-tiers.dev/tier: gold}, ").replace("llama", "gemma")


def test_a_review_ends_with_what_a_label_would_settle() -> None:
    _, out, _ = review("-f", "-", stdin=f"{SHOWN}---\n{HINTED}---\n{UNKNOWN}---\n{CONFIG_MAP}---\n{REFUSED}")
    said = out.rpartition("\n\n")[2].replace("standard input:", "line ")
    assert said.splitlines() == [
        "5 objects: 3 get a tier, 1 refused, 1 left alone",
        "types of those with a tier: 0 proven, 0 usual, 1 shown, 1 hinted, 1 unknown",
        "refused: Deployment team-alpha/gemma (line 38)",
        "no ceiling and no quota was checked: no TenantQuota was given (--tenants)",
        "2 would profit from a label:",
        f"  Deployment team-alpha/chat-server (line 12): [guess-too-weak] {HINT}; {IF_SO}",
        f"  Deployment team-alpha/main (line 23): [type-unknown] unknown type gets gpu-interactive; {LABEL_IT}",
        MEANINGS,
    ]


def test_one_object_needs_no_summary_and_json_has_one_object_a_line() -> None:
    _, out, _ = review("-f", "-", stdin=HINTED)
    assert "objects:" not in out
    _, out, _ = review("-f", "-", "-o", "json", stdin=f"{HINTED}---\n{SHOWN}")
    assert [line[0] for line in out.splitlines()] == ["{", "{"]


def test_one_object_that_is_not_shown_is_counted() -> None:
    _, out, _ = review("-f", "-", "--only", "refused", *WORLD, stdin=SHOWN)
    assert out.startswith("1 object: 1 gets a tier, 0 refused, 0 left alone\n")


def test_a_kind_of_the_whole_cluster_has_no_namespace() -> None:
    about = "kind: CustomResourceDefinition\nmetadata: {name: tenantquotas.gpu-tiers.dev}\n"
    crd = f"apiVersion: apiextensions.k8s.io/v1\n{about}"
    _, out, _ = review("-f", "-", stdin=crd)
    assert out.startswith("CustomResourceDefinition tenantquotas.gpu-tiers.dev (")


def test_with_tenants_nothing_is_said_of_them() -> None:
    _, out, _ = review("-f", "-", *WORLD, stdin=f"{HINTED}---\n{SHOWN}")
    assert "TenantQuota" not in out


def test_gpus_that_no_quota_sees_are_said_again() -> None:
    shared = UNKNOWN.replace("nvidia.com/gpu: 1", "nvidia.com/gpu.shared: 1")
    _, out, _ = review("-f", "-", stdin=f"{SHOWN}---\n{shared}")
    heading, listed, meanings = out.splitlines()[-3:]
    assert heading == "1 may hold GPUs that are not counted:"
    assert listed.startswith("  Deployment team-alpha/main (standard input:12): [gpu-not-counted] ")
    assert meanings == MEANINGS


def test_the_page_of_warnings_is_named_where_there_is_one() -> None:
    _, out, _ = review("-f", "-", stdin=HINTED)
    assert out.splitlines()[-1] == MEANINGS
    _, out, _ = review("-f", "-", stdin=SHOWN)
    assert MEANINGS not in out
