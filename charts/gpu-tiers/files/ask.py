"""Sends the installed webhook one review as an API server would, a dry run that changes nothing."""  # noqa: INP001

import http.client
import json
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path

SERVICE, CA = os.environ["SERVICE"], os.environ["CA"]
SECRET = Path(os.environ["PATH_SECRET"]).read_text()
"""What the webhook's paths begin with; it is not printed."""
WEBHOOKS = () if "ONLY_THE_API_SERVER" in os.environ else ("/mutate", "/validate")
"""Where only those with a client certificate may ask, this may not."""
PATIENCE_SECONDS = 30
WEBHOOK_PORT, METRICS_PORT = int(os.environ["WEBHOOK_PORT"]), int(os.environ["METRICS_PORT"])
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


class NotAnsweredError(Exception):
    """Another answer than 200."""


def ask(make: Callable[[], http.client.HTTPConnection], path: str, review: str | None = None) -> str:
    """The text of the answer. It asks again for a while.

    The Service may lead to a pod that stops, its name may not be known yet, and the certificate may be changing: all
    that is an OSError, as a timeout is.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return asked(make(), path, review)
        except (OSError, http.client.HTTPException, NotAnsweredError) as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"{path}: {error}") from None
            time.sleep(0.5)


def asked(connection: http.client.HTTPConnection, path: str, review: str | None) -> str:
    """The text of one answer."""
    if review is None:
        connection.request("GET", path)
    else:
        connection.request("POST", f"/{SECRET}{path}", review, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    print(path, answer.status, text.strip())
    if answer.status != http.HTTPStatus.OK:
        raise NotAnsweredError(f"answered {answer.status}")
    return text


def webhook() -> http.client.HTTPConnection:
    """A connection as the API server makes it."""
    trust = ssl.create_default_context(cafile=CA)
    return http.client.HTTPSConnection(SERVICE, WEBHOOK_PORT, timeout=10, context=trust)


ask(lambda: http.client.HTTPConnection(SERVICE, METRICS_PORT, timeout=10), "/readyz")
for path in WEBHOOKS:
    if not json.loads(ask(webhook, path, json.dumps(REVIEW)))["response"]["allowed"]:
        raise SystemExit(f"{path} refused a pod without GPUs")
