"""The seams between controllers and an API server: `Api` writes and reads live, `Lister` reads cached.

Two transports implement both: `machinery.client` over HTTP and `server.inprocess` without it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from trainwright.base.objects import Json, Object

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind


class PatchType(StrEnum):
    """How a patch body is read: the media type of a PATCH request."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class WatchType(StrEnum):
    """The `type` of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    SYNC = "SYNC"
    """Not of the wire: listers tell so of objects that were there already; nothing has changed."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change; a DELETED event carries the last state with the deletion's resourceVersion."""

    type: WatchType
    object: Object


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list."""

    items: Sequence[Object]
    resource_version: str
    continue_token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How an object goes; `None` leaves the server's default."""

    propagation: str | None = None
    """`Background`, `Foreground` or `Orphan`."""
    grace_period_s: int | None = None
    uid: str | None = None
    """Precondition."""
    resource_version: str | None = None
    """Precondition."""


class Api(Protocol):
    """Live access to an API server. Every method raises `ApiError` subclasses or `Unreachable`."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """The live object; NotFound when there is none. `namespace` is "" for cluster scope."""
        ...

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ListPage:
        """One page; `namespace=""` means all namespaces."""
        ...

    def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Changes after `resource_version`, bookmarks included; Gone when that is too old."""
        ...

    async def create(
        self, kind: Kind, obj: Object, *, field_manager: str, dry_run: bool = False
    ) -> Object:
        """POST."""
        ...

    async def replace(
        self, kind: Kind, obj: Object, *, subresource: str = "", field_manager: str
    ) -> Object:
        """PUT; Conflict when `metadata.resourceVersion` is set and not the live one."""
        ...

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Json,
        *,
        type: PatchType,
        subresource: str = "",
        field_manager: str,
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """PATCH of any kind; APPLY is server-side apply and creates what is missing."""
        ...

    async def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        """DELETE; the object as it goes, or the server's Status."""
        ...


class RawReads(Protocol):
    """Reads as the bytes that the server sent; raises as `Api` does. What informers live on."""

    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        silence_s: float | None = None,
        accept: str = ...,
    ) -> AsyncIterator[bytes]:
        """The answer to a GET as it comes; Unreachable when nothing came for `silence_s`."""
        ...

    def stream_lines(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        silence_s: float | None = None,
        accept: str = ...,
    ) -> AsyncIterator[bytes]:
        """The same, by lines of any length, without their ends."""
        ...


Handler = Callable[[WatchType, Object | None, Object], None]
"""Called with (type, object before if known, object now). Must not block and not edit objects."""


class Lister(Protocol):
    """Cached reads of the kinds a controller follows. Objects are shared: never edit them."""

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object as last seen."""
        ...

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        owner_uid: str = "",
    ) -> Sequence[Object]:
        """Objects that have all `labels` and, when given, an owner reference with `owner_uid`."""
        ...

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        """Call `handler` for each object that is there (ADDED) and for each change from now on."""
        ...
