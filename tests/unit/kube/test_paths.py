"""Paths of the API are built of names that tenants write."""

import pytest

from webhook.kube.client import path
from webhook.objects.refusal import Unreadable


def test_objects_lists_and_core_kinds_each_have_their_path():
    assert path("v1", "namespaces") == "/api/v1/namespaces"
    assert path("v1", "namespaces", name="team-a") == "/api/v1/namespaces/team-a"
    assert path("batch/v1", "jobs", "team-a", "train") == "/apis/batch/v1/namespaces/team-a/jobs/train"


@pytest.mark.parametrize("name", ["", ".", "..", "../secrets/x", "a/b", "a?watch=1", "a%2fb", "x" * 254, "a\nb", "ä"])
def test_a_name_that_would_lead_elsewhere_is_no_name(name):
    with pytest.raises(Unreadable, match="is not a valid name in the Kubernetes API"):
        path("batch/v1", "jobs", "team-a", name)


@pytest.mark.parametrize("api_version", ["batch/../v1", "batch/v1?x", "a/b/v1"])
def test_so_is_an_api_version_of_that_sort(api_version):
    with pytest.raises(Unreadable):
        path(api_version, "jobs", "team-a", "train")
