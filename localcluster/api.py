"""Sends kubectl's requests to an API server over open connections, which cost less than a process of kubectl."""

import json
import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from localcluster.kubectl import Result
from localcluster.waiting import wait_until

Tree = dict[str, Any]

SECONDS = 120
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class ApiError(Exception):
    """The API server refused a request; `result` has its answer."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(result.stderr.strip())


class Api:
    """An API server, asked as the user of a kubeconfig. Threads may share it."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._paths: dict[str, str] = {}

    def close(self) -> None:
        self._client.close()

    def get(self, what: str, namespace: str = "", **params: str) -> Tree:
        """Return the list or object for a word such as pods or tenantquota/NAME; ApiError if it does not exist."""
        found = _found(self._client.get(self.path(what, namespace), params=params))
        for each in found.get("items", ()):  # the API server leaves out what the list says for all
            each |= {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return found

    def text(self, path: str) -> str:
        """Return an answer that isn't JSON, such as /metrics; httpx.HTTPStatusError if it is an error."""
        return self._client.get(path).raise_for_status().text

    def has(self, what: str, namespace: str = "") -> bool:
        return self._client.get(self.path(what, namespace)).is_success

    def create(
        self,
        tree: Mapping[str, Any],
        namespace: str = "",
        *,
        dry_run: bool = False,
        user: str = "",
        group: str = "",
        strict: bool = True,
        check: bool = True,
    ) -> Result:
        """Create an object, or each of a List, maybe as another user; ApiError on a refusal, unless `check` is False.

        An unknown field is an error if `strict`; otherwise the API server drops it. After a refusal the
        rest of a List is still created.
        """
        params = {"fieldManager": "kubectl-create", "fieldValidation": "Strict" if strict else "Ignore"}
        params |= {"dryRun": "All"} if dry_run else {}
        trees = tree["items"] if tree["kind"] == "List" else [tree]
        made = []
        for each in trees:
            new = {**each, "metadata": {**each["metadata"], "resourceVersion": ""}}
            answer = self._client.post(
                self._path_of(each, namespace), json=new, params=params, headers=_as(user, group)
            )
            made.append(_result(answer))
        code, said = max(each.code for each in made), "".join(each.stderr for each in made)
        listed = json.dumps({"items": [each.json() for each in made if each.stdout]})
        return _checked(Result(listed if tree["kind"] == "List" else made[0].stdout, said, code), check=check)

    def apply(self, *trees: Mapping[str, Any], namespace: str = "", part: str = "") -> None:
        """Apply objects, or a `part` such as status, on the server, over fields of others; ApiError on a refusal."""
        params = {"fieldManager": "tests", "force": "true"}
        for tree in trees:
            path = "/".join((self._path_of(tree, namespace), tree["metadata"]["name"], *filter(None, (part,))))
            _found(self._patch(path, tree, "apply-patch+yaml", params))

    def patch(
        self,
        what: str,
        change: object,
        namespace: str = "",
        *,
        form: str = "merge",
        part: str = "",
        user: str = "",
        group: str = "",
        dry_run: bool = False,
        check: bool = True,
    ) -> Result:
        """Patch an object, or its part, such as status; ApiError on a refusal, unless `check` is False.

        The form is merge, json or strategic-merge.
        """
        path = self.path(what, namespace) + (f"/{part}" if part else "")
        params = {"fieldManager": "kubectl-patch"} | ({"dryRun": "All"} if dry_run else {})
        answer = self._patch(path, change, f"{form}-patch+json", params, _as(user, group))
        return _checked(_result(answer), check=check)

    def label(self, what: str, labels: Mapping[str, str | None], namespace: str = "", *, check: bool = True) -> Result:
        """Write labels; None removes one."""
        return self.patch(what, {"metadata": {"labels": labels}}, namespace, check=check)

    def annotate(
        self, what: str, notes: Mapping[str, str | None], namespace: str = "", *, check: bool = True
    ) -> Result:
        """Write annotations; None removes one."""
        return self.patch(what, {"metadata": {"annotations": notes}}, namespace, check=check)

    def wait_for(self, condition: str, *whats: str, namespace: str = "", seconds: float = SECONDS) -> None:
        """Wait until the condition of each object is True, `seconds` each; TimeoutError, or ApiError if absent."""

        def is_true(what: str) -> bool:
            conditions = self.get(what, namespace).get("status", {}).get("conditions")
            return any((each["type"], each["status"]) == (condition, "True") for each in conditions or ())

        for what in whats:
            wait_until(lambda what=what: is_true(what), seconds, f"{what}, {condition}")  # type: ignore[misc]

    def token(self, account: str, namespace: str, *audiences: str) -> str:
        """Return a new token of a ServiceAccount; without audiences it is for the API server."""
        path = f"{self.path(f'serviceaccount/{account}', namespace)}/token"
        spec = {"audiences": audiences} if audiences else {}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(_found(self._client.post(path, json=request))["status"]["token"])

    def delete(
        self,
        *whats: str,
        namespace: str = "",
        seconds: int | None = None,
        owned: str = "Background",
        wait: bool = True,
    ) -> None:
        """Delete objects, such as pod/NAME, or all of a kind, such as pods. Absent objects are no error.

        Pods end within `seconds`, or the grace period of their spec. Dependents are deleted too, unless `owned` is
        Orphan. If `wait`, return once each object is gone; TimeoutError after SECONDS.
        """
        options = {"propagationPolicy": owned} | ({} if seconds is None else {"gracePeriodSeconds": seconds})
        for path in [self.path(each, namespace) for each in whats]:
            answer = self._client.request("DELETE", path, json=options)
            if answer.status_code != httpx.codes.NOT_FOUND:
                going = _uids(_found(answer))
                if wait:
                    self._wait_for_end(path, going)

    def path(self, what: str, namespace: str = "") -> str:
        """Return the path of an object or a list, by kubectl's word or Kind.group/version; ApiError if unknown."""
        word, _, name = (what, "", "") if what.partition(".")[0][0].isupper() else what.partition("/")
        if word not in self._paths:
            self._paths = self._discovered()
        if word not in self._paths:
            raise ApiError(Result("", f"the API server knows no {word}", 1))
        path = self._paths[word].format(namespace or "default")
        return f"{path}/{name}" if name else path

    def _path_of(self, tree: Mapping[str, Any], namespace: str) -> str:
        return self.path(f"{tree['kind']}.{tree['apiVersion']}", tree["metadata"].get("namespace") or namespace)

    def _discovered(self) -> dict[str, str]:
        """The path of each kind by all the words for it. Core kinds and preferred versions come first."""
        found: dict[str, str] = {}
        for root in ("/api", "/apis"):
            listed = _found(self._client.get(root, headers={"Accept": DISCOVERY}))
            for group in listed["items"]:
                name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    place = f"{root}/{name}/{version['version']}" if name else f"{root}/{version['version']}"
                    for row in version.get("resources", ()):
                        inside = "/namespaces/{}" if row["scope"] == "Namespaced" else ""
                        plural, kind = row["resource"], row["responseKind"]["kind"]
                        words = (
                            plural,
                            row.get("singularResource", ""),
                            *row.get("shortNames", ()),
                            f"{plural}.{name}",
                        )
                        for word in (*words, f"{kind}.{place.removeprefix(root)[1:]}"):
                            found.setdefault(word, f"{place}{inside}/{plural}")
        return found

    def _wait_for_end(self, path: str, going: set[str]) -> None:
        def have_gone() -> bool:
            answer = self._client.get(path)
            return answer.status_code == httpx.codes.NOT_FOUND or going.isdisjoint(_uids(_found(answer)))

        if going:
            wait_until(have_gone, SECONDS, f"{path}, gone", pause=0.05)

    def _patch(
        self, path: str, change: object, form: str, params: dict[str, str], who: Mapping[str, str] | None = None
    ) -> httpx.Response:
        headers = {"Content-Type": f"application/{form}", **(who or {})}
        return self._client.patch(path, content=json.dumps(change), params=params, headers=headers)


def by_token(kubeconfig: Path, check: Callable[[], None]) -> Api:
    """Return the API server of a kubeconfig whose user has a token; `check` runs before each request."""
    config = yaml.safe_load(kubeconfig.read_text())
    server, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cafile=server["certificate-authority"])
    headers = {"Authorization": f"Bearer {token}"}
    hooks = {"request": [lambda _: check()]}
    client = httpx.Client(
        base_url=server["server"], headers=headers, verify=trust, event_hooks=hooks, timeout=SECONDS, trust_env=False
    )
    return Api(client)


def by_proxy(socket: Path) -> Api:
    """Return the API server behind a `kubectl proxy` that listens on a socket."""
    transport = httpx.HTTPTransport(uds=str(socket))
    return Api(httpx.Client(base_url="http://localhost", transport=transport, timeout=SECONDS))


def _as(user: str, group: str) -> dict[str, str]:
    """Return the headers of a request as another user."""
    return {f"Impersonate-{kind}": name for kind, name in (("User", user), ("Group", group)) if name}


def _checked(result: Result, *, check: bool) -> Result:
    if check and result.code:
        raise ApiError(result)
    return result


def _found(answer: httpx.Response) -> Tree:
    if answer.is_error:
        raise ApiError(_result(answer))
    return dict(answer.json())


def _uids(tree: Tree) -> set[str]:
    """Return the uids to wait for; none for a Status, because the object is gone."""
    return {each["metadata"]["uid"] for each in tree.get("items", [tree]) if each.get("kind") != "Status"}


def _result(answer: httpx.Response) -> Result:
    """Return what kubectl would print, with the whole object."""
    written = dict.fromkeys(_WARNING.findall(", ".join(answer.headers.get_list("Warning"))))
    said = "".join(f"Warning: {_unquoted(each)}\n" for each in written)
    if answer.is_success:
        tree = answer.json()
        tree["metadata"].pop("managedFields", None)
        return Result(json.dumps(tree), said, 0)
    is_status = answer.headers.get("Content-Type", "").startswith("application/json")
    status = answer.json() if is_status else {"reason": answer.reason_phrase, "message": answer.text}
    return Result("", f"{said}Error from server ({status.get('reason')}): {status.get('message')}\n", 1)


def _unquoted(written: str) -> str:
    return re.sub(r"\\(.)", r"\1", written)
