"""The machine of namespaces: cut off, and gone without a trace."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.machine import make_machine


def test_a_machine_is_cut_off_and_leaves_nothing(tmp_path: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    with make_machine(tmp_path / "m", "tried", "10.99.0.1") as machine:
        assert machine.run("hostname").strip() == "tried"
        links = machine.run("ip", "-brief", "link").split()
        assert not [link for link in links if link.startswith("eth")]
        assert machine.run("cat", "/proc/sys/vm/overcommit_memory").strip() == "1"
        groups = machine.groups
        pid = machine.pid
    assert not Path(f"/proc/{pid}").exists()
    assert not [group for group in groups if group.exists()]
    assert Path("/proc/self/mountinfo").read_text() == mounts
