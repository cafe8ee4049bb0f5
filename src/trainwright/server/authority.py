"""The certificate authority of an installation: makes its own certificate and the server's."""

from __future__ import annotations

from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trainwright.server.certificates import (
    CA_LIFETIME,
    RENEW_BEFORE,
    SERVER_LIFETIME,
    Certificates,
    write_private,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

BACKDATED = timedelta(minutes=5)
"""So that a clock a little behind ours still accepts a new certificate."""

HOST_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "::1")


def renew_certificates(found: Certificates, now: datetime) -> None:
    """Make what is missing or due, and note when the next renewal is."""
    ca = _load(found.ca_file)
    if ca is None or not found.ca_key_file.exists() or _is_due(ca, now):
        key = ec.generate_private_key(ec.SECP256R1())
        ca = _build_ca(key, now)
        write_private(found.ca_key_file, _key_pem(key))
        write_private(found.ca_file, ca.public_bytes(serialization.Encoding.PEM))
        found.cert_file.unlink(missing_ok=True)
    server = _load(found.cert_file)
    if server is None or not found.key_file.exists() or _is_due(server, now):
        ca_key = serialization.load_pem_private_key(found.ca_key_file.read_bytes(), password=None)
        if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
            raise ValueError(
                f"{found.ca_key_file}: expected an EC key; remove the folder to start anew"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        server = _build_server(key, ca, ca_key, now)
        write_private(found.key_file, _key_pem(key))
        write_private(found.cert_file, server.public_bytes(serialization.Encoding.PEM))
    renew_at = min(ca.not_valid_after_utc, server.not_valid_after_utc) - RENEW_BEFORE
    write_private(found.renewal_file, renew_at.isoformat().encode())


def _load(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_after_utc - now < RENEW_BEFORE


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _builder(
    subject: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _build_ca(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = "trainwright installation CA"
    return (
        _builder(name, _name(name), key, now)
        .not_valid_after(now + CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _build_server(
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    ca_key: CertificateIssuerPrivateKeyTypes,
    now: datetime,
) -> x509.Certificate:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in HOST_NAMES]
    names += [x509.IPAddress(ip_address(address)) for address in ADDRESSES]
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
        ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    )
    return (
        _builder("trainwright", ca.subject, key, now)
        .not_valid_after(now + SERVER_LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority, critical=False)
        .sign(ca_key, hashes.SHA256())
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
