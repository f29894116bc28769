{{/* Installs and upgrades that can't work, refused before anything is applied. */}}

{{- define "gpu-tiers.refusals" -}}
{{- include "gpu-tiers.refuseReplicas" . -}}
{{- include "gpu-tiers.refusePolicy" . -}}
{{- range include "gpu-tiers.classes" . | fromJsonArray -}}
{{- $live := lookup "scheduling.k8s.io/v1" "PriorityClass" "" .name -}}
{{- if $live -}}
{{- include "gpu-tiers.refuseClass" (dict "want" . "live" $live) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.refuseReplicas" -}}
{{- if ne (int .Values.replicas) 1 -}}
{{- fail (printf "\n\nreplicas is %v: only 1 works in this version. The ledger of GPU charges is in memory, and two replicas would each let a tenant use its whole quota.\n" .Values.replicas) -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.refusePolicy" -}}
{{- range list "preset" "mode" "adoption" -}}
{{- if hasKey $.Values.policy . -}}
{{- fail (printf "\n\npolicy.%s: set the value %s instead; it also decides the webhook configurations.\n" . .) -}}
{{- end -}}
{{- end -}}
{{- range list "tiers" "resources" -}}
{{- if not (include "gpu-tiers.policyField" (dict "root" $ "field" .) | fromJsonArray) -}}
{{- fail (printf "\n\npolicy.%s is empty, and so is preset: name a preset (four-tier, three-tier, inference-first) or list them.\n" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* value and preemptionPolicy of a PriorityClass are immutable. Takes {want, live}. */}}
{{- define "gpu-tiers.refuseClass" -}}
{{- $name := .want.name -}}
{{- $policy := default "PreemptLowerPriority" .live.preemptionPolicy -}}
{{- if .live.globalDefault -}}
{{- fail (printf "\n\nPriorityClass %s exists and is globalDefault: its name would stand on every pod of the cluster. Give the tier another name in policy.tiers, or delete the class and run this again:\n  kubectl delete priorityclass %s\n" $name $name) -}}
{{- end -}}
{{- if ne (int64 .live.value) (int64 .want.value) -}}
{{- fail (printf "\n\nPriorityClass %s exists with value %d, and the policy says %d. A class's value can't be changed, and nothing was applied. Either give the tier a new name in policy.tiers, or delete the class and run this again (pods that exist keep the old value; its -nonpreempting twin needs the same):\n  kubectl delete priorityclass %s\n" $name (int64 .live.value) (int64 .want.value) $name) -}}
{{- end -}}
{{- if ne $policy .want.preemptionPolicy -}}
{{- fail (printf "\n\nPriorityClass %s exists with preemptionPolicy %s, and the policy says %s. That can't be changed, and nothing was applied. Either give the tier a new name in policy.tiers, or delete the class and run this again (pods that exist keep the old one):\n  kubectl delete priorityclass %s\n" $name $policy .want.preemptionPolicy $name) -}}
{{- end -}}
{{- end -}}
