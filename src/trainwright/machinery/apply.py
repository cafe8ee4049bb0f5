"""Server-side apply, forced: how everything of ours writes what it owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import Object, name_of, namespace_of
from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind
    from trainwright.machinery.api import Api


async def apply_object(api: Api, kind: Kind, obj: Object, manager: str) -> Object:
    """Make the object be as `obj` says, whoever owned those fields; the server's answer."""
    return await api.patch(
        kind,
        namespace_of(obj),
        name_of(obj),
        obj,
        type=PatchType.APPLY,
        field_manager=manager,
        force=True,
    )
