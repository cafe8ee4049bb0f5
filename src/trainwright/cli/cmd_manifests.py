"""`manifests`: what a cluster needs before it can have TrainJobs, as YAML."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainwright.cli.exits import Exit, fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.objects import Object


class Part(StrEnum):
    """What there is to apply, in the order in which it is applied."""

    CRDS = "crds"
    WEBHOOKS = "webhooks"
    RUNTIMES = "runtimes"


def manifests(
    part: Annotated[Part, typer.Argument(help="Which objects to print.", show_default=False)],
    url: Annotated[
        str,
        typer.Option(
            "--url",
            help="For webhooks: where the API server reaches them; else a Service is named.",
        ),
    ] = "",
    ca_file: Annotated[
        Path | None,
        typer.Option(
            "--ca-file",
            help="For webhooks: the authority of their certificate; else it is injected later.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the objects that a cluster needs for TrainJobs, ready for kubectl apply.

    JobSet's own CRD and controller come from JobSet.

    Examples:
      trainwright manifests crds | kubectl apply --server-side -f -
      trainwright manifests webhooks --url https://127.0.0.1:9443 --ca-file ca.crt | kubectl apply -f -
      trainwright manifests runtimes | kubectl apply --server-side -f -
    """
    from trainwright.api.manifests import render_yaml

    if part is not Part.WEBHOOKS and (url or ca_file):
        fail(Exit.USAGE, f"--url and --ca-file are about webhooks, not about {part}")
    print("---\n".join(render_yaml(obj) for obj in _build(part, url, ca_file)), end="")


def _build(part: Part, url: str, ca_file: Path | None) -> Sequence[Object]:
    if part is Part.CRDS:
        from trainwright.api.crds import build_crd
        from trainwright.api.kinds import TRAINER_KINDS

        return [build_crd(kind) for kind in TRAINER_KINDS]
    if part is Part.RUNTIMES:
        from trainwright.core.runtimes import load_shipped_runtimes

        return load_shipped_runtimes()
    from trainwright.webhooks.configurations import (
        ServiceClient,
        UrlClient,
        build_webhook_configurations,
    )
    from trainwright.webhooks.server import WebhookServerSettings

    client = UrlClient(url=url) if url else ServiceClient(name=WebhookServerSettings().service_name)
    return build_webhook_configurations(client, ca_file.read_bytes() if ca_file else b"")
