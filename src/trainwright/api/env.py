"""Every environment variable that we write, read or reserve: who writes it, and what it means.

The plugins' reserved names, the laptop's rewriting of ports and addresses, and the reference page
on environment variables are produced from this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Writer(StrEnum):
    """Who puts the variable into a container; plugins have the names of the registry."""

    TORCH = "Torch"
    MPI = "MPI"
    JAX = "JAX"
    XGBOOST = "XGBoost"
    FLUX = "Flux"
    TRAINJOB_STATUS = "TrainJobStatus"
    JOBSET = "JobSet"
    JOB = "Job"
    RUNTIME = "runtime"
    """The runtime's own template."""
    NODE = "node"
    """The laptop's node agent, in the process only: the Pod on the wire stays as it is."""
    USER = "user"
    """Nobody but the user or the SDK; listed because we read it or because the laptop rewrites it."""


class Rewrite(StrEnum):
    """What the value holds that only a cluster's network can keep apart or resolve."""

    NONE = ""
    PORT = "port"
    """A port number: the laptop puts the job's own free port in its place."""
    ADDRESS = "address"
    """A host name of a Pod: the laptop puts the loopback address in its place."""
    ENDPOINT = "endpoint"
    """`host:port`: both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvVariable:
    """One row of the table."""

    name: str
    writer: Writer
    meaning: str
    reserved: bool = False
    """Whether a TrainJob whose runtime uses the writer's policy may not set it."""
    rewrite: Rewrite = Rewrite.NONE


def _row(
    name: str,
    writer: Writer,
    meaning: str,
    *,
    reserved: bool = False,
    rewrite: Rewrite = Rewrite.NONE,
) -> EnvVariable:
    return EnvVariable(
        name=name, writer=writer, meaning=meaning, reserved=reserved, rewrite=rewrite
    )


_TORCH = (
    _row("PET_NNODES", Writer.TORCH, "number of nodes", reserved=True),
    _row("PET_NPROC_PER_NODE", Writer.TORCH, "processes on each node, or auto", reserved=True),
    _row("PET_NODE_RANK", Writer.TORCH, "rank of the node, from 0", reserved=True),
    _row(
        "PET_MASTER_ADDR",
        Writer.TORCH,
        "host of rank 0",
        reserved=True,
        rewrite=Rewrite.ADDRESS,
    ),
    _row(
        "PET_MASTER_PORT",
        Writer.TORCH,
        "port of the rendezvous on rank 0",
        reserved=True,
        rewrite=Rewrite.PORT,
    ),
)

_MPI = (
    _row(
        "OMPI_MCA_orte_default_hostfile",
        Writer.MPI,
        "file with the nodes and their slots",
        reserved=True,
    ),
    _row(
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        Writer.MPI,
        "true: names of nodes are not cut at the first dot",
        reserved=True,
    ),
    _row("OMPI_MCA_orte_set_default_slots", Writer.MPI, "processes on each node", reserved=True),
    _row("OMPI_MCA_plm_rsh_args", Writer.MPI, "options of ssh", reserved=True),
)

_JAX = (
    _row("JAX_NUM_PROCESSES", Writer.JAX, "number of processes, one on each node"),
    _row("JAX_PROCESS_ID", Writer.JAX, "rank of the process, from 0"),
    _row(
        "JAX_COORDINATOR_ADDRESS",
        Writer.JAX,
        "host and port of rank 0",
        rewrite=Rewrite.ENDPOINT,
    ),
)

_XGBOOST = (
    _row(
        "DMLC_TRACKER_URI",
        Writer.XGBOOST,
        "host of the tracker, on rank 0",
        reserved=True,
        rewrite=Rewrite.ADDRESS,
    ),
    _row(
        "DMLC_TRACKER_PORT",
        Writer.XGBOOST,
        "port of the tracker",
        reserved=True,
        rewrite=Rewrite.PORT,
    ),
    _row("DMLC_TASK_ID", Writer.XGBOOST, "rank of the node, from 0", reserved=True),
    _row("DMLC_NUM_WORKER", Writer.XGBOOST, "number of workers", reserved=True),
)

_FLUX = (
    _row("FLUX_VIEW_IMAGE", Writer.USER, "image that Flux is installed from"),
    _row("FLUX_NETWORK_DEVICE", Writer.USER, "network device of the brokers, eth0 when unset"),
    _row("FLUX_QUEUE_POLICY", Writer.USER, "policy of the queue, fcfs when unset"),
)

_STATUS = (
    _row("KUBEFLOW_TRAINER_SERVER_URL", Writer.TRAINJOB_STATUS, "where progress is reported to"),
    _row(
        "KUBEFLOW_TRAINER_SERVER_CA_CERT",
        Writer.TRAINJOB_STATUS,
        "file with the certificate authority of that server",
    ),
    _row(
        "KUBEFLOW_TRAINER_SERVER_TOKEN",
        Writer.TRAINJOB_STATUS,
        "file with the token for that server; read it anew, it is renewed",
    ),
)

_INITIALIZERS = (
    _row("STORAGE_URI", Writer.JOBSET, "what an initializer fetches"),
    _row("OUTPUT_PATH", Writer.USER, "folder an initializer writes to, outside clusters"),
    _row("IGNORE_PATTERNS", Writer.USER, "files an initializer leaves out, separated by commas"),
    _row("ACCESS_TOKEN", Writer.USER, "token for the Hugging Face hub"),
    _row("ENDPOINT", Writer.USER, "URL of the S3 server"),
    _row("ACCESS_KEY_ID", Writer.USER, "id of the S3 key"),
    _row("SECRET_ACCESS_KEY", Writer.USER, "secret of the S3 key"),
    _row("REGION", Writer.USER, "region of the S3 server"),
    _row("ROLE_ARN", Writer.USER, "role to take on for S3"),
)

_CACHE = (
    _row("TRAIN_JOB_NAME", Writer.RUNTIME, "name of the TrainJob, for the data cache"),
    _row("CACHE_IMAGE", Writer.RUNTIME, "image of the data cache"),
    _row("IAM_ROLE", Writer.USER, "cloud role of the data cache"),
    _row("METADATA_LOC", Writer.USER, "place of the table's metadata.json"),
    _row("CLUSTER_SIZE", Writer.USER, "processes of the data cache, 3 when unset"),
    _row("HEAD_CPU", Writer.USER, "CPU of the data cache's head, 1 when unset"),
    _row("HEAD_MEM", Writer.USER, "memory of the data cache's head, 1Gi when unset"),
    _row("WORKER_CPU", Writer.USER, "CPU of each data cache worker, 2 when unset"),
    _row("WORKER_MEM", Writer.USER, "memory of each data cache worker, 2Gi when unset"),
)

_JOB = (_row("JOB_COMPLETION_INDEX", Writer.JOB, "completion index of the Pod, from 0"),)

_USER = (
    _row("MASTER_ADDR", Writer.USER, "host of rank 0", rewrite=Rewrite.ADDRESS),
    _row("MASTER_PORT", Writer.USER, "port of rank 0", rewrite=Rewrite.PORT),
    _row(
        "PET_RDZV_ENDPOINT",
        Writer.USER,
        "host and port of an elastic rendezvous",
        rewrite=Rewrite.ENDPOINT,
    ),
    _row("JAX_COORDINATOR_PORT", Writer.USER, "port of rank 0", rewrite=Rewrite.PORT),
)

_NODE = (
    _row("TRAINWRIGHT_JOB", Writer.NODE, "`namespace/name` of the job that the process belongs to"),
    _row("TRAINWRIGHT_ATTEMPT", Writer.NODE, "how often its job was restarted before, from 0"),
    _row("GLOO_SOCKET_IFNAME", Writer.NODE, "network device of Gloo"),
    _row("NCCL_SOCKET_IFNAME", Writer.NODE, "network device of NCCL"),
    _row("TP_SOCKET_IFNAME", Writer.NODE, "network device of TensorPipe"),
)

ENV_VARIABLES: tuple[EnvVariable, ...] = (
    *_TORCH, *_MPI, *_JAX, *_XGBOOST, *_FLUX, *_STATUS, *_INITIALIZERS, *_CACHE, *_JOB, *_USER,
    *_NODE,
)  # fmt: skip
"""The table; within one writer in the order in which the variables are injected.

Source: Trainer 2.3, plugins Torch, MPI, JAX, XGBoost, Flux, TrainJobStatus; its initializers and
data cache; the Job controller of Kubernetes 1.36.
"""


def names_written_by(writer: Writer) -> tuple[str, ...]:
    """The variables that the writer puts into a container, in the order of injection."""
    return tuple(row.name for row in ENV_VARIABLES if row.writer is writer)


def reserved_names(writer: Writer) -> tuple[str, ...]:
    """The variables that a TrainJob may not set when its runtime uses the writer's policy."""
    return tuple(row.name for row in ENV_VARIABLES if row.writer is writer and row.reserved)


def names_to_rewrite(rewrite: Rewrite) -> tuple[str, ...]:
    """The variables whose values hold a port, an address or both."""
    return tuple(row.name for row in ENV_VARIABLES if row.rewrite is rewrite)
