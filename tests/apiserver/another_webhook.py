"""Other people's webhooks: one that patches each pod in a way that the test gives, and one that refuses pods."""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from certs.source import make_files
from localcluster import Cluster

Patch = list[dict[str, Any]]
Selectors = dict[str, dict[str, Any]]


class _Another:
    """Serves on a free port while its `with` block lasts, under a configuration whose name decides its order."""

    kind = ""

    def __init__(
        self, cluster: Cluster, name: str, selectors: Selectors, response: dict[str, Any], folder: Path
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._selectors = selectors
        self._ca = make_files(folder, ["127.0.0.1"]).ca
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(response))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> "_Another":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._cluster.api.apply(self._configuration())
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.kubectl("delete", self.kind.lower(), self._name)
        self._server.shutdown()
        self._server.server_close()

    def _configuration(self) -> dict[str, Any]:
        address = f"https://127.0.0.1:{self._server.server_port}/"
        entry = {
            "name": "another.example.com",
            "clientConfig": {"url": address, "caBundle": base64.b64encode(self._ca).decode()},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            **self._selectors,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": self.kind,
            "metadata": {"name": self._name},
            "webhooks": [entry],
        }


class AnotherWebhook(_Another):
    """Patches the pods of a namespace."""

    kind = "MutatingWebhookConfiguration"

    def __init__(self, cluster: Cluster, name: str, namespace: str, patch: Patch, folder: Path) -> None:
        selectors = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        super().__init__(cluster, name, selectors, {"patchType": "JSONPatch", "patch": encoded}, folder)


class RefusingWebhook(_Another):
    """Refuses the pods that bear a label, after each mutating webhook and beside each validating one."""

    kind = "ValidatingWebhookConfiguration"

    def __init__(self, cluster: Cluster, name: str, label: str, folder: Path) -> None:
        selectors = {"objectSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]}}
        refusal = {"allowed": False, "status": {"code": 403, "message": f"{label} is not allowed here"}}
        super().__init__(cluster, name, selectors, refusal, folder)


def _handler(answer: dict[str, Any]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            if not sent:
                return  # who asked is gone
            review = json.loads(sent)
            response = {"uid": review["request"]["uid"], "allowed": True, **answer}
            body = json.dumps({**{key: review[key] for key in ("apiVersion", "kind")}, "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    return Handler
