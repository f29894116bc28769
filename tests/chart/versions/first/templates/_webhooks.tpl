{{/* Pieces of the two webhook configurations. */}}

{{- define "gpu-tiers.configurationMetadata" -}}
name: {{ include "gpu-tiers.configuration" . }}
labels:
  {{- include "gpu-tiers.labels" . | nindent 2 }}
{{- if eq .Values.certificates.source "cert-manager" }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "gpu-tiers.fullname" . }}
{{- end }}
{{- end -}}

{{/*
Where the API server calls, and whom it doesn't call about. Takes {root, path}.
caBundle is absent: whoever makes the certificate writes it, and a diff against the cluster stays empty.
*/}}
{{- define "gpu-tiers.entry" -}}
clientConfig:
  {{- if .root.Values.webhook.url }}
  url: {{ trimSuffix "/" .root.Values.webhook.url }}{{ .path }}
  {{- else }}
  service:
    name: {{ include "gpu-tiers.fullname" .root }}
    namespace: {{ .root.Release.Namespace }}
    path: {{ .path }}
    port: 443
  {{- end }}
  {{- with .root.Values.certificates.caBundle }}
  caBundle: {{ . }}
  {{- end }}
admissionReviewVersions: [v1]
sideEffects: NoneOnDryRun
matchPolicy: Equivalent
timeoutSeconds: 5
namespaceSelector:
  matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ append .root.Values.exemptNamespaces .root.Release.Namespace | uniq | sortAlpha | toJson }}
{{- end -}}

{{/* Only Enforce stops a GPU pod while the webhook is down. */}}
{{- define "gpu-tiers.validationFailurePolicy" -}}
{{- eq .Values.mode "Enforce" | ternary "Fail" "Ignore" -}}
{{- end -}}

{{/* A patch of the entries that follow the mode. Entries merge by name, and nothing else of them changes. */}}
{{- define "gpu-tiers.gatesPatch" -}}
{{- $entries := list -}}
{{- range list "pods.validate.gpu-tiers.dev" "pods-update.validate.gpu-tiers.dev" -}}
{{- $entries = append $entries (dict "name" . "failurePolicy" $.failurePolicy) -}}
{{- end -}}
{{- dict "webhooks" $entries | toJson -}}
{{- end -}}
