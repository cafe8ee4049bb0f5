{{/* Who reads the metrics is asked of the API server. */}}
{{- define "trainwright.metricsRules" -}}
{{- if .Values.manager.config.metrics.auth.enabled }}
  - apiGroups: [authentication.k8s.io]
    resources: [tokenreviews]
    verbs: [create]
  - apiGroups: [authorization.k8s.io]
    resources: [subjectaccessreviews]
    verbs: [create]
{{- end }}
{{- end }}

{{/* The ClusterRole of that name to the ServiceAccount of that name. */}}
{{- define "trainwright.clusterBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "trainwright.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .name }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
