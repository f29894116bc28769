{{/* Names and labels. */}}

{{- define "gpu-tiers.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The API server calls webhook configurations in the order of their names, so ours see the pod as the others left it. */}}
{{- define "gpu-tiers.configuration" -}}
zz-{{ include "gpu-tiers.fullname" . }}
{{- end -}}

{{- define "gpu-tiers.secret" -}}
{{- default (printf "%s-tls" (include "gpu-tiers.fullname" .)) .Values.certificates.secretName -}}
{{- end -}}

{{- define "gpu-tiers.ceilings" -}}
{{ include "gpu-tiers.fullname" . }}-ceilings
{{- end -}}

{{- define "gpu-tiers.reports" -}}
{{ include "gpu-tiers.fullname" . }}-reports
{{- end -}}

{{- define "gpu-tiers.inForce" -}}
{{ include "gpu-tiers.fullname" . }}-active
{{- end -}}

{{- define "gpu-tiers.image" -}}
{{- $image := .Values.image -}}
{{- $registry := default (get (default dict .Values.global) "imageRegistry") $image.registry -}}
{{- $repository := empty $registry | ternary $image.repository (printf "%s/%s" $registry $image.repository) -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* JSON. */}}
{{- define "gpu-tiers.imagePullSecrets" -}}
{{- concat (default list .Values.imagePullSecrets) (get (default dict .Values.global) "imagePullSecrets" | default list) | uniq | toJson -}}
{{- end -}}

{{- define "gpu-tiers.serviceAccount" -}}
{{- default (include "gpu-tiers.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{/* The webhook's user at the API server. */}}
{{- define "gpu-tiers.user" -}}
{{- default (printf "system:serviceaccount:%s:%s" .Release.Namespace (include "gpu-tiers.serviceAccount" .)) .Values.webhook.user -}}
{{- end -}}

{{- define "gpu-tiers.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpu-tiers.labels" -}}
{{ include "gpu-tiers.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- /* Flux appends the digest of what it pulled to the version, behind a + that no label may have. */}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* "true" where an object of the cluster belongs to this release. Takes {root, object}. */}}
{{- define "gpu-tiers.isOurs" -}}
{{- $annotations := default dict .object.metadata.annotations -}}
{{- and (eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name)
        (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace) -}}
{{- end -}}

{{/* "true" where the webhook's pods run in this cluster. */}}
{{- define "gpu-tiers.runsHere" -}}
{{- empty .Values.webhook.url -}}
{{- end -}}

{{/* "true" where a Job opens the gates of queued pods at the end of an uninstall. It needs a role of the chart. */}}
{{- define "gpu-tiers.opensAtUninstall" -}}
{{- and .Values.hold.openAtUninstall .Values.rbac.create (include "gpu-tiers.runsHere" . | eq "true") -}}
{{- end -}}

{{/* The name of that Job, and of its account and rights. */}}
{{- define "gpu-tiers.gateOpener" -}}
{{ include "gpu-tiers.fullname" . }}-open-gates
{{- end -}}

{{- define "gpu-tiers.gateOpenersUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "gpu-tiers.gateOpener" . }}
{{- end -}}

{{/* "true" where the page is on the pod's loopback address. With hostNetwork that would be the node's. */}}
{{- define "gpu-tiers.pageOnLoopback" -}}
{{- and .Values.page.enabled (not .Values.hostNetwork) -}}
{{- end -}}

{{/* The values of page.prometheus, where one is named and there is a page that asks it. */}}
{{- define "gpu-tiers.prometheus" -}}
{{- if and .Values.page.enabled (.Values.page.prometheus).url -}}
{{- toYaml .Values.page.prometheus -}}
{{- end -}}
{{- end -}}

{{/* The port of an address such as https://prometheus.monitoring.svc:9090. */}}
{{- define "gpu-tiers.portOfUrl" -}}
{{- $parts := urlParse . -}}
{{- regexFind ":[0-9]+$" $parts.host | trimPrefix ":" | default (eq $parts.scheme "https" | ternary "443" "80") -}}
{{- end -}}
