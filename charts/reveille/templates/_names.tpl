{{/* Name of what the chart installs, as labels tell it. */}}
{{- define "reveille.name" -}}
{{- .Values.nameOverride | default .Chart.Name -}}
{{- end -}}

{{/* Common start of every object's name: short enough that the longest part's name and suffix still fit into 63 letters. */}}
{{- define "reveille.fullname" -}}
{{- $name := .Release.Name -}}
{{- if not (contains (include "reveille.name" .) $name) -}}
{{- $name = printf "%s-%s" $name (include "reveille.name" .) -}}
{{- end -}}
{{- .Values.fullnameOverride | default $name | trunc 35 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects the objects of one release. */}}
{{- define "reveille.selectorLabels" -}}
app.kubernetes.io/name: {{ include "reveille.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "reveille.labels" -}}
{{ include "reveille.selectorLabels" . }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Metadata of an object: reveille.metadata (dict "root" $). Of a part with `component`; `suffix` distinguishes objects of the
same kind, and `name` is one that does not follow from these; `labels` and `annotations` are its own, beside the common ones.
*/}}
{{- define "reveille.metadata" -}}
{{- $parts := list (include "reveille.fullname" .root) .component .suffix -}}
name: {{ .name | default (without $parts "" nil | join "-") }}
labels:
  {{- include "reveille.labels" .root | nindent 2 }}
  {{- with .component }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with mergeOverwrite (deepCopy .root.Values.commonAnnotations) (default dict .annotations) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Reference of an image: reveille.image (list $ IMAGE). */}}
{{- define "reveille.image" -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default (index . 0).Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "reveille.serviceAccount" -}}
{{- with .Values.serviceAccount -}}
{{- .name | default (ternary (include "reveille.fullname" $) "default" .create) -}}
{{- end -}}
{{- end -}}
