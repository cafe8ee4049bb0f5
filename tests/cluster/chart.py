"""The chart, rendered by the real Helm."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.processes import require_server

if TYPE_CHECKING:
    from trainwright.base.objects import Object

CHART = Path(__file__).parents[2] / "charts" / "trainwright"
NAMESPACE = "kubeflow-system"
RELEASE = "trainwright"


def run_helm(*arguments: str, values: Any = None) -> subprocess.CompletedProcess[str]:
    """Run Helm; `values` go to it as a file."""
    more = ["--values", "-"] if values is not None else []
    return subprocess.run(
        [str(require_server("helm")), *arguments, *more],
        input=yaml.safe_dump(values) if values is not None else "",
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
        env={"HOME": "/nonexistent"},
    )


def render_chart(values: Any = None, *more: str) -> list[Object]:
    """The objects of the chart, in the order in which they are printed."""
    rendered = template(values, *more)
    assert rendered.returncode == 0, rendered.stderr
    return [obj for obj in yaml.safe_load_all(rendered.stdout) if obj]


def template(values: Any = None, *more: str) -> subprocess.CompletedProcess[str]:
    """`helm template`, whatever comes of it."""
    words = ["template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--kube-version", "1.31.0"]
    return run_helm(*words, *more, values=values or {})
