"""Certificates and keys of a lane."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from trainwright.machinery.issuing import Holder, build_authority, build_server

if TYPE_CHECKING:
    from pathlib import Path

LIFETIME = timedelta(days=2)


class Authority:
    """Signs the certificates of servers that the API server calls."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        self._certificate = build_authority(
            Holder(common_name="lane"), self._key, now=now, lifetime=LIFETIME
        )
        folder.mkdir(parents=True)
        self.file = folder / "ca.crt"
        self.file.write_bytes(self._pem)

    @property
    def _pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def bundle(self) -> str:
        """`caBundle` of a webhook."""
        return base64.b64encode(self._pem).decode()

    def write_server(self, folder: Path, *names: str) -> Path:
        """`tls.crt`, `tls.key` and `ca.crt` for 127.0.0.1 and more names; returns the folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = build_server(
            Holder(common_name="server"),
            key,
            ["127.0.0.1", "localhost", *names],
            authority=self._certificate,
            authority_key=self._key,
            now=datetime.now(UTC),
            lifetime=LIFETIME,
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tls.crt").write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM) + self._pem
        )
        (folder / "tls.key").write_bytes(_render_key(key))
        (folder / "ca.crt").write_bytes(self._pem)
        return folder

    def write_key_pair(self, folder: Path) -> None:
        """`key.pem` and `key.pub`: what service account tokens are signed and checked with."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        folder.mkdir(parents=True)
        (folder / "key.pem").write_bytes(_render_key(key))
        (folder / "key.pub").write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )


def _render_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
