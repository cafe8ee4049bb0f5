"""The table of environment variables."""

from __future__ import annotations

import pytest

from trainwright.api.env import (
    ENV_VARIABLES,
    Rewrite,
    Writer,
    names_to_rewrite,
    names_written_by,
    reserved_names,
)


def test_every_variable_has_one_row_and_a_meaning() -> None:
    names = [row.name for row in ENV_VARIABLES]
    assert len(names) == len(set(names))
    assert all(row.meaning for row in ENV_VARIABLES)


@pytest.mark.parametrize(
    ("writer", "names"),
    [
        (
            Writer.TORCH,
            (
                "PET_NNODES",
                "PET_NPROC_PER_NODE",
                "PET_NODE_RANK",
                "PET_MASTER_ADDR",
                "PET_MASTER_PORT",
            ),
        ),
        (
            Writer.MPI,
            (
                "OMPI_MCA_orte_default_hostfile",
                "OMPI_MCA_orte_keep_fqdn_hostnames",
                "OMPI_MCA_orte_set_default_slots",
                "OMPI_MCA_plm_rsh_args",
            ),
        ),
        (Writer.JAX, ()),
        (
            Writer.XGBOOST,
            ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
        ),
        (Writer.FLUX, ()),
        (Writer.TRAINJOB_STATUS, ()),
    ],
)
def test_reserved_names_are_those_that_admission_refuses(
    writer: Writer, names: tuple[str, ...]
) -> None:
    assert reserved_names(writer) == names


def test_rows_that_a_laptop_rewrites() -> None:
    assert set(names_to_rewrite(Rewrite.PORT)) == {
        "PET_MASTER_PORT",
        "DMLC_TRACKER_PORT",
        "MASTER_PORT",
        "JAX_COORDINATOR_PORT",
    }
    assert set(names_to_rewrite(Rewrite.ADDRESS)) == {
        "PET_MASTER_ADDR",
        "DMLC_TRACKER_URI",
        "MASTER_ADDR",
    }
    assert set(names_to_rewrite(Rewrite.ENDPOINT)) == {
        "JAX_COORDINATOR_ADDRESS",
        "PET_RDZV_ENDPOINT",
    }


def test_node_alone_writes_what_only_processes_see() -> None:
    assert names_written_by(Writer.NODE) == (
        "TRAINWRIGHT_JOB",
        "TRAINWRIGHT_ATTEMPT",
        "GLOO_SOCKET_IFNAME",
        "NCCL_SOCKET_IFNAME",
        "TP_SOCKET_IFNAME",
    )
