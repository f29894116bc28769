"""Makes the certificate of an operator's webhook, in place of a kubelet or an installer."""

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
    """Create the file by which JobSet, training-operator and trainer tell that their certificate is mounted.

    They read the certificate from $certificates, but check this path, at their start and then less and
    less often. The file is removed after the block, unless it existed before.
    """
    already = LOOKED_FOR.exists()
    LOOKED_FOR.parent.mkdir(parents=True, exist_ok=True)
    LOOKED_FOR.touch()
    try:
        yield
    finally:
        if not already:
            LOOKED_FOR.unlink(missing_ok=True)
