"""The certificate in a folder: the one that cert-manager or an administrator keeps there, or a pair made for a demo."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from datetime import datetime
from pathlib import Path

from certs.make import Lifetimes, key_pem, make_ca, make_leaf, pem, utc_now
from certs.source import Bundle, CertificateError, bundle_of

log = logging.getLogger(__name__)

CERTIFICATE, KEY, CA = "tls.crt", "tls.key", "ca.crt"


class CertificateFiles:
    """tls.crt, tls.key and ca.crt of a folder, read again every few seconds.

    Content is compared, not time stamps, and nothing is watched by inotify: a Secret's mount changes by a swap
    of its `..data` link. ca.crt may be absent: cert-manager leaves it out for issuers that have none.
    """

    def __init__(self, folder: Path, *, every: float = 5.0) -> None:
        self._folder = folder
        self._every = every
        self._served: Bundle | None = None
        self._trouble = ""

    async def load(self) -> Bundle:
        """The bundle in the folder. Raises CertificateError naming the file that is missing or wrong."""
        self._served = await asyncio.to_thread(read_folder, self._folder)
        return self._served

    async def changes(self) -> AsyncIterator[Bundle]:
        """Each new good pair; one that is half written or does not fit leaves the last good one in force."""
        while True:
            await asyncio.sleep(self._every)
            try:
                bundle = await asyncio.to_thread(read_folder, self._folder)
            except CertificateError as error:
                if str(error) != self._trouble:
                    log.warning("certificate not taken, the last good one stays", {"reason": str(error)})
                self._trouble = str(error)
                continue
            self._trouble = ""
            if bundle != self._served:
                self._served = bundle
                log.info(
                    "certificate changed", {"folder": str(self._folder), "not_after": bundle.not_after.isoformat()}
                )
                yield bundle


def read_folder(folder: Path) -> Bundle:
    certificate, key = _content(folder / CERTIFICATE), _content(folder / KEY)
    ca = _content(folder / CA) if (folder / CA).exists() else b""
    try:
        return bundle_of(certificate, key, ca)
    except CertificateError as error:
        raise CertificateError(f"{folder}: {error}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CertificateError(
            f"{path} does not exist: mount the Secret of the certificate there, or use self-managed certificates"
        ) from None
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror}") from error


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
    private = folder / KEY
    private.unlink(missing_ok=True)
    private.touch(mode=0o600)
    private.write_bytes(bundle.key)
    (folder / CERTIFICATE).write_bytes(bundle.certificate)
    (folder / CA).write_bytes(bundle.ca)
    return bundle
