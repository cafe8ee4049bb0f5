"""TrainingRuntimes and ClusterTrainingRuntimes of Trainer 2.0 and 2.1 in today's form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import dig

if TYPE_CHECKING:
    from trainwright.base.objects import Json, Object

_TORCH = "spec.mlPolicy.torch"
OLD_TORCH_FIELDS = ("numProcPerNode", "elasticPolicy")
"""Fields of the torch policy that have had no effect since Trainer 2.2."""


def convert_runtime(obj: Object) -> tuple[Object, list[str]]:
    """Drop what older Trainers understood in a torch policy, and say what to write instead.

    Returns:
        The runtime in today's form, the same object when nothing was old, and a warning for each
        dropped field that meant something. `auto` meant what its absence means today.

    Source: Trainer 2.0 and 2.1. Differs: Trainer 2.2 and later drop the fields silently.
    """
    torch = dig(obj, "spec", "mlPolicy", "torch")
    if not isinstance(torch, dict) or not any(key in torch for key in OLD_TORCH_FIELDS):
        return obj, []
    kept = {key: value for key, value in torch.items() if key not in OLD_TORCH_FIELDS}
    policy = {**obj["spec"]["mlPolicy"], "torch": kept}
    converted = {**obj, "spec": {**obj["spec"], "mlPolicy": policy}}
    return converted, [*_warn_of_processes(torch.get("numProcPerNode")), *_warn_of_elastic(torch)]


def _warn_of_processes(value: Json) -> list[str]:
    if value is None or value == "auto":
        return []
    advice = (
        f"set spec.trainer.numProcPerNode to {value} in the TrainJobs of this runtime"
        if isinstance(value, int)
        else "processes are now chosen from the resources of a node"
    )
    return [f"{_TORCH}.numProcPerNode: a field of Trainer 2.0 and 2.1, dropped; {advice}"]


def _warn_of_elastic(torch: Object) -> list[str]:
    if not torch.get("elasticPolicy"):
        return []
    return [
        f"{_TORCH}.elasticPolicy: a field of Trainer 2.0 and 2.1, dropped;"
        " the number of nodes is that of the TrainJob or of mlPolicy.numNodes"
    ]
