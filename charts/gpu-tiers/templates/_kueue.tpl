{{/* What the chart must know of Kueue's API. */}}

{{/* Kueue serves it from 0.15 on, and alone from 0.20 on. */}}
{{- define "gpu-tiers.kueueVersion" -}}
kueue.x-k8s.io/v1beta2
{{- end -}}

{{/* A WorkloadPriorityClass of the cluster. Takes {root, name}; JSON, empty where there is none. */}}
{{- define "gpu-tiers.liveQueueClass" -}}
{{- $version := include "gpu-tiers.kueueVersion" .root -}}
{{- $live := dict -}}
{{- if .root.Capabilities.APIVersions.Has $version -}}
{{- $live = lookup $version "WorkloadPriorityClass" "" .name -}}
{{- end -}}
{{- toJson (default dict $live) -}}
{{- end -}}

{{/* Kueue and the scheduler have to rank a tier alike. Takes {want, live}. */}}
{{- define "gpu-tiers.refuseQueueClass" -}}
{{- if and .live (ne (int64 .live.value) (int64 .want.value)) -}}
{{- fail (printf "\n\nWorkloadPriorityClass %s exists with value %d, and the policy says %d for the tier %s. Nothing was applied. Give the class that value, or delete it, and run this again:\n  kubectl delete workloadpriorityclass %s\n" .want.name (int64 .live.value) (int64 .want.value) .want.name .want.name) -}}
{{- end -}}
{{- end -}}
