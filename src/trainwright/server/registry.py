"""The one way to read and write objects: every door (HTTP, in-process) and every kind goes through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Json, Object
    from trainwright.base.times import Clock
    from trainwright.machinery.api import DeleteOptions, PatchType
    from trainwright.server.requests import (
        ListOptions,
        RawEvent,
        ServedKind,
        WatchOptions,
        WriteOptions,
        Written,
    )
    from trainwright.server.stored import Stored, StoredPage


class Watch:
    """One open watch. Iterate `batches()`; `close()` when the client is gone."""

    def batches(self) -> AsyncIterator[Sequence[RawEvent]]:
        """Events in commit order, everything that is ready at once in one batch.

        Ends cleanly at the time limit, on `close`, and when the reader was too slow; raises Gone
        only from `Registry.watch` itself, never here.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Stop; a pending `batches()` ends."""
        raise NotImplementedError


class Registry:
    """Reads come from memory and never wait; writes are async and return after the commit.

    Every method raises `ApiError` subclasses only, ready to be sent as a Status. All methods belong
    to one event loop.
    """

    @classmethod
    async def open(cls, folder: Path, clock: Clock) -> Registry:
        """Open (or make) the store in `folder` and register every kind we know.

        Raises:
            LocalRunError: another process has the folder, or the schema is newer than we are.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Finish pending writes, end watches, close the store."""
        raise NotImplementedError

    @property
    def resource_version(self) -> str:
        """The newest committed resourceVersion of the whole server."""
        raise NotImplementedError

    def served_kinds(self) -> Sequence[ServedKind]:
        """Every kind served now, built-in ones first."""
        raise NotImplementedError

    def find_served(self, group: str, version: str, plural: str) -> ServedKind | None:
        """The kind behind a REST path."""
        raise NotImplementedError

    def on_kinds_changed(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever `served_kinds` changed (a CRD came or went): drop caches."""
        raise NotImplementedError

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """The committed object; NotFound."""
        raise NotImplementedError

    def list(self, kind: Kind, namespace: str, options: ListOptions) -> StoredPage:
        """One page, sorted by namespace and name; `namespace=""` means all."""
        raise NotImplementedError

    async def wait_for_revision(self, resource_version: str) -> None:
        """Wait shortly until `resource_version` is reached.

        Raises:
            Timeout: 504 with cause ResourceVersionTooLarge. BadRequest: not a number.
        """
        raise NotImplementedError

    def watch(self, kind: Kind, namespace: str, options: WatchOptions) -> Watch:
        """Start a watch; events from now on are kept for it at once.

        Raises:
            Gone: history does not reach back to `resource_version`. Invalid: bad combination.
        """
        raise NotImplementedError

    async def create(
        self, kind: Kind, namespace: str, obj: Object, options: WriteOptions
    ) -> Written:
        """POST. `namespace` is the URL's; the body's must be equal or absent. Takes over `obj`."""
        raise NotImplementedError

    async def replace(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        obj: Object,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> Written:
        """PUT of the object, `status`, or a namespace's `finalize`. Takes over `obj`."""
        raise NotImplementedError

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Json,
        options: WriteOptions,
        *,
        type: PatchType,
        subresource: str = "",
    ) -> Written:
        """PATCH of all four types; `body` is decoded JSON (apply: the decoded YAML). Takes it over."""
        raise NotImplementedError

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        delete: DeleteOptions,
        options: WriteOptions,
    ) -> Written:
        """DELETE; `Written.removed` says whether it went at once."""
        raise NotImplementedError

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str,
        which: ListOptions,
        delete: DeleteOptions,
        options: WriteOptions,
    ) -> Sequence[Written]:
        """DELETE of a list path, object by object, honouring the selectors."""
        raise NotImplementedError

    async def bind_pod(
        self, namespace: str, name: str, binding: Object, options: WriteOptions
    ) -> Written:
        """POST pods/binding: set `spec.nodeName` once and the condition PodScheduled."""
        raise NotImplementedError
