"""Root of scheduling.volcano.sh: the PodGroup of Volcano."""

from __future__ import annotations

from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    int32,
    map_of,
    obj,
    quantity_map,
    strict_time,
    string,
)

ROOTS: dict[str, Schema] = {
    "PodGroup": obj(
        "Pods that Volcano places together.",
        {
            "spec": obj(
                "The gang.",
                {
                    "minMember": int32("Pods that must be there."),
                    "minResources": quantity_map("Resources that must be there."),
                    "minTaskMember": map_of(int32(), "Pods that must be there by task."),
                    "networkTopology": obj(
                        "How near the nodes must be.",
                        {
                            "highestTierAllowed": {"type": "integer"},
                            "highestTierName": string(),
                            "mode": string("Whether nearness is a must.", enum=["hard", "soft"]),
                        },
                    ),
                    "priorityClassName": string("Priority class of the gang."),
                    "queue": string("Queue of the gang."),
                },
            ),
            "status": obj(
                "State of the gang.",
                {
                    "conditions": atomic(
                        obj(
                            "",
                            {
                                "lastTransitionTime": strict_time(),
                                "message": string(),
                                "reason": string(),
                                "status": string(),
                                "transitionID": string(),
                                "type": string(),
                            },
                        )
                    ),
                    "failed": int32(),
                    "phase": string(),
                    "running": int32(),
                    "succeeded": int32(),
                },
            ),
        },
    )
}
