"""What the node tells a journal, and what a process knows of its attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.component.node.memory_api import make_container, make_pod
from tests.support.journals import KeptJournal
from trainwright.core.journal import ContainerExited, ContainerStarted, ProbeFailed

if TYPE_CHECKING:
    from tests.component.node.conftest import Laptop


async def test_starts_and_exits_are_told_with_their_attempt(laptop: Laptop) -> None:
    journal = KeptJournal()
    await laptop.start(journal=journal)
    pod = make_pod(make_container("echo attempt $TRAINWRIGHT_ATTEMPT; exit 7"))
    pod["metadata"]["labels"] = {"jobset.sigs.k8s.io/restart-attempt": "2"}
    await laptop.submit(pod)
    stored = await laptop.wait_phase("Failed")
    started, exited = journal.facts
    assert isinstance(started, ContainerStarted)
    assert isinstance(exited, ContainerExited)
    assert (started.attempt, started.container, started.image) == (2, "main", "x")
    assert (exited.attempt, exited.exit_code, exited.subject.name) == (2, 7, "pod")
    assert exited.subject.uid == stored["metadata"]["uid"]
    assert laptop.text(attempt=2) == "attempt 2\n"


async def test_failed_probes_are_told(laptop: Laptop) -> None:
    journal = KeptJournal()
    await laptop.start(journal=journal)
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    await laptop.submit(make_pod(make_container("sleep 300", livenessProbe=probe)))
    await laptop.wait_for(lambda: any(isinstance(f, ProbeFailed) for f in journal.facts))
    failed = next(fact for fact in journal.facts if isinstance(fact, ProbeFailed))
    assert (failed.probe, failed.container, failed.attempt) == ("liveness", "main", 0)
