from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.component.node.memory_api import make_container, make_pod
from trainwright.node.logs import list_log_files

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tests.component.node.conftest import Laptop


@dataclass(frozen=True, kw_only=True)
class Query:
    container: str = "main"
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None


async def read(laptop: Laptop, query: Query) -> bytes:
    return b"".join([c async for c in laptop.agent.logs.read_log(laptop.pod(), query)])


async def test_log_holds_both_streams_in_order_and_open_ends(laptop: Laptop) -> None:
    await laptop.start()
    await laptop.submit(make_pod(make_container("echo one; echo two >&2; printf three")))
    await laptop.wait_phase("Succeeded")
    assert await read(laptop, Query()) == b"one\ntwo\nthree"
    assert await read(laptop, Query(tail_lines=2)) == b"two\nthree"
    assert await read(laptop, Query(tail_lines=0)) == b""
    lines = (await read(laptop, Query(timestamps=True))).split(b"\n")
    assert [line.split(b" ")[1] for line in lines] == [b"one", b"two", b"three"]
    assert all(line[10:11] == b"T" and line[29:31] == b"Z " for line in lines)


async def test_followed_log_ends_with_the_run_and_loses_nothing_by_rotation(
    laptop: Laptop, tmp_path: Path
) -> None:
    await laptop.start(max_log_bytes=20_000, max_log_files=50)
    script = (
        f"i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; touch {tmp_path}/written; "
        f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo last"
    )
    await laptop.submit(make_pod(make_container(script)))
    await laptop.wait_phase("Running")
    reader = asyncio.create_task(read(laptop, Query(follow=True)))
    await laptop.wait_for((tmp_path / "written").exists)
    (tmp_path / "go").touch()
    text = await asyncio.wait_for(reader, 60)
    assert text.decode().splitlines() == [*(f"line {i}" for i in range(3000)), "last"]


async def test_log_is_bounded(laptop: Laptop) -> None:
    await laptop.start(max_log_bytes=20_000, max_log_files=3)
    script = "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done"
    await laptop.submit(make_pod(make_container(script)))
    await laptop.wait_phase("Succeeded")
    folder = next((laptop.home / "pods").glob("*/containers/main/0.0"))
    # One write is at most a pipe's 64 KiB with a head for each line.
    assert len(list_log_files(folder / "log")) == 3
    find_gap = laptop.agent.logs.find_gap
    assert "are gone" in find_gap(laptop.pod(), Query())
    assert find_gap(laptop.pod(), Query(tail_lines=1)) == ""
    assert (await read(laptop, Query(tail_lines=1))) == b"line 4999\n"


async def test_previous_log_is_that_of_the_run_before(laptop: Laptop, tmp_path: Path) -> None:
    await laptop.start()
    script = (
        f"[ -e {tmp_path}/x ] && {{ echo second; exit 0; }}; touch {tmp_path}/x; echo first; exit 1"
    )
    await laptop.submit(make_pod(make_container(script), restartPolicy="OnFailure"))
    await laptop.wait_phase("Succeeded")
    assert await read(laptop, Query()) == b"second\n"
    assert await read(laptop, Query(previous=True)) == b"first\n"


async def test_exec_sees_the_containers_surroundings(laptop: Laptop) -> None:
    @dataclass(frozen=True)
    class Options:
        container: str
        command: tuple[str, ...]
        stdin: bool = False
        tty: bool = False

    await laptop.start()
    container = make_container("sleep 1000", env=[{"name": "COLOUR", "value": "green"}])
    container["volumeMounts"] = [{"name": "data", "mountPath": "/scratch/data"}]
    await laptop.submit(make_pod(container, volumes=[{"name": "data", "emptyDir": {}}]))
    await laptop.wait_phase("Running")

    async def run(command: str, *, stdin: bytes = b"", tty: bool = False) -> tuple[int, bytes]:
        options = Options("main", ("sh", "-c", command), bool(stdin), tty)
        session = await laptop.agent.exec(laptop.pod(), options)
        if stdin:
            await session.write(stdin)
            await session.close_stdin()
        output = b"".join([data async for _, data in session.output()])
        code = await session.wait()
        await session.close()
        return code, output

    assert await run("echo $COLOUR; exit 3") == (3, b"green\n")
    assert await run("cat", stdin=b"hello") == (0, b"hello")
    assert await run("test -t 1 && echo tty", tty=True) == (0, b"tty\r\n")
    if laptop.agent.isolation != "none":
        assert await run("ls -d /scratch/data") == (0, b"/scratch/data\n")


async def test_old_logs_of_ended_pods_give_way(laptop: Laptop) -> None:
    await laptop.start(max_ended_log_bytes=0, log_trim_interval_s=0.0)
    await laptop.submit(make_pod(make_container("echo first"), name="first"))
    await laptop.wait_phase("Succeeded", name="first")
    await laptop.submit(make_pod(make_container("echo second"), name="second"))
    await laptop.wait_phase("Succeeded", name="second")
    await laptop.wait_for(lambda: laptop.text("first") == "")
