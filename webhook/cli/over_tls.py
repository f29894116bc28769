"""Asks a webhook as an API server does: AdmissionReview over TLS, the CA verified."""

import base64
import ssl
from typing import Any

import aiohttp
import msgspec

from webhook.admission.review import API_VERSION, Request
from webhook.admission.verdict import Verdict
from webhook.policy.assignment.request import Assignment
from webhook.policy.values.tier_policy import TierPolicy

Tree = dict[str, Any]


class OverTls:
    """A webhook's two paths behind one address. `policy` names the tiers that the answers speak of."""

    def __init__(self, session: aiohttp.ClientSession, address: str, trust: ssl.SSLContext, policy: TierPolicy) -> None:
        self._session = session
        self._address = address
        self._trust = trust
        self._policy = policy

    async def judge(self, webhook: str, request: Request) -> Verdict:
        """The verdict that an answer carries. Raises aiohttp's error for any other HTTP status than 200."""
        body = msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": request})
        url = f"{self._address}/{webhook}?timeout=5s"
        headers = {"Content-Type": "application/json"}
        async with self._session.post(url, data=body, ssl=self._trust, headers=headers) as answer:
            answer.raise_for_status()
            return self._verdict((await answer.json())["response"])

    def _verdict(self, response: Tree) -> Verdict:
        patch = msgspec.json.decode(base64.b64decode(response["patch"])) if "patch" in response else []
        return Verdict(
            assignment=self._assignment(response.get("auditAnnotations") or {}),
            patch=tuple(patch),
            warnings=tuple(response.get("warnings") or ()),
            refusal=None if response["allowed"] else response["status"]["message"],
        )

    def _assignment(self, audit: dict[str, str]) -> Assignment | None:
        if "assigned-by" not in audit:
            return None
        step, _, reason = audit["assigned-by"].partition(": ")
        return Assignment(self._policy.tiers.get(audit["tier"]), step, reason)
