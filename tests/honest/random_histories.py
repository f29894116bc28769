"""Makes a random history of a seed. The hundred thousands of a seed say what the first tenant does over its quota."""

import random
from typing import Any

MODES = {2: "Hold", 3: "Demote", 4: "Deny", 5: "Warn", 6: "Hold", 7: "Deny", 8: "Hold"}
"""6: with flavors; 7: with a row that holds; 8 and 9: with further kinds. 0, 1 and 9: any mode. 0 has fewer people and
more time. From a million on the same again, with ResourceClaims, Kueue's gate and full ResourceQuotas; from fifty
million on with budgets too."""
MIXTURES = (
    ("Pod", "Deployment", "Job", "Job", "StatefulSet", "JobSet", "PyTorchJob", "PyTorchJob", "CronJob"),
    ("Job", "JobSet", "PyTorchJob"),
    ("Deployment", "StatefulSet", "Pod"),
    ("Job", "Pod"),
    ("PyTorchJob", "Deployment"),
)
FURTHER = (
    ("LeaderWorkerSet", "LeaderWorkerSet", "DaemonSet", "PodGroup", "Deployment", "Job"),
    ("LeaderWorkerSet",),
    ("LeaderWorkerSet", "Pod", "PyTorchJob"),
    ("DaemonSet", "Deployment", "Pod"),
    ("PodGroup", "PodGroup", "Job", "Pod"),
    ("PodGroup", "LeaderWorkerSet"),
)
VERBS: tuple[dict[str, int], ...] = (
    {"apply": 5, "scale": 3, "delete": 2, "rollout": 1, "suspend": 1, "pod": 1, "urgent": 1, "quota": 1, "other": 1},
    {"apply": 5, "scale": 6, "delete": 1, "suspend": 1, "pod": 1},
    {"apply": 5, "delete": 4, "pod": 3, "urgent": 3},
    {"apply": 5, "suspend": 5, "delete": 1, "quota": 2},
    {"apply": 5, "rollout": 4, "scale": 2, "pod": 2, "urgent": 1},
    {"apply": 5, "other": 5, "scale": 2, "delete": 2, "quota": 2},
)
CLAIMING = ("Pod", "Deployment", "StatefulSet", "Job", "JobSet", "PyTorchJob")
STRATEGIES: tuple[dict[str, Any], ...] = ({}, {"surge": 0, "unav": 1}, {"recreate": True})
CALM = {"apply": 9, "scale": 3, "rollout": 1, "delete": 2, "suspend": 1, "pod": 1, "urgent": 1, "quota": 1, "other": 2}
SLOWNESS = ((0, 0), (0, 0), (0.003, 0.03), (0.01, 0.3))
"""Latency of requests and lag of watches, in seconds."""


def history_of(seed: int) -> dict[str, Any]:
    return _Maker(seed).history()


class _Maker:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._group = seed // 100_000 % 10
        self._has_more = seed >= 1_000_000
        self._has_budgets = seed >= 50_000_000
        self._r = random.Random(seed)
        self._names: dict[str, dict[str, Any]] = {}
        self._applied = 0

    def history(self) -> dict[str, Any]:
        r = self._r
        mode = MODES.get(self._group) or r.choice(["Deny", "Demote", "Warn", "Hold", "Hold"])
        self._flavors = ["h100", "a100"] if r.random() < (0.8 if self._group == 6 else 0.25) else []
        self._tenants = [self._tenant(mode)]
        namespaces = {
            "alpha-a": "alpha",
            **({"alpha-b": "alpha"} if r.random() < (0.7 if self._has_more else 0.3) else {}),
        }
        if r.random() < 0.2:
            other = r.choice(["Deny", "Hold", "Demote", "Warn"])
            self._tenants.append({"name": "beta", "rows": [{"gpus": r.choice([3, 4, 6])}], "onExceed": other})
            namespaces["beta-a"] = "beta"
        self._spaces, self._nodes = list(namespaces), self._made_nodes()
        self._kinds = MIXTURES[0] if self._group == 0 else r.choice(FURTHER if self._group in (8, 9) else MIXTURES)
        self._verbs = CALM if self._group == 0 else r.choice(VERBS)
        waits = [0, 0, 1, 2, 3, 5, 8, 15, 30, 80] if self._group == 0 else [0, 0, 0.2, 1, 1, 2, 3, 5, 8, 12, 30]
        number = r.randint(4, 16) if self._group == 0 else r.randint(6, 22)
        actions = [{"t": r.choice(waits), **self._action()} for _ in range(number)]
        latency, lag = r.choice(SLOWNESS)
        return {
            "seed": self._seed,
            "latency": latency,
            "lag": lag,
            "tenants": self._tenants,
            "namespaces": namespaces,
            "nodes": self._nodes,
            "flavors": self._flavors,
            "actions": actions,
        }

    def _tenant(self, mode: str) -> dict[str, Any]:
        r = self._r
        total = r.choice([3, 4, 5, 6, 8])
        rows: list[dict[str, Any]] = []
        if r.random() < 0.6:
            rows.append({"tier": "gpu-training", "gpus": r.choice([2, 3, 4, total])})
        if r.random() < 0.35:
            rows.append({"tier": "gpu-batch", "gpus": r.choice([2, 3, total])})
        if self._flavors and r.random() < 0.8:
            rows.append({"resourceFlavor": "h100", "gpus": r.choice([2, 3, 4])})
        if r.random() < 0.85 or not rows:
            rows.append({"gpus": total})
        if mode == "Deny" and r.random() < (0.9 if self._group == 7 else 0.3):
            r.choice(rows)["onExceed"] = "Hold"
        tenant: dict[str, Any] = {"name": "alpha", "rows": rows, "onExceed": mode}
        if mode == "Hold":
            tenant |= r.choice([{}, {}, {}, {"holdOrder": "BestEffort"}, {"reserveSeconds": 60}])
        if self._has_budgets and r.random() < 0.6:
            tier = "gpu-training" if mode == "Demote" else r.choice([None, "gpu-training"])
            hours, seconds = r.choice(["0.003", "0.01", "0.03"]), r.choice([100, 200, 280])
            tenant["budget"] = {"tier": tier, "hours": hours, "seconds": seconds}
        return tenant

    def _made_nodes(self) -> list[tuple[int, str | None]]:
        r, flavors = self._r, self._flavors
        if r.random() < 0.45:
            return [(r.choice([2, 3, 4]), r.choice(flavors) if flavors else None) for _ in range(r.randint(2, 3))]
        return [(8, flavors[number % 2] if flavors else None) for number in range(4)]

    def _action(self) -> dict[str, Any]:
        r = self._r
        if self._has_more and r.random() < 0.08:
            return {"do": "quota full", "ns": r.choice(self._spaces), "s": r.choice([10, 30, 60])}
        verb = r.choices(list(self._verbs), list(self._verbs.values()))[0] if self._names else "apply"
        name = r.choice(list(self._names)) if self._names else ""
        match verb:
            case "apply":
                return dict(self._names[name]) if name and r.random() < 0.12 else self._apply()
            case "scale":
                return {
                    "do": "scale",
                    "name": name,
                    "to": r.choice([0, 1, 1, 2, 3, 4]),
                    "how": r.choice(["scale", "apply"]),
                }
            case "rollout":
                return {"do": "rollout", "name": name, "to": r.randint(2, 9)}
            case "delete":
                how = r.choice(["background", "background", "foreground", "orphan"])
                # The Jobs that a JobSet left behind would keep the next one of its name from making its own for ever,
                # and it reserves for them as long as it exists.
                if how == "orphan" and self._names.get(name or "", {}).get("kind") == "JobSet":
                    how = "background"
                return {"do": "delete", "name": name, "how": how}
            case "suspend":
                return {"do": r.choice(["suspend", "resume", "resume"]), "name": name}
            case "pod":
                return {"do": r.choice(["killpod", "failpod"]), "i": r.randint(0, 9)}
            case "urgent":
                urgent = f"urgent-{r.randint(0, 10**6)}"
                return {"do": "urgent", "name": urgent, "gpus": r.choice([1, 2, 3]), "run": r.choice([8, 30])}
            case "quota":
                tenant = r.choice(self._tenants)
                row, to = r.randrange(len(tenant["rows"])), r.choice([1, 2, 3, 4, 6, 8])
                return {"do": "quota", "tenant": tenant["name"], "row": row, "to": to}
        return self._other()

    def _other(self) -> dict[str, Any]:
        r, tenant = self._r, self._r.choice(self._tenants)["name"]
        return r.choice(
            [
                {"do": "leader", "crash": r.random() < 0.5},
                {"do": "replica", "i": r.randint(0, 3)},
                {"do": "policy"},
                {"do": "node", "i": r.randrange(len(self._nodes)), "how": r.choice(["fail", "back"])},
                {"do": "onexceed", "tenant": tenant, "to": r.choice(["Deny", "Demote", "Warn", "Hold"])},
                {"do": "recreate", "tenant": tenant},
                {"do": "lose"},
                {"do": "move", "ns": r.choice(self._spaces), "tenant": tenant},
            ]
        )

    def _apply(self) -> dict[str, Any]:
        r, kind = self._r, self._r.choice(self._kinds)
        action: dict[str, Any] = {
            "do": "apply",
            "kind": kind,
            "name": f"{kind.lower()[:3]}{self._applied}",
            "ns": r.choice(self._spaces),
            "gpus": r.choice([1, 1, 1, 2]),
            "tier": r.choice(["gpu-training", "gpu-training", "gpu-batch"]),
            "run": r.choice([0, 8, 15, 30, 60]),
            "count": r.choice([1, 1, 2, 2, 3, 4]),
        }
        self._applied += 1
        if self._flavors and r.random() < 0.7:
            action["flavor"] = r.choice(self._flavors)
        if r.random() < 0.35:
            action["linger"] = r.choice([1, 8, 20])
        if kind == "Deployment":
            action |= {"run": 0, **r.choice(STRATEGIES)}
        if kind == "StatefulSet":
            action |= {"run": 0, "parallel": r.random() < 0.5}
        if kind == "Job" and r.random() < 0.5:
            action["completions"] = action["count"] * r.choice([1, 2])
        if kind == "JobSet":
            action["per"] = r.choice([1, 1, 2])
        if kind == "PyTorchJob" and r.random() < 0.4:
            least: int = r.choice([1, 2])
            action |= {"elastic": least, "count": max(action["count"], least)}
        if kind in ("Job", "JobSet", "PyTorchJob") and r.random() < 0.2:
            action["suspend"] = True
        if kind == "LeaderWorkerSet":
            action |= {"run": 0, "size": r.choice([1, 2, 2, 3]), "idle_leader": r.random() < 0.3}
            action["count"] = r.choice([1, 1, 2, 3])
        if kind == "DaemonSet":
            action["run"] = 0
        if kind == "CronJob":
            policy = r.choice(["Forbid", "Allow", "Replace"])
            action |= {"every": r.choice([15, 40]), "policy": policy, "run": r.choice([8, 30])}
        if self._has_more:
            action |= self._further(kind)
        self._names[action["name"]] = action
        return action

    def _further(self, kind: str) -> dict[str, Any]:
        """Return how the pods of a workload get their GPUs, and whether Kueue has to admit them too."""
        r = self._r
        found: dict[str, Any] = {}
        if kind in CLAIMING and r.random() < 0.5:
            found["claim"] = r.choice(["shared", "template"])
        if kind in ("Pod", "Deployment", "StatefulSet") and r.random() < 0.4:
            found["kueue"] = r.choice([0, 3, 15, 60])
        return found
