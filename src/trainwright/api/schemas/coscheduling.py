"""Root of scheduling.x-k8s.io: the PodGroup of the coscheduling plugin."""

from __future__ import annotations

from trainwright.api.schemas.structural import (
    Schema,
    int32,
    obj,
    quantity_map,
    strict_time,
    string,
)

ROOTS: dict[str, Schema] = {
    "PodGroup": obj(
        "Pods that the coscheduling plugin places together.",
        {
            "spec": obj(
                "The gang.",
                {
                    "minMember": int32("Pods that must be there.", minimum=1),
                    "minResources": quantity_map("Resources that must be there."),
                    "scheduleTimeoutSeconds": int32("Seconds that the gang waits."),
                },
            ),
            "status": obj(
                "State of the gang.",
                {
                    "failed": int32(),
                    "occupiedBy": string(),
                    "phase": string(),
                    "running": int32(),
                    "scheduleStartTime": strict_time(),
                    "succeeded": int32(),
                },
            ),
        },
    )
}
