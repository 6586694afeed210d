{{/*
Start, readiness and liveness of a part. A gRPC service answers health checks with "not serving" as long as it waits for
its peers, which is no reason to start it again: only readiness asks for health. And it asks only whether they have started:
a database that takes no writes is the same for every replica, so taking them out of service would only take the reads
away as well. Who watches over the mesh asks for more, which is /readyz and health checks without a name.
*/}}
{{- define "reveille.probes" -}}
{{- $scheme := ternary "HTTPS" "HTTP" .secure -}}
{{- $started := dict "httpGet" (dict "path" "/startz" "port" "api" "scheme" $scheme) -}}
{{- $alive := dict "httpGet" (dict "path" "/livez" "port" "api" "scheme" $scheme) -}}
{{- if eq .protocol "grpc" -}}
{{- $alive = dict "tcpSocket" (dict "port" "api") -}}
{{- /* The kubelet asks over gRPC without TLS only, and needs no certificate for /startz. */ -}}
{{- if not .secure -}}
{{- $started = dict "grpc" (dict "port" .port "service" "started") -}}
{{- end -}}
{{- end -}}
startupProbe: {{- merge (dict) $alive .pod.probes.startup | toYaml | nindent 2 }}
readinessProbe: {{- merge (dict) $started .pod.probes.readiness | toYaml | nindent 2 }}
livenessProbe: {{- merge (dict) $alive .pod.probes.liveness | toYaml | nindent 2 }}
{{- end -}}
