"""The webhooks' certificate as a Secret holds it: whether it serves still, and a new one. No I/O.

Keys are RSA in the oldest PEM form, since the rotator of Kubeflow Trainer reads only those: either
manager can go on with the other's Secret.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from trainwright.base.objects import dig
from trainwright.machinery.issuing import (
    Holder,
    build_authority,
    build_server,
    certificate_pem,
    load_signing_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from trainwright.base.objects import Object
    from trainwright.machinery.issuing import Key

CA_CERTIFICATE, CA_KEY = "ca.crt", "ca.key"
CERTIFICATE, KEY = "tls.crt", "tls.key"

AUTHORITY = Holder(common_name="kubeflow-trainer-ca", organisation="kubeflow-trainer")
"""Source: Trainer 2.3."""
CA_LIFETIME = timedelta(days=3650)
SERVER_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=90)
"""As the rotator of Trainer, so that the two agree."""
KEY_BITS = 2048
PUBLIC_EXPONENT = 65537
MOST_AUTHORITIES = 3
"""Certificates of earlier authorities that are kept; more would be there by somebody's mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """PEM texts of one certificate and its authority; empty where there is none."""

    ca_certificate: bytes = b""
    """The authority's certificate, then those of earlier ones that replicas may still use."""
    ca_key: bytes = field(default=b"", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


def read_material(secret: Object) -> Material:
    """What a Secret holds; what cannot be read counts as missing."""
    data = dig(secret, "data", default={})
    return Material(
        ca_certificate=_decode(data, CA_CERTIFICATE),
        ca_key=_decode(data, CA_KEY),
        certificate=_decode(data, CERTIFICATE),
        key=_decode(data, KEY),
    )


def render_material(material: Material) -> Mapping[str, str]:
    """The `data` of the Secret."""
    texts = {
        CA_CERTIFICATE: material.ca_certificate,
        CA_KEY: material.ca_key,
        CERTIFICATE: material.certificate,
        KEY: material.key,
    }
    return {name: base64.b64encode(text).decode() for name, text in texts.items()}


def find_fault(material: Material, names: Sequence[str], now: datetime) -> str:
    """Why the certificate has to be made anew; "" while it serves."""
    authorities = _load_certificates(material.ca_certificate)
    if not authorities:
        return "there is no authority"
    fault = _find_authority_fault(authorities[0], material.ca_key, now)
    return fault or _find_server_fault(material, authorities[0], names, now)


def renew_material(material: Material, names: Sequence[str], now: datetime) -> Material:
    """New material: a new server certificate, and a new authority only when that has to be.

    The certificates of earlier authorities stay in `ca_certificate` while they are valid: replicas
    that have not loaded the new certificate yet are trusted until they have.
    """
    authorities = _load_certificates(material.ca_certificate)
    ca_key = load_signing_key(material.ca_key) if material.ca_key else None
    if (
        ca_key is None
        or not authorities
        or _find_authority_fault(authorities[0], material.ca_key, now)
    ):
        ca_key = _make_key()
        made = build_authority(AUTHORITY, ca_key, now=now, lifetime=CA_LIFETIME)
        kept = [old for old in authorities if _is_valid(old, now)]
        authorities = [made, *kept][:MOST_AUTHORITIES]
    key = _make_key()
    server = build_server(
        Holder(common_name=names[0][:64], organisation=AUTHORITY.organisation),
        key,
        names,
        authority=authorities[0],
        authority_key=ca_key,
        now=now,
        lifetime=SERVER_LIFETIME,
    )
    return Material(
        ca_certificate=b"".join(certificate_pem(one) for one in authorities),
        ca_key=_key_pem(ca_key),
        certificate=certificate_pem(server),
        key=_key_pem(key),
    )


def _find_authority_fault(authority: x509.Certificate, ca_key: bytes, now: datetime) -> str:
    key = load_signing_key(ca_key) if ca_key else None
    if key is None or key.public_key() != authority.public_key():
        return "the authority has not the key of its certificate"
    return _find_age_fault("the authority", authority, now)


def _find_server_fault(
    material: Material, authority: x509.Certificate, names: Sequence[str], now: datetime
) -> str:
    found = _load_certificates(material.certificate)
    key = load_signing_key(material.key) if material.key else None
    if not found or key is None or key.public_key() != found[0].public_key():
        return "there is no certificate with its key"
    try:
        found[0].verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return "the certificate is not the authority's"
    missing = set(names) - set(_names_of(found[0]))
    if missing:
        return f"the certificate is not for {', '.join(sorted(missing))}"
    return _find_age_fault("the certificate", found[0], now)


def _find_age_fault(what: str, certificate: x509.Certificate, now: datetime) -> str:
    if now < certificate.not_valid_before_utc:
        return f"{what} is not valid yet"
    if certificate.not_valid_after_utc - now < RENEW_BEFORE:
        return f"{what} expires at {certificate.not_valid_after_utc.isoformat()}"
    return ""


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _names_of(certificate: x509.Certificate) -> Sequence[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    addresses = names.get_values_for_type(x509.IPAddress)
    return [*names.get_values_for_type(x509.DNSName), *map(str, addresses)]


def _load_certificates(pem: bytes) -> list[x509.Certificate]:
    if not pem.strip():
        return []
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []


def _make_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(PUBLIC_EXPONENT, KEY_BITS)


def _key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _decode(data: Mapping[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(data.get(name) or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        return b""
