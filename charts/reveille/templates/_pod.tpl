{{/* Template of the pods of a part: reveille.podTemplate (list $ "gateway" $parts). */}}
{{- define "reveille.podTemplate" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $parts := index . 2 -}}
{{- $part := index $parts $name -}}
{{- $pod := $part.pod -}}
metadata:
  labels:
    {{- include "reveille.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
    {{- with $pod.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Settings are read at the start, so a change of them is a new pod.
    checksum/settings: {{ include "reveille.settings" $root | sha256sum }}
    {{- with (get $root.Values.databases $name) }}
    checksum/database: {{ toJson . | sha256sum }}
    {{- end }}
    {{- with mergeOverwrite (deepCopy $root.Values.commonAnnotations) $pod.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ $pod.serviceAccountName | default (include "reveille.serviceAccount" $root) }}
  automountServiceAccountToken: false
  # Keeps the variables that Kubernetes derives from Services out of the environment the settings are read from.
  enableServiceLinks: false
  {{- if kindIs "float64" $pod.terminationGracePeriodSeconds }}
  terminationGracePeriodSeconds: {{ $pod.terminationGracePeriodSeconds }}
  {{- else }}
  # Calls under way get their grace first; what is left is for streams and databases to close.
  terminationGracePeriodSeconds: {{ add $root.Values.settings.shutdown_grace_seconds 20 }}
  {{- end }}
  {{- range $key := list "imagePullSecrets" "hostAliases" "dnsPolicy" "dnsConfig" "priorityClassName" "runtimeClassName" "schedulerName" "nodeSelector" "tolerations" "affinity" }}
  {{- with get $pod $key }}
  {{ $key }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with include "reveille.spread" (list $root $name $part) | fromJsonArray }}
  topologySpreadConstraints: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- toYaml $pod.podSecurityContext | nindent 4 }}
  {{- with $pod.initContainers }}
  initContainers: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ $name }}
      image: {{ include "reveille.image" (list $root $pod.image) | quote }}
      imagePullPolicy: {{ $pod.image.pullPolicy }}
      command: [{{ printf "reveille-%s" $name | quote }}]
      args: ["--profile", {{ $root.Values.profile | quote }}, "--config", "/etc/reveille/reveille.toml"]
      env: {{- include "reveille.environment" (list $root $name $parts) | nindent 8 }}
      {{- with $pod.extraEnvFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: api, containerPort: {{ $part.port }}}
        {{- range $part.furtherPorts }}
        - {name: {{ .name }}, containerPort: {{ .port }}}
        {{- end }}
      {{- include "reveille.probes" $part | nindent 6 }}
      resources: {{- toYaml $part.resources | nindent 8 }}
      securityContext: {{- toYaml $pod.securityContext | nindent 8 }}
      volumeMounts:
        - {name: settings, mountPath: /etc/reveille, readOnly: true}
        {{- range $root.Values.secrets }}
        - {name: {{ printf "secret-%s" .name | quote }}, mountPath: {{ printf "/etc/reveille-secrets/%s" .name | quote }}, readOnly: true}
        {{- end }}
        {{- range $index, $secret := $part.ownSecrets }}
        - {name: own-{{ $index }}, mountPath: {{ $secret.mountPath }}, readOnly: true}
        {{- end }}
        {{- if $part.persistence }}
        - {name: data, mountPath: /var/lib/reveille}
        {{- end }}
        {{- with $pod.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with $pod.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: settings
      configMap: {name: {{ include "reveille.fullname" $root }}}
    {{- range $root.Values.secrets }}
    # Kept current by the kubelet, and read again by the services when it changes.
    - name: {{ printf "secret-%s" .name | quote }}
      secret: {secretName: {{ .name | quote }}, defaultMode: 0440}
    {{- end }}
    {{- range $index, $secret := $part.ownSecrets }}
    - name: own-{{ $index }}
      secret: {secretName: {{ $secret.name | quote }}, defaultMode: 0440}
    {{- end }}
    {{- with $part.persistence }}
    - name: data
      {{- if .enabled }}
      persistentVolumeClaim: {claimName: {{ .existingClaim | default (printf "%s-%s-data" (include "reveille.fullname" $root) $name) }}}
      {{- else }}
      emptyDir: {sizeLimit: {{ .size }}}
      {{- end }}
    {{- end }}
    {{- with $pod.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* How replicas of a part are spread, as a JSON list: reveille.spread (list $ "gateway" PART). */}}
{{- define "reveille.spread" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $part := index . 2 -}}
{{- $labels := include "reveille.selectorLabels" $root | fromYaml -}}
{{- $selector := dict "matchLabels" (set $labels "app.kubernetes.io/component" $name) -}}
{{- $wanted := $part.pod.topologySpreadConstraints -}}
{{- if and (not $wanted) (gt (int $part.replicas) 1) -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
{{- /* The hash leaves pods of a former version out, which go anyway. */ -}}
{{- $wanted = append $wanted (dict "topologyKey" . "maxSkew" 1 "whenUnsatisfiable" "ScheduleAnyway" "matchLabelKeys" (list "pod-template-hash")) -}}
{{- end -}}
{{- end -}}
{{- $constraints := list -}}
{{- range $wanted -}}
{{- $constraints = append $constraints (merge (dict) . (dict "labelSelector" $selector)) -}}
{{- end -}}
{{- $constraints | toJson -}}
{{- end -}}
