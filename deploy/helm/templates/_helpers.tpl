{{- define "dragoman.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "dragoman.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "dragoman.selector" . }}
{{- end }}

{{- define "dragoman.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dragoman.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What all pods have: no root, no token of the cluster's API, no privileges to gain. */}}
{{- define "dragoman.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* What all containers have. */}}
{{- define "dragoman.container" -}}
image: {{ include "dragoman.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
{{- end }}

{{/* Settings of services and workers. HOME of the user and of Dragoman are on the volume. */}}
{{- define "dragoman.env" -}}
- name: HOME
  value: /data
- name: DRAGOMAN_HOME
  value: /data/home
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* A start may wait for the database for a minute; then health is asked for. */}}
{{- define "dragoman.probes" -}}
startupProbe:
  httpGet: {path: /health/live, port: http}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /health/live, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
  # A process that does not answer finishes nothing: it is not given the time that a worker has to finish its runs.
  terminationGracePeriodSeconds: 35
readinessProbe:
  httpGet: {path: /health/ready, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{- define "dragoman.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "dragoman.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end }}
