"""Four times as many people at once as there are GPUs: exactly as many get in, however their requests fall together."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from localcluster import Result

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver

THREADS = 40


def decided(installed: Installed, namespace: str, name: str) -> Result:
    """The webhook's word: on a busy machine it may be asked too late, and that is neither yes nor no."""
    while (made := installed.create(gpu_pod(name, tier="gpu-batch"), namespace)).code:
        if "denied the request" in made.stderr:
            break
    return made


@pytest.mark.parametrize("gpus", [25, pytest.param(50, marks=pytest.mark.release)])
def test_exactly_as_many_of_four_times_as_many(installed: Installed, namespace: str, gpus: int) -> None:
    with installed.tenant_for("crowd", namespace, quotas=[{"tier": "gpu-batch", "gpus": str(gpus)}]) as tenant:
        names = [f"pod-{number}" for number in range(4 * gpus)]
        with ThreadPoolExecutor(THREADS) as threads:
            answers = list(threads.map(lambda name: decided(installed, namespace, name), names))
        assert sum(not each.code for each in answers) == gpus
        sentence = f"gpu-batch is at {gpus} of {gpus} GPUs; this pod asks for 1"
        assert [each.stderr for each in answers if each.code and sentence not in each.stderr] == []
        installed.eventually(lambda: installed.usage(tenant) == f"gpu-batch {gpus}/{gpus}", "the usage in the status")
