"""cert-manager's mount: how Kubernetes swaps it, and what is served while it is wrong."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from certs.source import Bundle, CertificateError, CertificateFiles, make_files

NAMES = ["gpu-tiers.gpu-system.svc"]


class Mount:
    """A Secret's volume: files are links to ..data, which is a link to a folder of the moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._number = 0
        folder.mkdir()
        self.bundle = self.swap()
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (folder / name).symlink_to(Path("..data") / name)

    def swap(self, *, key_of: Bundle | None = None) -> Bundle:
        """Another certificate by the kubelet's atomic swap; with `key_of`, its key does not fit."""
        self._number += 1
        fresh = self.folder / f"..2026_11_21_{self._number}"
        bundle = make_files(fresh, NAMES)
        if key_of:
            (fresh / "tls.key").write_bytes(key_of.key)
        link = self.folder / "..data_tmp"
        link.symlink_to(fresh.name)
        link.rename(self.folder / "..data")
        return bundle


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path / "tls")


@pytest.fixture
async def served(mount: Mount) -> AsyncIterator[list[Bundle]]:
    """Every bundle that a server would have served so far."""
    source = CertificateFiles(mount.folder, every=0.01)
    bundles = [await source.load()]

    async def follow() -> None:
        async for bundle in source.changes():
            bundles.append(bundle)  # noqa: PERF401 - it never ends

    task = asyncio.create_task(follow())
    yield bundles
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_the_mounted_certificate_is_served(mount, served):
    assert served == [mount.bundle]


async def test_a_swap_of_the_data_link_is_noticed(mount, served, eventually):
    renewed = mount.swap()
    await eventually(lambda: served[-1] == renewed)
    assert len(served) == 2


async def test_a_new_connection_gets_the_new_certificate_without_a_restart(mount, server, served, eventually):
    server.serve(served[-1])
    before = await server.certificate_for(NAMES[0], trusting=served[-1].ca)
    renewed = mount.swap()
    await eventually(lambda: served[-1] == renewed)
    server.serve(served[-1])
    assert await server.certificate_for(NAMES[0], trusting=renewed.ca) != before


async def test_a_key_that_does_not_fit_keeps_the_last_good_pair_and_is_logged_once(mount, served, eventually, lines):
    mount.swap(key_of=mount.bundle)
    await eventually(lambda: bool(lines))
    await asyncio.sleep(0.1)
    assert served == [mount.bundle]
    (line,) = lines
    assert line["log_level"] == "warning"
    assert "the key does not belong to the certificate" in line["reason"]
    renewed = mount.swap()
    await eventually(lambda: served[-1] == renewed)


async def test_a_file_that_is_half_written_keeps_the_last_good_pair(mount, served, eventually, lines):
    half = mount.bundle.certificate[:200]
    (mount.folder / "..data" / "tls.crt").write_bytes(half)
    await eventually(lambda: bool(lines))
    assert served == [mount.bundle]


async def test_a_mount_that_goes_away_and_returns_is_outlasted(mount, served, eventually, lines):
    shutil.move(mount.folder, mount.folder.with_name("gone"))
    await eventually(lambda: bool(lines))
    assert served == [mount.bundle]
    shutil.move(mount.folder.with_name("gone"), mount.folder)
    renewed = mount.swap()
    await eventually(lambda: served[-1] == renewed)


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
async def test_at_start_a_missing_file_is_named(mount, name):
    (mount.folder / name).unlink()
    with pytest.raises(CertificateError, match=f"{mount.folder / name} does not exist: mount the Secret"):
        await CertificateFiles(mount.folder).load()


async def test_an_issuer_without_a_ca_leaves_the_bundle_empty(mount):
    (mount.folder / "ca.crt").unlink()
    assert (await CertificateFiles(mount.folder).load()).ca == b""
