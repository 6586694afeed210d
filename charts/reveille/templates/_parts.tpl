{{/*
Every part that runs, by name. All templates walk this map, so the services, the gateway and the simulator are described alike:
  protocol      grpc or http
  port          the port for the others, `secure` if it has a certificate
  furtherPorts  of some: name and port; all of them with TLS
  replicas      how many run, or run at least with `autoscaling`
  resources, service, podDisruptionBudget
  ownSecrets    Secrets that no other part sees: name, mountPath
  persistence   of a part that keeps a SQLite file: its volume
  pod           values of its pods, joined from those of the part and those of every part
*/}}
{{- define "reveille.parts" -}}
{{- $parts := dict -}}
{{- range $name, $service := .Values.services -}}
{{- $_ := set $parts $name (merge (dict "protocol" "grpc") (deepCopy $service)) -}}
{{- end -}}
{{- $gateway := merge (dict "protocol" "http") (omit (deepCopy .Values.gateway) "kubernetes" "flightctl" "agents") -}}
{{- if .Values.gateway.autoscaling.enabled -}}
{{- $_ := set $gateway "replicas" .Values.gateway.autoscaling.minReplicas -}}
{{- end -}}
{{- $_ := set $parts "gateway" $gateway -}}
{{- if .Values.simulator.enabled -}}
{{- $simulator := omit (deepCopy .Values.simulator) "enabled" -}}
{{- $_ := set $parts "simulator" (merge (dict "protocol" "grpc" "replicas" 1 "single" true) $simulator) -}}
{{- end -}}
{{- range $name, $part := $parts -}}
{{- $_ := set $part "name" $name -}}
{{- $_ := set $part "ownSecrets" list -}}
{{- $_ := set $part "furtherPorts" list -}}
{{- $_ := set $part "secure" (and $.Values.tls.enabled (eq $part.protocol "grpc")) -}}
{{- $_ := set $part "service" (merge (default dict $part.service) (dict "type" "ClusterIP")) -}}
{{- $_ := set $part "podDisruptionBudget" (mergeOverwrite (deepCopy $.Values.podDisruptionBudget) (default dict $part.podDisruptionBudget)) -}}
{{- $_ := set $part "pod" (include "reveille.podValues" (list $.Values $part) | fromJson) -}}
{{- end -}}
{{- with .Values.hostSecretKeys.existingSecret -}}
{{- include "reveille.mountSecret" (list (index $parts "component-registry") . "/etc/reveille-secret-keys") -}}
{{- end -}}
{{- with .Values.deviceAuthority.existingSecret -}}
{{- include "reveille.mountSecret" (list (index $parts "fleet-manager") . "/etc/reveille-authority") -}}
{{- end -}}
{{- range $face := list "kubernetes" "flightctl" "agents" -}}
{{- with index $.Values.gateway $face -}}
{{- if .listen -}}
{{- $_ := set $gateway "furtherPorts" (append $gateway.furtherPorts (dict "name" $face "port" .port)) -}}
{{- include "reveille.mountSecret" (list $gateway .certificateSecret (printf "/etc/reveille-%s-certificate" $face)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with include "reveille.gatewaySecret" . -}}
{{- $_ := set $gateway "secure" true -}}
{{- include "reveille.mountSecret" (list $gateway . "/etc/reveille-gateway-certificate") -}}
{{- end -}}
{{- if .Values.tls.enabled -}}
{{- range $name, $part := $parts -}}
{{- $secret := printf "%s-%s-tls" (include "reveille.fullname" $) $name -}}
{{- include "reveille.mountSecret" (list $part $secret "/etc/reveille-tls") -}}
{{- end -}}
{{- end -}}
{{- range $name, $database := .Values.databases -}}
{{- if and (hasKey $database "persistence") (not $database.url) (not $database.existingSecret) -}}
{{- $part := index $parts $name -}}
{{- $_ := set $part "single" true -}}
{{- $_ := set $part "persistence" (mergeOverwrite (deepCopy $.Values.persistence) $database.persistence) -}}
{{- end -}}
{{- end -}}
{{- $parts | toJson -}}
{{- end -}}

{{/* Has a part see a Secret: reveille.mountSecret (list PART SECRET PATH). */}}
{{- define "reveille.mountSecret" -}}
{{- $part := index . 0 -}}
{{- $secret := dict "name" (index . 1) "mountPath" (index . 2) -}}
{{- $_ := set $part "ownSecrets" (append $part.ownSecrets $secret) -}}
{{- end -}}

{{/* Values of the pods of a part, from those of every part and its own: reveille.podValues (list .Values PART). */}}
{{- define "reveille.podValues" -}}
{{- $common := index . 0 -}}
{{- $own := index . 1 -}}
{{- $pod := dict -}}
{{- range list "podLabels" "podAnnotations" "deploymentAnnotations" "image" "podSecurityContext" "securityContext" "probes" -}}
{{- $_ := set $pod . (mergeOverwrite (deepCopy (get $common .)) (default dict (get $own .))) -}}
{{- end -}}
{{- range list "imagePullSecrets" "extraEnv" "extraEnvFrom" "extraVolumes" "extraVolumeMounts" "extraContainers" "initContainers" -}}
{{- $_ := set $pod . (concat (get $common .) (default list (get $own .))) -}}
{{- end -}}
{{- range list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" "runtimeClassName" "schedulerName" "hostAliases" "dnsPolicy" "dnsConfig" "strategy" "revisionHistoryLimit" "minReadySeconds" "progressDeadlineSeconds" "terminationGracePeriodSeconds" -}}
{{- $_ := set $pod . (get (ternary $own $common (hasKey $own .)) .) -}}
{{- end -}}
{{- $_ := set $pod "serviceAccountName" (default "" $own.serviceAccountName) -}}
{{- $pod | toJson -}}
{{- end -}}

{{/* Secret with the certificate of the gateway, empty if it has none. */}}
{{- define "reveille.gatewaySecret" -}}
{{- if and .Values.tls.certManager.enabled .Values.tls.certManager.gateway.enabled -}}
{{- printf "%s-gateway-public-tls" (include "reveille.fullname" .) -}}
{{- else -}}
{{- .Values.tls.gatewaySecret -}}
{{- end -}}
{{- end -}}

{{/* Parts that each part calls, as in their code; the simulator is called where drivers are simulated. */}}
{{- define "reveille.calls" -}}
component-registry: [simulator]
session-manager: [component-registry, power-controller, simulator]
status-evaluator: [component-registry, power-controller, config-coordinator, host-provisioner, fleet-manager]
power-controller: [component-registry, simulator]
config-coordinator: [component-registry, power-controller, simulator]
host-provisioner: [component-registry, simulator]
fleet-manager: [component-registry]
insight: [component-registry, session-manager, power-controller, config-coordinator, fleet-manager]
gateway: [component-registry, session-manager, status-evaluator, power-controller, config-coordinator, host-provisioner, fleet-manager, insight]
# Its nodes report over REST.
simulator: [gateway]
{{- end -}}

{{/* Selector of the pods of a part: reveille.podsOf (list $ "gateway"). */}}
{{- define "reveille.podsOf" -}}
matchLabels:
  {{- include "reveille.selectorLabels" (index . 0) | nindent 2 }}
  app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}
