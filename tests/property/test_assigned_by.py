"""The annotation of a pod's assignment is read as it was written, whoever wrote it and whatever it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.policy.assignment.assigned_by import ASSIGNED_BY, AssignedBy, parsed, read_assigned_by
from webhook.policy.assignment.steps import STEPS

REASONS = st.text(st.characters(exclude_characters=";"), min_size=1)
TIERS = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", fullmatch=True)
_STEPS = st.sampled_from([name for name, _ in STEPS])
WRITTEN = st.builds(AssignedBy, _STEPS, REASONS) | st.builds(AssignedBy, _STEPS, REASONS, TIERS, TIERS)


@given(WRITTEN)
def test_what_is_written_is_read_again(written: AssignedBy) -> None:
    assert read_assigned_by({ASSIGNED_BY: str(written)}) == written


@given(st.text() | st.builds(lambda *parts: "".join(parts), st.text(), st.just("; demoted from "), st.text()))
def test_anything_may_stand_there(text: str) -> None:
    found = parsed(text)
    assert found is None or str(found) == text or not found.demoted_from


STORED = {
    "label: the label on the pod says gpu-batch; demoted from gpu-training to gpu-batch": (True, False, "gpu-training"),
    "label: the label on the pod says gpu-batch": (True, False, ""),
    "label: the label on Job/node says gpu-serving; demoted from gpu-serving": (False, False, "gpu-serving"),
    "label: the label on the pod says gpu-batch; demoted from gpu-training": (True, False, "gpu-training"),
    "class: priorityClassName is gpu-batch": (False, True, ""),
    "class: priorityClassName house is outside the tiers and kept": (False, True, ""),
    "class: Job/x.spec.priorityClassName is gpu-batch": (False, False, ""),
    'workload-type: training, a guess from its command ("a; b")': (False, False, ""),
    "policy-default: the policy's default; lowered from a to b: tenant c may not use a; demoted from b": (
        False,
        False,
        "b",
    ),
}
"""Lines on pods that earlier versions admitted."""


@pytest.mark.parametrize("text", STORED)
def test_what_earlier_versions_wrote_is_read(text: str) -> None:
    found = parsed(text)
    assert found is not None
    assert str(found) == text
    assert (found.names_own_label, found.names_own_class, found.demoted_from) == STORED[text]
