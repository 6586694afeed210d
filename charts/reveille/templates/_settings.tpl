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
{{- $faces := dict -}}
{{- range $name := list "kubernetes" "flightctl" "agents" -}}
{{- with index $.Values.gateway $name -}}
{{- $face := pick . "serve" -}}
{{- if .listen -}}
{{- $_ := set $face "listen" (printf "0.0.0.0:%v" .port) -}}
{{- $_ := set $face "certificate" (printf "/etc/reveille-%s-certificate/tls.crt" $name) -}}
{{- $_ := set $face "key" (printf "/etc/reveille-%s-certificate/tls.key" $name) -}}
{{- end -}}
{{- $_ := set $faces $name $face -}}
{{- end -}}
{{- end -}}
{{- $_ := set $settings "gateway" (merge $faces (default dict $settings.gateway)) -}}
{{- $tls := pick .Values.tls "callers" "names" "insecure" -}}
{{- if .Values.tls.enabled -}}
{{- $_ := set $tls "certificate" "/etc/reveille-tls/tls.crt" -}}
{{- $_ := set $tls "key" "/etc/reveille-tls/tls.key" -}}
{{- $_ := set $tls "ca_file" "/etc/reveille-tls/ca.crt" -}}
{{- end -}}
{{- $_ := set $settings "tls" $tls -}}
{{- if include "reveille.gatewaySecret" . -}}
{{- $files := dict "certificate" "/etc/reveille-gateway-certificate/tls.crt" "key" "/etc/reveille-gateway-certificate/tls.key" -}}
{{- $_ := set $settings "gateway" (merge $files (default dict $settings.gateway)) -}}
{{- end -}}
{{- $settings | toJson -}}
{{- end -}}

{{/* Name of the Secret with a service's database, empty if it has none: reveille.databaseSecret (list $ "power-controller"). */}}
{{- define "reveille.databaseSecret" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $database := default dict (get $root.Values.databases $name) -}}
{{- if $database.url -}}
{{- printf "%s-%s-database" (include "reveille.fullname" $root) $name -}}
{{- else -}}
{{- default "" $database.existingSecret -}}
{{- end -}}
{{- end -}}

{{/*
Where a part listens, where it finds the others, its database, and variables of the site:
reveille.environment (list $ "gateway" $parts).
*/}}
{{- define "reveille.environment" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $parts := index . 2 -}}
{{- $own := index $parts $name -}}
- name: {{ include "reveille.variable" (list $name "listen") }}
  value: {{ printf "0.0.0.0:%v" $own.port | quote }}
{{- range $peer, $part := $parts }}
- name: {{ include "reveille.variable" (list $peer "url") }}
  value: {{ printf "%s://%s-%s:%v" (ternary "https" "http" $part.secure) (include "reveille.fullname" $root) $peer $part.port | quote }}
{{- end }}
{{- with include "reveille.databaseSecret" (list $root $name) }}
{{- $database := index $root.Values.databases $name }}
- name: {{ include "reveille.variable" (list $name "database_url") }}
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ ternary "url" (default "url" $database.existingSecretKey) (ne $database.url "") }}
{{- end }}
{{- if $own.persistence }}
- name: REVEILLE__DATA_DIR
  value: /var/lib/reveille
{{- end }}
{{- with $own.pod.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
