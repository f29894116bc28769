{{/* Installs and upgrades that can't work, refused before anything is applied. */}}

{{- define "gpu-tiers.refusals" -}}
{{- include "gpu-tiers.refusePolicy" . -}}
{{- include "gpu-tiers.refuseValues" . -}}
{{- include "gpu-tiers.refuseBackstop" . -}}
{{- include "gpu-tiers.refusePage" . -}}
{{- include "gpu-tiers.refuseSecondRelease" . -}}
{{- include "gpu-tiers.refuseDroppedTenants" . -}}
{{- range include "gpu-tiers.classes" . | fromJsonArray -}}
{{- $live := lookup "scheduling.k8s.io/v1" "PriorityClass" "" .name -}}
{{- if $live -}}
{{- include "gpu-tiers.refuseClass" (dict "want" . "live" $live) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.refuseBackstop" -}}
{{- range $index, $tenant := .Values.tenants -}}
{{- if and (eq "ResourceQuota" (default "" $tenant.spec.backstop)) (not $.Values.backstop.enabled) (not $.Values.webhook.url) -}}
{{- fail (printf "\n\ntenants[%d].spec.backstop: ResourceQuota needs the value backstop.enabled=true, which lets the webhook write ResourceQuotas.\n" $index) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.refusePage" -}}
{{- if and (.Values.page.authentication).enabled (not .Values.page.enabled) -}}
{{- fail "\n\npage.authentication.enabled=true needs page.enabled=true: there is no page to read. Set page.enabled to true, or page.authentication.enabled to false.\n" -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.refusePolicy" -}}
{{- range list "preset" "mode" "adoption" -}}
{{- if hasKey (default dict $.Values.policy) . -}}
{{- fail (printf "\n\npolicy.%s: set the value %s instead; it also decides the webhook configurations.\n" . .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Where the names are the same too, helm refuses by itself, and --take-ownership is a way out. What belongs to this release
goes by itself where an upgrade gives it another name.
*/}}
{{- define "gpu-tiers.refuseSecondRelease" -}}
{{- range (lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" "").items -}}
{{- $names := list -}}
{{- range .webhooks -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if and (has "pods.validate.gpu-tiers.dev" $names) (ne .metadata.name (include "gpu-tiers.configuration" $)) (ne "true" (include "gpu-tiers.isOurs" (dict "root" $ "object" .))) -}}
{{- $annotations := default dict .metadata.annotations -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- $it := empty $release | ternary "gpu-tiers is installed in this cluster" (printf "the release %s in namespace %s is gpu-tiers" $release $namespace) -}}
{{- $away := empty $release | ternary (printf "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration %s" .metadata.name) (printf "helm uninstall %s -n %s" $release $namespace) -}}
{{- fail (printf "\n\n%s already (ValidatingWebhookConfiguration %s). Two of them would charge each GPU pod twice, and nothing was applied. Upgrade that one, or remove it and run this again; PriorityClasses and TenantQuotas stay:\n  %s\n" $it .metadata.name $away) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A file without its tenants, or an upgrade without the values of the release, would end every tenant's quota. */}}
{{- define "gpu-tiers.refuseDroppedTenants" -}}
{{- $dropped := include "gpu-tiers.droppedTenants" . | fromJsonArray -}}
{{- if and $dropped (kindIs "invalid" .Values.tenants) -}}
{{- $one := eq 1 (len $dropped) -}}
{{- fail (printf "\n\nThis upgrade would delete the %s %s: the value tenants made %s, and it is not given any more. Nothing was applied. To keep %s, keep the values of the release by --reset-then-reuse-values, or write tenants into your values as they are in\n  helm get values %s -n %s\nTo delete %s, say so: --set-json tenants=[]\n" ($one | ternary "TenantQuota" "TenantQuotas") (join ", " $dropped) ($one | ternary "it" "them") ($one | ternary "it" "them") .Release.Name .Release.Namespace ($one | ternary "it" "them")) -}}
{{- end -}}
{{- end -}}

{{/* value and preemptionPolicy of a PriorityClass are immutable. Takes {want, live}. */}}
{{- define "gpu-tiers.refuseClass" -}}
{{- $name := .want.name -}}
{{- $policy := default "PreemptLowerPriority" .live.preemptionPolicy -}}
{{- if .live.globalDefault -}}
{{- fail (printf "\n\nPriorityClass %s exists and is globalDefault: every pod of the cluster would get this tier's class. Give the tier another name in policy.tiers, or delete the class and run this again:\n  kubectl delete priorityclass %s\n" $name $name) -}}
{{- end -}}
{{- if ne (int64 .live.value) (int64 .want.value) -}}
{{- fail (printf "\n\nPriorityClass %s exists with value %d, and the policy says %d. A class's value can't be changed, and nothing was applied. Either give the tier a new name in policy.tiers, or delete the class and run this again (pods that exist keep the old value; its -nonpreempting twin needs the same):\n  kubectl delete priorityclass %s\n" $name (int64 .live.value) (int64 .want.value) $name) -}}
{{- end -}}
{{- if ne $policy .want.preemptionPolicy -}}
{{- fail (printf "\n\nPriorityClass %s exists with preemptionPolicy %s, and the policy says %s. That can't be changed, and nothing was applied. Either give the tier a new name in policy.tiers, or delete the class and run this again (pods that exist keep the old one):\n  kubectl delete priorityclass %s\n" $name $policy .want.preemptionPolicy $name) -}}
{{- end -}}
{{- end -}}
