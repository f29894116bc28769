"""Says what a bundle is, in lines for a person."""

from datetime import datetime

from cryptography import x509

from certs.make import names_of
from certs.source import Bundle


def describe(bundle: Bundle, now: datetime) -> list[str]:
    """Subject, issuer, names, dates (UTC) and days left, of the served certificate and of each trusted CA."""
    lines: list[str] = []
    for certificate in x509.load_pem_x509_certificates(bundle.certificate):
        lines += ["certificate", *_details(certificate, now)]
    for certificate in x509.load_pem_x509_certificates(bundle.ca) if bundle.ca.strip() else ():
        lines += ["trusted CA", *_details(certificate, now)]
    return lines


def _details(certificate: x509.Certificate, now: datetime) -> list[str]:
    rows = {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "names": ", ".join(sorted(names_of(certificate))),
        "not before": _moment(certificate.not_valid_before_utc),
        "not after": _moment(certificate.not_valid_after_utc),
        "days left": _days_left(certificate.not_valid_after_utc, now),
    }
    return [f"  {label + ':':<12}{value}" for label, value in rows.items() if value]


def _moment(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S UTC")


def _days_left(end: datetime, now: datetime) -> str:
    return "expired" if end <= now else str((end - now).days)
