"""Who owns which field: managedFields of every write, and server-side apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.errors import BadRequest, FieldError, Reason
from trainwright.base.objects import dig
from trainwright.base.times import render_time
from trainwright.merge.shape import DuplicateElement, KeyMissing
from trainwright.merge.structured import apply_config, track_update
from trainwright.server import refusals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.objects import Object
    from trainwright.server.pipeline import Writing

MAX_MANAGER_LENGTH = 128


def check_manager(manager: str) -> None:
    """Refuse a field manager that cannot be one.

    Raises:
        Invalid: empty, too long or unprintable.
    """
    if not manager:
        error = FieldError(Reason.REQUIRED, "fieldManager", detail="is required for apply patch")
    elif len(manager) > MAX_MANAGER_LENGTH:
        detail = f"may not be more than {MAX_MANAGER_LENGTH} bytes"
        error = FieldError(Reason.TOO_LONG, "fieldManager", manager, detail)
    elif not manager.isprintable():
        detail = "should only contain printable characters"
        error = FieldError(Reason.INVALID, "fieldManager", manager, detail)
    else:
        return
    raise refusals.invalid_options("PatchOptions", [error])


def managers_of(obj: Object | None) -> list[dict[str, Any]]:
    """`metadata.managedFields`, empty when absent."""
    managers: list[dict[str, Any]] = dig(obj, "metadata", "managedFields", default=[])
    return managers


def with_managers(obj: Object, managers: Sequence[dict[str, Any]]) -> Object:
    """The object with these `managedFields`, or without any."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if managers:
        metadata["managedFields"] = list(managers)
    return {**obj, "metadata": metadata}


def without_times(managers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries as they are compared: a new time alone is no change."""
    return [{key: value for key, value in e.items() if key != "time"} for e in managers]


def track(writing: Writing, before: Object | None, after: Object) -> Object:
    """`after` with the managedFields that a create, replace or patch leaves."""
    managers = track_update(
        before=before,
        after=after,
        managed=managers_of(before),
        manager=writing.options.field_manager,
        schema=writing.served.schema,
        api_version=writing.kind.api_version,
        subresource=writing.subresource,
        now=render_time(writing.now),
    )
    return with_managers(after, managers)


def apply(writing: Writing, live: Object | None, config: Object) -> Object:
    """`live` after a server-side apply of `config`, managedFields included.

    Raises:
        Conflict: another manager owns a field, and the request does not force.
        BadRequest: a keyed list of `config` is malformed.
    """
    try:
        result = apply_config(
            live=live,
            config=_own_part(writing, config),
            managed=managers_of(live),
            manager=writing.options.field_manager,
            force=writing.options.force,
            schema=writing.served.schema,
            api_version=writing.kind.api_version,
            subresource=writing.subresource,
            now=render_time(writing.now),
        )
    except (DuplicateElement, KeyMissing) as error:
        raise BadRequest(f"failed to create typed patch object: {error}") from error
    return with_managers(result.obj, result.managed_fields)


def _own_part(writing: Writing, config: Object) -> Object:
    """What an apply to this subresource may speak of; the rest is ignored."""
    if writing.subresource:
        part = "spec" if writing.subresource == "finalize" else writing.subresource
        own = {key: config[key] for key in ("apiVersion", "kind", part) if key in config}
        own["metadata"] = {
            key: value for key, value in config["metadata"].items() if key in ("name", "namespace")
        }
        return own
    if "status" in writing.kind.subresources and "status" in config:
        return {key: value for key, value in config.items() if key != "status"}
    return config
