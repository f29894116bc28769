"""The certificate of an operator's webhook, where a kubelet or an installer would see to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certs.make import Lifetimes, key_pem, make_ca, make_leaf, pem, service_names, utc_now

LOOKED_FOR = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")  # noqa: S108 - a constant of theirs


def write_certificate(folder: Path, service: str, namespace: str) -> None:
    """Write ca.crt, tls.crt and tls.key for a Service into a folder."""
    authority = make_ca(utc_now(), Lifetimes())
    leaf = make_leaf(authority, service_names(service, namespace), utc_now(), Lifetimes())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(pem(authority.certificate))
    (folder / "tls.crt").write_bytes(pem(leaf.certificate))
    (folder / "tls.key").write_bytes(key_pem(leaf.key))


@contextmanager
def looked_for() -> Iterator[None]:
    """Have a file where JobSet, training-operator and trainer look whether their certificate is mounted.

    They open it where they are told to, but look for it there. They look at their start, and then ever more seldom.
    """
    already = LOOKED_FOR.exists()
    LOOKED_FOR.parent.mkdir(parents=True, exist_ok=True)
    LOOKED_FOR.touch()
    try:
        yield
    finally:
        if not already:
            LOOKED_FOR.unlink(missing_ok=True)
