"""`controller`: the TrainJob controllers against a cluster."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainwright.cli.exits import Exit, describe_error, fail, find_exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.connection import Connection
    from trainwright.manager.settings import ManagerSettings


class Serve(StrEnum):
    """What one process of the manager serves."""

    RECONCILE = "reconcile"
    WEBHOOKS = "webhooks"
    STATUS = "status"
    ALL = "all"


class LogFormat(StrEnum):
    """Forms of a log line."""

    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least important thing that is told."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def controller(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="Configuration file (config.trainer.kubeflow.org/v1alpha1); defaults without one.",
            show_default=False,
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="Kubeconfig of the cluster; else KUBECONFIG, the Pod's service account, ~/.kube/config.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        str,
        typer.Option("--context", help="Context of the kubeconfig; its current one by default."),
    ] = "",
    feature_gates: Annotated[
        str,
        typer.Option("--feature-gates", help="Name=true,... ; wins over the configuration file."),
    ] = "",
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Look at this namespace only; may be given several times. All by default. "
            "Managers of different namespaces need a leaderElection.resourceName each.",
            show_default=False,
        ),
    ] = None,
    serve: Annotated[
        Serve, typer.Option("--serve", help="Which part this process serves.")
    ] = Serve.RECONCILE,
    cert_dir: Annotated[
        Path | None,
        typer.Option(
            "--cert-dir",
            help="Folder of tls.crt, tls.key and ca.crt; /tmp/k8s-webhook-server/serving-certs by default.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    webhook_host: Annotated[
        str, typer.Option("--webhook-host", help="Address of the webhooks; wins over the file.")
    ] = "",
    webhook_port: Annotated[
        int | None,
        typer.Option(
            "--webhook-port",
            help="Port of the webhooks; wins over the file.",
            min=1,
            max=65535,
            show_default=False,
        ),
    ] = None,
    webhook_cert_dir: Annotated[
        Path | None,
        typer.Option(
            "--webhook-cert-dir",
            help="Folder of tls.crt and tls.key for the webhooks, loaded again when they change. "
            "Without it the certificate is made here, kept in a Secret and trusted by the API server.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    status_host: Annotated[
        str, typer.Option("--status-host", help="Address that the status server listens on.")
    ] = "0.0.0.0",  # noqa: S104 - Pods come from everywhere in the cluster
    log_format: Annotated[
        LogFormat | None,
        typer.Option(
            "--log-format",
            help="Form of log lines; text on a terminal, else json by default.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="Least level that is logged.")
    ] = LogLevel.INFO,
    zap_log_level: Annotated[str, typer.Option("--zap-log-level", hidden=True)] = "",
    zap_encoder: Annotated[str, typer.Option("--zap-encoder", hidden=True)] = "",
    zap_devel: Annotated[bool, typer.Option("--zap-devel", hidden=True)] = False,
    zap_stacktrace_level: Annotated[str, typer.Option("--zap-stacktrace-level", hidden=True)] = "",
    zap_time_encoding: Annotated[str, typer.Option("--zap-time-encoding", hidden=True)] = "",
) -> None:
    """Run the TrainJob controllers against a cluster, until SIGTERM or Ctrl-C.

    Exit 0 after a stop, 3 when the configuration or kubeconfig is wrong, 5 when the lease was lost or
    an address is taken.

    Examples:
      trainwright controller --kubeconfig ~/.kube/config --log-format text
      trainwright controller --config /controller_manager_config.yaml --serve reconcile
      trainwright controller -n team-a -n team-b --feature-gates TrainJobStatus=true
    """
    import logging

    from trainwright.base.errors import TrainwrightError
    from trainwright.machinery.kubeconfig import find_connection
    from trainwright.machinery.lease import LeaseLost
    from trainwright.manager.logs import configure_logging
    from trainwright.manager.parts import choose_parts
    from trainwright.manager.settings import (
        CERTIFICATE_FOLDER,
        ManagerSettings,
        build_identity,
        find_namespace_of_ours,
        load_configuration,
        with_webhook_address,
    )

    # Deployments of the Go manager pass these; the two that mean nothing here do no harm.
    del zap_stacktrace_level, zap_time_encoding
    wants_text = zap_devel or zap_encoder == "console" or sys.stderr.isatty()
    configure_logging(
        log_format or (LogFormat.TEXT if wants_text else LogFormat.JSON),
        _read_zap_level(zap_log_level) or (LogLevel.DEBUG if zap_devel else log_level),
    )
    try:
        parts = choose_parts(serve)
        parsed = load_configuration(config, feature_gates)
        connection, found = find_connection(kubeconfig, context, os.environ)
        settings = ManagerSettings(
            configuration=with_webhook_address(parsed.configuration, webhook_host, webhook_port),
            namespaces=tuple(namespace or ()),
            own_namespace=find_namespace_of_ours(),
            identity=build_identity(),
            certificate_folder=cert_dir or CERTIFICATE_FOLDER,
            webhook_cert_dir=webhook_cert_dir,
            status_host=status_host,
        )
        _greet(settings.identity, connection.server, found, parts, parsed.warnings)
        _run(connection, settings, parts)
    except LeaseLost as error:
        logging.getLogger("trainwright.setup").error("%s", error)
        raise typer.Exit(Exit.REFUSED) from None
    except TrainwrightError as error:
        fail(find_exit(error), describe_error(error))


def _read_zap_level(text: str) -> LogLevel | None:
    """A level as `--zap-log-level` takes it: a word, or a number above 0 for details."""
    if not text:
        return None
    if text.isdecimal() and int(text) > 0:
        return LogLevel.DEBUG
    words = {"debug": LogLevel.DEBUG, "info": LogLevel.INFO, "error": LogLevel.ERROR}
    if text not in words and text != "panic":
        fail(
            Exit.USAGE,
            f'--zap-log-level "{text}": debug, info, error, panic or a number above 0 was wanted',
        )
    return words.get(text, LogLevel.ERROR)


def _greet(
    identity: str, server: str, found: str, parts: Sequence[str], warnings: Sequence[str]
) -> None:
    import logging

    from trainwright import __version__

    logger = logging.getLogger("trainwright.setup")
    logger.info(
        "trainwright %s as %s at %s (from %s), serving %s",
        __version__,
        identity,
        server,
        found,
        ", ".join(parts),
    )
    for warning in warnings:
        logger.warning("%s", warning)


def _run(connection: Connection, settings: ManagerSettings, parts: Sequence[str]) -> None:
    import asyncio

    from trainwright.manager.serving import run_manager

    factory = None
    if sys.platform != "win32":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run_manager(connection, settings, parts))
