"""Makes a CA and a certificate as files, for a demo or a server outside a cluster; they are not renewed."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from certs import files
from certs.make import Lifetimes, key_pem, make_ca, make_leaf, pem, utc_now
from certs.source import Bundle, bundle_of


def make_files(
    folder: Path, names: Collection[str], *, now: datetime | None = None, lifetimes: Lifetimes | None = None
) -> Bundle:
    """Write tls.crt, tls.key (mode 0600) and ca.crt, as `CertificateFiles` reads them; the folder is made.

    The CA's key is thrown away: nobody can issue another certificate that clients of this CA would trust.
    """
    moment, lives = now or utc_now(), lifetimes or Lifetimes()
    ca = make_ca(moment, lives)
    leaf = make_leaf(ca, names, moment, lives)
    bundle = bundle_of(pem(leaf.certificate), key_pem(leaf.key), pem(ca.certificate))
    folder.mkdir(parents=True, exist_ok=True)
    private = folder / files.KEY
    private.unlink(missing_ok=True)
    private.touch(mode=0o600)
    private.write_bytes(bundle.key)
    (folder / files.CERTIFICATE).write_bytes(bundle.certificate)
    (folder / files.CA).write_bytes(bundle.ca)
    return bundle
