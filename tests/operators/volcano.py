"""The part of Volcano's scheduler that its controllers need, which the tests run without it."""

import json

from .team import Team


def begins(team: Team, name: str) -> None:
    """Let a Job's group make its pods, as Volcano's scheduler does."""
    of_job = f"podgroup.scheduling.volcano.sh/{group_of(team, name)}"
    enqueue = ("patch", of_job, f"--namespace={team.namespace}", "--type=merge")
    team.kubectl(*enqueue, '--patch={"status":{"phase":"Inqueue"}}')


def group_of(team: Team, name: str) -> str:
    """The name of a Job's PodGroup, once it is there."""

    def names() -> list[str]:
        groups = team.get("podgroups.scheduling.volcano.sh")["items"]
        return [each["metadata"]["name"] for each in groups if each["metadata"]["name"].startswith(name)]

    team.eventually(lambda: bool(names()), f"the group of {name}")
    return names()[0]


def rank_of(team: Team, name: str) -> str:
    """The class by which Volcano's scheduler ranks a Job: that of its PodGroup."""
    group = team.get(f"podgroup.scheduling.volcano.sh/{group_of(team, name)}")
    return str(group["spec"].get("priorityClassName", ""))


def has_workers(team: Team, name: str, workers: int) -> str:
    """`kubectl patch`, as Volcano lets a Job change: replicas and minAvailable alone. What it prints to stderr."""
    changed = {"/spec/tasks/1/replicas": workers, "/spec/minAvailable": workers + 1}
    patch = [{"op": "replace", "path": path, "value": value} for path, value in changed.items()]
    command = ("patch", f"job.batch.volcano.sh/{name}", f"--namespace={team.namespace}", "--type=json")
    return str(team.kubectl(*command, f"--patch={json.dumps(patch)}", check=False).stderr)
