"""What the JobSet renderer writes and leaves out."""

from __future__ import annotations

POD_NAME_SUFFIX = "-abcde"
"""As long as the random end of a pod's name."""
LABEL_LENGTH = 63
"""Names of Jobs, and the generated names of pods, must be DNS labels of this length."""

OMITTED_WHEN_EMPTY = frozenset(
    {"metadata", "labels", "annotations", "nodeSelector", "resources", "limits", "requests"}
)
"""Maps that mean the same empty as absent. Applied empty, after an apply that owned a key in them,
API servers turn them into null and refuse the object (kubernetes 104694)."""

CONTAINER_FIELDS = {
    "image": "image",
    "command": "command",
    "args": "args",
    "env": "env",
    "env_from": "envFrom",
    "ports": "ports",
    "volume_mounts": "volumeMounts",
    "resources": "resources",
}
"""Fields of a container that a PodSet holds, and their names on the wire."""
