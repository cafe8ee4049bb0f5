"""Labels, annotations, finalizers, field managers and names that are part of the wire, once.

A literal that belongs to one plugin or controller alone stays with it.
"""

from __future__ import annotations

TRAINER_MANAGER = "trainer"
"""Field manager of every object that the TrainJob controller applies."""

STATUS_MANAGER = "trainer-status"
"""Field manager of what trainings say about themselves."""

TRAINJOB_CONTROLLER = "trainer.kubeflow.org/trainjob-controller"
"""`spec.managedBy` of TrainJobs that we reconcile (the default)."""
MULTIKUEUE_CONTROLLER = "kueue.x-k8s.io/multikueue"
JOBSET_CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"
JOB_CONTROLLER = "kubernetes.io/job-controller"

ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
FRAMEWORK_LABEL = "trainer.kubeflow.org/framework"
SUPPORT_LABEL = "trainer.kubeflow.org/support"
WEBHOOK_VALIDATION_LABEL = "trainer.kubeflow.org/webhook-validation"
FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"
KUBERNETES_FINALIZER = "kubernetes"
"""In `spec.finalizers` of a namespace."""
RESOURCE_IN_USE_FINALIZER = "trainer.kubeflow.org/resource-in-use"

ANCESTOR_TRAINER = "trainer"
ANCESTOR_DATASET_INITIALIZER = "dataset-initializer"
ANCESTOR_MODEL_INITIALIZER = "model-initializer"
NODE = "node"
"""Name of the trainer's replicated job and of its main container."""

TRAINER_PORT = 29500
"""Where rank 0 of a job listens for the others."""

SNAPSHOT_SUFFIX = "-runtime-snapshot"
SNAPSHOT_KEY = "runtime"

INITIALIZER_VOLUME = "initializer"
"""Volume that initializer steps must mount."""
STORAGE_URI = "STORAGE_URI"
"""Variable that tells an initializer what to fetch."""

JOBSET_NAME_LABEL = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID_LABEL = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB_NAME_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"
REPLICATED_JOB_REPLICAS_LABEL = "jobset.sigs.k8s.io/replicatedjob-replicas"
JOB_INDEX_LABEL = "jobset.sigs.k8s.io/job-index"
RESTART_ATTEMPT_LABEL = "jobset.sigs.k8s.io/restart-attempt"

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
COMPLETION_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
JOB_TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"

TTL_ANNOTATION = "trainwright.dev/ttl-seconds-after-finished"
ELASTIC_NODES_ANNOTATION = "trainwright.dev/elastic-nodes"
RUN_IN_ANNOTATION = "trainwright.dev/run-in"
MPI_IMPLEMENTATION_ANNOTATION = "trainwright.dev/mpi-implementation"

OWN_CONDITION_PREFIX = "trainwright.dev/"
"""Types of conditions of ours, which exist only while something is wrong."""

LAPTOP_NODE_NAME = "laptop"
"""`spec.nodeName` of the embedded plane's one node."""

WORKING_DIR_ANNOTATION = "trainwright.dev/working-dir"
"""Where the job was submitted from: the laptop's processes start there unless they say otherwise."""

SYSTEM_NAMESPACE = "kubeflow-system"
"""Where the controller lives, and the ConfigMap in which clients read its version."""
