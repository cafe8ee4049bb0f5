"""Proofs of who we are that are made or renewed while we run: exec plugins and client certificates."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from trainwright.base.errors import TrainwrightError, Unreachable
from trainwright.base.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_TIMEOUT_S = 60.0
RENEW_BEFORE_S = 10.0
"""A credential is made anew this long before it expires."""
ERROR_CHARACTERS = 500

Tls = ssl.SSLContext | bool


class CredentialsError(TrainwrightError, ValueError):
    """Credentials that cannot be used, and why."""


class Credentials(Protocol):
    """Where a client's proof of identity comes from."""

    async def renew(self, tls: Tls) -> str:
        """The bearer token of now, "" for none of its own; a new client certificate goes into `tls`.

        Raises:
            Unreachable: it could not be had; trying again later may help.
        """
        ...

    def reject(self) -> None:
        """The server did not accept the last one."""
        ...


@dataclass(slots=True)
class CertificateFiles:
    """A client certificate in files, loaded again when they change."""

    certificate: Path
    key: Path
    _seen: tuple[int, ...] = ()

    async def renew(self, tls: Tls) -> str:
        """No token."""
        seen = (self.certificate.stat().st_mtime_ns, self.key.stat().st_mtime_ns)
        if seen != self._seen and isinstance(tls, ssl.SSLContext):
            _load(tls, self.certificate, self.key)
            self._seen = seen
        return ""

    def reject(self) -> None:
        """Load them again."""
        self._seen = ()


@dataclass(slots=True)
class CertificateData:
    """A client certificate as PEM text, as a kubeconfig holds it."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)
    _loaded: bool = False

    async def renew(self, tls: Tls) -> str:
        """No token."""
        if not self._loaded and isinstance(tls, ssl.SSLContext):
            load_certificate(tls, self.certificate, self.key)
            self._loaded = True
        return ""

    def reject(self) -> None:
        """There is no other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCommand:
    """A program that prints credentials, as a kubeconfig's `users[].user.exec` names it."""

    api_version: str
    command: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None
    """What `provideClusterInfo` hands to the program."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a program printed."""

    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)
    expires_at: float = float("inf")
    """Unix time."""


class ExecPlugin:
    """Credentials that a program prints, kept until they expire or are not accepted."""

    def __init__(self, command: ExecCommand) -> None:
        self._command = command
        self._current: ExecCredential | None = None
        self._lock = asyncio.Lock()

    async def renew(self, tls: Tls) -> str:
        """The token; runs the program when there is none that holds."""
        async with self._lock:
            current = self._current
            if current is None or current.expires_at - RENEW_BEFORE_S <= time.time():
                current = self._current = await run_exec_plugin(self._command)
                if current.certificate and isinstance(tls, ssl.SSLContext):
                    load_certificate(tls, current.certificate, current.key)
            return current.token

    def reject(self) -> None:
        """Run the program again for the next request."""
        self._current = None


async def run_exec_plugin(command: ExecCommand) -> ExecCredential:
    """Run a credential program once.

    Raises:
        Unreachable: it cannot be run, fails, or prints no credential.
    """
    environment = {
        **os.environ,
        **command.environment,
        "KUBERNETES_EXEC_INFO": msgspec.json.encode(build_exec_info(command)).decode(),
    }
    where = f"the credential program {command.command}"
    try:
        process = await asyncio.create_subprocess_exec(
            command.command,
            *command.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
    except OSError as error:
        hint = f"; {command.install_hint}" if command.install_hint else ""
        raise Unreachable(f"{where} cannot be run: {error.strerror or error}{hint}") from error
    try:
        out, err = await asyncio.wait_for(process.communicate(), EXEC_TIMEOUT_S)
    except BaseException as error:
        process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise Unreachable(f"{where} did not end within {EXEC_TIMEOUT_S:.0f} s") from error
        raise
    if process.returncode:
        said = err.decode(errors="replace").strip()[-ERROR_CHARACTERS:]
        raise Unreachable(f"{where} ended with {process.returncode}: {said}")
    try:
        return parse_exec_credential(out, command.api_version)
    except CredentialsError as error:
        raise Unreachable(f"{where}: {error}") from error


def build_exec_info(command: ExecCommand) -> Mapping[str, Any]:
    """What the program reads from KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": False}
    if command.cluster is not None:
        spec["cluster"] = command.cluster
    return {"kind": "ExecCredential", "apiVersion": command.api_version, "spec": spec}


def parse_exec_credential(text: bytes, api_version: str) -> ExecCredential:
    """Read what a credential program printed.

    Raises:
        CredentialsError: it is not an ExecCredential of that version with a token or certificate.
    """
    try:
        document: Any = msgspec.json.decode(text)
        status = dict(document["status"])
        found = (document["apiVersion"], document["kind"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise CredentialsError("it printed no ExecCredential with a status") from error
    if found != (api_version, "ExecCredential"):
        raise CredentialsError(
            f"it printed {found[1]} of {found[0]}; an ExecCredential of {api_version} was wanted"
        )
    certificate = str(status.get("clientCertificateData") or "")
    key = str(status.get("clientKeyData") or "")
    token = str(status.get("token") or "")
    if bool(certificate) != bool(key) or not (token or certificate):
        raise CredentialsError("it printed neither a token nor a certificate with its key")
    try:
        expires = status.get("expirationTimestamp")
        expires_at = parse_time(str(expires)).timestamp() if expires else float("inf")
    except ValueError as error:
        raise CredentialsError(f"expirationTimestamp: {error}") from error
    return ExecCredential(token, certificate, key, expires_at)


def load_certificate(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Put a client certificate of PEM texts into TLS settings.

    Raises:
        Unreachable: it is no certificate with its key.
    """
    with _private_file(certificate) as certificate_file, _private_file(key) as key_file:
        _load(tls, certificate_file, key_file)


def _load(tls: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        tls.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise Unreachable(f"the client certificate cannot be used: {error}") from error


@contextmanager
def _private_file(text: str) -> Iterator[Path]:
    """A file for the TLS library, which reads nothing else; in memory where the system has that."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("credential")
        try:
            os.write(descriptor, text.encode())
            yield Path(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:  # made for its owner only
        path = Path(folder) / "credential.pem"
        path.write_text(text)
        yield path
