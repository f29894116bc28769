"""A training reports how far it is, with the token that its pod has for that; who proves no pod is not heard.

With a real kubelet: tests/node.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from listener import report
from tests.docs.markdown import page
from webhook.policy.checkpoint.listen import AUDIENCE, REPORT_VOLUME, TOKEN_FOLDER

from .installed import Installed, Tree, gpu_pod
from .reporting import Send, sender, token_for

pytestmark = pytest.mark.apiserver

SAVED = {"run": "", "step": 1300, "max_steps": 5000, "last_saved_step": 1240, "seconds_per_step": 0.5}


@pytest.fixture
def pod(hearing: Installed, namespace: str) -> Tree:
    """A training pod that never heard of us, as it is stored."""
    training = gpu_pod("training", tier="gpu-training")
    training["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "listen"}
    answer = hearing.create(training, namespace)
    assert answer.code == 0, answer.stderr
    stored: Tree = json.loads(answer.stdout)
    return stored


@pytest.fixture
def send(pod: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Return what that pod sends."""
    return sender(pod, tmp_path, monkeypatch)


def test_a_training_that_never_heard_of_us_has_a_token_for_its_reports_alone(pod: Tree) -> None:
    (volume,) = [each for each in pod["spec"]["volumes"] if each["name"] == REPORT_VOLUME]
    (source,) = volume["projected"]["sources"]
    assert source["serviceAccountToken"] == {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}
    mounts = {each["name"]: each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts[REPORT_VOLUME] == TOKEN_FOLDER
    assert f"{TOKEN_FOLDER}/token" == report.TOKEN


def test_a_report_is_heard(hearing: Installed, pod: Tree, send: Send) -> None:
    before = hearing.metric("gpu_tiers_reports_total", outcome="heard")
    token = token_for(hearing, pod)
    send(token, SAVED | {"last_saved_at": time.time() - 2})
    assert hearing.metric("gpu_tiers_reports_total", outcome="heard") == before + 1
    assert hearing.metric("gpu_tiers_reporting_pods") >= 1
    with pytest.raises(OSError, match="429 this pod has just reported"):
        send(token, SAVED | {"last_saved_at": time.time()})


def test_the_request_of_the_page_is_heard_from_a_program_that_saves_by_itself(
    hearing: Installed, namespace: str, tmp_path: Path
) -> None:
    training = gpu_pod("by-itself", tier="gpu-training")
    asked = {"gpu-tiers.dev/checkpoint": "file", "gpu-tiers.dev/checkpoint-reports": "true"}
    training["metadata"]["annotations"] = asked
    stored = json.loads(hearing.create(training, namespace).stdout)
    (tmp_path / "token").write_text(token_for(hearing, stored))
    (tmp_path / "progress").write_text(json.dumps({"step": 7, "last_saved_step": 7, "last_saved_at": time.time()}))
    (block,) = page("docs/checkpointing.md").blocks("sh")
    script = block.text
    for there in ("/tmp/gpu-tiers-ca.crt", "/var/run/secrets/gpu-tiers.dev", "/run/gpu-tiers"):  # noqa: S108
        script = script.replace(there, str(tmp_path / "ca.crt" if "tmp" in there else tmp_path))
    script = f"getent() {{ echo 127.0.0.1 STREAM; }}\n{script}"
    variables = {each["name"]: each["value"] for each in stored["spec"]["containers"][0]["env"]}
    before = hearing.metric("gpu_tiers_reports_total", outcome="heard")
    sent = subprocess.run(["sh", "-c", script], env=os.environ | variables, capture_output=True, text=True, check=False)
    assert sent.returncode == 0, sent.stderr
    assert sent.stdout in ('{"report_in":5.0}', ""), "who does not lead yet says nothing of the next report"
    assert hearing.metric("gpu_tiers_reports_total", outcome="heard") == before + 1


def test_what_an_eviction_would_lose_is_exact_once_the_pod_has_reported(
    hearing: Installed, namespace: str, node: str, send: Send, tenant: str
) -> None:
    training = gpu_pod("running", 1, tier="gpu-training", node=node)
    training["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "listen"}
    running = json.loads(hearing.create(training, namespace).stdout)

    def at_risk(exact: str) -> float:
        return hearing.metric("gpu_tiers_at_risk_gpu_seconds", tenant=tenant, tier="gpu-training", exact=exact)

    hearing.eventually(lambda: at_risk("false") >= 1, "the work since its start")
    send(token_for(hearing, running), SAVED | {"last_saved_at": time.time()})
    hearing.eventually(lambda: at_risk("true") >= 1, "the work since its save")
    assert not at_risk("false")


def test_who_proves_no_pod_of_this_cluster_is_not_heard(hearing: Installed, pod: Tree, send: Send) -> None:
    report_of_it = SAVED | {"last_saved_at": time.time()}
    genuine = token_for(hearing, pod)
    claims = jwt.decode(genuine, options={"verify_signature": False})
    kid = jwt.get_unverified_header(genuine)["kid"]
    forged = jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), "ES256", headers={"kid": kid})
    elsewhere = jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), "ES256", headers={"kid": "another"})
    unsigned = jwt.encode(claims, "", "none", headers={"kid": kid})
    by_name = {
        "no pod's": (token_for(hearing, pod, bound=False), "not bound to a pod"),
        "another's": (token_for(hearing, pod, audience="vault"), "Audience"),
        "forged": (forged, ""),
        "of another cluster": (elsewhere, "no key of this cluster has signed the token"),
        "unsigned": (unsigned, ""),
        "none": ("", ""),
        "garbled": (f"{genuine[:-12]}AAAAAAAAAAAA", ""),
    }
    for name, (token, why) in by_name.items():
        with pytest.raises(OSError, match=f"401 a report needs the token that its pod has for it: .*{why}") as raised:
            send(token, report_of_it)
        assert raised, name
    send(genuine, report_of_it)


def test_what_is_no_report_is_not_heard_and_does_no_harm(hearing: Installed, pod: Tree, send: Send) -> None:
    token, soon, before = token_for(hearing, pod), time.time() + 3600, len(hearing.log())
    for said in (b"", b"saved", b"[]", b"{}", b'{"step": -1}', b'{"step": 1e99}', b"{" * 4000, b"x" * 5000):
        with pytest.raises(OSError, match="400 a report is what stands in the file"):
            send(token, said)
    with pytest.raises(OSError, match="400 last_saved_at has not come yet"):
        send(token, SAVED | {"last_saved_at": soon})
    send(token, {"step": 3})
    assert "Traceback" not in hearing.log()[before:]
