"""Server-side apply, forced: how everything of ours writes what it owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import Conflict, Invalid
from trainwright.base.objects import Object, name_of, namespace_of, uid_of
from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
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
    try:
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
    except Invalid as error:
        # Said of an object that is there; of one that is not, a server says Conflict itself.
        causes = error.details.get("causes") or ()
        if uid_of(obj) and any(cause.get("field") == "metadata.uid" for cause in causes):
            raise Conflict(error.message, details=error.details) from error
        raise
