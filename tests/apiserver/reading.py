"""Asks an API server without kubectl, whose process takes longer than the answer: for what is asked again and again."""

import functools
import json
import ssl
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from localcluster import Cluster

Tree = dict[str, Any]

SECONDS = 60
_CORE, _BATCH, _OURS = "/api/v1/namespaces/{}/", "/apis/batch/v1/namespaces/{}/", "/apis/gpu-tiers.dev/v1alpha1/"
PLACES = {
    **{kind: f"{_CORE}{plural}" for plural in ("pods", "events", "resourcequotas") for kind in (plural, plural[:-1])},
    **dict.fromkeys(("job", "jobs"), f"{_BATCH}jobs"),
    **dict.fromkeys(("tenantquota", "tenantquotas"), f"{_OURS}tenantquotas"),
}
"""Where objects lie, by the word that kubectl takes for their kind."""


class Reader:
    """As the administrator, by the token of the cluster's kubeconfig; by `kubectl get --raw` where it has none."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._token = user.get("token")
        self._host = urlsplit(server["server"]).netloc
        self._context = ssl.create_default_context(cafile=server.get("certificate-authority"))

    def __call__(self, path: str, **params: str) -> Tree:
        """One object, or one list. LookupError says what the API server says."""
        asked = f"{path}?{urlencode(params)}"
        if not self._token:
            return dict(self._cluster.kubectl("get", f"--raw={asked}").json())
        return self._asked("GET", asked)

    def apply(self, path: str, tree: Tree) -> None:
        """Have the server apply an object, whoever else has written its fields."""
        if self._token:
            self._asked("PATCH", f"{path}?fieldManager=tests&force=true", json.dumps(tree))
        else:
            self._cluster.apply(json.dumps(tree), "--server-side", "--force-conflicts")

    def delete(self, path: str) -> None:
        """Delete an object, if it is there, and wait for nothing."""
        if self._token:
            self._asked("DELETE", path)
        else:
            self._cluster.kubectl("delete", f"--raw={path}", check=False)

    def _asked(self, method: str, asked: str, body: str | None = None) -> Tree:
        connection = HTTPSConnection(self._host, context=self._context, timeout=SECONDS)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/apply-patch+yaml"}
        try:
            connection.request(method, asked, body, headers)
            answer = connection.getresponse()
            found: Tree = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status not in {200, 201, 202} and (method, answer.status) != ("DELETE", 404):
            raise LookupError(f"{asked}: {found.get('message')}")
        return found

    def object(self, what: str, namespace: str) -> Tree:
        """What `kubectl get` finds by these words."""
        kind, _, name = what.partition("/")
        if kind not in PLACES:
            return dict(self._cluster.kubectl("get", what, f"--namespace={namespace}", "--output=json").json())
        place = PLACES[kind].format(namespace)
        return self(f"{place}/{name}" if name else place)


@functools.cache
def reader(cluster: Cluster) -> Reader:
    """The one of a cluster."""
    return Reader(cluster)
