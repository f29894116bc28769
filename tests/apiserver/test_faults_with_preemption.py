"""A storm in which pods are evicted for devices of DRA: no tenant holds too much, and nobody is left out.

`make chaos` goes on with other seeds, and more creates.
"""

import os
from pathlib import Path

import pytest

from localcluster.for_tests import announce, started
from localcluster.versions import DEFAULT_KUBERNETES

from .faults.api import EVICTED
from .faults.plan import storm
from .faults.run import arena, bare_plane

pytestmark = [pytest.mark.apiserver, pytest.mark.release]

SEED, CREATES, DEVICES = 11, 150, 12


async def test_a_storm_with_evictions(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    plane = bare_plane(os.environ.get("K8S") or DEFAULT_KUBERNETES, places_pods=True)
    with started(plane, pytestconfig) as cluster, arena(cluster, tmp_path, devices=DEVICES) as made:
        plan = storm("evicting", SEED, len(made.replicas), CREATES, DEVICES)
        outcome = await made.run(plan, f"seed {SEED}")
    announce(pytestconfig, str(outcome))
    assert outcome.is_good, outcome.story()
    assert outcome.answers[EVICTED] > 0
