from __future__ import annotations

import asyncio
import json
import logging
import ssl
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from trainwright.base.errors import LocalRunError, Unsupported
from trainwright.core.configuration.settings import TlsSettings
from trainwright.machinery.lease import WriteFence
from trainwright.machinery.metrics import Metrics
from trainwright.manager.logs import JsonFormatter
from trainwright.manager.manager import Manager
from trainwright.manager.parts import choose_parts
from trainwright.manager.tls import (
    ServingCertificate,
    build_own_certificate,
    build_server_context,
)

if TYPE_CHECKING:
    from pathlib import Path

    from trainwright.manager.runnable import Runnable

LIMIT_S = 30


class Part:
    """Writes down when it starts and ends."""

    def __init__(self, name: str, story: list[str], *, needs_lease: bool) -> None:
        self.name = name
        self.needs_lease = needs_lease
        self._story = story

    async def run(self, stopping: asyncio.Event) -> None:
        self._story.append(f"+{self.name}")
        await stopping.wait()
        self._story.append(f"-{self.name}")

    def find_unready(self) -> str:
        return ""


class Broken(Part):
    async def run(self, stopping: asyncio.Event) -> None:
        raise OSError("no luck")


class Short(Part):
    async def run(self, stopping: asyncio.Event) -> None:
        del stopping


def make_manager(parts: list[Runnable], fence: WriteFence) -> Manager:
    return Manager(parts, fence=fence, metrics=Metrics(), elector=None, lease="x")


async def test_writers_end_before_the_rest() -> None:
    story: list[str] = []
    parts: list[Runnable] = [
        Part("caches", story, needs_lease=False),
        Part("controllers", story, needs_lease=True),
    ]
    fence, stopping = WriteFence(), asyncio.Event()
    running = asyncio.create_task(make_manager(parts, fence).run(stopping))
    while "+controllers" not in story:  # noqa: ASYNC110 - a list has no event
        await asyncio.sleep(0)
    fence.check()
    stopping.set()
    await asyncio.wait_for(running, LIMIT_S)
    assert story == ["+caches", "+controllers", "-controllers", "-caches"]
    assert fence.left_s < 0


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [(Broken, OSError, "no luck"), (Short, LocalRunError, "part ended by itself")],
)
async def test_a_part_that_ends_ends_the_manager(
    kind: type[Part], error: type[Exception], said: str
) -> None:
    story: list[str] = []
    other, part = Part("other", story, needs_lease=True), kind("part", story, needs_lease=False)
    fence = WriteFence()
    with pytest.raises(error, match=said):
        await asyncio.wait_for(make_manager([other, part], fence).run(asyncio.Event()), LIMIT_S)
    assert fence.left_s < 0


def test_parts_that_are_not_there_are_refused_in_words() -> None:
    assert choose_parts("reconcile") == ("reconcile",)
    with pytest.raises(Unsupported, match="--serve unheard: unheard cannot be served yet"):
        choose_parts("unheard")


def test_a_log_line_is_json_with_the_names_of_go_controllers() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        record = logging.LogRecord(
            "trainwright.manager.x", logging.ERROR, "f", 1, "it %s", ("broke",), sys.exc_info()
        )
    line = json.loads(JsonFormatter().format(record))
    assert (line["level"], line["logger"], line["msg"]) == ("error", "manager.x", "it broke")
    assert line["error"] == "why"
    assert "ValueError" in line["stacktrace"]
    assert datetime.fromisoformat(line["ts"]).tzinfo is not None


def test_a_certificate_of_the_folder_takes_the_place_of_the_own_one(tmp_path: Path) -> None:
    metrics = Metrics()
    tls = build_server_context(TlsSettings(min_version="1.3"))
    serving = ServingCertificate(tls, tmp_path, metrics, ("manager.local",))

    def reads() -> float | None:
        return metrics.registry.get_sample_value("certwatcher_read_certificate_total")

    def errors() -> float | None:
        return metrics.registry.get_sample_value("certwatcher_read_certificate_errors_total")

    assert reads() == 0
    (tmp_path / "tls.crt").write_text("")
    (tmp_path / "tls.key").write_text("")
    assert not serving.look()
    for text, number in (("first", 1), ("second", 2)):
        certificate, key = build_own_certificate((text,), datetime.now(UTC))
        (tmp_path / "tls.crt").write_text(certificate)
        (tmp_path / "tls.key").write_text(key)
        assert serving.look()
        assert serving.look()
        assert reads() == number
    (tmp_path / "tls.key").write_text("half of it")
    assert serving.look()  # the one before still serves
    assert (reads(), errors()) == (2, 1)


@pytest.mark.parametrize("version", ["", "1.0", "1.1", "1.2", "1.3"])
def test_every_version_that_the_file_may_name_is_taken(version: str) -> None:
    settings = TlsSettings(min_version=version, ciphers=("ECDHE-RSA-AES128-GCM-SHA256",))
    context = build_server_context(settings)
    names = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert names == ["ECDHE-RSA-AES128-GCM-SHA256"]
    if version in {"", "1.2"}:
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_ciphers_that_the_library_lacks_are_refused_in_words() -> None:
    with pytest.raises(LocalRunError, match="RC4-NONE"):
        build_server_context(TlsSettings(ciphers=("RC4-NONE",)))
