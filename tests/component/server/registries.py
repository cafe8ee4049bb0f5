"""What the server tests share: opening registries, small objects, waiting for a condition."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from trainwright.api import kinds
from trainwright.core.admission import build_admission
from trainwright.machinery.clock import SystemClock
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trainwright.base.objects import Object


async def open_registry(folder: Path, **settings: Any) -> Registry:
    """A registry without the Trainer's own admission, unless `admission` is given.

    TrainJobs need no runtime here.
    """
    rules = {k: v for k, v in build_admission().items() if k not in kinds.TRAINER_KINDS}
    settings.setdefault("admission", rules)
    return await Registry.open(folder, SystemClock(), **settings)


def make_config_map(name: str = "a", namespace: str = "default", **data: str) -> Object:
    """The smallest ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def make_pod(name: str = "p", **spec: Any) -> Object:
    """The smallest Pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "x"}], **spec},
    }


def make_trainjob(name: str = "t", **spec: Any) -> Object:
    """The smallest TrainJob."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
    }


async def eventually(condition: Callable[[], bool], *, within_s: float = 60) -> None:
    """Wait until `condition` holds."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - conditions here have no event to wait for
            await asyncio.sleep(0.01)
