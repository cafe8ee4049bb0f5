"""TLS of our own endpoints: the configured versions and ciphers, and a certificate that may change."""

from __future__ import annotations

import asyncio
import logging
import ssl
import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trainwright.base.errors import LocalRunError, Unreachable
from trainwright.machinery.credentials import load_certificate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trainwright.core.configuration.settings import TlsSettings
    from trainwright.machinery.metrics import Metrics

logger = logging.getLogger(__name__)

LOOK_S = 10.0
OWN_LIFETIME = timedelta(days=365)
VERSIONS = {
    "1.0": ssl.TLSVersion.TLSv1,
    "1.1": ssl.TLSVersion.TLSv1_1,
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}


def build_server_context(settings: TlsSettings) -> ssl.SSLContext:
    """TLS settings without a certificate yet.

    Raises:
        LocalRunError: this machine's TLS library has none of the ciphers.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 1.0 and 1.1: the file asked for them
        context.minimum_version = VERSIONS[settings.min_version or "1.2"]
    if settings.ciphers:
        try:
            context.set_ciphers(":".join(settings.ciphers))
        except ssl.SSLError as error:
            raise LocalRunError(
                f"tls.cipherSuites: the TLS library here has none of {', '.join(settings.ciphers)}"
            ) from error
    context.set_alpn_protocols(list(settings.next_protocols))
    return context


class ServingCertificate:
    """Keeps a TLS server's certificate that of a folder; one of its own until there is one.

    A `Runnable`.
    """

    name = "serving certificate"
    needs_lease = False

    def __init__(
        self, context: ssl.SSLContext, folder: Path, metrics: Metrics, names: Sequence[str]
    ) -> None:
        self._context = context
        self._files = (folder / "tls.crt", folder / "tls.key")
        self._metrics = metrics
        self._loaded: tuple[str, str] | None = None
        if not self.look():
            logger.info("%s holds no certificate; one of its own is used", folder)
            load_certificate(context, *build_own_certificate(names, datetime.now(UTC)))

    def look(self) -> bool:
        """Load what is in the folder when it has changed; whether a certificate is there."""
        try:
            certificate, key = (file.read_text() for file in self._files)
        except OSError:
            return False
        if not certificate.strip() or not key.strip():
            return False  # the Secret exists, and waits to be filled
        if (certificate, key) == self._loaded:
            return True
        try:
            load_certificate(self._context, certificate, key)
        except Unreachable as error:
            self._metrics.certificate_errors.inc()
            logger.error("%s: %s; the one before is kept", self._files[0].parent, error)
            return self._loaded is not None
        self._metrics.certificate_reads.inc()
        self._loaded = (certificate, key)
        return True

    async def run(self, stopping: asyncio.Event) -> None:
        """Look every ten seconds."""
        while not stopping.is_set():
            try:
                async with asyncio.timeout(LOOK_S):
                    await stopping.wait()
            except TimeoutError:
                self.look()

    def find_unready(self) -> str:
        """Ready with any certificate."""
        return ""


def build_own_certificate(names: Sequence[str], now: datetime) -> tuple[str, str]:
    """A certificate that signs itself, and its key, as PEM texts."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + OWN_LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()
