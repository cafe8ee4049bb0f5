"""What the command line refuses by itself, with which code and which words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from trainwright.base.errors import Forbidden
from trainwright.cli.exits import Exit, find_exit
from trainwright.cli.logs import RanksError, parse_ranks
from trainwright.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {%s}
spec:
  runtimeRef: {name: torch-distributed}
"""


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", Exit.INVALID, "holds no object"),
        ("---\n# nothing\n---\n", Exit.INVALID, "holds no object"),
        (JOB % "", Exit.INVALID, "metadata.name: Required value"),
        (JOB % "generateName: a-", Exit.OK, "1 object(s), 0 error(s)"),
        (JOB % "name: a", Exit.OK, "1 object(s), 0 error(s)"),
        (JOB % "name: A", Exit.INVALID, "DNS-1035"),
    ],
)
def test_validate(tmp_path: Path, text: str, code: Exit, words: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["validate", "-f", str(file)])
    assert (result.exit_code, words in result.output) == (code, True), result.output
    assert "NOT_FOUND" not in result.output


@pytest.mark.parametrize("text", ["5-2", "0,3-1", "1-0"])
def test_ranks_that_count_down_are_refused(text: str) -> None:
    with pytest.raises(RanksError, match="counts down"):
        parse_ranks(text)
    assert CliRunner().invoke(app, ["logs", "any", "--ranks", text]).exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("text", "numbers"), [("2-5", frozenset({2, 3, 4, 5})), ("3-3,0", frozenset({0, 3}))]
)
def test_ranks_that_rise(text: str, numbers: frozenset[int]) -> None:
    assert parse_ranks(text).numbers == numbers


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('admission webhook "x" denied the request: spec.a: Forbidden', Exit.INVALID),
        ('trainjobs "a" is forbidden: exceeded quota: q, requested: pods=1', Exit.REFUSED),
    ],
)
def test_a_full_quota_is_no_invalid_object(message: str, code: Exit) -> None:
    assert find_exit(Forbidden(message)) is code
