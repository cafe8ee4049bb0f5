"""Whether applying an object again would change anything: asked when our last apply is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.wellknown import TRAINER_MANAGER
from trainwright.base.objects import dig
from trainwright.merge.quantity import is_quantity, parse_quantity
from trainwright.merge.structured import apply_config

if TYPE_CHECKING:
    from trainwright.base.objects import Json, Object
    from trainwright.merge.shape import Schema

_QUANTITIES = frozenset({"limits", "requests", "sizeLimit", "divisor"})
"""Fields below which values are quantities: servers rewrite those, `1000m` becomes `1`."""


def is_applied(desired: Object, live: Object, schema: Schema | None) -> bool:
    """Whether `live` is as `desired` says and owned by us to the same extent.

    Args:
        desired: what we would apply.
        live: the object with its managedFields, as read from the server.
        schema: structural schema of the kind.
    """
    managed = dig(live, "metadata", "managedFields", default=[])
    if not any(_is_ours(entry) for entry in managed):
        return False
    result = apply_config(
        live=live,
        config=_adopt_quantities(desired, live, is_quantity_field=False),
        managed=managed,
        manager=TRAINER_MANAGER,
        force=True,
        schema=schema,
        api_version=desired["apiVersion"],
        now="",
    )
    return not result.changed


def _is_ours(entry: Object) -> bool:
    return (
        entry.get("manager") == TRAINER_MANAGER
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    )


def _adopt_quantities(desired: Json, live: Json, *, is_quantity_field: bool) -> Json:
    """`desired` with the server's spelling of quantities that mean the same."""
    if isinstance(desired, dict) and isinstance(live, dict):
        return {
            key: _adopt_quantities(
                value, live.get(key), is_quantity_field=is_quantity_field or key in _QUANTITIES
            )
            for key, value in desired.items()
        }
    if isinstance(desired, list) and isinstance(live, list):
        return [
            _adopt_quantities(item, _find_match(item, index, live), is_quantity_field=False)
            for index, item in enumerate(desired)
        ]
    if is_quantity_field and is_quantity(desired) and is_quantity(live):
        return live if parse_quantity(desired) == parse_quantity(live) else desired
    return desired


def _find_match(item: Json, index: int, live: list[Json]) -> Json:
    name = item.get("name") if isinstance(item, dict) else None
    if name is not None:
        named = (other for other in live if isinstance(other, dict) and other.get("name") == name)
        return next(named, None)
    return live[index] if index < len(live) else None
