"""Keeping a certificate: in the Secret of our name, in the API server's trust, and loaded.

Every replica does all of it; whoever writes first wins, and the others take what they then read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from trainwright.api.kinds import SECRET
from trainwright.base.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    TrainwrightError,
    Unreachable,
)
from trainwright.base.objects import dig, resource_version_of
from trainwright.machinery.api import WatchType
from trainwright.machinery.credentials import load_certificate
from trainwright.webhooks.certificates import (
    CERTIFICATE,
    KEY,
    Material,
    find_fault,
    read_material,
    render_material,
    renew_material,
)
from trainwright.webhooks.configurations import CONFIGURATIONS, with_bundle

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api, WatchEvent

logger = logging.getLogger(__name__)

MANAGER = "trainwright-webhooks"
"""Field manager of what is written here."""
LOOK_S = 30.0
"""How long a change that no watch has told of may stay unseen."""
LOOK_AT_FILES_S = 2.0
TRIES = 5


class CertificateUnavailable(TrainwrightError):
    """There is no certificate yet; trying again later may help."""


class Certificate(Protocol):
    """Where the serving certificate comes from."""

    look_s: float

    async def renew(self) -> None:
        """Look once: load what is there, make what is due.

        Raises:
            TrainwrightError: why that could not be done.
        """
        ...

    async def wait_for_change(self) -> None:
        """Return once it is worth looking again; may never."""
        ...


class Loaded:
    """The certificate that new connections get."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._current: tuple[str, str] | None = None

    @property
    def is_there(self) -> bool:
        """Whether any certificate has been loaded."""
        return self._current is not None

    def load(self, certificate: bytes, key: bytes) -> None:
        """Take a certificate for all connections from now on.

        Raises:
            CertificateUnavailable: it is none, or the key is not its own.
        """
        try:
            wanted = (certificate.decode("ascii"), key.decode("ascii"))
        except UnicodeDecodeError as error:
            raise CertificateUnavailable("the certificate or its key is no PEM text") from error
        if wanted == self._current:
            return
        try:
            # Tried first: a half-loaded pair would end every handshake.
            load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *wanted)
            load_certificate(self._tls, *wanted)
        except Unreachable as error:
            raise CertificateUnavailable(str(error)) from error
        logger.info("a new serving certificate is in use")
        self._current = wanted


@dataclass(slots=True)
class FileCertificate:
    """A certificate in a folder that somebody else looks after."""

    folder: Path
    loaded: Loaded
    look_s: float = LOOK_AT_FILES_S

    async def renew(self) -> None:
        """Load the files; only another content is loaded again."""
        try:
            certificate = await asyncio.to_thread((self.folder / CERTIFICATE).read_bytes)
            key = await asyncio.to_thread((self.folder / KEY).read_bytes)
        except OSError as error:
            raise CertificateUnavailable(
                f"{self.folder}: {CERTIFICATE} and {KEY} are wanted there: {error.strerror}"
            ) from error
        self.loaded.load(certificate, key)

    async def wait_for_change(self) -> None:
        """Files are looked at again and again."""
        await asyncio.Event().wait()


class SecretCertificate:
    """A certificate of our own, kept in a Secret that all replicas share."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        loaded: Loaded,
        *,
        namespace: str,
        secret: str,
        names: Sequence[str],
    ) -> None:
        self.look_s = LOOK_S
        self._api = api
        self._clock = clock
        self._loaded = loaded
        self._namespace = namespace
        self._secret = secret
        self._names = names
        self._missing: set[str] = set()
        self._seen: dict[str, str] = {}
        """Name and resourceVersion of what was read or written last."""

    async def renew(self) -> None:
        """Make the certificate when it is due, have it trusted, then serve with it.

        In this order, so that no API server meets a certificate of an authority unknown to it.
        """
        material = await self._ensure_material()
        for kind, name in CONFIGURATIONS:
            await self._inject(kind, name, material.ca_certificate)
        self._loaded.load(material.certificate, material.key)

    async def wait_for_change(self) -> None:
        """Return when the Secret or a configuration changes."""
        watched = [(SECRET, self._namespace, self._secret)]
        watched += [(kind, "", name) for kind, name in CONFIGURATIONS]
        tasks = [asyncio.create_task(self._see_change(*one)) for one in watched]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _see_change(self, kind: Kind, namespace: str, name: str) -> None:
        """Return when one object is not what it is now; never when it cannot be watched."""
        selector = f"metadata.name={name}"
        with contextlib.suppress(ApiError, Unreachable):
            page = await self._api.list(kind, namespace, field_selector=selector)
            versions = [resource_version_of(item) for item in page.items]
            if versions != [self._seen[name]] * bool(self._seen.get(name)):
                return
            events = self._api.watch(
                kind,
                namespace,
                resource_version=page.resource_version,
                field_selector=selector,
                timeout_s=2 * self.look_s,
            )
            async with contextlib.aclosing(cast("AsyncGenerator[WatchEvent, None]", events)):
                async for event in events:
                    if event.type != WatchType.BOOKMARK:
                        return
        await asyncio.Event().wait()  # the next look comes anyway

    async def _ensure_material(self) -> Material:
        for _ in range(TRIES):
            secret = await self._find_secret()
            now = self._clock.now()
            material = read_material(secret) if secret is not None else None
            if material is not None:
                fault = find_fault(material, self._names, now)
                if not fault:
                    return material
                logger.info('Secret "%s": %s; it is made anew', self._secret, fault)
            made = await asyncio.to_thread(renew_material, material or Material(), self._names, now)
            if await self._write(secret, made):
                return made
        raise CertificateUnavailable(
            f'Secret "{self._secret}" changed {TRIES} times while it was written'
        )

    async def _find_secret(self) -> Object | None:
        try:
            found = await self._api.get(SECRET, self._namespace, self._secret)
        except NotFound:
            self._seen.pop(self._secret, None)
            return None
        self._seen[self._secret] = resource_version_of(found)
        return found

    async def _write(self, secret: Object | None, material: Material) -> bool:
        """Whether it was written; False when another replica was first."""
        data = dict(render_material(material))
        try:
            if secret is None:
                wanted = self._build_secret(data)
                written = await self._api.create(SECRET, wanted, field_manager=MANAGER)
            else:
                changed = {**secret, "data": {**dig(secret, "data", default={}), **data}}
                written = await self._api.replace(SECRET, changed, field_manager=MANAGER)
        except (AlreadyExists, Conflict, NotFound):
            return False
        except Forbidden as error:
            if secret is not None:
                raise
            raise CertificateUnavailable(
                f'Secret "{self._secret}" of namespace {self._namespace} is missing and may not be '
                f"created here; create it, empty: {error}"
            ) from error
        self._seen[self._secret] = resource_version_of(written)
        return True

    def _build_secret(self, data: dict[str, str]) -> Object:
        return {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": {"name": self._secret, "namespace": self._namespace},
            "data": data,
        }

    async def _inject(self, kind: Kind, name: str, bundle: bytes) -> None:
        """Put the bundle into one configuration; nothing else of it changes.

        A replace of exactly what was read: the rights of Trainer's manager have no patch.
        """
        for _ in range(TRIES):
            try:
                found = await self._api.get(kind, "", name)
            except NotFound:
                self._seen.pop(name, None)
                if name not in self._missing:
                    logger.warning('%s "%s" is not there: nothing asks us yet', kind.kind, name)
                    self._missing.add(name)
                return
            self._missing.discard(name)
            self._seen[name] = resource_version_of(found)
            wanted = with_bundle(found, bundle)
            if wanted is found:
                return
            with contextlib.suppress(Conflict, NotFound):
                written = await self._api.replace(kind, wanted, field_manager=MANAGER)
                self._seen[name] = resource_version_of(written)
                logger.info('%s "%s" trusts our authority now', kind.kind, name)
                return
        raise CertificateUnavailable(
            f'{kind.kind} "{name}" changed {TRIES} times while it was written'
        )
