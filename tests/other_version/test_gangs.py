"""Differences, real or possible, of the two versions of Kubernetes: every kind of gang, and the scheduler's own."""

import pytest

from tests.apiserver.test_gangs import test_every_kind_of_gang_and_its_pods_get_one_answer
from tests.apiserver.test_lint import test_a_gang_that_a_pod_alone_may_break_is_reported_on_1_36
from tests.apiserver.test_native_gangs import (
    test_a_pod_outside_any_group_evicts_a_gang_whole_on_1_37_and_breaks_it_on_1_36,
    test_of_two_jobsets_of_which_one_fits_the_lower_goes_whole_and_saves,
)

__all__ = [
    "test_a_gang_that_a_pod_alone_may_break_is_reported_on_1_36",
    "test_a_pod_outside_any_group_evicts_a_gang_whole_on_1_37_and_breaks_it_on_1_36",
    "test_every_kind_of_gang_and_its_pods_get_one_answer",
    "test_of_two_jobsets_of_which_one_fits_the_lower_goes_whole_and_saves",
]

pytestmark = [pytest.mark.apiserver, pytest.mark.release]
