"""When a certificate serves, and what a new one keeps of the old."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from trainwright.webhooks.certificates import (
    Material,
    find_fault,
    read_material,
    render_material,
    renew_material,
)

NOW = datetime(2026, 3, 4, tzinfo=UTC)
NAMES = ("manager.ns.svc",)


@pytest.fixture(scope="module")
def made() -> Material:
    return renew_material(Material(), NAMES, NOW)


def test_new_material_serves_and_survives_its_secret(made: Material) -> None:
    assert find_fault(made, NAMES, NOW) == ""
    assert read_material({"data": dict(render_material(made))}) == made
    ca = x509.load_pem_x509_certificate(made.ca_certificate)
    assert ca.subject.rfc4514_string() == "O=kubeflow-trainer,CN=kubeflow-trainer-ca"
    for key in (made.key, made.ca_key):
        assert key.startswith(b"-----BEGIN RSA PRIVATE KEY-----")  # what Trainer's rotator reads


def test_each_fault_is_found(made: Material) -> None:
    other = renew_material(Material(), NAMES, NOW)
    cases = {
        "no authority": replace(made, ca_certificate=b"junk"),
        "not the key": replace(made, ca_key=other.ca_key),
        "no certificate with its key": replace(made, key=other.key),
        "not the authority's": replace(made, certificate=other.certificate, key=other.key),
    }
    for text, material in cases.items():
        assert text in find_fault(material, NAMES, NOW), text
    assert "not for other.ns.svc" in find_fault(made, ("other.ns.svc",), NOW)
    assert "expires at" in find_fault(made, NAMES, NOW + timedelta(days=276))
    assert "not valid yet" in find_fault(made, NAMES, NOW - timedelta(days=1))
    for junk in ({}, {"data": None}, {"data": {"tls.crt": "%%%", "ca.crt": "eA=="}}):
        assert find_fault(read_material(junk), NAMES, NOW) == "there is no authority"


def test_an_authority_outlives_its_servers_certificates(made: Material) -> None:
    later = NOW + timedelta(days=280)
    renewed = renew_material(made, NAMES, later)
    assert find_fault(renewed, NAMES, later) == ""
    assert (renewed.ca_certificate, renewed.ca_key) == (made.ca_certificate, made.ca_key)


def test_a_new_authority_is_joined_by_the_old_while_that_is_valid(made: Material) -> None:
    at_its_end = NOW + timedelta(days=3600)
    renewed = renew_material(made, NAMES, at_its_end)
    assert renewed.ca_certificate.endswith(made.ca_certificate)
    assert renewed.ca_certificate != made.ca_certificate
    assert find_fault(renewed, NAMES, at_its_end) == ""
    past_it = NOW + timedelta(days=3700)
    alone = renew_material(made, NAMES, past_it)
    assert len(x509.load_pem_x509_certificates(alone.ca_certificate)) == 1
