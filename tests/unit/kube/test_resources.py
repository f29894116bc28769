"""The words by which kubectl knows a resource."""

import pytest

from webhook.kube.discovery import ServedResource

PYTORCHJOBS = ServedResource(
    "kubeflow.org/v1", "PyTorchJob", "pytorchjobs", frozenset(("pytorchjobs", "pytorchjob", "ptj"))
)


@pytest.mark.parametrize(
    "word", ["pytorchjob", "PyTorchJob", "pytorchjobs", "ptj", "pytorchjob.kubeflow.org", "pytorchjobs.v1.kubeflow.org"]
)
def test_it_is_called_by_all_of_its_names(word: str) -> None:
    assert PYTORCHJOBS.is_called(word)


@pytest.mark.parametrize("word", ["job", "pytorchjob.kubedl.io", "pytorchjobs.v2.kubeflow.org", "", "kubeflow.org"])
def test_it_is_called_by_no_other(word: str) -> None:
    assert not PYTORCHJOBS.is_called(word)
