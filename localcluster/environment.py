"""Hides a person's settings of clusters and proxies from a cluster of this machine and from its clients."""

import os
import re
from collections.abc import Mapping

_A_PERSONS = re.compile(r"KUBE(CONFIG|CTL_.*|_EDITOR|RNETES_.*)|HELM_.*|(HTTPS?|ALL|NO)_PROXY", re.IGNORECASE)

SHORT_LIVED = {"GOGC": "off", "GOMEMLIMIT": "512MiB"}
"""For kubectl and helm, which end before their garbage matters: collecting it takes a quarter of their CPU time."""


def without_a_persons(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a child that gets its cluster by an argument.

    KUBECONFIG names an empty file: without it kubectl, helm and we would take ~/.kube/config. Another thread may remove
    a variable meanwhile, as pytest does after each test.
    """
    others = ((name, environment.get(name)) for name in list(environment) if not _A_PERSONS.fullmatch(name))
    return {name: value for name, value in others if value is not None} | {"KUBECONFIG": os.devnull}
