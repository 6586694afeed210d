{{/* Common start of every object's name: short enough that the longest part's name still fits into 63 letters. */}}
{{- define "reveille.fullname" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) -}}
{{- $name = printf "%s-%s" $name .Chart.Name -}}
{{- end -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects the objects of one release. */}}
{{- define "reveille.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "reveille.labels" -}}
{{ include "reveille.selectorLabels" . }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
Every part that runs, by name: port, protocol (grpc or http), replicas, serviceType, resources; of some a port for
clients of Kubernetes, and Secrets that no other part sees: name, mountPath. All templates walk this map, so the services,
the gateway and the simulator are described alike.
*/}}
{{- define "reveille.parts" -}}
{{- $parts := dict -}}
{{- range $name, $service := .Values.services -}}
{{- $_ := set $parts $name (merge (dict "protocol" "grpc" "serviceType" "ClusterIP") $service) -}}
{{- end -}}
{{- with .Values.hostSecretKeys.existingSecret -}}
{{- $keys := dict "name" . "mountPath" "/etc/reveille-secret-keys" -}}
{{- $_ := set (index $parts "component-registry") "ownSecrets" (list $keys) -}}
{{- end -}}
{{- with .Values.deviceAuthority.existingSecret -}}
{{- $authority := dict "name" . "mountPath" "/etc/reveille-authority" -}}
{{- $_ := set (index $parts "fleet-manager") "ownSecrets" (list $authority) -}}
{{- end -}}
{{- $gateway := merge (dict "protocol" "http") (omit .Values.gateway "kubernetes") -}}
{{- with .Values.gateway.kubernetes -}}
{{- if .listen -}}
{{- $_ := set $gateway "kubernetesPort" .port -}}
{{- $_ := set $gateway "ownSecrets" (list (dict "name" .certificateSecret "mountPath" "/etc/reveille-certificate")) -}}
{{- end -}}
{{- end -}}
{{- with .Values.tls.gatewaySecret -}}
{{- $_ := set $gateway "secure" true -}}
{{- $public := dict "name" . "mountPath" "/etc/reveille-gateway-certificate" -}}
{{- $_ := set $gateway "ownSecrets" (append (default list $gateway.ownSecrets) $public) -}}
{{- end -}}
{{- $_ := set $parts "gateway" $gateway -}}
{{- if .Values.simulator.enabled -}}
{{- $simulator := omit .Values.simulator "enabled" -}}
{{- $_ := set $parts "simulator" (merge (dict "protocol" "grpc" "replicas" 1 "serviceType" "ClusterIP") $simulator) -}}
{{- end -}}
{{- if .Values.tls.enabled -}}
{{- range $name, $part := $parts -}}
{{- $secret := dict "name" (printf "%s-%s-tls" (include "reveille.fullname" $) $name) "mountPath" "/etc/reveille-tls" -}}
{{- $_ := set $part "ownSecrets" (append (default list $part.ownSecrets) $secret) -}}
{{- if eq $part.protocol "grpc" -}}
{{- $_ := set $part "secure" true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $parts | toJson -}}
{{- end -}}

{{/* Environment variable of one setting: reveille.variable (list "power-controller" "url"). */}}
{{- define "reveille.variable" -}}
{{- printf "REVEILLE__%s__%s" (index . 0) (index . 1) | replace "-" "_" | upper -}}
{{- end -}}

{{/*
Settings as a TOML file: reveille.toml (list "" .Values.settings), a section and all below it. Scalars are written as
JSON, which is TOML too; toToml would turn every whole number into a fraction.
*/}}
{{- define "reveille.toml" -}}
{{- $section := index . 0 -}}
{{- $members := index . 1 -}}
{{- if $section }}

[{{ $section }}]
{{- end }}
{{- range $key, $value := $members }}
{{- if not (kindIs "map" $value) }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- range $key, $value := $members }}
{{- if kindIs "map" $value }}
{{- include "reveille.toml" (list (ternary (printf "%s.%s" $section $key) $key (ne $section "")) $value) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Settings as the values give them, and those that the chart knows: where it mounts keys and certificates. */}}
{{- define "reveille.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- if .Values.hostSecretKeys.existingSecret -}}
{{- $keys := list -}}
{{- range .Values.hostSecretKeys.keys -}}
{{- $keys = append $keys (printf "file:/etc/reveille-secret-keys/%s" .) -}}
{{- end -}}
{{- $_ := set $settings "hosts" (merge (dict "secret_keys" $keys) (default dict $settings.hosts)) -}}
{{- end -}}
{{- if .Values.deviceAuthority.existingSecret -}}
{{- $devices := default dict $settings.devices -}}
{{- $files := dict "authority" "/etc/reveille-authority/tls.crt" "authority_key" "/etc/reveille-authority/tls.key" -}}
{{- $certificates := merge $files (default dict $devices.certificates) -}}
{{- $_ := set $settings "devices" (merge (dict "certificates" $certificates) $devices) -}}
{{- end -}}
{{- with .Values.gateway.kubernetes -}}
{{- $kubernetes := dict "serve" .serve -}}
{{- if .listen -}}
{{- $_ := set $kubernetes "listen" (printf "0.0.0.0:%v" .port) -}}
{{- $_ := set $kubernetes "certificate" "/etc/reveille-certificate/tls.crt" -}}
{{- $_ := set $kubernetes "key" "/etc/reveille-certificate/tls.key" -}}
{{- end -}}
{{- $_ := set $settings "gateway" (merge (dict "kubernetes" $kubernetes) (default dict $settings.gateway)) -}}
{{- end -}}
{{- $tls := pick .Values.tls "callers" "insecure" -}}
{{- if .Values.tls.enabled -}}
{{- $_ := set $tls "certificate" "/etc/reveille-tls/tls.crt" -}}
{{- $_ := set $tls "key" "/etc/reveille-tls/tls.key" -}}
{{- $_ := set $tls "ca_file" "/etc/reveille-tls/ca.crt" -}}
{{- end -}}
{{- $_ := set $settings "tls" $tls -}}
{{- if .Values.tls.gatewaySecret -}}
{{- $files := dict "certificate" "/etc/reveille-gateway-certificate/tls.crt" "key" "/etc/reveille-gateway-certificate/tls.key" -}}
{{- $_ := set $settings "gateway" (merge $files (default dict $settings.gateway)) -}}
{{- end -}}
{{- $settings | toJson -}}
{{- end -}}

{{/* Name of the Secret with a service's database: reveille.databaseSecret (list $ "power-controller"). */}}
{{- define "reveille.databaseSecret" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $database := default dict (get $root.Values.databases $name) -}}
{{- if $database.url -}}
{{- printf "%s-%s-database" (include "reveille.fullname" $root) $name -}}
{{- else -}}
{{- $database.existingSecret | default "" -}}
{{- end -}}
{{- end -}}

{{/* Where a part listens, where it finds the others, and its database: reveille.environment (list $ "gateway" $parts). */}}
{{- define "reveille.environment" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $parts := index . 2 -}}
- name: {{ include "reveille.variable" (list $name "listen") }}
  value: {{ printf "0.0.0.0:%v" (index $parts $name).port | quote }}
{{- range $peer, $part := $parts }}
- name: {{ include "reveille.variable" (list $peer "url") }}
  value: {{ printf "%s://%s-%s:%v" (ternary "https" "http" (default false $part.secure)) (include "reveille.fullname" $root) $peer $part.port | quote }}
{{- end }}
{{- if include "reveille.databaseSecret" (list $root $name) }}
- name: {{ include "reveille.variable" (list $name "database_url") }}
  valueFrom:
    secretKeyRef:
      name: {{ include "reveille.databaseSecret" (list $root $name) }}
      key: url
{{- end }}
{{- end -}}

{{/*
Start, readiness and liveness of a part. A gRPC service answers health checks with "not serving" as long as it waits for
its peers, which is no reason to start it again: only readiness asks for health. And it asks only whether they have started:
a database that takes no writes is the same for every replica, so taking them out of service would only take the reads
away as well. Who watches over the mesh asks for more, which is /readyz and health checks without a name.
*/}}
{{- define "reveille.probes" -}}
{{- $grpc := eq .protocol "grpc" -}}
{{- $alive := ternary (dict "tcpSocket" (dict "port" "api")) (dict "httpGet" (dict "path" "/livez" "port" "api" "scheme" (ternary "HTTPS" "HTTP" (default false .secure)))) $grpc -}}
startupProbe:
  {{- toYaml $alive | nindent 2 }}
  periodSeconds: 1
  failureThreshold: 120
readinessProbe:
  {{- if and $grpc .secure }}
  # The kubelet asks over gRPC without TLS only, and needs no certificate for this path.
  httpGet: {path: /startz, port: api, scheme: HTTPS}
  {{- else if $grpc }}
  grpc: {port: {{ .port }}, service: started}
  {{- else }}
  httpGet: {path: /startz, port: api, scheme: {{ ternary "HTTPS" "HTTP" (default false .secure) }}}
  {{- end }}
  periodSeconds: 5
livenessProbe:
  {{- toYaml $alive | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}
