"""The controllers of a history's workloads, as far as pods are concerned.

They do what the real ones do: the order of deletes, slow start and back-off after a refusal, back-off of Jobs after
failures, names that are used again, surges and restarts.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tests.honest.api import Api
from tests.honest.claims import ClaimController
from tests.honest.ending import Ending
from tests.honest.kueue import Kueue
from tests.honest.life import Life, Observer
from tests.honest.objects import (
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    JOBSETS,
    LEADERWORKERSETS,
    PODS,
    PYTORCHJOBS,
    REPLICASETS,
    RUN,
    STATEFULSETS,
    Tree,
    is_deleting,
    is_terminal,
    uid_of,
)
from tests.honest.pod_maker import PodMaker
from tests.honest.scaling import Scaling


class Controllers:
    """The controllers of the cluster; `step` is a second of its life."""

    def __init__(self, api: Api, life: Life, observer: Observer, claims: ClaimController, kueue: Kueue) -> None:
        self._api = api
        self._claims = claims
        self._kueue = kueue
        self._life = life
        self._pods = PodMaker(api, life, observer)
        self._scaling = Scaling(api, life, observer, self._pods)
        self._ending = Ending(api, life, observer, self._pods)
        self._busy: set[str] = set()
        self._seen: tuple[int, ...] = ()

    async def step(self) -> None:
        """Let a second pass in the cluster; nothing happens where nothing has changed and nothing is due."""
        seen = self._api.versions()
        if seen == self._seen and not self._is_due():
            return
        self._seen = seen
        self._life.kubelets()
        self._life.collect()
        await self._reconcile()
        await self._claims.step()
        await self._kueue.step()
        self._life.schedule()

    def _is_due(self) -> bool:
        now = self._life.second
        if (
            self._busy
            or self._ending.cron
            or self._kueue.is_busy()
            or any(now - 1 <= when for when in self._pods.refused.due.values())
        ):
            return True
        if any(last + 610 >= now for _, last in self._life.failures.values()):
            return True
        pods = self._api.all(PODS)
        return any(is_deleting(each) or (_ends_by_itself(each) and not is_terminal(each)) for each in pods)

    async def _reconcile(self) -> None:
        scaling, ending = self._scaling, self._ending
        kinds: tuple[tuple[str, Callable[[Tree], Awaitable[None]]], ...] = (
            (CRONJOBS, ending.cronjob),
            (DEPLOYMENTS, scaling.deployment),
            (JOBSETS, ending.jobset),
            (PYTORCHJOBS, ending.pytorchjob),
            (LEADERWORKERSETS, scaling.leaderworkerset),
            (REPLICASETS, scaling.replicaset),
            (STATEFULSETS, scaling.statefulset),
            (DAEMONSETS, scaling.daemonset),
            (JOBS, ending.job),
        )
        work = [
            self._sync(sync, path, tree)
            for path, sync in kinds
            for tree in self._api.all(path)
            if not is_deleting(tree) and uid_of(tree) not in self._busy
        ]
        await asyncio.gather(*work)

    async def _sync(self, sync: Callable[[Tree], Awaitable[None]], path: str, tree: Tree) -> None:
        uid = uid_of(tree)
        self._busy.add(uid)
        try:
            now = self._pods.now(path, tree)
            if now is not None:
                await sync(now)
        finally:
            self._busy.discard(uid)


def _ends_by_itself(pod: Tree) -> bool:
    return bool(pod["metadata"].get("annotations", {}).get(RUN, "0") != "0")
