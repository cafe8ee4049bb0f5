"""How a reflector takes refusals: a scripted server, of which only the answers matter."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from trainwright.api.kinds import CONFIG_MAP, JOBSET
from trainwright.base.errors import Forbidden, Gone, Invalid, TooManyRequests, Unreachable
from trainwright.base.errors import Timeout as ServerTimeout
from trainwright.machinery.informer import InformerSet, InformerSettings
from trainwright.machinery.reflector import ReflectorSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from trainwright.api.kinds import Kind

QUICK = ReflectorSettings(
    retry_base_s=0.0, retry_cap_s=0.0, relist_jitter_s=0.0, list_silence_s=0.2, silence_s=1.0
)
Answer = Exception | list[Any] | str


class Script:
    """Answers each list and watch with the next line of the script, then is silent."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Mapping[str, str]] = []
        self.done = asyncio.Event()

    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        silence_s: float | None = None,
        accept: str = "",
    ) -> AsyncIterator[bytes]:
        answer = await self._next(query)
        yield msgspec.json.encode(answer[0])

    async def stream_lines(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        silence_s: float | None = None,
        accept: str = "",
    ) -> AsyncIterator[bytes]:
        for event in await self._next(query):
            if event == "silence":
                await asyncio.Event().wait()
            yield event if isinstance(event, bytes) else msgspec.json.encode(event)

    async def _next(self, query: Mapping[str, str] | None) -> list[Any]:
        self.asked.append({key: value for key, value in (query or {}).items() if value})
        if not self._answers:
            self.done.set()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, list)
        return answer


def make(name: str, revision: int) -> Any:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(revision)}
    }


def event(kind: str, name: str, revision: int) -> Any:
    return {"type": kind, "object": make(name, revision)}


def bookmark(revision: int, *, initial_end: bool = False) -> Any:
    metadata: Any = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"type": "BOOKMARK", "object": {"metadata": metadata}}


def error(code: int) -> Any:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "no"}}


def page(revision: int, *objects: Any, token: str = "") -> Any:
    return [{"metadata": {"resourceVersion": str(revision), "continue": token}, "items": objects}]


async def play(script: Script, kind: Kind = CONFIG_MAP) -> dict[str, str]:
    """What the informer shows at the end of the script: names and their resourceVersions."""
    informers = InformerSet(script, settings=InformerSettings(reading=QUICK, freeze=False))
    informers.informer(kind)
    task = asyncio.create_task(informers.run())
    async with asyncio.timeout(60):
        await script.done.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    metadata = [obj["metadata"] for obj in informers.list(kind)]
    return {m["name"]: m["resourceVersion"] for m in metadata}


def starts(script: Script) -> list[str]:
    """How each request began: from a resourceVersion, by a watch, or by a page."""
    return [
        asked.get("resourceVersion")
        or asked.get("continue")
        or ("watch" if "sendInitialEvents" in asked else "page")
        for asked in script.asked
    ]


INITIAL = [event("ADDED", "a", 3), event("ADDED", "b", 4), bookmark(9, initial_end=True)]


async def test_a_watch_goes_on_from_the_last_event_or_bookmark() -> None:
    script = Script(
        [*INITIAL, event("MODIFIED", "a", 12)],
        [bookmark(20)],
        Unreachable("cut"),
        [event("DELETED", "b", 22)],
    )
    assert await play(script) == {"a": "12"}
    assert starts(script) == ["watch", "12", "20", "20", "22"]


async def test_a_half_sent_event_is_asked_for_again() -> None:
    script = Script([*INITIAL, b'{"type":"MODIFIED","obj'], [event("MODIFIED", "a", 12)])
    assert await play(script) == {"a": "12", "b": "4"}
    assert starts(script) == ["watch", "9", "12"]


@pytest.mark.parametrize("refusal", [Gone("too old"), [error(410)]], ids=["status", "event"])
async def test_what_the_server_has_forgotten_is_listed_again(refusal: Answer) -> None:
    again = [event("ADDED", "c", 30), bookmark(31, initial_end=True)]
    script = Script(INITIAL, refusal, again)
    assert await play(script) == {"c": "30"}
    assert starts(script) == ["watch", "9", "watch", "31"]


@pytest.mark.parametrize(
    "refusal", [TooManyRequests("later"), Unreachable("cut"), Forbidden("no")], ids=str
)
async def test_other_failures_never_list_again(refusal: Answer) -> None:
    script = Script(INITIAL, refusal, refusal, [event("MODIFIED", "a", 12)])
    assert await play(script) == {"a": "12", "b": "4"}
    assert starts(script) == ["watch", "9", "9", "9", "12"]


async def test_a_server_without_watch_lists_is_read_by_pages() -> None:
    script = Script(
        Invalid("sendInitialEvents is forbidden"),
        page(9, make("a", 3), token="more"),
        page(9, make("b", 4)),
        [event("MODIFIED", "b", 10)],
        Gone("too old"),
        page(20, make("b", 10)),
    )
    assert await play(script) == {"b": "10"}
    assert starts(script) == ["watch", "page", "more", "9", "10", "page", "20"]


async def test_a_server_that_takes_no_notice_of_watch_lists_is_read_by_pages() -> None:
    script = Script([event("ADDED", "a", 3), "silence"], page(9, make("a", 3)))
    assert await play(script) == {"a": "3"}
    assert starts(script) == ["watch", "page", "9"]


async def test_a_server_that_was_set_back_is_believed() -> None:
    script = Script(
        INITIAL,
        ServerTimeout("Too large resource version"),
        [event("ADDED", "a", 1), bookmark(2, initial_end=True)],
    )
    assert await play(script) == {"a": "1"}
    assert starts(script) == ["watch", "9", "watch", "2"]


async def test_large_pages_are_decoded_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[Callable[..., Any]] = []

    async def to_thread(work: Callable[..., Any], *arguments: Any) -> Any:
        threads.append(work)
        return work(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    large = make("large", 5) | {"spec": {"suspend": False, "filler": "x" * 3_000_000}}
    script = Script(Invalid("no"), page(9, make("small", 3), token="more"), page(9, large))
    assert await play(script, JOBSET) == {"small": "3", "large": "5"}
    assert len(threads) == 1
