"""The world of one history: sets the cluster up, does what people do, and waits until all is quiet."""

import asyncio
import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.honest.actions import made, pods_of_group, resized, rolled_out, suspended
from tests.honest.api import Api
from tests.honest.claims import ClaimController, claim_applied
from tests.honest.clocks import EPOCH, START
from tests.honest.controllers import Controllers
from tests.honest.faults import Faults
from tests.honest.kueue import Kueue
from tests.honest.life import Life
from tests.honest.objects import (
    CLASSES,
    DEVICE_CLASS,
    DEVICE_CLASSES,
    FLAVOR_LABEL,
    KINDS,
    NODES,
    PODS,
    TENANT_LABEL,
    Key,
    Tree,
    controller_of,
    gpus_of,
    is_deleting,
    is_made_by,
    is_terminal,
    key_of,
    pod_template,
    uid_of,
    with_defaults,
)
from tests.honest.oracle import Oracle
from tests.honest.replica import Replica, policy_text, started
from tests.honest.report import Report
from tests.honest.requests import ApiServer
from tests.ledger.simulated_api import NAMESPACES, TENANT_QUOTAS
from tests.ledger.virtual_time import loop, pass_time
from webhook.config.load import parse
from webhook.kube.client import RFC_3339
from webhook.policy.values.tiers import classes_of

History = dict[str, Any]
Action = dict[str, Any]
QUIET_SECONDS = 10.0
"""Nothing has changed for so long before the commands are asked."""


class Simulation:
    """The cluster, the replicas and the oracle of one history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._flavors = tuple(history["flavors"])
        rng = random.Random(history["seed"])
        random.seed(history["seed"])  # latency, lag and back-off of clients
        self._api = Api(with_claims=any(each.get("claim") for each in history["actions"]))
        self._replicas: list[Replica] = []
        self._server = ApiServer(self._api, self._replicas, self._flavors, rng)
        self._oracle = Oracle(self._api, self._server, self._flavors)
        self._life = Life(self._api, self._oracle)
        kueue = Kueue(self._api, self._life, self._oracle.admit_for_kueue)
        claims = ClaimController(self._api, self._server)
        self._controllers = Controllers(self._api, self._life, self._oracle, claims, kueue)
        self._faults = Faults(self._replicas, self._server, self._oracle, self._pass, self._start_replica)
        self._policies = 0
        self._seen: tuple[int, ...] = ()
        self._changed_at = START
        self._applied: dict[str, tuple[str, Key]] = {}
        """Kind and key of what people have applied, by its name."""

    @property
    def report(self) -> Report:
        return self._oracle.report

    async def run(self) -> None:
        await self._begin()
        for action in self._history["actions"]:
            await self._pass(action.get("t", 0))
            await self._ask_commands()
            await self._do(action)
        for number in range(len(self._history["nodes"])):
            self._life.node_returns(f"node-{number}")
        for kind, key in self._applied.values():
            if kind == "CronJob":
                self._life.delete(kind, key)
        await self._until_quiet()
        self._oracle.judge_quiet(self._a_replica().ledger, "after all")
        await self._ask_commands()
        await self._drain()

    async def end(self) -> None:
        for each in self._replicas:
            if each.alive:
                await each.stop()

    # --- before it begins

    async def _begin(self) -> None:
        history, api = self._history, self._api
        for tier in parse(policy_text()).tiers:
            for each in classes_of(tier):
                labels = {"app.kubernetes.io/name": "gpu-tiers"}
                tree = {"value": each.value, "preemptionPolicy": each.preemption_policy}
                api.make(CLASSES, {"kind": "PriorityClass", "metadata": {"name": each.name, "labels": labels}, **tree})
        selector = {"cel": {"expression": f"device.driver == '{DEVICE_CLASS}'"}}
        api.make(DEVICE_CLASSES, {"metadata": {"name": DEVICE_CLASS}, "spec": {"selectors": [selector]}})
        for number, (gpus, flavor) in enumerate(history["nodes"]):
            labels = {FLAVOR_LABEL: flavor} if flavor else {}
            api.make(NODES, {"kind": "Node", "metadata": {"name": f"node-{number}", "labels": labels}})
            api.change(NODES, ("", f"node-{number}"), status={"gpus": gpus})
        for tenant in history["tenants"]:
            self._make_tenant(tenant["name"], _spec_of(tenant))
        for name, tenant in history["namespaces"].items():
            labels = {TENANT_LABEL: tenant}
            api.make(NAMESPACES, {"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        for _ in range(2):
            await self._start_replica()
        self._replicas[0].lead(first=True)
        await pass_time(2)

    def _make_tenant(self, name: str, spec: Tree) -> None:
        tree = {"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota", "metadata": {"name": name}, "spec": spec}
        self._api.make(TENANT_QUOTAS, tree)

    async def _start_replica(self) -> None:
        name, latency, lag = f"replica-{len(self._replicas)}", self._history["latency"], self._history["lag"]
        await started(self._api, name, self._policy(), self._replicas, latency, lag)

    def _policy(self) -> str:
        return policy_text(self._flavors, checkpoint={"marginSeconds": 10 + self._policies})

    # --- time

    async def _pass(self, seconds: float) -> None:
        if 0 < seconds < 1:
            await pass_time(seconds)
            return
        end = loop().time() + seconds
        while loop().time() < end - 1e-6:
            await self._pass_second()

    async def _pass_second(self) -> None:
        target = int(loop().time() - START) + 1
        self._life.second = target - 1
        try:
            await asyncio.wait_for(self._controllers.step(), 60)
        except TimeoutError:
            self.report.fail("a create takes a minute", "")
        left = START + target - loop().time()
        if left > 0:
            await pass_time(left)
        for each in self._replicas:
            if each.alive and each.problem is not None:
                self.report.fail("the leader ended", repr(each.problem)[:200])
        seen = self._api.versions()
        if seen != self._seen:
            self._seen, self._changed_at = seen, loop().time()
        self._oracle.tick()

    async def _ask_commands(self) -> None:
        """Ask the commands of people, where nothing has changed for a while."""
        is_quiet = self._api.versions() == self._seen and loop().time() > self._changed_at + QUIET_SECONDS
        if is_quiet and self._oracle.calm.is_settled():
            await self._oracle.ask_commands(self._a_replica().policy)

    def _a_replica(self) -> Replica:
        return next(each for each in self._replicas if each.alive)

    async def _until_quiet(self) -> None:
        """Wait until no pod has changed for two minutes, for ten minutes at most."""
        await self._pass(160)
        quiet = waited = 0
        while quiet < 12 and waited < 42:
            before = self._api.history(PODS).version
            await self._pass(10)
            quiet = quiet + 1 if before == self._api.history(PODS).version else 0
            waited += 1

    async def _drain(self) -> None:
        """Delete what runs for ever, the oldest first, so that whoever waits is admitted; then all the rest."""
        for _ in range(14):
            there = [(kind, key) for kind, key in self._applied.values() if self._api.find(KINDS[kind], key)]
            if not there:
                break
            running = [each for each in there if any(map(_runs, self._pods_of(*each)))]
            kind, key = min(running or there, key=lambda each: self._created(*each))
            self.report.say(f"--- drain: {kind} {key[1]} goes")
            self._life.delete(kind, key)
            await self._pass(30)
        for kind, path in KINDS.items():
            for tree in self._api.all(path):
                if controller_of(tree) is None:
                    self._life.delete(kind, key_of(tree))
        await self._pass(160)
        self._oracle.judge_quiet(self._a_replica().ledger, "after the drain")

    def _created(self, kind: str, key: Key) -> str:
        tree = self._api.find(KINDS[kind], key)
        return str(tree["metadata"]["creationTimestamp"]) if tree else ""

    def _pods_of(self, kind: str, key: Key) -> list[Tree]:
        tree = self._api.find(KINDS[kind], key)
        if tree is None or kind == "Pod":
            return [tree] if tree else []
        if kind == "PodGroup":
            return self._life.pods_of_group(tree)
        uids = {uid_of(tree)}
        for _ in range(4):
            uids |= {uid_of(e) for path in KINDS.values() for e in self._api.all(path) if _is_made_by_any(e, uids)}
        return [each for each in self._api.all(PODS) if _is_made_by_any(each, uids)]

    # --- what people do

    async def _do(self, action: Action) -> None:
        self.report.say(f"--- {json.dumps({name: value for name, value in action.items() if name != 't'})}")
        verb = action["do"].replace(" ", "_")
        done = (getattr(self, f"_do_{verb}", None) or getattr(self._faults, f"do_{verb}"))(action)
        if done is not None:
            await done

    async def _do_wait(self, _: Action) -> None:
        """Let only time pass."""

    async def _do_apply(self, action: Action) -> None:
        name, kind = action["name"], action["kind"]
        there = name in self._applied and self._api.find(KINDS[self._applied[name][0]], self._applied[name][1])
        if not there:
            claim = claim_applied(action)
            if claim is not None and self._api.find(KINDS[claim["kind"]], key_of(claim)) is None:
                await self._oracle.create(claim)
            reply = await self._oracle.create(made(action))
            if not reply.allowed:
                return
            self._applied[name] = kind, (action["ns"], name)
        elif is_deleting(there):
            return  # pods of a group that is about to go would never be scheduled
        for pod in pods_of_group(action) if kind == "PodGroup" else ():
            if self._api.find(PODS, key_of(pod)) is None:
                await self._oracle.create(pod)

    async def _do_change(self, action: Action, changed: Callable[[str, Action], Any]) -> None:
        if action["name"] in self._applied:
            kind, key = self._applied[action["name"]]
            change = changed(kind, action)
            if change is not None:
                await self._oracle.update(kind, key, change, scale=action.get("how") == "scale")

    async def _do_scale(self, action: Action) -> None:
        await self._do_change(action, resized)

    async def _do_rollout(self, action: Action) -> None:
        await self._do_change(action, rolled_out)

    async def _do_suspend(self, action: Action) -> None:
        await self._do_change(action, suspended)

    async def _do_resume(self, action: Action) -> None:
        await self._do_change(action, suspended)

    def _do_delete(self, action: Action) -> None:
        if action["name"] in self._applied:
            kind, key = self._applied[action["name"]]
            self._life.delete(kind, key, action.get("how", "background"))

    def _do_killpod(self, action: Action) -> None:
        if (pod := self._chosen_pod(action)) is not None:
            self._life.delete_pod(pod)

    def _do_failpod(self, action: Action) -> None:
        if (pod := self._chosen_pod(action)) is not None:
            self._life.fail_pod(pod)

    def _chosen_pod(self, action: Action) -> Tree | None:
        name, here = action.get("name"), self._history["namespaces"]
        pods = [each for each in self._api.all(PODS) if gpus_of(each) and not is_terminal(each)]
        pods = [each for each in pods if each["metadata"]["namespace"] in here]
        if name is not None:
            pods = [each for each in pods if f"{each['metadata']['name']}-".startswith(f"{name}-")]
        return pods[action["i"] % len(pods)] if pods else None

    def _do_urgent(self, action: Action) -> None:
        """A pod of another team, outside of all tenants, preempts."""
        template = pod_template({"gpus": action["gpus"], "run": action.get("run", 30)})
        spec = {**with_defaults(template["spec"]), "priority": 5000}
        metadata = {**template["metadata"], "name": action["name"], "namespace": "outside"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self._api.make(PODS, {**pod, "status": {"phase": "Pending"}})

    # --- what administrators do

    def _do_quota(self, action: Action) -> None:
        def change(spec: Tree) -> Tree:
            rows = [dict(each) for each in spec["quotas"]]
            if action["row"] < len(rows):
                rows[action["row"]]["gpus"] = action["to"]
            return {**spec, "quotas": rows}

        self._change_tenant(action["tenant"], change)

    def _do_onexceed(self, action: Action) -> None:
        def change(spec: Tree) -> Tree:
            only_hold = ("holdOrder", "reserveSeconds")
            found = {**{k: v for k, v in spec.items() if k not in only_hold}, "onExceed": action["to"]}
            if "budgets" in spec:  # it takes no budget with Hold beside Demote either
                found["budgets"] = [{**each, "onExhausted": action["to"]} for each in spec["budgets"]]
            if action["to"] in ("Demote", "Warn"):  # the API server takes no row with Hold there
                rows = [{k: v for k, v in row.items() if k != "onExceed"} for row in spec["quotas"]]
                return found | {"quotas": rows}
            return found

        self._change_tenant(action["tenant"], change)
        self._oracle.calm.mode_changed_at[action["tenant"]] = loop().time()

    def _change_tenant(self, name: str, change: Callable[[Tree], Tree]) -> None:
        tree = self._api.find(TENANT_QUOTAS, ("", name))
        if tree is not None:
            self._api.change(TENANT_QUOTAS, ("", name), spec=change(tree["spec"]))
            self._oracle.calm.quota_changed_at[name] = loop().time()

    async def _do_recreate(self, action: Action) -> None:
        """A TenantQuota is deleted and made again."""
        name, calm = action["tenant"], self._oracle.calm
        tree = self._api.find(TENANT_QUOTAS, ("", name))
        if tree is not None:
            self._api.remove(TENANT_QUOTAS, ("", name))
            await self._pass(action.get("after", 0))
            self._make_tenant(name, {**tree["spec"], **action.get("spec", {})})
            calm.quota_changed_at[name] = calm.moved_at = loop().time()

    def _do_move(self, action: Action) -> None:
        key = ("", action["ns"])
        tree = self._api.find(NAMESPACES, key) or {"metadata": {}}
        self._api.change(NAMESPACES, key, metadata={**tree["metadata"], "labels": {TENANT_LABEL: action["tenant"]}})
        self._oracle.calm.moved_at = loop().time()

    def _do_policy(self, _: Action) -> None:
        self._policies += 1
        for each in self._replicas:
            if each.alive:
                each.reload(self._policy())

    def _do_node(self, action: Action) -> None:
        happens = self._life.node_returns if action["how"] == "back" else self._life.node_fails
        happens(f"node-{action['i']}")


def _spec_of(tenant: Tree) -> Tree:
    spec: Tree = {
        "namespaceSelector": {"matchLabels": {TENANT_LABEL: tenant["name"]}},
        "quotas": [dict(each) for each in tenant["rows"]],
        "onExceed": tenant["onExceed"],
    }
    if "budget" in tenant:
        spec["budgets"] = [_budget_of(tenant["budget"], tenant["onExceed"])]
    if tenant["onExceed"] == "Hold":
        spec |= {field: tenant[field] for field in ("holdOrder", "reserveSeconds") if field in tenant}
    return spec


def _budget_of(budget: Tree, action: str) -> Tree:
    """Return a budget from the begin of a history for so many seconds."""
    begins, ends = (EPOCH + timedelta(seconds=START + each) for each in (0, budget["seconds"]))
    tier = {"tier": budget["tier"]} if budget["tier"] else {}
    times = {"from": begins.strftime(RFC_3339), "until": ends.strftime(RFC_3339)}
    return {**tier, **times, "gpuHours": budget["hours"], "onExhausted": action}


def _is_made_by_any(tree: Tree, uids: set[str]) -> bool:
    return any(is_made_by(tree, uid) for uid in uids)


def _runs(pod: Tree) -> bool:
    return bool(pod["spec"].get("nodeName")) and not is_terminal(pod)
