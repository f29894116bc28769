{{/* The policy: the chart's own objects depend on it, and the webhook reads the same. */}}

{{/*
The text of a template that a hundred places ask for, worked out once: so helm renders three times as fast. It is kept
among the values, which are a copy made for this rendering. Takes {root, name}.
*/}}
{{- define "gpu-tiers.once" -}}
{{- $kept := get .root.Values "workedOut" | default dict -}}
{{- if not (hasKey $kept .name) -}}
{{- $_ := set .root.Values "workedOut" (set $kept .name (include .name .root)) -}}
{{- end -}}
{{- get $kept .name -}}
{{- end -}}

{{/* All of it. JSON. */}}
{{- define "gpu-tiers.effectivePolicy" -}}
{{- include "gpu-tiers.once" (dict "root" . "name" "gpu-tiers.mergedPolicy") -}}
{{- end -}}

{{/* Merged as webhook/config/load.py does it: tiers of your own inherit nothing that names tiers. JSON. */}}
{{- define "gpu-tiers.mergedPolicy" -}}
{{- $preset := .Files.Get (printf "presets/%s.yaml" .Values.preset) | fromYaml -}}
{{- $own := default dict .Values.policy -}}
{{- if $own.tiers -}}
{{- $preset = omit $preset "workloadTypes" "defaultTier" "allowedTiersByType" "demoteTo" "rules" -}}
{{- else -}}
{{- $own = omit $own "tiers" -}}
{{- end -}}
{{- $all := .Files.Get "files/gpu_resources.yaml" | fromYaml -}}
{{- $preset = include "gpu-tiers.merged" (dict "below" $all "above" $preset) | fromJson -}}
{{- include "gpu-tiers.merged" (dict "below" $preset "above" $own) -}}
{{- end -}}

{{/* Maps key by key, anything else replaced, with what is empty too. Takes {below, above}; JSON. */}}
{{- define "gpu-tiers.merged" -}}
{{- $merged := deepCopy .below -}}
{{- range $key, $value := .above -}}
{{- $there := get $merged $key -}}
{{- if and (kindIs "map" $there) (kindIs "map" $value) -}}
{{- $value = include "gpu-tiers.merged" (dict "below" $there "above" $value) | fromJson -}}
{{- end -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- toJson $merged -}}
{{- end -}}

{{/* One field of it. Takes {root, field}; JSON. */}}
{{- define "gpu-tiers.policyField" -}}
{{- get (include "gpu-tiers.effectivePolicy" .root | fromJson) .field | toJson -}}
{{- end -}}

{{- define "gpu-tiers.tiers" -}}
{{- include "gpu-tiers.policyField" (dict "root" . "field" "tiers") -}}
{{- end -}}

{{- define "gpu-tiers.lowestTierValue" -}}
{{- $values := list -}}
{{- range include "gpu-tiers.tiers" . | fromJsonArray -}}
{{- $values = append $values (int64 .value) -}}
{{- end -}}
{{- $lowest := first $values -}}
{{- range $values -}}
{{- $lowest = min $lowest . -}}
{{- end -}}
{{- $lowest -}}
{{- end -}}

{{/* Every PriorityClass of the policy: a tier's own, and the one that adoption uses instead. JSON. */}}
{{- define "gpu-tiers.classes" -}}
{{- $classes := list -}}
{{- range include "gpu-tiers.tiers" . | fromJsonArray -}}
{{- $policy := default "PreemptLowerPriority" .preemptionPolicy -}}
{{- $description := default (printf "gpu-tiers: the tier %s." .name) .description -}}
{{- $classes = append $classes (dict "name" .name "value" (int64 .value) "preemptionPolicy" $policy "description" $description) -}}
{{- $calm := printf "gpu-tiers: the tier %s while adoption is on: same value, evicts nobody." .name -}}
{{- $classes = append $classes (dict "name" (printf "%s-nonpreempting" .name) "value" (int64 .value) "preemptionPolicy" "Never" "description" $calm) -}}
{{- end -}}
{{- toJson $classes -}}
{{- end -}}

{{- define "gpu-tiers.classNames" -}}
{{- $names := list -}}
{{- range include "gpu-tiers.classes" . | fromJsonArray -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* Resources that the policy says are no GPUs. A DeviceClass can also be asked for as a resource (DRA). JSON. */}}
{{- define "gpu-tiers.namesWithoutGpus" -}}
{{- $names := list -}}
{{- range include "gpu-tiers.policyField" (dict "root" . "field" "resources") | fromJsonArray -}}
{{- if and (not .annotation) (eq "0" (toString .weight)) -}}
{{- $names = append $names (default (printf "deviceclass.resource.kubernetes.io/%s" .deviceClassName) .name) -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* Resources that the policy counts. JSON. */}}
{{- define "gpu-tiers.namesOfGpus" -}}
{{- $names := list -}}
{{- range include "gpu-tiers.policyField" (dict "root" . "field" "resources") | fromJsonArray -}}
{{- if and .name (ne "0" (toString .weight)) -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* Off, ValidateOnly or Mutate. YAML takes a bare Off for false. */}}
{{- define "gpu-tiers.templates" -}}
{{- $policy := include "gpu-tiers.effectivePolicy" . | fromJson -}}
{{- if not (hasKey $policy "templates") -}}
ValidateOnly
{{- else -}}
{{- kindIs "bool" $policy.templates | ternary "Off" $policy.templates -}}
{{- end -}}
{{- end -}}

{{/* "true" where whoever names a tier needs the right to use it. */}}
{{- define "gpu-tiers.asksForRights" -}}
{{- eq "RBAC" (get (include "gpu-tiers.effectivePolicy" . | fromJson) "tierAccess" | toString) -}}
{{- end -}}

{{/* Add or Leave: whether a Job without a podFailurePolicy gets one. */}}
{{- define "gpu-tiers.podFailurePolicy" -}}
{{- $checkpoint := get (include "gpu-tiers.effectivePolicy" . | fromJson) "checkpoint" | default dict -}}
{{- $checkpoint.podFailurePolicy | default "Add" -}}
{{- end -}}

{{/* Schedulers that are told what evictions cost, or that it is taken back of: the API group, the resource and the annotation of each. JSON. */}}
{{- define "gpu-tiers.toldCosts" -}}
{{- $telling := get (include "gpu-tiers.effectivePolicy" . | fromJson) "evictionCost" | default dict -}}
{{- $told := list -}}
{{- if has $telling.kueue (list "Write" "Remove") -}}
{{- $told = append $told (dict "group" "kueue.x-k8s.io" "resource" "workloads" "annotation" "kueue.x-k8s.io/priority-boost") -}}
{{- end -}}
{{- if has $telling.volcano (list "Write" "Remove") -}}
{{- $told = append $told (dict "group" "" "resource" "pods" "annotation" "volcano.sh/last-checkpoint-time") -}}
{{- end -}}
{{- toJson $told -}}
{{- end -}}

{{/* "true" where the leader evicts pods for those that wait for devices of DRA, or ends what is left of that. YAML takes a bare On for true. */}}
{{- define "gpu-tiers.preemptsDevices" -}}
{{- $preemption := get (include "gpu-tiers.effectivePolicy" . | fromJson) "preemption" | default dict -}}
{{- has (toString $preemption.dra) (list "On" "true" "Remove") -}}
{{- end -}}

{{/* The classes of all tiers but the highest: those whose pods may be evicted. JSON. */}}
{{- define "gpu-tiers.evictableClasses" -}}
{{- $highest := 0 -}}
{{- $names := list -}}
{{- range include "gpu-tiers.classes" . | fromJsonArray -}}
{{- $highest = max $highest (int64 .value) -}}
{{- end -}}
{{- range include "gpu-tiers.classes" . | fromJsonArray -}}
{{- if lt (int64 .value) $highest -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The tiers for which nodes are reserved that pods of each class may run on: those of its value or a lower one that evict. JSON. */}}
{{- define "gpu-tiers.reservedFor" -}}
{{- $tiers := include "gpu-tiers.tiers" . | fromJsonArray -}}
{{- $found := dict -}}
{{- range include "gpu-tiers.classes" . | fromJsonArray -}}
{{- $value := int64 .value -}}
{{- $below := list -}}
{{- range $tiers -}}
{{- if and (le (int64 .value) $value) (ne "Never" (default "" .preemptionPolicy)) -}}
{{- $below = append $below .name -}}
{{- end -}}
{{- end -}}
{{- $_ := set $found .name $below -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* What the policy says of Kueue; empty where it is to be told nothing. JSON. */}}
{{- define "gpu-tiers.kueue" -}}
{{- $kueue := get (include "gpu-tiers.effectivePolicy" . | fromJson) "kueue" | default dict -}}
{{- default false $kueue.workloadPriorityClasses | ternary $kueue dict | toJson -}}
{{- end -}}

{{/* The flavors of GPUs that tenants' quotas may tell apart. JSON. */}}
{{- define "gpu-tiers.flavors" -}}
{{- get (include "gpu-tiers.effectivePolicy" . | fromJson) "resourceFlavors" | default list | toJson -}}
{{- end -}}

{{/* Annotations by which a pod asks for a part of a GPU, where the policy counts them. JSON. */}}
{{- define "gpu-tiers.shareAnnotations" -}}
{{- $names := list -}}
{{- range include "gpu-tiers.policyField" (dict "root" . "field" "resources") | fromJsonArray -}}
{{- with .annotation -}}
{{- $names = append $names . -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}
