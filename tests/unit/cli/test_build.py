"""What a command line becomes under a runtime's framework."""

from __future__ import annotations

import pytest

from trainwright.cli.build import build_command


@pytest.mark.parametrize(
    ("command", "framework", "wanted"),
    [
        ("train.py --lr 1", "torch", "torchrun train.py --lr 1"),
        ("python train.py -u", "torch", "torchrun train.py -u"),
        ("/usr/bin/python3 -m pkg.train", "torch", "torchrun -m pkg.train"),
        # Options of Python's own, which torchrun takes for its own or does not know.
        ("python -c print(1)", "torch", "torchrun --no-python python -c print(1)"),
        ("python3 -u train.py", "torch", "torchrun --no-python python3 -u train.py"),
        ("python", "torch", "python"),
        ("./simulate -x", "torch", "./simulate -x"),
        ("train.py", "", "python train.py"),
        ("python -u train.py", "", "python -u train.py"),
    ],
)
def test_python_is_started_as_the_framework_wants_it(
    command: str, framework: str, wanted: str
) -> None:
    assert " ".join(build_command(command.split(), framework)) == wanted
