"""Guesses from ports and readiness probes: who may ask the workload something."""

from webhook.policy.classification.case import Case
from webhook.policy.classification.hints import Hint
from webhook.policy.classification.names import by_name
from webhook.policy.classification.vocabulary.known_ports import PORTS, PROBES
from webhook.policy.workloads.workload_types import WorkloadType


def by_probe(case: Case) -> Hint | None:
    """A path at which servers of models are asked whether they are ready."""
    paths = (path for path in case.probed() if PROBES.match(path))
    return next((Hint(WorkloadType.SERVING, path) for path in paths), None)


def by_port(case: Case) -> Hint | None:
    """A port that programs are known by."""
    ports = (port for port in case.ports() if port in PORTS)
    return next((Hint(PORTS[port], str(port)) for port in ports), None)


def by_answering(case: Case) -> Hint | None:
    """A name that says that it serves, of what others may ask: either alone says less."""
    named = by_name(case)
    return named if named and named.type is WorkloadType.SERVING and by_listening(case) else None


def by_listening(case: Case) -> Hint | None:
    """Any port or probe at which others may ask."""
    listens = next((Hint(WorkloadType.SERVING, str(port)) for port in case.asked_at()), None)
    return listens or (Hint(WorkloadType.SERVING, "readinessProbe") if case.answers_probes() else None)
