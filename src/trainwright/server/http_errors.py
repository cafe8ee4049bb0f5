"""The Status errors that the HTTP door itself gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind


def refuse_access(kind: Kind, name: str, why: str) -> Forbidden:
    """403 for an object or resource that this user may not touch."""
    subject = f'{kind.resource} "{name}"' if name else kind.resource
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return Forbidden(
        f"{subject} is forbidden: {why}",
        details={key: value for key, value in details.items() if value},
    )


def refuse_path() -> NotFound:
    """404 for a path that names nothing. `kubectl debug` reads its details without looking for them."""
    return NotFound("the server could not find the requested resource", details={})
