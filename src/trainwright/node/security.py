"""What a pod's securityContext asks for that a process without special rights does not get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.objects import ObjectView, dig
from trainwright.node.status import inits_of, mains_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def find_unmet(pod: ObjectView, user: int) -> tuple[str, ...]:
    """One phrase for each wish of a container that has no effect when `user` runs it."""
    shared: Mapping[str, Any] = dig(pod, "spec", "securityContext", default={})
    return tuple(
        f"container {container['name']} {phrase}"
        for container in (*inits_of(pod), *mains_of(pod))
        for phrase in _list_phrases({**shared, **(container.get("securityContext") or {})}, user)
    )


def _list_phrases(wishes: Mapping[str, Any], user: int) -> Iterator[str]:
    wanted = wishes.get("runAsUser")
    if wanted is not None and wanted != user:
        yield f"runs as user {user}, not {wanted}"
    elif wishes.get("runAsNonRoot") and user == 0:
        yield "runs as root"
    if wishes.get("privileged") and user != 0:
        yield "gets no privileges"
