{{/*
What the value tenants says of the policy and of itself: the CRD's rules that values.schema.json can't say. The API server
would refuse such a TenantQuota in the middle of an upgrade.
*/}}

{{- define "gpu-tiers.tenantsProblems" -}}
{{- $policy := include "gpu-tiers.effectivePolicy" . | fromJson -}}
{{- $known := dict "tier" list "flavor" list -}}
{{- range $policy.tiers -}}
{{- $_ := set $known "tier" (append $known.tier .name) -}}
{{- end -}}
{{- range $policy.resourceFlavors -}}
{{- $_ := set $known "flavor" (append $known.flavor .name) -}}
{{- end -}}
{{- range $index, $tenant := .Values.tenants -}}
{{- $spec := default dict $tenant.spec -}}
{{- $named := list (dict "at" "maxTier" "kind" "tier" "name" $spec.maxTier) (dict "at" "defaultTier" "kind" "tier" "name" $spec.defaultTier) -}}
{{- range $row, $tier := $spec.allowedTiers -}}
{{- $named = append $named (dict "at" (printf "allowedTiers[%d]" $row) "kind" "tier" "name" $tier) -}}
{{- end -}}
{{- range $row, $tier := $spec.demoteTo -}}
{{- $named = append $named (dict "at" (printf "demoteTo[%d]" $row) "kind" "tier" "name" $tier) -}}
{{- end -}}
{{- range $row, $quota := $spec.quotas -}}
{{- $named = append $named (dict "at" (printf "quotas[%d].tier" $row) "kind" "tier" "name" $quota.tier) -}}
{{- $named = append $named (dict "at" (printf "quotas[%d].resourceFlavor" $row) "kind" "flavor" "name" $quota.resourceFlavor) -}}
{{- end -}}
{{- range $named -}}
{{- $there := get $known .kind -}}
{{- if and .name (not (has .name $there)) }}
tenants[{{ $index }}].spec.{{ .at }}: {{ .name }} is no {{ .kind }} of the policy; there {{ $there | empty | ternary "are none" (printf "are %s" (join ", " $there)) }}{{ with $there }}; write for example {{ first . }}{{ end }}
{{- end -}}
{{- end -}}
{{- if and $spec.maxTier $spec.allowedTiers }}
tenants[{{ $index }}].spec: maxTier and allowedTiers say the same thing in two ways; set one of them, for example maxTier: {{ $spec.maxTier }}
{{- end -}}
{{- if and $spec.defaultTier $spec.allowedTiers (not (has $spec.defaultTier $spec.allowedTiers)) }}
tenants[{{ $index }}].spec.defaultTier: {{ $spec.defaultTier }} is none of allowedTiers; write for example {{ first $spec.allowedTiers }}
{{- end -}}
{{- $exhausted := list -}}
{{- range $spec.budgets -}}
{{- $exhausted = append $exhausted .onExhausted -}}
{{- end -}}
{{- if and $spec.demoteTo (not (has "Demote" (append $exhausted $spec.onExceed))) }}
tenants[{{ $index }}].spec.demoteTo: is for pods that are demoted; write onExceed: Demote, or leave it out
{{- end -}}
{{- $listed := dict -}}
{{- range $row, $tier := $spec.demoteTo -}}
{{- if and $spec.allowedTiers (not (has $tier $spec.allowedTiers)) }}
tenants[{{ $index }}].spec.demoteTo[{{ $row }}]: {{ $tier }} is none of allowedTiers; write for example {{ last $spec.allowedTiers }}
{{- end -}}
{{- if hasKey $listed $tier }}
tenants[{{ $index }}].spec.demoteTo[{{ $row }}]: {{ $tier }} stands there twice; keep one
{{- end -}}
{{- $_ := set $listed $tier true -}}
{{- end -}}
{{- $holds := eq "Hold" (default "Deny" $spec.onExceed) -}}
{{- range $spec.quotas -}}
{{- $holds = or $holds (hasKey . "onExceed") -}}
{{- end -}}
{{- if and $holds (has $spec.onExceed (list "Demote" "Warn")) }}
tenants[{{ $index }}].spec.quotas: a row's onExceed Hold goes with Deny or Hold of the tenant; above its other rows pods would run
{{- end -}}
{{- $holds = or $holds (has "Hold" $exhausted) -}}
{{- if and (has "Hold" $exhausted) (has $spec.onExceed (list "Demote" "Warn")) }}
tenants[{{ $index }}].spec.budgets: onExhausted Hold goes with Deny or Hold of the tenant; above its rows pods would run
{{- end -}}
{{- if and $holds (has "Demote" $exhausted) }}
tenants[{{ $index }}].spec.budgets: onExhausted Demote goes with no Hold: what is queued keeps its tier; leave one of them out
{{- end -}}
{{- if eq "ResourceQuota" (default "None" $spec.backstop) -}}
{{- if ne "gpu-tiers" (default "gpu-tiers" $spec.quotaAuthority) }}
tenants[{{ $index }}].spec.backstop: ResourceQuotas would refuse what quotaAuthority leaves to another system; leave one of them out
{{- end -}}
{{- if eq "Warn" (default "Deny" $spec.onExceed) }}
tenants[{{ $index }}].spec.backstop: ResourceQuotas would refuse what onExceed Warn lets run; leave one of them out
{{- end -}}
{{- if $holds }}
tenants[{{ $index }}].spec.backstop: ResourceQuotas would refuse what Hold lets wait; leave one of them out
{{- end -}}
{{- end -}}
{{- if $holds -}}
{{- if ne "gpu-tiers" (default "gpu-tiers" $spec.quotaAuthority) }}
tenants[{{ $index }}].spec.onExceed: Hold would let pods wait here that quotaAuthority lets wait in another system; leave one of them out
{{- end -}}
{{- if and (hasKey $spec "reserveSeconds") (eq "BestEffort" (default "Strict" $spec.holdOrder)) }}
tenants[{{ $index }}].spec.reserveSeconds: holdOrder BestEffort reserves nothing; leave one of them out
{{- end -}}
{{- else -}}
{{- range $field := list "holdOrder" "reserveSeconds" -}}
{{- if hasKey $spec $field }}
tenants[{{ $index }}].spec.{{ $field }}: is for pods that wait; write onExceed: Hold, or leave it out
{{- end -}}
{{- end -}}
{{- end -}}
{{- $rows := dict -}}
{{- range $row, $quota := $spec.quotas -}}
{{- if and $quota.tier $spec.allowedTiers (not (has $quota.tier $spec.allowedTiers)) }}
tenants[{{ $index }}].spec.quotas[{{ $row }}].tier: {{ $quota.tier }} is none of allowedTiers; write for example {{ first $spec.allowedTiers }}
{{- end -}}
{{- $key := printf "%s/%s" (default "" $quota.tier) (default "" $quota.resourceFlavor) -}}
{{- if hasKey $rows $key }}
tenants[{{ $index }}].spec.quotas[{{ $row }}]: another row is for the same tier and resourceFlavor; keep one
{{- end -}}
{{- $_ := set $rows $key true -}}
{{- end -}}
{{- end -}}
{{- end -}}
