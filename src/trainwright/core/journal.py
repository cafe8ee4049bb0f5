"""What happened to jobs: facts that shells tell a journal, since nobody can ask for them later.

Objects show how things are. Facts name objects by uid, since names come again, and the attempt,
since a restarted job does everything once more. Nobody keeps them yet: a history will, in a file
apart from the objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from trainwright.api.wellknown import RESTART_ATTEMPT_LABEL
from trainwright.base.objects import dig, labels_of, name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.base.objects import ObjectView


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object that a fact is about."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A condition of an object changed its status."""

    subject: Subject
    condition: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStarted:
    """A container's process runs, from this image."""

    subject: Subject
    attempt: int
    container: str
    image: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerExited:
    """A container's process ended."""

    subject: Subject
    attempt: int
    container: str
    exit_code: int
    signal: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFailed:
    """A probe of a container failed often enough to count."""

    subject: Subject
    attempt: int
    container: str
    probe: str
    """`startup`, `readiness` or `liveness`."""
    message: str


Fact = Transition | ContainerStarted | ContainerExited | ProbeFailed


class Journal(Protocol):
    """Takes facts in the order in which they happened. Must not block and not fail."""

    def record(self, fact: Fact) -> None:
        """One fact."""
        ...


class DroppingJournal:
    """A journal that keeps nothing."""

    def record(self, fact: Fact) -> None:
        """Drop it."""


NO_JOURNAL = DroppingJournal()


def subject_of(obj: ObjectView) -> Subject:
    """How facts name an object."""
    return Subject(
        kind=str(obj.get("kind", "")),
        namespace=namespace_of(obj),
        name=name_of(obj),
        uid=uid_of(obj),
    )


def attempt_of(pod: ObjectView) -> int:
    """Which attempt of its job a pod belongs to: how often the JobSet was restarted before."""
    text = labels_of(pod).get(RESTART_ATTEMPT_LABEL, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def find_transitions(before: ObjectView, after: ObjectView) -> Iterator[Transition]:
    """The conditions that are new or have another status."""
    old = {c.get("type"): c.get("status") for c in dig(before, "status", "conditions", default=())}
    for condition in dig(after, "status", "conditions", default=()):
        if old.get(condition.get("type")) != condition.get("status"):
            yield Transition(
                subject=subject_of(after),
                condition=str(condition.get("type", "")),
                status=str(condition.get("status", "")),
                reason=str(condition.get("reason", "")),
                message=str(condition.get("message", "")),
            )
