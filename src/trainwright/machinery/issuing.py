"""Certificates made by an authority of one's own: the authority's certificate and what it signs.

Importing this loads a cryptographic library, which takes a while: import it where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

BACKDATED = timedelta(minutes=5)
"""So that a clock a little behind ours still accepts a new certificate."""

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who a certificate is for, as its subject says it."""

    common_name: str
    organisation: str = ""

    @property
    def subject(self) -> x509.Name:
        """The distinguished name."""
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, self.common_name)]
        if self.organisation:
            parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, self.organisation))
        return x509.Name(parts)


def build_authority(
    holder: Holder, key: Key, *, now: datetime, lifetime: timedelta
) -> x509.Certificate:
    """The certificate of an authority, signed by itself; it may sign servers, not authorities."""
    return (
        _builder(holder.subject, holder.subject, key, now)
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def build_server(
    holder: Holder,
    key: Key,
    names: Sequence[str],
    *,
    authority: x509.Certificate,
    authority_key: Key,
    now: datetime,
    lifetime: timedelta,
) -> x509.Certificate:
    """A server's certificate for `names`, which are host names or addresses."""
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(holder.subject, authority.subject, key, now)
        .not_valid_after(now + lifetime)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def load_signing_key(pem: bytes) -> Key | None:
    """An EC or RSA key; None for anything else."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) else None


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """The certificate as PEM text."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
