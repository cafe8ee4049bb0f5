"""The certificate authority of an installation: makes its own certificate and the server's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from trainwright.machinery.issuing import (
    Holder,
    build_authority,
    build_server,
    certificate_pem,
    load_signing_key,
)
from trainwright.server.certificates import (
    CA_LIFETIME,
    RENEW_BEFORE,
    SERVER_LIFETIME,
    Certificates,
    write_private,
)

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

AUTHORITY = Holder(common_name="trainwright installation CA")
SERVER = Holder(common_name="trainwright")
HOST_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "::1")


def renew_certificates(found: Certificates, now: datetime) -> None:
    """Make what is missing or due, and note when the next renewal is."""
    ca = _load(found.ca_file)
    if ca is None or not found.ca_key_file.exists() or _is_due(ca, now):
        key = ec.generate_private_key(ec.SECP256R1())
        ca = build_authority(AUTHORITY, key, now=now, lifetime=CA_LIFETIME)
        write_private(found.ca_key_file, _key_pem(key))
        write_private(found.ca_file, certificate_pem(ca))
        found.cert_file.unlink(missing_ok=True)
    server = _load(found.cert_file)
    if server is None or not found.key_file.exists() or _is_due(server, now):
        ca_key = load_signing_key(found.ca_key_file.read_bytes())
        if ca_key is None:
            raise ValueError(
                f"{found.ca_key_file}: expected an EC key; remove the folder to start anew"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        server = build_server(
            SERVER,
            key,
            (*HOST_NAMES, *ADDRESSES),
            authority=ca,
            authority_key=ca_key,
            now=now,
            lifetime=SERVER_LIFETIME,
        )
        write_private(found.key_file, _key_pem(key))
        write_private(found.cert_file, certificate_pem(server))
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
