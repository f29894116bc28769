"""The API server asked without kubectl: what is sent, and what is said of the answer."""

import json
from collections.abc import Callable

import httpx
import pytest

from localcluster.api import Api, ApiError

PODS = {
    "items": [
        {
            "metadata": {"name": ""},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "pods",
                            "singularResource": "pod",
                            "shortNames": ["po"],
                            "scope": "Namespaced",
                            "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
                        }
                    ],
                }
            ],
        }
    ]
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "uid": "u", "managedFields": []}}


def asked(answer: Callable[[httpx.Request], httpx.Response]) -> Api:
    """An API server that knows pods, and answers so to all else."""

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path in ("/api", "/apis"):
            return httpx.Response(200, json=PODS if request.url.path == "/api" else {"items": []})
        return answer(request)

    return Api(httpx.Client(base_url="http://api", transport=httpx.MockTransport(handle)))


def refused(_: httpx.Request) -> httpx.Response:
    return httpx.Response(403, json={"kind": "Status", "reason": "Forbidden", "message": "no"})


def test_a_create_is_that_of_kubectl_and_each_warning_is_said_once() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        said = [("Warning", r'299 - "say \"a, b\""'), ("Warning", '299 - "c"'), ("Warning", '299 - "c"')]
        return httpx.Response(201, json=POD, headers=said)

    stored = {**POD, "metadata": {**POD["metadata"], "resourceVersion": "7"}}
    made = asked(answer).create(stored, "team", dry_run=True, user="ada")
    assert made.stderr == 'Warning: say "a, b"\nWarning: c\n'
    assert made.json() == {**POD, "metadata": {"name": "x", "uid": "u"}}
    (request,) = sent
    assert (request.url.path, request.headers["Impersonate-User"]) == ("/api/v1/namespaces/team/pods", "ada")
    assert dict(request.url.params) == {"fieldManager": "kubectl-create", "fieldValidation": "Strict", "dryRun": "All"}
    assert json.loads(request.content)["metadata"]["resourceVersion"] == "", "else the API server takes it for stored"


def test_a_refusal_is_an_error_unless_it_may_be_one() -> None:
    said = "Error from server (Forbidden): no"
    assert asked(refused).create(POD, check=False).stderr == f"{said}\n"
    for ask in (lambda api: api.create(POD), lambda api: api.get("po/x"), lambda api: api.delete("pod/x")):
        with pytest.raises(ApiError) as error:
            ask(asked(refused))
        assert str(error.value) == said


def test_what_is_deleted_is_waited_for() -> None:
    left = [404, 200, 200]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200 if request.method == "DELETE" else left.pop(), json=POD)

    asked(answer).delete("pod/x", namespace="team", seconds=0)
    assert not left


def test_a_word_that_the_api_server_does_not_know() -> None:
    with pytest.raises(ApiError, match="the API server knows no gadget"):
        asked(refused).get("gadget/x")
