"""ML policies that count nodes and set variables by themselves."""

from __future__ import annotations

SELF_SUFFICIENT = ("torch", "mpi", "jax")
