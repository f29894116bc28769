"""The life of a CA and its certificates over ten years, and that nobody's connection breaks on the way."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certs.make import Lifetimes, key_pem, make_ca, make_leaf, service_names, utc_now
from certs.self_managed import Step, StoredPairs, advance, certificates_in, data_of
from certs.source import Bundle, bundle_of

NAMES = service_names("gpu-tiers", "gpu-system")
HOST = NAMES[0]
TODAY = utc_now().replace(microsecond=0)
CA_DUE = timedelta(days=3650) * 4 / 5


def days(number: float) -> timedelta:
    return timedelta(days=number)


@dataclass
class Secret:
    """A Secret as the replicas would keep it, seen at the moments that a test names."""

    stored: StoredPairs = field(default_factory=StoredPairs)

    def at(self, now: datetime, *, trusted: bool = False, names: tuple[str, ...] = NAMES) -> Step:
        step = advance(self.stored, now=now, names=names, lifetimes=Lifetimes(), trusted=trusted)
        self.stored = certificates_in(data_of(step.stored))
        return step

    @property
    def bundle(self) -> Bundle:
        data = data_of(self.stored)
        return bundle_of(data["tls.crt"], data["tls.key"], data["ca.crt"])


def due_for_a_new_ca() -> Secret:
    """Today its CA reaches 4/5 of its life; the certificate was issued yesterday."""
    secret = Secret()
    secret.at(TODAY - CA_DUE)
    secret.at(TODAY - days(1))
    return secret


def test_an_empty_secret_gets_a_ca_and_a_certificate_at_once():
    secret = Secret()
    assert secret.at(TODAY).reasons == ("no usable CA", "no usable certificate")
    assert secret.at(TODAY).reasons == ()


def test_a_certificate_is_renewed_by_the_same_ca_at_two_thirds_of_its_life():
    secret = Secret()
    secret.at(TODAY)
    first = secret.bundle
    assert secret.at(TODAY + days(59)).reasons == ()
    assert secret.at(TODAY + days(61)).reasons == ("the certificate is at 2/3 of its life",)
    assert secret.bundle.ca == first.ca
    assert secret.bundle.certificate != first.certificate


async def test_rotation_breaks_no_client_old_or_new(server):
    secret = due_for_a_new_ca()
    old_client = secret.bundle.ca
    server.serve(secret.bundle)
    before = await server.certificate_for(HOST, trusting=old_client)

    assert secret.at(TODAY).reasons == ("the CA is at 4/5 of its life",)
    new_client = secret.bundle.ca
    server.serve(secret.bundle)
    assert await server.certificate_for(HOST, trusting=old_client) == before
    assert await server.certificate_for(HOST, trusting=new_client) == before

    assert secret.at(TODAY + days(0.1)).reasons == ()

    # The bundle has reached all API servers. A replica that has yet to read the Secret serves the old certificate.
    old_replica = secret.bundle
    assert secret.at(TODAY + days(0.2), trusted=True).reasons == ("the certificate is of an older CA",)
    # Issued 0.2 days in the future for the story's sake: the real clock must accept it now.
    secret.stored = replace(secret.stored, leaf=make_leaf(secret.stored.signer, NAMES, TODAY, Lifetimes()))
    server.serve(secret.bundle)
    after = await server.certificate_for(HOST, trusting=new_client)
    assert after != before
    server.serve(old_replica)
    assert await server.certificate_for(HOST, trusting=new_client) == before


def test_the_old_ca_is_trusted_until_it_expires():
    secret = due_for_a_new_ca()
    secret.at(TODAY)
    secret.at(TODAY, trusted=True)
    new, old = secret.stored.authorities
    end = old.not_valid_after_utc
    secret.at(end - days(1), trusted=True)
    assert secret.stored.authorities == (new, old)
    secret.at(end, trusted=True)
    assert secret.stored.authorities == (new,)


def test_a_ca_made_in_this_step_is_trusted_by_nobody_whatever_was_trusted_before():
    secret = due_for_a_new_ca()
    before = secret.bundle
    secret.at(TODAY, trusted=True)
    assert secret.bundle.ca != before.ca
    assert secret.bundle.certificate == before.certificate


def test_a_certificate_that_is_due_waits_for_the_new_ca_to_be_trusted_but_not_beyond_its_own_end():
    secret = due_for_a_new_ca()
    secret.at(TODAY)
    assert secret.at(TODAY + days(70)).reasons == ()
    assert secret.at(TODAY + days(90)).reasons == ("the certificate expired",)


def test_other_names_mean_another_certificate_of_the_same_ca():
    secret = Secret()
    secret.at(TODAY)
    authorities = secret.stored.authorities
    wider = (*NAMES, "2001:DB8:0::7")
    assert secret.at(TODAY, names=wider).reasons == ("the certificate is for other names",)
    assert secret.at(TODAY, names=wider).reasons == ()
    assert secret.stored.authorities == authorities


@pytest.mark.parametrize("part", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("content", [b"", b"not PEM at all", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_broken_part_is_replaced_and_the_result_stands(part, content):
    secret = Secret()
    secret.at(TODAY)
    secret.stored = certificates_in({**data_of(secret.stored), part: content})
    assert secret.at(TODAY).reasons
    assert secret.at(TODAY, trusted=True).reasons in ((), ("the certificate is of an older CA",))
    assert secret.at(TODAY, trusted=True).reasons == ()


def test_a_lost_ca_key_is_a_rotation_not_an_outage():
    secret = Secret()
    secret.at(TODAY)
    before = secret.stored
    secret.stored = certificates_in({**data_of(before), "ca.key": b""})
    assert secret.at(TODAY).reasons == ("no usable CA",)
    assert data_of(secret.stored)["tls.crt"] == data_of(before)["tls.crt"]
    assert before.authorities[0] in secret.stored.authorities


def test_the_key_of_another_ca_is_no_signer():
    secret = Secret()
    secret.at(TODAY)
    stranger = make_ca(TODAY, Lifetimes())
    assert certificates_in({**data_of(secret.stored), "ca.key": key_pem(stranger.key)}).signer is None


@given(st.dictionaries(st.sampled_from(["ca.crt", "ca.key", "tls.crt", "tls.key", "other"]), st.binary()))
def test_whatever_the_secret_holds_one_step_makes_it_whole(data):
    step = advance(certificates_in(data), now=TODAY, names=NAMES, lifetimes=Lifetimes(), trusted=False)
    again = advance(certificates_in(data_of(step.stored)), now=TODAY, names=NAMES, lifetimes=Lifetimes(), trusted=False)
    assert step.reasons
    assert again.reasons == ()
    assert data_of(again.stored) == data_of(step.stored)
