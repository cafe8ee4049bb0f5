"""Options that several commands share, declared once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """Formats of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Isolation(StrEnum):
    """What separates the Pods of a laptop's plane from its machine and each other."""

    AUTO = "auto"
    NONE = "none"
    NAMESPACE = "namespace"


ISOLATION_OPTION = typer.Option(
    "--isolation",
    help="auto: own mounts where the system allows them; none: paths are rewritten; "
    "namespace: besides the mounts a network of each job's own, without a way out.",
    show_default=False,
)

Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="Namespace; the kubeconfig's own by default."),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Look into every namespace.")
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        envvar="TRAINWRIGHT_KUBECONFIG",
        help="Talk to the cluster of this kubeconfig instead of the laptop's plane.",
        dir_okay=False,
    ),
]
OutputFormat = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]
JobName = Annotated[str, typer.Argument(help="Name of the TrainJob.", show_default=False)]
Ranks = Annotated[
    str,
    typer.Option(
        "--ranks",
        help="Which nodes' logs: all, failed, or numbers such as 0,3. Up to 8 nodes all are shown, above that node 0.",
        show_default=False,
    ),
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", help="Give up after so many seconds.", min=0)
]
