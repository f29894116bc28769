{{/* Pieces of the two webhook configurations. */}}

{{- define "gpu-tiers.configurationMetadata" -}}
name: {{ include "gpu-tiers.configuration" . }}
labels:
  {{- include "gpu-tiers.labels" . | nindent 2 }}
{{- $annotations := default dict .Values.webhook.annotations | deepCopy }}
{{- if eq .Values.certificates.source "cert-manager" }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" .Release.Namespace (include "gpu-tiers.fullname" .)) }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
The address that the API server calls, and the namespaces that are exempt. Takes {root, path, timeoutSeconds: what it may
have at most}.
The webhook writes the secret path of its Service. Without a value caBundle is absent too: the webhook or cert-manager
writes it. So every render is the same, and a diff against the cluster stays empty.
*/}}
{{- define "gpu-tiers.entry" -}}
clientConfig:
  {{- if .root.Values.webhook.url }}
  url: {{ trimSuffix "/" .root.Values.webhook.url }}{{ .path }}
  {{- else }}
  service:
    name: {{ include "gpu-tiers.fullname" .root }}
    namespace: {{ .root.Release.Namespace }}
    port: 443
  {{- end }}
  {{- with .root.Values.certificates.caBundle }}
  caBundle: {{ . }}
  {{- end }}
admissionReviewVersions: [v1]
sideEffects: NoneOnDryRun
matchPolicy: Equivalent
timeoutSeconds: {{ min (int .root.Values.webhook.timeoutSeconds) (default 30 .timeoutSeconds) }}
namespaceSelector:
  matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ include "gpu-tiers.exemptNamespaces" .root }}
{{- end -}}

{{/* JSON. */}}
{{- define "gpu-tiers.exemptNamespaces" -}}
{{- append (default list .Values.exemptNamespaces) .Release.Namespace | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* Only Enforce refuses GPU pods while the webhook is down. */}}
{{- define "gpu-tiers.validationFailurePolicy" -}}
{{- eq .Values.mode "Enforce" | ternary "Fail" "Ignore" -}}
{{- end -}}

{{/* A patch of the entries whose failurePolicy depends on the mode. Entries merge by name, so nothing else changes. */}}
{{- define "gpu-tiers.gatesPatch" -}}
{{- $entries := list -}}
{{- range list "pods.validate.gpu-tiers.dev" "pods-update.validate.gpu-tiers.dev" "resourceclaims.validate.gpu-tiers.dev" -}}
{{- $entries = append $entries (dict "name" . "failurePolicy" $.failurePolicy) -}}
{{- end -}}
{{- dict "webhooks" $entries | toJson -}}
{{- end -}}
