"""Bad input gets one clear error, the right exit code, and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.planes import TestPlane, make_plane, make_trainjob

if TYPE_CHECKING:
    from pathlib import Path


def submit(plane: TestPlane, job: object, code: int) -> str:
    text = plane.cli("submit", "-f", "-", stdin=yaml.safe_dump(job), code=code)
    assert text.count("error:") == 1, text
    assert "Traceback" not in text
    return text


def with_env(name: str) -> dict[str, object]:
    job = make_trainjob("bad", ["true"], runtime="torch-distributed")
    job["spec"]["trainer"]["env"] = [{"name": name, "value": "1"}]
    return job


def with_patch(job_name: str, container: str = "node") -> dict[str, object]:
    containers = [{"name": container, "env": [{"name": "A", "value": "1"}]}]
    replicated = {
        "name": job_name,
        "template": {"spec": {"template": {"spec": {"containers": containers}}}},
    }
    patch = {
        "manager": "acme.io/test",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [replicated]}}},
    }
    return make_trainjob("bad", ["true"], runtimePatches=[patch])


def test_an_unknown_runtime_names_a_close_one(plane: TestPlane) -> None:
    text = submit(plane, make_trainjob("bad", ["true"], runtime="torch-distributd"), 3)
    assert "torch-distributd" in text
    assert "torch-distributed" in text


@pytest.mark.parametrize("name", ["Bad", "1st", "a.b", "-x", "x" * 64])
def test_a_bad_name_is_refused(plane: TestPlane, name: str) -> None:
    assert "metadata.name" in submit(plane, make_trainjob(name, ["true"]), 3)


def test_a_name_that_becomes_too_long_says_how_long_it_may_be(plane: TestPlane) -> None:
    text = submit(plane, make_trainjob("x" * 63, ["true"], nodes=10), 3)
    assert "metadata.name" in text
    assert "no longer than 48 characters" in text


def test_reserved_variables_are_refused(plane: TestPlane) -> None:
    text = submit(plane, with_env("PET_NNODES"), 3)
    assert "PET_NNODES" in text
    assert "spec.trainer.env" in text


def test_a_variable_name_that_no_process_can_have_is_refused(plane: TestPlane) -> None:
    assert "A=B" in submit(plane, with_env("A=B"), 3)


def test_a_patch_that_names_nothing_lists_what_there_is(plane: TestPlane) -> None:
    assert '"node"' in submit(plane, with_patch("nod"), 3)
    assert '"node"' in submit(plane, with_patch("node", "nod"), 3)


def test_malformed_yaml_names_the_line(plane: TestPlane) -> None:
    text = plane.cli("submit", "-f", "-", stdin="a: 1\nb: [\n", code=3)
    assert "standard input:" in text
    text = plane.cli("submit", "-f", "-", stdin="kind: TrainJob\nkind: TrainJob\n", code=3)
    assert "twice" in text


def test_what_is_no_manifest_is_refused(plane: TestPlane) -> None:
    assert "apiVersion" in plane.cli("submit", "-f", "-", stdin="a: 1\n", code=3)
    assert "wanted" in plane.cli("submit", "-f", "-", stdin="- 1\n", code=3)
    assert "No such file" in plane.cli("submit", "-f", "/nowhere.yaml", code=3)


def test_unknown_fields_are_refused_by_strict_validation(plane: TestPlane) -> None:
    job = make_trainjob("bad", ["true"])
    job["spec"]["trainer"]["numNodez"] = 2
    text = plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job), code=1)
    assert "spec.trainer.numNodez" in text


def test_a_wrong_type_names_the_field(plane: TestPlane) -> None:
    job = make_trainjob("bad", ["true"])
    job["spec"]["trainer"]["numNodes"] = "two"
    assert "spec.trainer.numNodes" in submit(plane, job, 3)


def test_an_object_of_4_mb_is_refused(plane: TestPlane) -> None:
    job = make_trainjob("bad", ["true"])
    job["metadata"]["annotations"] = {"filler": "x" * 20_000_000}
    text = submit(plane, job, 3)
    assert "large" in text.lower()
    assert len(text) < 2000


def test_a_job_that_is_not_there_names_a_close_one(plane: TestPlane) -> None:
    plane.apply(make_trainjob("present", ["true"]))
    for command in ("get", "logs", "events", "stop", "resume", "wait", "rm"):
        text = plane.cli(command, "presemt", code=4)
        assert '"present"' in text, text
    plane.cli("rm", "present")


def test_nothing_of_all_this_was_kept(plane: TestPlane) -> None:
    assert plane.get("trainjob", "bad") is None


def test_usage_errors_end_with_2(plane: TestPlane) -> None:
    plane.apply(make_trainjob("podless", ["true"], suspend=True))
    for command in (("logs", "podless"), ("run",)):
        text = plane.cli(
            *command, "--ranks", "x", *(["--", "true"] if command == ("run",) else []), code=2
        )
        assert "--ranks" in text
    plane.cli("run", "--nodes", "0", "--", "true", code=2)
    plane.cli("frobnicate", code=2)
    assert "--dry-run" in plane.cli("run", "--dry-run", "maybe", "--", "true", code=2)


def test_run_without_anything_to_run_says_how(plane: TestPlane) -> None:
    assert "trainwright run -- python train.py" in plane.cli("run", code=3)


def test_a_second_plane_on_the_same_folder_is_refused(plane: TestPlane) -> None:
    text = plane.cli("up", code=5)
    assert f"process {plane.record.pid}" in text
    assert "trainwright down" in text


def test_a_wrong_token_is_refused(plane: TestPlane, tmp_path: Path) -> None:
    config = yaml.safe_load(plane.home.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = "wrong-token-that-is-long-enough"
    wrong = tmp_path / "kubeconfig"
    wrong.write_text(yaml.safe_dump(config))
    text = plane.cli("ls", "--kubeconfig", str(wrong), code=10)
    assert "Unauthorized" in text
    assert "wrong-token" not in text


def test_no_plane_says_how_to_start_one(tmp_path: Path) -> None:
    with make_plane(tmp_path, up=False) as plane:
        assert "trainwright up" in plane.cli("ls", code=10)
        plane.cli("status", code=1)
        assert "no plane was running" in plane.cli("down")


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with make_plane(tmp_path, up=False) as plane:
        (tmp_path / "file").touch()
        text = plane.cli("up", "--detach", "--data-dir", str(tmp_path / "file" / "home"), code=5)
        assert str(tmp_path / "file") in text
        assert text.count("error:") == 1
