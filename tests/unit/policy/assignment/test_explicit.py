"""The scope of a rule of the policy."""

import pytest

from tests.builders import a_job, a_pod, a_workload, some_facts
from webhook.objects.group_kind import GroupKind
from webhook.policy.assignment.steps import matches
from webhook.policy.values.tier_policy import Match

JOB = a_job(name="night").labelled({"team": "a"})
OWNED = a_pod().asking().labelled({"app": "x"})

MATCHES: list[tuple[Match, bool]] = [
    (Match(kinds=(GroupKind("batch", "Job"),)), True),
    (Match(kinds=(GroupKind("batch.volcano.sh", "Job"),)), False),
    (Match(kinds=(GroupKind("apps", "Deployment"), GroupKind("jobset.x-k8s.io", "JobSet"))), True),
    (Match(labels={"team": "a"}), True),
    (Match(labels={"app": "x"}), True),
    (Match(labels={"app": "x", "team": "a"}), False),
    (Match(namespaces=("team-beta", "team-alpha")), True),
    (Match(namespaces=("team-beta",)), False),
    (Match(service_accounts=("team-alpha:default",)), True),
    (Match(service_accounts=("team-beta:default",)), False),
    (Match(kinds=(GroupKind("batch", "Job"),), namespaces=("team-beta",)), False),
]


@pytest.mark.parametrize(("match", "applies"), MATCHES)
def test_a_rule_applies_where_every_part_holds(match: Match, applies: bool) -> None:
    facts = some_facts(JOB, a_workload("jobset.x-k8s.io/v1alpha2", "JobSet"))
    assert matches(match, OWNED.view(), facts) is applies
