"""A CA and a certificate that real TLS clients accept, for exactly the names asked for."""

import os
import ssl
import stat
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from certs.make import Lifetimes, key_pem, make_ca, make_leaf, names_of, pem, service_names
from certs.source import CertificateError, bundle_of, describe, make_files, read_folder

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAMES = service_names("gpu-tiers", "gpu-system", ["webhook.example.com", "192.0.2.7", "2001:db8::7"])


async def test_a_client_verifies_every_name_over_a_real_socket(server, tmp_path):
    bundle = make_files(tmp_path, NAMES)
    server.serve(bundle)
    for name in NAMES:
        assert await server.certificate_for(name, trusting=bundle.ca)


@pytest.mark.parametrize("name", ["gpu-tiers", "gpu-tiers.gpu-system", "other.gpu-system.svc", "192.0.2.8"])
async def test_another_name_is_refused(server, tmp_path, name):
    bundle = make_files(tmp_path, NAMES)
    server.serve(bundle)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"[Mm]ismatch|not valid for"):
        await server.certificate_for(name, trusting=bundle.ca)


async def test_another_ca_is_refused(server, tmp_path):
    server.serve(make_files(tmp_path / "ours", NAMES))
    stranger = make_files(tmp_path / "theirs", NAMES)
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        await server.certificate_for(NAMES[0], trusting=stranger.ca)


async def test_applying_a_bundle_leaves_no_key_on_the_disk(server, tmp_path, monkeypatch):
    bundle = make_files(tmp_path / "made", NAMES)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    server.serve(bundle)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_ten_years_of_ca_and_ninety_days_of_certificate():
    ca = make_ca(NOON, Lifetimes())
    leaf = make_leaf(ca, NAMES, NOON, Lifetimes())
    assert ca.certificate.not_valid_after_utc == NOON + timedelta(days=3650)
    assert leaf.certificate.not_valid_after_utc == NOON + timedelta(days=90)
    assert leaf.certificate.not_valid_before_utc == NOON - timedelta(minutes=5)
    assert isinstance(leaf.key.curve, ec.SECP256R1)


def test_a_certificate_never_outlives_its_ca():
    lifetimes = Lifetimes(ca=timedelta(days=10), leaf=timedelta(days=90))
    ca = make_ca(NOON, lifetimes)
    leaf = make_leaf(ca, NAMES, NOON, lifetimes)
    assert leaf.certificate.not_valid_after_utc == ca.certificate.not_valid_after_utc


def test_the_ca_signs_and_the_certificate_serves_and_neither_does_more():
    ca = make_ca(NOON, Lifetimes())
    leaf = make_leaf(ca, NAMES, NOON, Lifetimes())
    assert usages(ca.certificate) == {"key_cert_sign", "crl_sign"}
    assert usages(leaf.certificate) == {"digital_signature"}
    constraints = leaf.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert not constraints.value.ca
    extended = leaf.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [usage.dotted_string for usage in extended] == ["1.3.6.1.5.5.7.3.1"]


def test_a_service_is_known_by_two_names_and_each_extra_once():
    assert service_names("a", "b", ["a.b.svc", "c.example.com"]) == (
        "a.b.svc",
        "a.b.svc.cluster.local",
        "c.example.com",
    )
    ca = make_ca(NOON, Lifetimes())
    assert names_of(make_leaf(ca, NAMES, NOON, Lifetimes()).certificate) == frozenset(NAMES)


def test_files_on_disk_are_what_the_files_source_reads(tmp_path):
    made = make_files(tmp_path / "new", NAMES)
    assert read_folder(tmp_path / "new") == made
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"tls.crt", "tls.key", "ca.crt"}


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_the_key_on_disk_is_for_its_owner_alone_even_over_an_older_file(tmp_path: Path):
    (tmp_path / "tls.key").write_text("an older key, readable by all")
    (tmp_path / "tls.key").chmod(0o644)
    make_files(tmp_path, NAMES)
    assert stat.S_IMODE((tmp_path / "tls.key").stat().st_mode) == 0o600


def test_a_key_of_another_certificate_is_named():
    ca = make_ca(NOON, Lifetimes())
    one, other = (make_leaf(ca, NAMES, NOON, Lifetimes()) for _ in range(2))
    with pytest.raises(CertificateError, match="the key does not belong to the certificate"):
        bundle_of(pem(one.certificate), key_pem(other.key), pem(ca.certificate))


def test_a_person_reads_what_is_served_and_who_is_trusted(tmp_path):
    made = make_files(tmp_path, ["gpu-tiers.gpu-system.svc", "192.0.2.7"], now=NOON)
    lines = describe(made, NOON + timedelta(days=30))
    issuer = next(line.split()[-1] for line in lines if "issuer:" in line)
    assert lines == [
        "certificate",
        "  subject:    CN=gpu-tiers",
        f"  issuer:     {issuer}",
        "  names:      192.0.2.7, gpu-tiers.gpu-system.svc",
        "  not before: 2026-11-21 11:55:00 UTC",
        "  not after:  2027-02-19 12:00:00 UTC",
        "  days left:  60",
        "trusted CA",
        f"  subject:    {issuer}",
        f"  issuer:     {issuer}",
        "  not before: 2026-11-21 11:55:00 UTC",
        "  not after:  2036-11-18 12:00:00 UTC",
        "  days left:  3620",
    ]


def test_an_expired_certificate_says_so(tmp_path):
    made = make_files(tmp_path, NAMES, now=NOON)
    assert "  days left:  expired" in describe(made, NOON + timedelta(days=91))


def usages(certificate: x509.Certificate) -> set[str]:
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    names += ("key_agreement", "key_cert_sign", "crl_sign")
    return {name for name in names if getattr(usage, name)}
