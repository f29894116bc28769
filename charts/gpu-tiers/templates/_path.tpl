{{/*
What the webhook's paths begin with. Nothing tells a review of the API server's from one that a pod made up, but that
tenants can't read this: neither the configurations nor the Secret.
*/}}

{{- define "gpu-tiers.pathSecretName" -}}
{{ include "gpu-tiers.fullname" . }}-path
{{- end -}}

{{/* Found in the release's Secret, else made. It stands among the values from then on, for the other templates. */}}
{{- define "gpu-tiers.pathSecret" -}}
{{- $webhook := .Values.webhook -}}
{{- if and (not $webhook.pathSecret) (include "gpu-tiers.runsHere" . | eq "true") -}}
{{- $live := lookup "v1" "Secret" .Release.Namespace (include "gpu-tiers.pathSecretName" .) -}}
{{- if dig "data" "path" "" $live -}}
{{- $_ := set $webhook "pathSecret" (b64dec $live.data.path) -}}
{{- else if lookup "v1" "Namespace" "" "kube-system" -}}
{{- $_ := set $webhook "pathSecret" (randAlphaNum 32 | lower) -}}
{{- else -}}
{{- fail "\n\nwebhook.pathSecret: is required where helm can't look into the cluster (helm template, --dry-run=client, Argo CD), or each render would have another path. Write for example --set webhook.pathSecret=$(openssl rand -hex 16), or render with --dry-run=server\n" -}}
{{- /* helm lint goes on, and is told once. */}}
{{- $_ := set $webhook "pathSecret" "unknown" -}}
{{- end -}}
{{- end -}}
{{- $webhook.pathSecret -}}
{{- end -}}

{{/* Takes {root, path}. */}}
{{- define "gpu-tiers.secretPath" -}}
{{- with include "gpu-tiers.pathSecret" .root }}/{{ . }}{{ end -}}
{{ .path }}
{{- end -}}
