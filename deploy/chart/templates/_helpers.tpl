{{- define "dbplane.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "dbplane" .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-dbplane" .Release.Name -}}
{{- end -}}
{{- end -}}

{{/* Objects without a namespace: two releases of one name in two namespaces do not share them. */}}
{{- define "dbplane.clusterName" -}}
{{- $name := include "dbplane.name" . -}}
{{- if hasPrefix $name .Release.Namespace -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Namespace $name -}}
{{- end -}}
{{- end -}}

{{- define "dbplane.selector" -}}
app.kubernetes.io/name: dbplane
app.kubernetes.io/component: operator
{{- end -}}

{{- define "dbplane.labels" -}}
app.kubernetes.io/name: dbplane
app.kubernetes.io/part-of: dbplane
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "dbplane.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "dbplane.name" .) -}}
{{- end -}}

{{- define "dbplane.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Metrics name tenants: without a policy and a token only the Pod itself reads them, and who may forward its port. */}}
{{- define "dbplane.metricsHost" -}}
{{- if or .Values.networkPolicy.enabled .Values.metrics.tokenSecret.name -}}
0.0.0.0
{{- else -}}
127.0.0.1
{{- end -}}
{{- end -}}

{{/* The namespaces whose Secrets it may use, as JSON; empty: all. */}}
{{- define "dbplane.secretNamespaces" -}}
{{- if eq .Values.secrets.access "namespaces" -}}
{{- concat .Values.scope.namespaces .Values.secrets.namespaces | uniq | sortAlpha | toJson -}}
{{- else -}}
{{- list | toJson -}}
{{- end -}}
{{- end -}}

{{- define "dbplane.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "dbplane.serviceAccount" . }}
    namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* The rules of a role that kustomize installs too. */}}
{{- define "dbplane.rules" -}}
rules: {{- (.root.Files.Get (printf "roles/%s.yaml" .role) | fromYaml).rules | toYaml | nindent 2 }}
{{- end -}}
