"""`gpu-tiers audit` of manifests, as a pipeline runs it, and of what a cluster's objects were printed to."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.builders import a_deployment, a_job, a_namespace, a_pod, a_replicaset, a_tenant, a_workload
from tests.builders.built import Built
from tests.unit.cli.reviewing import EXAMPLES, WORLD
from webhook.cli.main import app
from webhook.report.lint import AUDIT_RULES


def audit(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], input=stdin)


def found(*arguments: object) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(audit(*arguments, "--output=json").stdout)
    return answer


def answer(name: str) -> str:
    """Return the expected output of the command."""
    return (Path(__file__).parent / "answers" / name).read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a few workloads; it is where the commands run."""
    names = ("deployment-vllm", "job-training", "pytorchjob-llm-finetune", "pod-batch", "refused/pod-above-ceiling")
    for name in names:
        (tmp_path / f"{Path(name).name}.yaml").write_text((EXAMPLES / f"{name}.yaml").read_text())
    (tmp_path / "kustomization.yaml").write_text("resources: [pod-batch.yaml]\n")
    monkeypatch.chdir(tmp_path)
    return Path()


def test_a_repository(folder: Path) -> None:
    said = audit(folder, *WORLD, "--workloads")
    assert (said.exit_code, said.stderr) == (1, "")
    assert said.stdout == answer("audit.txt")
    assert audit("-f", folder, *WORLD, "--workloads").stdout == said.stdout, "as kubectl has it"


def test_a_report_for_a_wiki(folder: Path) -> None:
    said = audit(folder / "pod-batch.yaml", *WORLD, "-o", "markdown")
    assert said.exit_code == 0
    assert said.stdout == answer("audit-markdown.txt")


def test_a_pipeline_chooses_what_fails_it(folder: Path) -> None:
    pod = (folder / "pod-batch.yaml", *WORLD)
    assert audit(*pod).exit_code == 0
    refused = (folder / "pod-above-ceiling.yaml", *WORLD)
    assert audit(*refused).exit_code == 1
    assert audit(*refused, "--ignore=tier-not-allowed").exit_code == 0


def test_pods_that_a_cluster_printed_are_counted_under_what_made_them(tmp_path: Path) -> None:
    web, job = a_deployment(name="web"), a_job(name="train")
    made = a_replicaset(name="web-1").owned_by(web)
    tune = a_workload("example.com/v1", "Experiment", "tune")
    pods = [stored(f"web-1-{each}", made) for each in range(3)] + [stored(f"tune-{each}", tune) for each in range(2)]
    ended = stored("web-1-old", made)
    ended["status"]["phase"] = "Succeeded"
    listed = {"apiVersion": "v1", "kind": "List", "items": [*pods, ended, web.json(), made.json(), job.json()]}
    (tmp_path / "dump.json").write_text(json.dumps(listed))
    workloads = {f"{each['kind']}/{each['name']}": each for each in found(tmp_path / "dump.json")["workloads"]}
    assert list(workloads) == ["Deployment/web", "Experiment/tune", "Job/train"]
    counts = {name: [(pods["count"], pods["exist"]) for pods in each["pods"]] for name, each in workloads.items()}
    assert counts == {"Deployment/web": [(3, True)], "Experiment/tune": [(2, True)], "Job/train": [(1, False)]}
    assert workloads["Experiment/tune"]["standing"] == "before"


def test_a_workload_whose_maker_is_not_there_stands_for_itself(tmp_path: Path) -> None:
    web, nightly = a_deployment(name="web"), a_workload("batch/v1", "CronJob", "nightly")
    job = a_job(name="nightly-1").owned_by(nightly)
    old = [a_replicaset(name=f"web-{each}", replicas=0).owned_by(web) for each in range(3)]
    new, ran = a_replicaset(name="web-3").owned_by(web), a_replicaset(name="api-1").owned_by(a_deployment(name="api"))
    dump([job, *old, new, stored("api-1-0", ran), ran], tmp_path)
    assert rows(tmp_path) == ["Deployment/api", "Job/nightly-1", "ReplicaSet/web-3"]
    dump([job, *old, new, stored("api-1-0", ran), ran, web], tmp_path)
    assert rows(tmp_path) == ["Deployment/api", "Deployment/web", "Job/nightly-1"], "web came last"
    del web.tree["metadata"]["uid"]
    dump([job, *old, new, web], tmp_path)
    assert rows(tmp_path) == ["Deployment/web", "Job/nightly-1"], "its file has lost the uid"
    (said,) = (each["message"] for each in found(tmp_path)["workloads"] if each["name"] == "nightly-1")
    assert said.startswith("CronJob/nightly is not among the objects given")


def test_the_annotation_of_a_static_pod_hides_nothing_for_anybody_may_write_it(tmp_path: Path) -> None:
    pod = stored("monitor-node-0", a_workload("v1", "Node", "node-0"))
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "91f2"}
    dump([pod], tmp_path)
    assert [each["gpus"] for each in found(tmp_path)["workloads"]] == [1]


def test_a_misspelt_label_of_a_job_or_of_its_template(tmp_path: Path) -> None:
    job = a_job(name="train").having("metadata.labels", {"gpu-tiers.dev/teir": "gpu-batch"})
    template = a_job(name="tune").having("spec.template.metadata.labels", {"gpu-tiers.dev/teir": "gpu-batch"})
    dump([job, template], tmp_path)
    by_kind = {each["where"].partition(" ")[0]: each["what"] for each in found(tmp_path)["findings"]}
    sentence = "gpu-tiers.dev/teir is unknown and ignored; did you mean gpu-tiers.dev/tier?"
    assert by_kind == {"Job/train": sentence, "Job/tune": sentence}


def dump(items: list[Built | dict[str, Any]], folder: Path) -> None:
    """Return the file that `kubectl get -o json` would print."""
    trees = [each.json() if isinstance(each, Built) else each for each in items]
    (folder / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": trees}))


def rows(folder: Path) -> list[str]:
    """The workloads that the audit shows."""
    return [f"{each['kind']}/{each['name']}" for each in found(folder)["workloads"]]


def stored(name: str, owner: Built) -> dict[str, Any]:
    """A pod with a GPU as an API server prints it."""
    pod = a_pod(name).asking().owned_by(owner).having("metadata.uid", f"uid-of-{name}")
    return pod.having("status.phase", "Running").json()


def test_demand_over_quota_is_that_of_all_together(tmp_path: Path) -> None:
    alpha = a_tenant(quotas=[{"gpus": 3}]).json()
    (tmp_path / "tenant.yaml").write_text(yaml.safe_dump(alpha))
    jobs = [a_pod(f"train-{each}").asking(2).json() for each in range(2)]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    (finding,) = found(tmp_path / "jobs.yaml", "--tenants", tmp_path / "tenant.yaml")["findings"]
    assert (finding["id"], finding["where"]) == ("demand-over-quota", "TenantQuota/alpha")
    assert finding["what"] == "the total: its workloads take 4 GPUs; the row has 3"


def test_a_label_of_a_namespace_that_says_nothing_is_found_in_files_as_in_a_cluster(tmp_path: Path) -> None:
    """Beside the tenants, and among the manifests themselves."""
    mistaken = [a_namespace(each).labelled({"gpu-tiers.dev/mode": "Enfroce"}).json() for each in ("alpha", "beta")]
    (tmp_path / "world.yaml").write_text(yaml.safe_dump_all([a_tenant().json(), mistaken[0]]))
    (tmp_path / "app.yaml").write_text(yaml.safe_dump_all([a_job(name="train").json(), mistaken[1]]))
    asked = (tmp_path / "app.yaml", "--tenants", tmp_path / "world.yaml")
    findings = [each for each in found(*asked)["findings"] if each["id"] == "namespace-label"]
    assert [each["where"] for each in findings] == ["Namespace/alpha", "Namespace/beta"]
    assert "Enfroce" in findings[0]["what"]
    assert found(*asked, "--ignore=namespace-label")["findings"] == []


DEMOTING = [{"tier": "gpu-serving", "gpus": 1}, {"tier": "gpu-batch", "gpus": 1}, {"gpus": 16}]


def test_a_pod_without_room_is_demoted_though_the_first_one_had_room(tmp_path: Path) -> None:
    alpha = a_tenant(quotas=DEMOTING, onExceed="Demote").json()
    (tmp_path / "tenant.yaml").write_text(yaml.safe_dump(alpha))
    web = a_deployment(a_pod().asking().labelled({"gpu-tiers.dev/tier": "gpu-serving"}), "web", replicas=2).json()
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(web))
    answer = found(tmp_path / "web.yaml", "--tenants", tmp_path / "tenant.yaml")
    assert answer["findings"] == [], "one pod counts in each row"
    (workload,) = answer["workloads"]
    assert (workload["verdict"], workload["tier"], workload["message"]) == ("Demoted", "gpu-batch", None)


def test_what_holds_no_gpu_is_left_alone() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    said = audit("-", stdin=config)
    assert (said.exit_code, said.stdout.partition("\n")[0]) == (0, "There is no workload with GPUs.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.yaml",), "nowhere.yaml: there is no such file or folder"),
        (("--tenants", "tenants"), "--tenants: needs manifests"),
        (("--ignore", "no-such"), '--ignore: "no-such" is no finding; there are before-webhook, demand-over-quota,'),
        (("--policy", "five-tier", EXAMPLES), "five-tier: there is no such file and no such preset; the presets are"),
        (("--kubeconfig", "nowhere"), "there is no kubeconfig at nowhere"),
    ],
)
def test_bad_input_ends_with_two(arguments: tuple[object, ...], said: str) -> None:
    result = audit(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_the_page_explains_each_finding() -> None:
    page = (Path(__file__).parents[3] / "docs" / "lint.md").read_text(encoding="utf-8")
    assert [each.id for each in AUDIT_RULES if f"\n## {each.id}\n" not in page] == []
