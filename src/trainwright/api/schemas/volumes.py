"""Definitions of volumes: what a Pod can mount, and the claims that a volume can be cut from."""

from __future__ import annotations

from trainwright.api.schemas.metadata import (
    EMBEDDED_META,
    LABEL_SELECTOR,
    LOCAL_OBJECT_REFERENCE,
    TYPED_LOCAL_OBJECT_REFERENCE,
    TYPED_OBJECT_REFERENCE,
)
from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    atomic_obj,
    boolean,
    int32,
    int64,
    keyed,
    map_of,
    obj,
    quantity,
    quantity_map,
    string,
    string_map,
    strings,
    time,
)

KEY_TO_PATH = obj(
    "One key and the file that it becomes.",
    {
        "key": string("Key to project."),
        "path": string("Relative path of the file."),
        "mode": int32("Permission bits of the file."),
    },
    ("key", "path"),
)
_ITEMS = atomic(KEY_TO_PATH, "Keys to project and their files; all keys when empty.")
_DEFAULT_MODE = int32("Permission bits of the files; 0644 when unset.")
_READ_ONLY = boolean("Whether the volume is mounted read-only.")
_FS_TYPE = string("Type of the file system.")

OBJECT_FIELD_SELECTOR = atomic_obj(
    "A field of the Pod itself.",
    {
        "apiVersion": string("Version in which the field is named; v1 when unset."),
        "fieldPath": string("Path of the field, such as `metadata.annotations['key']`."),
    },
    ("fieldPath",),
)
RESOURCE_FIELD_SELECTOR = atomic_obj(
    "A limit or request of a container of the Pod.",
    {
        "containerName": string("Container; required in volumes."),
        "resource": string("Resource, such as `limits.cpu`."),
        "divisor": quantity("Unit in which the amount is told; 1 when unset."),
    },
    ("resource",),
)

_DOWNWARD_ITEMS = atomic(
    obj(
        "One file with a fact about the Pod.",
        {
            "path": string("Relative path of the file."),
            "fieldRef": OBJECT_FIELD_SELECTOR,
            "resourceFieldRef": RESOURCE_FIELD_SELECTOR,
            "mode": int32(),
        },
        ("path",),
    ),
    "Files to make.",
)

_PROJECTION = obj(
    "One source of a projected volume.",
    {
        "configMap": atomic_obj(
            "Keys of a ConfigMap.",
            {
                "name": string("Name of the ConfigMap.", default=""),
                "items": _ITEMS,
                "optional": boolean("Whether it may be missing."),
            },
        ),
        "secret": atomic_obj(
            "Keys of a Secret.",
            {
                "name": string("Name of the Secret.", default=""),
                "items": _ITEMS,
                "optional": boolean("Whether it may be missing."),
            },
        ),
        "downwardAPI": obj("Facts about the Pod.", {"items": _DOWNWARD_ITEMS}),
        "serviceAccountToken": obj(
            "A token of the Pod's service account.",
            {
                "audience": string("For whom the token is."),
                "expirationSeconds": int64("Seconds until it ends; 3600 when unset."),
                "path": string("Relative path of the file."),
            },
            ("path",),
        ),
        "clusterTrustBundle": obj(
            "Trust anchors.",
            {
                "name": string(),
                "signerName": string(),
                "labelSelector": LABEL_SELECTOR,
                "optional": boolean(),
                "path": string(),
            },
            ("path",),
        ),
        "podCertificate": obj(
            "A certificate for the Pod.",
            {
                "signerName": string(),
                "keyType": string(),
                "maxExpirationSeconds": int32(),
                "credentialBundlePath": string(),
                "keyPath": string(),
                "certificateChainPath": string(),
                "userAnnotations": string_map(),
            },
            ("keyType", "signerName"),
        ),
    },
)

PVC_RESOURCES = obj("Storage wanted.", {"limits": quantity_map(), "requests": quantity_map()})

PVC_SPEC = obj(
    "What storage is claimed.",
    {
        "accessModes": strings("How the volume may be mounted, such as ReadWriteOnce."),
        "dataSource": TYPED_LOCAL_OBJECT_REFERENCE,
        "dataSourceRef": TYPED_OBJECT_REFERENCE,
        "resources": PVC_RESOURCES,
        "selector": LABEL_SELECTOR,
        "storageClassName": string("Storage class to take the volume from."),
        "volumeAttributesClassName": string(),
        "volumeMode": string("Filesystem or Block."),
        "volumeName": string("Volume that the claim is bound to."),
    },
)

PVC_STATUS = obj(
    "State of the claim.",
    {
        "accessModes": strings(),
        "allocatedResourceStatuses": string_map(),
        "allocatedResources": quantity_map(),
        "capacity": quantity_map("What the bound volume has."),
        "conditions": keyed(
            "type",
            obj(
                "",
                {
                    "type": string(),
                    "status": string(),
                    "lastProbeTime": time(),
                    "lastTransitionTime": time(),
                    "reason": string(),
                    "message": string(),
                },
                ("status", "type"),
            ),
        ),
        "currentVolumeAttributesClassName": string(),
        "modifyVolumeStatus": obj(
            "", {"status": string(), "targetVolumeAttributesClassName": string()}, ("status",)
        ),
        "phase": string("Pending, Bound or Lost."),
    },
)


def build_claim(metadata: Schema) -> Schema:
    """A PersistentVolumeClaim inside another object, with the metadata that is known there."""
    return obj(
        "A claim of storage.",
        {
            "apiVersion": string(),
            "kind": string(),
            "metadata": metadata,
            "spec": PVC_SPEC,
            "status": PVC_STATUS,
        },
    )


_EPHEMERAL = obj(
    "A volume that lives with the Pod, cut from a claim made for it.",
    {
        "volumeClaimTemplate": obj(
            "The claim to make.", {"metadata": EMBEDDED_META, "spec": PVC_SPEC}, ("spec",)
        )
    },
)

_SECRET_REF = LOCAL_OBJECT_REFERENCE
_DISK: dict[str, Schema] = {"fsType": _FS_TYPE, "partition": int32(), "readOnly": _READ_ONLY}

VOLUME = obj(
    "A volume of the Pod; exactly one source.",
    {
        "name": string("Name by which containers mount it."),
        "emptyDir": obj(
            "An empty folder that lives with the Pod.",
            {
                "medium": string("Memory for a RAM disk; empty for the node's disk."),
                "sizeLimit": quantity("Most it may hold."),
            },
        ),
        "hostPath": obj(
            "A path of the node.",
            {"path": string("Path on the node."), "type": string("What must be there.")},
            ("path",),
        ),
        "configMap": atomic_obj(
            "Files from a ConfigMap.",
            {
                "name": string("Name of the ConfigMap.", default=""),
                "defaultMode": _DEFAULT_MODE,
                "items": _ITEMS,
                "optional": boolean("Whether it may be missing."),
            },
        ),
        "secret": obj(
            "Files from a Secret.",
            {
                "secretName": string("Name of the Secret."),
                "defaultMode": _DEFAULT_MODE,
                "items": _ITEMS,
                "optional": boolean("Whether it may be missing."),
            },
        ),
        "projected": obj(
            "Files from several sources.",
            {"defaultMode": _DEFAULT_MODE, "sources": atomic(_PROJECTION, "The sources.")},
        ),
        "downwardAPI": obj(
            "Files with facts about the Pod.",
            {"defaultMode": _DEFAULT_MODE, "items": _DOWNWARD_ITEMS},
        ),
        "persistentVolumeClaim": obj(
            "Storage that a claim is bound to.",
            {"claimName": string("Name of the claim."), "readOnly": _READ_ONLY},
            ("claimName",),
        ),
        "ephemeral": _EPHEMERAL,
        "image": obj(
            "Files of an OCI image or artifact.",
            {"reference": string("Image to mount."), "pullPolicy": string()},
        ),
        "csi": obj(
            "An inline volume of a CSI driver.",
            {
                "driver": string("Name of the driver."),
                "fsType": _FS_TYPE,
                "nodePublishSecretRef": _SECRET_REF,
                "readOnly": _READ_ONLY,
                "volumeAttributes": string_map(),
            },
            ("driver",),
        ),
        "nfs": obj(
            "A share of an NFS server.",
            {
                "server": string("Host of the server."),
                "path": string("Exported path."),
                "readOnly": _READ_ONLY,
            },
            ("path", "server"),
        ),
        "fc": obj(
            "",
            {
                "fsType": _FS_TYPE,
                "lun": int32(),
                "readOnly": _READ_ONLY,
                "targetWWNs": strings(),
                "wwids": strings(),
            },
        ),
        "iscsi": obj(
            "",
            {
                "chapAuthDiscovery": boolean(),
                "chapAuthSession": boolean(),
                "fsType": _FS_TYPE,
                "initiatorName": string(),
                "iqn": string(),
                "iscsiInterface": string(default="default"),
                "lun": int32(),
                "portals": strings(),
                "readOnly": _READ_ONLY,
                "secretRef": _SECRET_REF,
                "targetPortal": string(),
            },
            ("iqn", "lun", "targetPortal"),
        ),
        "cephfs": obj(
            "",
            {
                "monitors": strings(),
                "path": string(),
                "readOnly": _READ_ONLY,
                "secretFile": string(),
                "secretRef": _SECRET_REF,
                "user": string(),
            },
            ("monitors",),
        ),
        "rbd": obj(
            "",
            {
                "fsType": _FS_TYPE,
                "image": string(),
                "keyring": string(default="/etc/ceph/keyring"),
                "monitors": strings(),
                "pool": string(default="rbd"),
                "readOnly": _READ_ONLY,
                "secretRef": _SECRET_REF,
                "user": string(default="admin"),
            },
            ("image", "monitors"),
        ),
        "glusterfs": obj(
            "",
            {"endpoints": string(), "path": string(), "readOnly": _READ_ONLY},
            ("endpoints", "path"),
        ),
        "awsElasticBlockStore": obj("", {"volumeID": string(), **_DISK}, ("volumeID",)),
        "gcePersistentDisk": obj("", {"pdName": string(), **_DISK}, ("pdName",)),
        "azureDisk": obj(
            "",
            {
                "cachingMode": string(default="ReadWrite"),
                "diskName": string(),
                "diskURI": string(),
                "fsType": string(default="ext4"),
                "kind": string(default="Shared"),
                "readOnly": boolean(default=False),
            },
            ("diskName", "diskURI"),
        ),
        "azureFile": obj(
            "",
            {"readOnly": _READ_ONLY, "secretName": string(), "shareName": string()},
            ("secretName", "shareName"),
        ),
        "cinder": obj(
            "",
            {
                "fsType": _FS_TYPE,
                "readOnly": _READ_ONLY,
                "secretRef": _SECRET_REF,
                "volumeID": string(),
            },
            ("volumeID",),
        ),
        "flexVolume": obj(
            "",
            {
                "driver": string(),
                "fsType": _FS_TYPE,
                "options": map_of({"type": "string"}),
                "readOnly": _READ_ONLY,
                "secretRef": _SECRET_REF,
            },
            ("driver",),
        ),
        "flocker": obj("", {"datasetName": string(), "datasetUUID": string()}),
        "gitRepo": obj(
            "",
            {"directory": string(), "repository": string(), "revision": string()},
            ("repository",),
        ),
        "photonPersistentDisk": obj("", {"fsType": _FS_TYPE, "pdID": string()}, ("pdID",)),
        "portworxVolume": obj(
            "",
            {"fsType": _FS_TYPE, "readOnly": _READ_ONLY, "volumeID": string()},
            ("volumeID",),
        ),
        "quobyte": obj(
            "",
            {
                "group": string(),
                "readOnly": _READ_ONLY,
                "registry": string(),
                "tenant": string(),
                "user": string(),
                "volume": string(),
            },
            ("registry", "volume"),
        ),
        "scaleIO": obj(
            "",
            {
                "fsType": string(default="xfs"),
                "gateway": string(),
                "protectionDomain": string(),
                "readOnly": _READ_ONLY,
                "secretRef": _SECRET_REF,
                "sslEnabled": boolean(),
                "storageMode": string(default="ThinProvisioned"),
                "storagePool": string(),
                "system": string(),
                "volumeName": string(),
            },
            ("gateway", "secretRef", "system"),
        ),
        "storageos": obj(
            "",
            {
                "fsType": _FS_TYPE,
                "readOnly": _READ_ONLY,
                "secretRef": _SECRET_REF,
                "volumeName": string(),
                "volumeNamespace": string(),
            },
        ),
        "vsphereVolume": obj(
            "",
            {
                "fsType": _FS_TYPE,
                "storagePolicyID": string(),
                "storagePolicyName": string(),
                "volumePath": string(),
            },
            ("volumePath",),
        ),
    },
    ("name",),
)
