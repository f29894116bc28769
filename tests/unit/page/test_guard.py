"""The page at the door for people with a token, and what the others read."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.unit.page.samples import a_content
from tests.unit.page.test_render import content_of
from webhook.kube.errors import Failed, Unreachable
from webhook.page.readers import AT_ONCE, Readers
from webhook.page.routes import page_app

TOKENS, ACCESS = "/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"

ADA = {"username": "ada", "uid": "u-1", "groups": ["platform", "system:authenticated"], "extra": {"scope": ["page"]}}


class Server:
    """Answers the two questions as an API server does that knows Ada, and Bob who may not read the page."""

    users: Mapping[str, Mapping[str, Any]] = {"ada-token": ADA, "bob-token": {"username": "bob"}}

    def __init__(self, *, audiences: tuple[str, ...] = ()) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.audiences = audiences
        self.trouble: Exception | None = None
        self.slow = asyncio.Event()
        self.slow.set()

    async def create(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((path, body["spec"]))
        await self.slow.wait()
        if self.trouble:
            raise self.trouble
        return {"status": self._token(body["spec"]) if path == TOKENS else {"allowed": body["spec"]["user"] == "ada"}}

    def _token(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        user = self.users.get(spec["token"])
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user, "audiences": self.audiences or None}


class Door:
    """The page behind its guard."""

    def __init__(self, server: Server, *audiences: str, seconds: float = 30) -> None:
        readers = Readers(server, audiences, seconds)  # type: ignore[arg-type]
        self._app = page_app(content_of(a_content()), readers)

    async def get(self, authorization: str | None = None, path: str = "/") -> httpx.Response:
        headers = {"authorization": authorization} if authorization is not None else {}
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="https://gpu-tiers.gpu-tiers.svc:8091") as client:
            return await client.get(path, headers=headers)


@pytest.fixture
def server() -> Server:
    return Server()


async def test_a_user_with_the_right_reads_it_by_any_name_of_the_service(server: Server) -> None:
    answer = await Door(server).get("Bearer ada-token")
    assert answer.status_code == 200
    assert "<h1>gpu-tiers</h1>" in answer.text
    (_, token), (_, access) = server.asked
    assert token == {"token": "ada-token"}
    assert access == {
        "user": "ada",
        "uid": "u-1",
        "groups": ["platform", "system:authenticated"],
        "extra": {"scope": ["page"]},
        "nonResourceAttributes": {"path": "/gpu-tiers/page", "verb": "get"},
    }


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer  ", "Basic YWRhOnB3", "ada-token"])
async def test_without_a_token_one_is_asked_for(server: Server, authorization: str | None) -> None:
    answer = await Door(server).get(authorization)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="gpu-tiers"')
    assert "needs a token of this cluster, in the header `Authorization: Bearer TOKEN`" in answer.text
    assert server.asked == []


async def test_a_wrong_token_reads_so(server: Server) -> None:
    answer = await Door(server, "gpu-tiers").get("Bearer nobodys")
    assert answer.status_code == 401
    assert "does not accept this token: it is wrong, has expired, or is for another audience" in answer.text
    assert "`kubectl create token NAME --audience=gpu-tiers`" in answer.text
    assert "nobodys" not in answer.text


async def test_a_user_without_the_right_reads_which_one(server: Server) -> None:
    answer = await Door(server).get("bearer bob-token")
    assert answer.status_code == 403
    assert 'User "bob" may not read this page' in answer.text
    assert "nonResourceURL /gpu-tiers/page" in answer.text


async def test_no_other_path_is_open(server: Server) -> None:
    assert (await Door(server).get(path="/anything")).status_code == 401
    assert (await Door(server).get("Bearer ada-token", "/anything")).status_code == 404


@pytest.mark.parametrize(
    ("known", "asked", "code"),
    [
        (("gpu-tiers",), ("gpu-tiers",), 200),
        (("b", "gpu-tiers"), ("gpu-tiers", "c"), 200),
        (("https://kubernetes.default.svc",), ("gpu-tiers",), 401),
        ((), ("gpu-tiers",), 401),
        (("https://kubernetes.default.svc",), (), 200),
    ],
)
async def test_a_token_has_to_be_for_an_audience_of_ours(
    known: tuple[str, ...], asked: tuple[str, ...], code: int
) -> None:
    """An authenticator that knows nothing of audiences names none, and its yes is not for us."""
    server = Server(audiences=known)
    assert (await Door(server, *asked).get("Bearer ada-token")).status_code == code
    assert server.asked[0][1].get("audiences", []) == list(asked)


@pytest.mark.parametrize("trouble", [Unreachable("POST: no answer in time"), Failed("POST: HTTP 403", 403)])
async def test_while_nobody_can_say_it_stays_closed_and_opens_again(server: Server, trouble: Exception) -> None:
    door = Door(server)
    server.trouble = trouble
    answer = await door.get("Bearer ada-token")
    assert answer.status_code == 503
    assert "the page stays closed. Try again" in answer.text
    server.trouble = None
    assert (await door.get("Bearer ada-token")).status_code == 200


async def test_an_answer_counts_for_a_short_time(server: Server) -> None:
    door = Door(server)
    for _ in range(3):
        await door.get("Bearer ada-token")
        await door.get("Bearer nobodys")
    assert [path for path, _ in server.asked] == [TOKENS, ACCESS, TOKENS]
    soon = Door(server, seconds=0)
    await soon.get("Bearer ada-token")
    await soon.get("Bearer ada-token")
    assert len(server.asked) == 3 + 4


async def test_a_flood_of_tokens_leaves_the_api_server_alone(server: Server) -> None:
    door = Door(server)
    await door.get("Bearer ada-token")
    server.slow.clear()
    flood = [asyncio.create_task(door.get(f"Bearer wrong-{each}")) for each in range(100)]
    while not any(each.done() for each in flood):  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)
    assert (await door.get("Bearer ada-token")).status_code == 200, "who is known is not asked about"
    server.slow.set()
    codes = [answer.status_code for answer in await asyncio.gather(*flood)]
    assert (codes.count(401), codes.count(503)) == (AT_ONCE, 100 - AT_ONCE)
