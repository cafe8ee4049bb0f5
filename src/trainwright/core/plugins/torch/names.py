"""Variables that torchrun reads, in the order in which they are injected."""

from __future__ import annotations

NUM_NODES = "PET_NNODES"
PROCESSES_PER_NODE = "PET_NPROC_PER_NODE"
NODE_RANK = "PET_NODE_RANK"
MASTER_ADDRESS = "PET_MASTER_ADDR"
MASTER_PORT = "PET_MASTER_PORT"

RESERVED = (NUM_NODES, PROCESSES_PER_NODE, NODE_RANK, MASTER_ADDRESS, MASTER_PORT)

AUTO = "auto"
"""torchrun counts the GPUs itself, in the pod."""
TORCHTUNE_COMMAND = ["tune", "run"]
