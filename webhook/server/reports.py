"""Takes progress reports of trainings on a port of its own, so that no pod can reach the reviews.

A pod reports to every replica, so that a new leader has all reports and the old one hands nothing over.

A report needs a projected token of its pod. It is verified by the public keys of the API server:
https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery
So the API server gets no requests, however many pods report. A token is good until it expires, even of a deleted pod.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus

import jwt
import msgspec
from jwt import PyJWK
from jwt.exceptions import PyJWTError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from certs.source import Bundle
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.asked_saves import Progress, SaveReports
from webhook.kube.client import Client
from webhook.kube.errors import ApiError
from webhook.objects.view import listed, mapped
from webhook.policy.checkpoint.listen import AUDIENCE
from webhook.policy.values.tier_policy import ReportTarget
from webhook.server.listener import listen
from webhook.server.metrics import Metrics
from webhook.server.run import AppPort
from webhook.server.settings import Settings
from webhook.server.tls import LiveCertificate

log = logging.getLogger(__name__)

DISCOVERY, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
ASK_AGAIN_SECONDS = 30.0
"""The least seconds from one successful read of the keys to the next, which a token with an unknown key causes."""
SKEW_SECONDS = 30
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")


class NotAccepted(Exception):  # noqa: N818 - an answer, not a malfunction
    """A token that is not accepted; the text gives the reason."""


class PodTokens:
    """Verifies ServiceAccount tokens for one audience by the API server's public keys."""

    def __init__(self, client: Client, audience: str) -> None:
        self._client = client
        self._audience = audience
        self._issuer = ""
        self._keys: Mapping[str, PyJWK] = {}
        self._asked: float | None = None
        self._asking = asyncio.Lock()

    async def pod_of(self, token: str) -> str:
        """Return the uid of the pod of a token. Raises NotAccepted, and ApiError if the keys can't be read."""
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=SKEW_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except PyJWTError as error:
            raise NotAccepted(str(error)) from None
        uid = mapped(mapped(claims.get("kubernetes.io")).get("pod")).get("uid")
        if not uid:
            raise NotAccepted("the token is not bound to a pod")
        return str(uid)

    async def _key(self, key_id: str) -> PyJWK:
        async with self._asking:
            stale = self._asked is None or time.monotonic() - self._asked >= ASK_AGAIN_SECONDS
            if key_id not in self._keys and stale:
                issuer = (await self._client.get(DISCOVERY)).get("issuer")
                keys = listed((await self._client.get(KEYS, accept="application/jwk-set+json")).get("keys"))
                self._keys = {str(each.get("kid", "")): PyJWK.from_dict(each) for each in keys}
                self._issuer, self._asked = str(issuer), time.monotonic()
        if key_id not in self._keys:
            raise NotAccepted("no key of this cluster has signed the token")
        return self._keys[key_id]


PATH = "/v1/progress"
MOST_BYTES = 4096
BODY_SECONDS = 2.0


class ReportsPort:
    """The port on which trainings report, if the settings name a port. `saves` has their last saves."""

    def __init__(self, settings: Settings, client: Client, active: ActivePolicy, metrics: Metrics) -> None:
        """Listen on the port, if the settings name one. Raises OSError if it is in use."""
        self.saves = SaveReports()
        self._active = active
        self._url = f"https://{settings.reports_service}.{settings.namespace}.svc:{settings.reports_port}{PATH}"
        self._tokens = PodTokens(client, AUDIENCE)
        self._metrics = metrics
        self._listening = listen(settings.host, settings.reports_port) if settings.reports_port is not None else None
        if self._listening is not None:
            metrics.sample("gpu_tiers_reporting_pods", lambda: [((), float(len(self.saves)))])

    def serving(self, certificate: LiveCertificate) -> Iterator[AppPort]:
        if self._listening is not None:
            app = Starlette(routes=[Route(PATH, self._progress, methods=["POST"])])
            yield AppPort(app, self._listening, certificate.pages)

    def certified(self, bundle: Bundle) -> None:
        """Give the CA of the served certificate to pods that are created from now on, so that they can report.

        Without a CA they don't report. Without a port, do nothing.
        """
        if self._listening is None:
            return
        if not bundle.ca:
            log.warning("trainings can't report: there is no ca.crt with which they could verify this server")
        self._active.tell_reports(ReportTarget(self._url, bundle.ca.decode()) if bundle.ca else None)

    async def _progress(self, request: Request) -> Response:
        """Take a report. The leader answers with JSON (ReportAnswer: the period, a request to save), others with 204.

        A report that is not accepted gets a row of _ANSWERS.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        asked, why = None, ""
        try:
            pod = await self._tokens.pod_of(token.strip() if scheme.lower() == "bearer" else "")
            word: str = self.saves.report(pod, msgspec.json.decode(await _body(request), type=Progress))
            asked = self.saves.answer(pod) if word == "heard" else None
        except NotAccepted as error:
            word, why = "unknown", str(error)
        except ApiError as error:
            log.warning("report not heard: the keys of tokens can't be read", {"error": str(error)})
            word = "failed"
        except (msgspec.DecodeError, TimeoutError) as error:
            word, why = "bad", str(error) or "it came too slowly"
        self._metrics.count("gpu_tiers_reports_total", word)
        if asked is not None:
            return Response(msgspec.json.encode(asked), media_type="application/json")
        status, sentence = _ANSWERS[word]
        return PlainTextResponse(sentence.format(why), status)


_ANSWERS = {
    "heard": (HTTPStatus.NO_CONTENT, ""),
    "too-soon": (HTTPStatus.TOO_MANY_REQUESTS, "this pod has just reported\n"),
    "ahead": (HTTPStatus.BAD_REQUEST, "last_saved_at has not come yet: the node's clock is ahead\n"),
    "no-room": (HTTPStatus.SERVICE_UNAVAILABLE, "too many pods report\n"),
    "bad": (HTTPStatus.BAD_REQUEST, "a report is what stands in the file `progress`: {}\n"),
    "unknown": (HTTPStatus.UNAUTHORIZED, "a report needs the token that its pod has for it: {}\n"),
    "failed": (HTTPStatus.SERVICE_UNAVAILABLE, "the keys of tokens can't be read now\n"),
}


async def _body(request: Request) -> bytes:
    """Read a body. Raises TimeoutError, and DecodeError if it is too long."""
    body = b""
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise msgspec.DecodeError(f"it has more than {MOST_BYTES} bytes")
    return body
