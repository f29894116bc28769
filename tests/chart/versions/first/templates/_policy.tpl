{{/* The effective policy, as far as the chart's own objects depend on it. The webhook reads the same file. */}}

{{/* One field of the policy: the value's where it is given, else the preset's. Takes {root, field}; JSON. */}}
{{- define "gpu-tiers.policyField" -}}
{{- $preset := dict -}}
{{- with .root.Values.preset -}}
{{- $preset = $.root.Files.Get (printf "presets/%s.yaml" .) | fromYaml -}}
{{- end -}}
{{- get .root.Values.policy .field | default (get $preset .field) | default list | toJson -}}
{{- end -}}

{{- define "gpu-tiers.tiers" -}}
{{- include "gpu-tiers.policyField" (dict "root" . "field" "tiers") -}}
{{- end -}}

{{/* Every PriorityClass of the policy: a tier's own, and the one that adoption uses in its place. JSON. */}}
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

{{/* Names under which a container can ask for GPUs. A DeviceClass can also be asked for as a resource (DRA). JSON. */}}
{{- define "gpu-tiers.resourceNames" -}}
{{- $names := list -}}
{{- range include "gpu-tiers.policyField" (dict "root" . "field" "resources") | fromJsonArray -}}
{{- $names = append $names (default (printf "deviceclass.resource.kubernetes.io/%s" .deviceClassName) .name) -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}
