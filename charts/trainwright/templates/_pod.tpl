{{/* A Deployment of `trainwright controller`; takes root, part, replicas, resources, ports, keys. */}}
{{- define "trainwright.deployment" -}}
{{- $root := .root }}
{{- $values := $root.Values.manager }}
{{- $config := $values.config }}
{{- $name := printf "%s-%s" (include "trainwright.fullname" $root) .component }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "trainwright.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .replicas }}
  selector:
    matchLabels:
      {{- include "trainwright.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "trainwright.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
        {{- if .served }}
        trainwright.dev/serves: requests
        {{- end }}
        {{- with $values.labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        trainwright.dev/configuration: {{ include "trainwright.configuration" $root | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      securityContext:
        {{- toYaml $values.podSecurityContext | nindent 8 }}
      containers:
        - name: {{ .component }}
          image: {{ include "trainwright.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [trainwright, controller]
          args:
            - --config=/etc/trainwright/controller_manager_config.yaml
            - --serve={{ .serve }}
            - --cert-dir=/certs
            - --log-level={{ $values.logLevel }}
          {{- with $values.env }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $values.envFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- range $port := .ports }}
            - {name: {{ $port.name }}, containerPort: {{ $port.port }}, protocol: TCP}
            {{- end }}
            {{- if ne $config.metrics.bindAddress "0" }}
            - {name: metrics, containerPort: {{ include "trainwright.port" $config.metrics.bindAddress }}, protocol: TCP}
            {{- end }}
            {{- if ne $config.health.healthProbeBindAddress "0" }}
            - {name: health, containerPort: {{ include "trainwright.port" $config.health.healthProbeBindAddress }}, protocol: TCP}
          livenessProbe:
            httpGet: {path: /{{ $config.health.livenessEndpointName | trimPrefix "/" }}, port: health}
            initialDelaySeconds: 15
            periodSeconds: 20
            timeoutSeconds: 3
          readinessProbe:
            httpGet: {path: /{{ $config.health.readinessEndpointName | trimPrefix "/" }}, port: health}
            periodSeconds: 5
            timeoutSeconds: 3
            {{- end }}
          resources:
            {{- toYaml .resources | nindent 12 }}
          securityContext:
            {{- toYaml $values.securityContext | nindent 12 }}
          volumeMounts:
            - {name: configuration, mountPath: /etc/trainwright, readOnly: true}
            - {name: certificate, mountPath: /certs, readOnly: true}
            - {name: scratch, mountPath: /tmp}
            {{- with $values.volumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: configuration
          configMap:
            name: {{ include "trainwright.fullname" $root }}-config
        - name: certificate
          secret:
            secretName: {{ include "trainwright.secret" $root }}
            defaultMode: 0440
            # The keys come when the webhooks have filled the Secret.
            optional: true
            items:
              - {key: ca.crt, path: ca.crt}
              - {key: tls.crt, path: tls.crt}
              - {key: tls.key, path: tls.key}
        - name: scratch
          emptyDir: {medium: Memory, sizeLimit: 16Mi}
        {{- with $values.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $values.affinity }}
      affinity:
        {{- toYaml $values.affinity | nindent 8 }}
      {{- else if gt (int .replicas) 1 }}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- include "trainwright.selector" $root | nindent 20 }}
                    app.kubernetes.io/component: {{ .component }}
      {{- end }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "trainwright.labels" $root | nindent 4 }}
{{- if $root.Values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "trainwright.labels" $root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "trainwright.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- end }}
