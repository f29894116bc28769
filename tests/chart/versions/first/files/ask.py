"""Asks the installed webhook one question as an API server would. Changes nothing: the question is a dry run."""  # noqa: INP001

import http.client
import json
import os
import ssl

SERVICE = os.environ["SERVICE"]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "helm-test", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "example.com/none"}]},
}
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "helm-test",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "dryRun": True,
        "userInfo": {"username": "helm-test"},
        "object": POD,
    },
}


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: str | None = None) -> str:
    """The text of the answer; anything but 200 ends the test."""
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    print(path, answer.status, text.strip())
    if answer.status != http.HTTPStatus.OK:
        raise SystemExit(f"{path} answered {answer.status}")
    return text


ask(http.client.HTTPConnection(SERVICE, 8080, timeout=10), "GET", "/readyz")
for path in ("/mutate", "/validate"):
    trust = ssl.create_default_context(cafile="/ca/ca.crt")
    webhook = http.client.HTTPSConnection(SERVICE, timeout=10, context=trust)
    if not json.loads(ask(webhook, "POST", path, json.dumps(REVIEW)))["response"]["allowed"]:
        raise SystemExit(f"{path} refused a pod without GPUs")
