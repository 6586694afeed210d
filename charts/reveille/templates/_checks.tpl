{{/*
Refuses values that contradict each other, in words; values.schema.json refuses those that are wrong by themselves:
reveille.checks (list $ PARTS).
*/}}
{{- define "reveille.checks" -}}
{{- $values := (index . 0).Values -}}
{{- range $name, $part := index . 1 -}}
{{- if and $part.single (gt (int $part.replicas) 1) -}}
{{- fail (printf "services.%s.replicas: a SQLite file has one writer; %v replicas need a PostgreSQL database, databases.%s.url or existingSecret" $name $part.replicas $name) -}}
{{- end -}}
{{- if and $part.single (eq (toString (get (default dict $part.pod.strategy) "type")) "RollingUpdate") -}}
{{- fail (printf "strategy: %s must not run twice, so its pod cannot be replaced by RollingUpdate" $name) -}}
{{- end -}}
{{- $grace := $part.pod.terminationGracePeriodSeconds -}}
{{- if and (kindIs "float64" $grace) (lt (int $grace) (int $values.settings.shutdown_grace_seconds)) -}}
{{- fail (printf "terminationGracePeriodSeconds: %v of %s is less than settings.shutdown_grace_seconds, %v" $grace $name $values.settings.shutdown_grace_seconds) -}}
{{- end -}}
{{- end -}}
{{- $evaluator := index $values.databases "status-evaluator" -}}
{{- if and (gt (int (index $values.services "status-evaluator").replicas) 1) (not $evaluator.url) (not $evaluator.existingSecret) -}}
{{- fail "services.status-evaluator.replicas: several status evaluators share the work through a PostgreSQL database, databases.status-evaluator.url or existingSecret" -}}
{{- end -}}
{{- $tls := $values.tls -}}
{{- if and $tls.certManager.enabled (not $tls.enabled) -}}
{{- fail "tls.certManager.enabled: needs tls.enabled" -}}
{{- end -}}
{{- if and $tls.certManager.gateway.enabled $tls.gatewaySecret -}}
{{- fail "tls.gatewaySecret: tls.certManager.gateway.enabled has cert-manager make the certificate of the gateway; set one of the two" -}}
{{- end -}}
{{- if and (not $tls.insecure) (not (and $tls.enabled (include "reveille.gatewaySecret" (index . 0)))) -}}
{{- fail "tls.insecure: is false, which needs tls.enabled, and tls.gatewaySecret or tls.certManager.gateway.enabled" -}}
{{- end -}}
{{- $scale := $values.gateway.autoscaling -}}
{{- if gt (int $scale.minReplicas) (int $scale.maxReplicas) -}}
{{- fail "gateway.autoscaling.minReplicas: is more than maxReplicas" -}}
{{- end -}}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: names no Gateway that takes the route" -}}
{{- end -}}
{{- if and $values.networkPolicy.egress (not $values.networkPolicy.restrictEgress) -}}
{{- fail "networkPolicy.egress: is of no effect without networkPolicy.restrictEgress" -}}
{{- end -}}
{{- $monitor := $values.serviceMonitor -}}
{{- if and $monitor.enabled $tls.enabled (not $tls.certManager.enabled) (not $monitor.tls.existingSecret) -}}
{{- fail "serviceMonitor.tls.existingSecret: parts show their metrics to a client with a certificate only; name the Secret of one, or have cert-manager make it" -}}
{{- end -}}
{{- end -}}
