from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.errors import LocalRunError
from trainwright.node import names, ports, volumes

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def make_pod(jobset: str = "job", subdomain: str = "job") -> Object:
    labels = {JOBSET_NAME_LABEL: jobset} if jobset else {}
    return {
        "metadata": {"name": "job-node-0-1-abcde", "namespace": "team", "labels": labels},
        "spec": {"hostname": "job-node-0-1", "subdomain": subdomain},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job-node-0-0.job", "127.0.0.1"),
        ("tcp://job-node-0-0.job:29500/x", "tcp://127.0.0.1:29500/x"),
        ("job-node-0-12.job.team.svc.cluster.local:1", "127.0.0.1:1"),
        ("job-node-0-0.job.team.svc", "127.0.0.1"),
        ("job-node-0-0.job,job-node-0-1.job", "127.0.0.1,127.0.0.1"),
        ("job-node-0-0", "job-node-0-0"),
        ("job-node-0-0.jobs", "job-node-0-0.jobs"),
        ("job-node-0-0.job.org", "job-node-0-0.job.org"),
        ("my-job-node-0-0.job", "my-job-node-0-0.job"),
        ("job-node-0-0.job.", "127.0.0.1."),
    ],
)
def test_names_of_the_jobs_pods_become_loopback(text: str, expected: str) -> None:
    assert names.rewrite_names(text, names.build_name_pattern(make_pod())) == expected


def test_hosts_hold_own_and_sibling_names() -> None:
    jobset = {
        "metadata": {"name": "job"},
        "spec": {
            "replicatedJobs": [
                {"name": "node", "template": {"spec": {"completions": 2, "parallelism": 2}}}
            ]
        },
    }
    siblings = names.list_sibling_hosts(jobset)
    assert siblings == ("job-node-0-0", "job-node-0-1")
    hosts = names.build_hosts(make_pod(), siblings)
    assert "job-node-0-0.job.team.svc.cluster.local" in hosts
    assert names.list_own_names(make_pod())[-1] == "job-node-0-1"


def test_declared_ports_are_those_of_variables_and_endpoints() -> None:
    pattern = names.build_name_pattern(make_pod())
    variables = {
        "PET_MASTER_PORT": "29400",
        "JAX_COORDINATOR_ADDRESS": "job-node-0-0.job:1234",
        "OTHER": "8080",
        "MASTER_PORT": "$(X)",
    }
    words = ["run", "--rdzv_endpoint=job-node-0-0.job:29500", "--http=:9999"]
    assert ports.find_declared_ports(variables, words, pattern) == {29400, 1234, 29500}


def test_ports_are_mapped_by_exact_token() -> None:
    table = {29500: 20001}
    assert ports.rewrite_port_variables(
        {"MASTER_PORT": "29500", "URL": "tcp://h:29500/x", "NOTE": "29500", "L": "h:295001"}, table
    ) == {"MASTER_PORT": "20001", "URL": "tcp://h:20001/x", "NOTE": "29500", "L": "h:295001"}
    words = ["--master-port", "29500", "--master_port=29500", "--steps", "29500", "h:29500"]
    assert ports.rewrite_port_words(words, table) == (
        "--master-port", "20001", "--master_port=20001", "--steps", "29500", "h:20001"
    )  # fmt: skip


def test_port_book_keeps_jobs_apart_and_remembers(tmp_path: Path) -> None:
    book = ports.PortBook(tmp_path, 100, 103, is_free=lambda port: port != 101)
    assert book.map_ports("a", [29500]) == {29500: 100}
    assert book.map_ports("b", [29500]) == {29500: 102}
    assert book.map_ports("a", [29500, 1]) == {29500: 100, 1: 103}
    again = ports.PortBook(tmp_path, 100, 103, is_free=lambda _: True)
    assert again.map_ports("b", [29500]) == {29500: 102}
    again.release_except({"b"})
    assert again.map_ports("c", [1, 2, 3]) == {1: 100, 2: 101, 3: 103}
    with pytest.raises(LocalRunError, match="no free port"):
        again.map_ports("d", [1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data", "/v/a"),
        ("/data/x.txt", "/v/a/x.txt"),
        ("--out=/data/x", "--out=/v/a/x"),
        ("/data/inner/y", "/v/b/y"),
        ("/database", "/database"),
        ("/my/data", "/my/data"),
        ("/data.txt", "/data.txt"),
        ("cat /data/x:/data/inner", "cat /v/a/x:/v/b"),
        ("s3://bucket/data", "s3://bucket/data"),
    ],
)
def test_paths_are_rewritten_by_whole_prefixes(text: str, expected: str) -> None:
    mounts = [
        volumes.Mount(Path("/v/a"), "/data"),
        volumes.Mount(Path("/v/b"), "/data/inner"),
        volumes.Mount(Path("/same"), "/same"),
    ]
    assert volumes.build_path_rewrite(mounts)(text) == expected


def test_secrets_lie_where_nobody_else_may_look(tmp_path: Path) -> None:
    user = os.getuid()
    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    home = tmp_path / "home"
    found = volumes.find_memory_folder(home, user, environ)
    assert found.parent == tmp_path / f"trainwright-{user}"
    found.parent.mkdir(mode=0o755)
    volumes.ensure_memory_folder(found, user)
    for folder in (found, found.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_place_that_somebody_else_holds_is_passed_over(tmp_path: Path) -> None:
    user = os.getuid()
    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    top = tmp_path / f"trainwright-{user}"
    top.symlink_to(tmp_path)
    found = volumes.find_memory_folder(tmp_path / "home", user, environ)
    assert tmp_path / f"trainwright-{user}" not in found.parents
    with pytest.raises(LocalRunError, match="belongs to somebody else"):
        volumes.ensure_memory_folder(top / "home", user)
