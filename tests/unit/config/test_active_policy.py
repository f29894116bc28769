"""A changed policy file is taken up while running; a broken one leaves the last good one active, and says so once."""

from pathlib import Path

import pytest

from tests.builders import live_classes, policy_file
from webhook.config.active_policy import ActivePolicy
from webhook.config.errors import ConfigError
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.tiers import PriorityClass, disagreements, obstacles

UPGRADE = "helm upgrade with the values of the release"
BATCH_REFUSED = (
    "tiers.gpu-batch.value: 400, but PriorityClass/gpu-batch exists with 401, so pods of tier gpu-batch are refused: "
    f"run kubectl delete priorityclass gpu-batch, then {UPGRADE}"
)


class Office:
    """A policy file, whoever watches it, and the cluster's classes that it is compared with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: list[str] = []
        self.changes: list[Mode] = []
        self.classes: dict[str, PriorityClass] = {}
        self.policy = ActivePolicy(
            path,
            lambda policy: [*map(str, disagreements(policy.tiers, self.classes))],
            lambda policy: [*map(str, obstacles(policy.tiers, self.classes, adoption=policy.adoption))],
            lambda error: self.outcomes.append(str(error) if error else "good"),
        )
        self.policy.subscribe(lambda: self.changes.append(self.mode))

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")
        self.policy.look()

    @property
    def mode(self) -> Mode:
        return self.policy.current().mode


@pytest.fixture
def office(tmp_path: Path) -> Office:
    office = Office(tmp_path / "policy.yaml")
    office.path.write_text(policy_file(mode="Warn"), encoding="utf-8")
    office.classes = live_classes(office.policy.start())
    return office


def test_a_changed_file_is_taken_up(office: Office) -> None:
    office.write(policy_file(mode="Enforce"))
    assert (office.mode, office.changes, office.outcomes) == (Mode.Enforce, [Mode.Enforce], ["good"])


def test_a_file_that_did_not_change_is_nobody_s_news(office: Office) -> None:
    office.write(policy_file(mode="Warn"))
    assert (office.changes, office.outcomes) == ([], [])


def test_a_broken_file_leaves_the_last_good_one_active_and_is_reported_once(office: Office) -> None:
    broken = policy_file(mode="Enforce", defaultTier="gold")
    for _ in range(3):
        office.write(broken)
    assert office.mode is Mode.Warn
    assert office.outcomes == [
        (
            f'{office.path}: defaultTier: unknown tier "gold"; '
            "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
        )
    ]


def test_once_mended_it_is_taken_up(office: Office) -> None:
    office.write("broken: [")
    office.write(policy_file(mode="Enforce"))
    assert (office.mode, office.changes, office.outcomes[-1]) == (Mode.Enforce, [Mode.Enforce], "good")


def test_what_was_active_comes_back_as_good(office: Office) -> None:
    office.write("broken: [")
    office.write(policy_file(mode="Warn"))
    assert office.mode is Mode.Warn
    assert office.outcomes[1:] == ["good"]


def test_a_file_that_is_gone_leaves_the_last_good_one_active(office: Office) -> None:
    office.path.unlink()
    office.policy.look()
    office.policy.look()
    assert office.mode is Mode.Warn
    assert len(office.outcomes) == 1
    assert "can't be read" in office.outcomes[0]


def test_a_tier_whose_class_has_another_value_is_refused_at_a_reload(office: Office) -> None:
    office.classes["gpu-batch"] = PriorityClass("gpu-batch", 401)
    office.write(policy_file(mode="Enforce"))
    assert office.mode is Mode.Warn
    assert "tiers.gpu-batch.value: 400, but PriorityClass/gpu-batch exists with 401" in office.outcomes[0]


def test_why_the_file_is_not_active_is_known_until_it_is(office: Office) -> None:
    before = office.policy.digest
    office.write(policy_file(defaultTier="gold", colour="red"))
    assert office.policy.problem.startswith("colour: there is no such field; write one of apiVersion, kind, preset, ")
    assert (office.policy.text, office.policy.digest) == (policy_file(mode="Warn"), before)
    office.write(policy_file(mode="Enforce"))
    assert (office.policy.problem, office.policy.text) == ("", policy_file(mode="Enforce"))
    assert office.policy.digest != before


def test_a_class_that_is_made_again_with_another_value_is_reported_though_no_file_changed(office: Office) -> None:
    """Nobody is refused a file, but pods of the tier are refused from now on."""
    office.classes["gpu-batch"] = PriorityClass("gpu-batch", 401)
    office.policy.look()
    assert office.policy.problem == BATCH_REFUSED
    assert (office.policy.taken, office.outcomes) == (True, [])


def test_a_class_that_nobody_gets_now_has_the_same_remedy_and_refuses_no_pods(office: Office) -> None:
    calm = PriorityClass("gpu-batch-nonpreempting", 400, "PreemptLowerPriority")
    office.classes = {**office.classes, calm.name: calm}
    (problem,) = office.policy.problem.split("; ")
    assert problem.endswith(": run kubectl delete priorityclass gpu-batch-nonpreempting, then " + UPGRADE)
    assert "refused" not in problem


def test_a_mistake_in_the_file_does_not_hide_a_class_that_refuses_pods(office: Office) -> None:
    office.classes["gpu-batch"] = PriorityClass("gpu-batch", 401)
    office.write(policy_file(colour="red"))
    mistake, _, amiss = office.policy.problem.partition("; and the active policy is not as it should be: ")
    assert mistake.startswith("colour: there is no such field")
    assert amiss == BATCH_REFUSED
    office.write(policy_file(mode="Warn"))
    assert (office.policy.taken, office.policy.problem) == (True, BATCH_REFUSED), "the file is as it was"


@pytest.mark.parametrize(("adoption", "name"), [(False, "gpu-batch"), (True, "gpu-batch-nonpreempting")])
def test_a_class_that_is_gone_is_reported_where_pods_would_get_it(office: Office, name: str, *, adoption: bool) -> None:
    office.write(policy_file(mode="Warn", adoption=adoption))
    classes_before = office.classes
    office.classes = {
        each: classes_before[each]
        for each in classes_before
        if each not in {"gpu-batch", "gpu-batch-nonpreempting"} - {name}
    }
    assert office.policy.problem == ""
    office.classes = {each: classes_before[each] for each in classes_before if each != name}
    lost = f"tiers.gpu-batch: PriorityClass/{name} does not exist, so its pods are refused"
    assert office.policy.problem == lost
    office.classes = classes_before
    assert office.policy.problem == ""


def test_a_restart_while_the_file_is_broken_goes_on_with_what_was_published(office: Office, tmp_path: Path) -> None:
    again = Office(tmp_path / "policy.yaml")
    again.path.write_text("broken: [", encoding="utf-8")
    again.classes = office.classes
    again.policy.start(office.policy.text)
    assert (again.mode, again.policy.digest) == (Mode.Warn, office.policy.digest)
    assert len(again.outcomes) == 1, "it is as loud as before the restart"
    again.policy.look()
    assert len(again.outcomes) == 1, "and once"
    again.write(policy_file(mode="Enforce"))
    assert (again.mode, again.policy.problem, again.outcomes[-1]) == (Mode.Enforce, "", "good")


def test_a_good_file_counts_more_than_what_was_published(tmp_path: Path) -> None:
    office = Office(tmp_path / "policy.yaml")
    office.path.write_text(policy_file(mode="Enforce"), encoding="utf-8")
    office.policy.start(policy_file(mode="Audit"))
    assert (office.mode, office.policy.taken, office.outcomes) == (Mode.Enforce, True, [])


def test_a_class_that_changed_before_a_restart_ends_no_replica(office: Office) -> None:
    office.classes = {"gpu-batch": PriorityClass("gpu-batch", 401)}
    again = Office(office.path)
    again.classes = office.classes
    again.policy.start(office.policy.text)
    assert again.mode is Mode.Warn
    assert (again.policy.taken, again.policy.problem.count("gpu-batch exists with 401")) == (True, 1), "as before it"


@pytest.mark.parametrize("text", ["", policy_file(colour="red")])
def test_at_the_start_a_broken_file_is_fatal(tmp_path: Path, text: str) -> None:
    office = Office(tmp_path / "policy.yaml")
    office.path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError):
        office.policy.start()


def test_at_the_start_a_class_that_is_global_default_is_fatal(tmp_path: Path) -> None:
    office = Office(tmp_path / "policy.yaml")
    office.path.write_text(policy_file(), encoding="utf-8")
    office.classes = {"gpu-batch": PriorityClass("gpu-batch", 400, global_default=True)}
    with pytest.raises(ConfigError, match="is globalDefault"):
        office.policy.start()


def test_a_cluster_as_the_chart_leaves_it_speaks_against_nothing(tmp_path: Path) -> None:
    office = Office(tmp_path / "policy.yaml")
    office.path.write_text(policy_file(), encoding="utf-8")
    policy: TierPolicy = office.policy.start()
    office.classes = live_classes(policy)
    office.write(policy_file(mode="Audit"))
    assert office.outcomes == ["good"]
