"""TrainJobStatus: pods of the trainer learn where, and with which token, to report progress."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainwright.api.kinds import CONFIG_MAP
from trainwright.base.objects import controller_reference
from trainwright.core.plugins.trainjobstatus import names
from trainwright.core.trainjob.podset import find_trainer, replace_podset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.objects import Object
    from trainwright.core.plugins.base import Job
    from trainwright.core.trainjob.podset import Container, PodSets


@dataclass(frozen=True, slots=True)
class TrainJobStatusPlugin:
    """Serves every runtime once `settings.status_server` says where progress goes."""

    name: str = "TrainJobStatus"
    policy_key: str = ""

    def applies_to(self, ml_policy: Object | None) -> bool:
        """Always: it is the installation that decides, not the runtime."""
        del ml_policy
        return True

    def enforce_policy(self, policy: Object, job: Job, podsets: PodSets) -> PodSets:
        """Give every container of the first trainer PodSet the variables, token and CA.

        Source: Trainer 2.3, TrainJobStatus: no init containers, no initializers.
        """
        del policy
        server, trainer = job.settings.status_server, find_trainer(podsets)
        if server is None or trainer is None:
            return podsets
        namespace = job.trainjob.namespace
        variables = (
            {
                "name": names.SERVER_URL,
                "value": server.url + names.status_path(namespace, job.name),
            },
            {"name": names.SERVER_CA, "value": f"{names.FOLDER}/{names.CA_FILE}"},
            {"name": names.SERVER_TOKEN, "value": f"{names.FOLDER}/{names.TOKEN_FILE}"},
        )

        def inject(container: Container) -> Container:
            return replace(
                container.with_env(variables),
                volume_mounts=(*container.volume_mounts, dict(_MOUNT)),
            )

        changed = replace(
            trainer,
            containers=tuple(map(inject, trainer.containers)),
            volumes=(*trainer.volumes, _build_volume(namespace, job.name)),
        )
        return replace_podset(podsets, changed)

    def build_objects(self, job: Job, podsets: PodSets) -> Sequence[Object]:
        """The ConfigMap with the certificate authority of the server.

        Raises:
            ValueError: the authority is not known yet.
        """
        server = job.settings.status_server
        if server is None or find_trainer(podsets) is None:
            return ()
        if not server.ca_pem:
            raise ValueError("the certificate authority of the status server is not known yet")
        return (
            {
                "apiVersion": CONFIG_MAP.api_version,
                "kind": CONFIG_MAP.kind,
                "metadata": {
                    "name": job.name + names.CONFIG_MAP_SUFFIX,
                    "namespace": job.trainjob.namespace,
                    "ownerReferences": [controller_reference(job.trainjob.obj)],
                },
                "data": {names.CA_FILE: server.ca_pem},
            },
        )


_MOUNT: Object = {"name": names.VOLUME, "mountPath": names.FOLDER, "readOnly": True}


def _build_volume(namespace: str, name: str) -> Object:
    token = {
        "audience": names.status_audience(namespace, name),
        "expirationSeconds": names.TOKEN_LIFETIME_S,
        "path": names.TOKEN_FILE,
    }
    authority = {
        "name": name + names.CONFIG_MAP_SUFFIX,
        "items": [{"key": names.CA_FILE, "path": names.CA_FILE}],
    }
    sources = [{"serviceAccountToken": token}, {"configMap": authority}]
    return {"name": names.VOLUME, "projected": {"sources": sources}}
