"""How a list is read: selectors, snapshots of the recent past, continue tokens."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.api import kinds
from trainwright.base.errors import BadRequest, Gone, Timeout
from trainwright.core.selectors import (
    check_field_selector,
    parse_field_selector,
    parse_label_selector,
    read_field,
)
from trainwright.server import refusals
from trainwright.server.stored import StoredPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trainwright.base.objects import Object
    from trainwright.core.selectors import FieldRequirement, LabelSelector
    from trainwright.server.object_index import Key, ObjectIndex
    from trainwright.server.requests import ListOptions, ServedKind
    from trainwright.server.stored import Stored
    from trainwright.server.watchhub import History


@dataclass(frozen=True, slots=True)
class Selection:
    """Parsed selectors of one kind."""

    served: ServedKind
    labels: LabelSelector
    fields: Sequence[FieldRequirement]
    decode: Callable[[Stored], Object]
    """The object in the version of `served`."""

    @property
    def is_everything(self) -> bool:
        """Whether there is nothing to check."""
        return not self.labels.requirements and not self.fields

    def exact_field(self, path: str) -> str:
        """The one value that a field must have, or an empty string."""
        return next((f.value for f in self.fields if f.path == path and f.equal), "")

    def matches(self, stored: Stored) -> bool:
        """Whether the object is selected; decodes it only when a field asks for that."""
        if not self.labels.matches(stored.labels):
            return False
        return all(self._has(stored, field) == field.equal for field in self.fields)

    def _has(self, stored: Stored, field: FieldRequirement) -> bool:
        if field.path == "metadata.name":
            return stored.name == field.value
        if field.path == "metadata.namespace":
            return stored.namespace == field.value
        if field.path == "spec.nodeName" and self.served.kind == kinds.POD:
            return stored.node_name == field.value
        return read_field(self.served.kind, self.decode(stored), field.path) == field.value


def parse_selection(
    served: ServedKind, labels: str, fields: str, decode: Callable[[Stored], Object]
) -> Selection:
    """Read both selectors.

    Raises:
        BadRequest: on bad syntax or a field that the kind is not selectable by.
    """
    selector = parse_field_selector(fields)
    check_field_selector(served.kind, selector, served.selectable_fields)
    return Selection(served, parse_label_selector(labels), selector.requirements, decode)


class ExpiredToken(Gone):
    """410 for a continue token; its Status carries one that goes on at the newest state."""

    def __init__(self, message: str, *, continue_token: str) -> None:
        super().__init__(message)
        self.continue_token = continue_token

    def to_status(self) -> dict[str, Any]:
        """The Status of the wire, with `metadata.continue`."""
        return {**super().to_status(), "metadata": {"continue": self.continue_token}}


class _Token(msgspec.Struct, array_like=True):
    revision: int
    namespace: str
    name: str


def _render_token(revision: int, key: Key) -> str:
    token = msgspec.json.encode(_Token(revision, *key))
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def _parse_token(text: str) -> tuple[int, Key]:
    try:
        padded = text + "=" * (-len(text) % 4)
        token = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadRequest(f"continue key is not valid: {error}") from error
    return token.revision, (token.namespace, token.name)


def parse_revision(text: str) -> int:
    """A resourceVersion as a number; empty is 0.

    Raises:
        BadRequest: when it is none.
    """
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise BadRequest(f'invalid resource version "{text}": must be a decimal number')
    return int(text)


def too_large(revision: int, current: int) -> Timeout:
    """504 for a resourceVersion that has not been given out yet."""
    message = f"Too large resource version: {revision}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Timeout(message, details={"causes": [cause], "retryAfterSeconds": 1})


def check_list_options(options: ListOptions) -> None:
    """Refuse combinations that have no meaning.

    Raises:
        Invalid: 422.
    """
    match, version = options.resource_version_match, options.resource_version
    if not match:
        return
    if match not in ("Exact", "NotOlderThan"):
        raise refusals.forbidden_option(
            "ListOptions", "resourceVersionMatch", f'unknown value "{match}"'
        )
    if options.continue_token:
        raise refusals.forbidden_option(
            "ListOptions", "resourceVersionMatch", "resourceVersionMatch is forbidden with continue"
        )
    if not version:
        raise refusals.forbidden_option(
            "ListOptions",
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    if match == "Exact" and version == "0":
        raise refusals.forbidden_option(
            "ListOptions",
            "resourceVersionMatch",
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A resource as it was at a revision: the objects of now, and what differs."""

    revision: int
    changed: dict[Key, Stored | None]
    """What objects that changed since were then; None: they were not there."""


def read_past(history: History, resource: str, revision: int, current: int) -> Past:
    """The state at `revision`.

    Raises:
        Gone: when history does not reach back that far.
    """
    changed: dict[Key, Stored | None] = {}
    if revision < current:
        for change in history.since(revision, resource):
            changed.setdefault((change.now.namespace, change.now.name), change.before)
    return Past(revision=revision, changed=changed)


def list_page(
    index: ObjectIndex,
    namespace: str,
    options: ListOptions,
    *,
    selection: Selection,
    history: History,
    current: int,
    resource: str,
) -> StoredPage:
    """One page of a list.

    Raises:
        Gone: 410 with a new token, when the token's or the exact revision is forgotten.
        Timeout: the revision asked for lies in the future.
        Invalid, BadRequest: bad options.
    """
    check_list_options(options)
    after: Key | None = None
    revision = parse_revision(options.resource_version)
    if options.continue_token:
        revision, after = _parse_token(options.continue_token)
        past = _continue_past(history, resource, revision, current, after)
    elif revision > current:
        raise too_large(revision, current)
    elif options.resource_version_match == "Exact" or (
        revision and options.limit and not options.resource_version_match
    ):
        past = read_past(history, resource, revision, current)
    else:
        past = Past(revision=current, changed={})
    items = _select(index, namespace, selection, past, after)
    if not options.limit or options.limit >= len(items):
        return StoredPage(items=items, resource_version=str(past.revision))
    page = items[: options.limit]
    remaining = len(items) - len(page) if selection.is_everything else None
    return StoredPage(
        items=page,
        resource_version=str(past.revision),
        continue_token=_render_token(past.revision, (page[-1].namespace, page[-1].name)),
        remaining=remaining,
    )


def _continue_past(
    history: History, resource: str, revision: int, current: int, after: Key
) -> Past:
    try:
        return read_past(history, resource, revision, current)
    except Gone as gone:
        raise ExpiredToken(
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter, or use the continue token "
            "in this response to retrieve the remainder of the results. Continuing with the "
            "provided token results in an inconsistent list",
            continue_token=_render_token(current, after),
        ) from gone


def _select(
    index: ObjectIndex, namespace: str, selection: Selection, past: Past, after: Key | None
) -> Sequence[Stored]:
    if past.changed:
        candidates: Iterable[Stored] = _read_past_objects(index, namespace, past)
    else:
        candidates = _candidates(index, namespace, selection)
    if after is not None:
        candidates = [stored for stored in candidates if (stored.namespace, stored.name) > after]
    if selection.is_everything:
        return list(candidates)
    return [stored for stored in candidates if selection.matches(stored)]


def _candidates(index: ObjectIndex, namespace: str, selection: Selection) -> Iterable[Stored]:
    name = selection.exact_field("metadata.name")
    if name and namespace:
        found = index.get((namespace, name))
        return [found] if found else []
    node_name = ""
    if selection.served.kind == kinds.POD:
        node_name = selection.exact_field("spec.nodeName")
    few = index.find(selection.labels.exact(), node_name=node_name)
    if few is None:
        return index.all(namespace)
    chosen = [stored for stored in few if not namespace or stored.namespace == namespace]
    return sorted(chosen, key=lambda stored: (stored.namespace, stored.name))


def _read_past_objects(index: ObjectIndex, namespace: str, past: Past) -> Iterable[Stored]:
    objects = {(stored.namespace, stored.name): stored for stored in index.all(namespace)}
    for key, before in past.changed.items():
        if namespace and key[0] != namespace:
            continue
        if before is None:
            objects.pop(key, None)
        else:
            objects[key] = before
    return [objects[key] for key in sorted(objects)]
