"""A new certificate is what the next connection sees; connections that exist, and the process, go on."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from certs.make import utc_now
from certs.source import Bundle, bundle_of
from tests.unit.server.serving import HOST, Serving, a_bundle, a_post, a_server, trust


def an_rsa_bundle(bits: int = 2048) -> Bundle:
    """A self-signed certificate as cert-manager makes it by default: of another key type than our own."""
    key = rsa.generate_private_key(65537, bits)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rsa")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(utc_now() - timedelta(minutes=5))
        .not_valid_after(utc_now() + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    return bundle_of(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), certificate)


class Announced:
    """A certificate source whose changes the test announces."""

    def __init__(self, *bundles: Bundle) -> None:
        self._bundles = bundles

    async def load(self) -> Bundle:
        return self._bundles[0]

    async def changes(self) -> AsyncIterator[Bundle]:
        for bundle in self._bundles:
            yield bundle


async def served_leaf(server: Serving) -> bytes:
    """The certificate that a new connection is shown, whoever signed it."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection(HOST, server.port, ssl=unverified)
    shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return shown


def leaf(bundle: Bundle) -> bytes:
    return ssl.PEM_cert_to_DER_cert(bundle.certificate.decode().partition("-----END")[0] + "-----END CERTIFICATE-----")


async def test_a_new_connection_gets_the_new_certificate_while_the_old_one_goes_on() -> None:
    before, after = a_bundle(), a_bundle()
    async with a_server(bundle=before) as server, server.wire() as old:
        await old.send(a_post())
        assert (await old.answer())[0] == 200

        server.certificate.replace(after)

        async with server.wire(trusting=after.ca) as new:
            await new.send(a_post())
            assert (await new.answer())[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(HOST, server.port, ssl=trust(before.ca))
        await old.send(a_post())
        assert (await old.answer())[0] == 200


@pytest.mark.parametrize("rsa_first", [True, False])
async def test_a_certificate_of_another_key_type_replaces_the_old_one_too(rsa_first: bool) -> None:
    before, after = (an_rsa_bundle(), a_bundle()) if rsa_first else (a_bundle(), an_rsa_bundle())
    async with a_server(bundle=before) as server:
        assert await served_leaf(server) == leaf(before)
        server.certificate.replace(after)
        assert await served_leaf(server) == leaf(after)


async def test_what_a_source_announces_is_served_and_its_expiry_shown() -> None:
    before, after = a_bundle(), an_rsa_bundle()
    given: list[Bundle] = []
    async with a_server(bundle=before) as server:
        await server.certificate.follow(Announced(after), given.append)

        assert given == [after]
        assert await served_leaf(server) == leaf(after)
        assert server.counted("gpu_tiers_certificate_not_after_timestamp_seconds") == after.not_after.timestamp()


async def test_a_certificate_that_openssl_does_not_take_leaves_the_old_one_served(
    lines: list[dict[str, object]],
) -> None:
    good, weak = a_bundle(), an_rsa_bundle(bits=1024)
    given: list[Bundle] = []
    async with a_server(bundle=good) as server:
        await server.certificate.follow(Announced(weak), given.append)
        assert await served_leaf(server) == leaf(good)
        assert not given

    assert any("certificate not taken" in str(line["event"]) and "EE_KEY_TOO_SMALL" in str(line) for line in lines)


@pytest.mark.parametrize(("most", "spoken"), [(ssl.TLSVersion.TLSv1_3, "TLSv1.3"), (ssl.TLSVersion.TLSv1_2, "TLSv1.2")])
async def test_tls_1_3_is_preferred_and_1_2_understood(most: ssl.TLSVersion, spoken: str) -> None:
    async with a_server() as server:
        client = trust(server.certificate.bundle.ca)
        client.maximum_version = most
        client.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection(HOST, server.port, ssl=client)
        connection = writer.get_extra_info("ssl_object")
        assert (connection.version(), connection.selected_alpn_protocol()) == (spoken, "http/1.1")
        writer.close()
        await writer.wait_closed()


async def test_a_cipher_without_forward_secrecy_is_not_spoken() -> None:
    async with a_server(bundle=an_rsa_bundle()) as server:
        client = trust(server.certificate.bundle.ca)
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        client.set_ciphers("AES128-GCM-SHA256")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(HOST, server.port, ssl=client)
