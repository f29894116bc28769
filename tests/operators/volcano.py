"""What Volcano's scheduler does for its controllers, which the tests run without it."""

from .team import Team


def begins(team: Team, name: str) -> None:
    """What Volcano's scheduler does: it lets a Job's group make its pods."""
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
