"""The webhooks part: reviews are answered on every replica and without the Lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.manager.tls import build_server_context
from trainwright.webhooks.server import WebhookServer, WebhookServerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trainwright.manager.parts import Context
    from trainwright.manager.runnable import Runnable
    from trainwright.manager.settings import ManagerSettings


def build_webhooks(context: Context) -> Sequence[Runnable]:
    """The parts of `--serve webhooks`.

    Other objects are read live: a cache that lags would refuse a TrainJob sent right after its
    runtime.
    """
    settings, configuration = context.settings, context.settings.configuration
    served = WebhookServerSettings(
        host=configuration.webhook.host,
        port=configuration.webhook.port,
        cert_dir=find_cert_dir(settings),
        namespace=settings.own_namespace,
        service_name=configuration.certificates.service_name,
        secret_name=configuration.certificates.secret_name,
    )
    tls = build_server_context(configuration.tls)
    return (WebhookServer(served, context.free_api, None, context.clock, tls=tls),)


def find_cert_dir(settings: ManagerSettings) -> Path | None:
    """The folder that has the certificate; None while we make it ourselves."""
    if settings.webhook_cert_dir is not None:
        return settings.webhook_cert_dir
    manages = settings.configuration.certificates.manage
    return None if manages else settings.certificate_folder
