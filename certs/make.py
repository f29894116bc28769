"""Makes a CA and a serving certificate: ECDSA P-256, usages that Go and OpenSSL's strict mode accept."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Lifetimes:
    """The lifetimes of certificates, and the allowances around them."""

    ca: timedelta = timedelta(days=3650)
    leaf: timedelta = timedelta(days=90)
    backdate: timedelta = timedelta(minutes=5)
    """The largest lag of an API server's clock: certificates are valid from that long ago."""
    settle: timedelta = timedelta(minutes=1)
    """The time in which a new CA bundle reaches every API server after it was written."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def utc_now() -> datetime:
    """Return the current time in UTC. Sources use it unless a test passes another clock."""
    return datetime.now(UTC)


def service_names(service: str, namespace: str, extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names by which an API server may call a Service, then the extra DNS names and IPs."""
    host = f"{service}.{namespace}.svc"
    return tuple(dict.fromkeys((host, f"{host}.cluster.local", *extra)))


def make_ca(now: datetime, lifetimes: Lifetimes) -> Pair:
    """Return a self-signed CA that may sign serving certificates and no further CA."""
    serial = x509.random_serial_number()
    # The subject is unique, because a verifier must never take one trusted CA for another.
    return _signed(f"gpu-tiers-ca-{serial:x}"[:32], serial, None, (now - lifetimes.backdate, now + lifetimes.ca))


def make_leaf(ca: Pair, names: Iterable[str], now: datetime, lifetimes: Lifetimes) -> Pair:
    """Return a serving certificate for the names, with a new key; it never outlives the CA."""
    end = min(now + lifetimes.leaf, ca.certificate.not_valid_after_utc)
    own = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    extensions = (
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.SubjectAlternativeName([_general_name(name) for name in names]),
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own),
    )
    return _signed("gpu-tiers", x509.random_serial_number(), ca, (now - lifetimes.backdate, end), extensions)


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    try:
        sans = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    ips = (str(ip) for ip in sans.get_values_for_type(x509.IPAddress))
    return frozenset((*sans.get_values_for_type(x509.DNSName), *ips))


def canonical(names: Iterable[str]) -> frozenset[str]:
    """Return names in the form of a certificate (`0:0::1` is `::1`)."""
    return frozenset(str(_general_name(name).value) for name in names)


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as unencrypted PKCS#8 PEM, the form of Secrets of type kubernetes.io/tls."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _signed(
    common_name: str,
    serial: int,
    ca: Pair | None,
    valid: tuple[datetime, datetime],
    more: Iterable[x509.ExtensionType] = (),
) -> Pair:
    """Return a new key and its certificate, signed by `ca`; without `ca` it is a self-signed CA."""
    key, signs = ec.generate_private_key(ec.SECP256R1()), ca is None
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    usage = x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .public_key(key.public_key())
        .serial_number(serial)
        .subject_name(subject)
        .issuer_name(ca.certificate.subject if ca else subject)
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True)
        .add_extension(usage, critical=True)
    )
    for extension in more:
        builder = builder.add_extension(extension, critical=False)
    return Pair(builder.sign(ca.key if ca else key, hashes.SHA256()), key)


def _general_name(name: str) -> x509.DNSName | x509.IPAddress:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
