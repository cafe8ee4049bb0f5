"""Variables that torchrun reads, in the order in which they are injected."""

from __future__ import annotations

from trainwright.api.env import Writer, reserved_names

NUM_NODES = "PET_NNODES"
PROCESSES_PER_NODE = "PET_NPROC_PER_NODE"
NODE_RANK = "PET_NODE_RANK"
MASTER_ADDRESS = "PET_MASTER_ADDR"
MASTER_PORT = "PET_MASTER_PORT"

RESERVED = reserved_names(Writer.TORCH)
"""Variables that a TrainJob may not set."""

AUTO = "auto"
"""torchrun counts the GPUs itself, in the pod."""
TORCHTUNE_COMMAND = ["tune", "run"]
