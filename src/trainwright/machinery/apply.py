"""Server-side apply, forced: how everything of ours writes what it owns; and writes that carry a uid."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainwright.base.errors import Conflict, Invalid
from trainwright.base.objects import Object, name_of, namespace_of
from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.api.kinds import Kind
    from trainwright.machinery.api import Api


async def apply_object(
    api: Api, kind: Kind, obj: Object, manager: str, *, subresource: str = ""
) -> Object:
    """Make the object be as `obj` says, whoever owned those fields; the server's answer.

    Raises:
        Conflict: `obj` has a uid, and the name belongs to another object by now.
        ApiError: the server refuses it.
    """
    with other_object_as_conflict():
        return await api.patch(
            kind,
            namespace_of(obj),
            name_of(obj),
            obj,
            type=PatchType.APPLY,
            subresource=subresource,
            field_manager=manager,
            force=True,
        )


@contextmanager
def other_object_as_conflict() -> Iterator[None]:
    """Around a patch that carries the uid of the object it is meant for.

    Raises:
        Conflict: the name belongs to another object by now. Servers say that the uid is immutable.
    """
    try:
        yield
    except Invalid as error:
        causes = error.details.get("causes") or ()
        if any(cause.get("field") == "metadata.uid" for cause in causes):
            raise Conflict(error.message, details=error.details) from error
        raise
