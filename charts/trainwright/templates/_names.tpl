{{- define "trainwright.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "trainwright.fullname" -}}
{{- $name := include "trainwright.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The one Service; its name is in the certificate. */}}
{{- define "trainwright.service" -}}
{{- .Values.manager.config.certManagement.webhookServiceName | default (printf "%s-controller-manager" (include "trainwright.fullname" .)) }}
{{- end }}

{{- define "trainwright.secret" -}}
{{- .Values.manager.config.certManagement.webhookSecretName | default (printf "%s-webhook-cert" (include "trainwright.fullname" .)) }}
{{- end }}

{{- define "trainwright.image" -}}
{{- $tag := .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- if .Values.image.registry }}{{ .Values.image.registry }}/{{ end }}{{ .Values.image.repository }}:{{ $tag }}
{{- end }}

{{- define "trainwright.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: kubeflow
{{ include "trainwright.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "trainwright.selector" -}}
app.kubernetes.io/name: {{ include "trainwright.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.manager.selectorLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Whether trainings may report progress: the gate by its name, else by AllAlpha. */}}
{{- define "trainwright.reports" -}}
{{- $gates := .Values.manager.config.featureGates }}
{{- if hasKey $gates "TrainJobStatus" }}
{{- if get $gates "TrainJobStatus" }}yes{{ end }}
{{- else if get $gates "AllAlpha" }}yes{{ end }}
{{- end }}

{{/* The port of an address such as ":8443"; 0 turns it off. */}}
{{- define "trainwright.port" -}}
{{- regexFind "[0-9]+$" . }}
{{- end }}

{{- define "trainwright.runtimeKey" -}}
{{- $words := splitList "-" . }}
{{- first $words }}{{ range rest $words }}{{ title . }}{{ end }}
{{- end }}

{{/* What is said of values that this chart cannot follow. */}}
{{- define "trainwright.refusals" -}}
{{- if .Values.jobset.install }}
{{- fail "jobset.install: JobSet is not part of this chart; install it first and leave this false, or use the chart trainwright-stack" }}
{{- end }}
{{- if not .Values.crds.enabled }}
{{- fail "crds.enabled: leave it true, and pass --skip-crds to helm when the CRDs are there already" }}
{{- end }}
{{- $known := list }}
{{- range $path, $_ := .Files.Glob "files/runtimes/*.yaml" }}
{{- $known = append $known (include "trainwright.runtimeKey" (base $path | trimSuffix ".yaml")) }}
{{- end }}
{{- range $key, $value := omit .Values.runtimes "defaultEnabled" "commonLabels" "installer" }}
{{- if and (contains "\"enabled\":true" (toJson $value)) (not (has $key $known)) }}
{{- fail (printf "runtimes.%s: no such runtime is shipped; there are %s" $key (join ", " $known)) }}
{{- end }}
{{- end }}
{{- end }}
