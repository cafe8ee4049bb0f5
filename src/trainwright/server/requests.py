"""What a caller may ask of the registry, parsed out of HTTP by one door and built directly by the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.api.kinds import Kind
    from trainwright.machinery.api import WatchType
    from trainwright.server.stored import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The query options of a create, replace or patch, and who asks."""

    field_manager: str = "trainwright"
    """Checked by the registry: 1 to 128 printable characters."""
    dry_run: bool = False
    field_validation: Literal["Ignore", "Warn", "Strict"] = "Warn"
    force: bool = False
    """Only with apply."""
    user: str = "system:admin"
    decode_findings: Sequence[str] = ()
    """What the decoder saw and JSON hides, such as `duplicate field "spec.suspend"`."""


OWN_OPTIONS = WriteOptions(field_manager="trainwright-server")
"""Of what the server writes by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The query options of a list; selectors are still text (syntax errors raise BadRequest)."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The query options of a watch."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    send_initial_events: bool | None = None
    """None: not given. True: ADDED for all, then the bookmark `k8s.io/initial-events-end`."""
    allow_bookmarks: bool = False
    timeout_s: float | None = None
    """The stream ends cleanly after it; None: a server-chosen half to one hour."""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One watch event with its object still as JSON bytes."""

    type: WatchType
    data: bytes
    revision: int
    stored: Stored | None = None
    """The object behind `data`; None for bookmarks. (A DELETED by selector carries the old content.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The outcome of a write."""

    stored: Stored
    """The object as committed (or as it would be, for a dry run; or as it was last, for a delete)."""
    created: bool = False
    """Whether the write made the object: HTTP 201 instead of 200."""
    removed: bool = False
    """For a delete: the object is gone at once; False: it waits for grace or finalizers."""
    warnings: Sequence[str] = ()
    """Texts for Warning headers."""


@dataclass(slots=True)
class Warnings:
    """Collects the warnings of one request, without repeating any."""

    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Remember `text` once."""
        if text not in self.texts:
            self.texts.append(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """A kind as it is served now, built in or from a CRD."""

    kind: Kind
    schema: dict[str, Any] | None
    """Structural OpenAPI v3 schema as JSON; None: anything goes."""
    custom: bool
    """Served from a CRD: PUT needs a resourceVersion, strategic merge patch is refused with 415."""
    selectable_fields: frozenset[str] = frozenset()
    printer_columns: Sequence[dict[str, Any]] = ()
    """`additionalPrinterColumns` of the CRD version."""
    storage: Kind | None = None
    """The kind under which objects are kept when that is another one (versions, event views)."""

    @property
    def patch_types(self) -> Sequence[PatchType]:
        """What it can be patched with: a CRD says nothing of how its lists are merged."""
        return [t for t in PatchType if not (self.custom and t is PatchType.STRATEGIC)]
