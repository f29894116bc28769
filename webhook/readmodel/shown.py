"""What people and programs are shown, as values whose JSON has the field names of Kubernetes' style."""

import msgspec


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an answer: gpusPerPod in JSON is gpus_per_pod here."""
