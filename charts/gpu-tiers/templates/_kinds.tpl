{{/*
What the webhook knows by itself. And the kinds of workloads that the chart's objects depend on: those of its table, and
those that the policy adds.
*/}}

{{- define "gpu-tiers.known" -}}
{{- include "gpu-tiers.once" (dict "root" . "name" "gpu-tiers.knownByTheWebhook") -}}
{{- end -}}

{{- define "gpu-tiers.knownByTheWebhook" -}}
{{- .Files.Get "files/known.yaml" | fromYaml | toJson -}}
{{- end -}}

{{- define "gpu-tiers.knownKinds" -}}
{{- include "gpu-tiers.once" (dict "root" . "name" "gpu-tiers.kindsOfTheTable") -}}
{{- end -}}

{{- define "gpu-tiers.kindsOfTheTable" -}}
{{- .Files.Get "files/kinds.yaml" | fromYaml | toJson -}}
{{- end -}}

{{/* The resources of each API group. JSON. */}}
{{- define "gpu-tiers.resourcesByGroup" -}}
{{- $resources := (include "gpu-tiers.knownKinds" . | fromJson).resources -}}
{{- range (default dict .Values.policy).kinds -}}
{{- if .plural -}}
{{- $group := default "" .group -}}
{{- $_ := set $resources $group (append (get $resources $group | default list) .plural | uniq) -}}
{{- end -}}
{{- end -}}
{{- toJson $resources -}}
{{- end -}}

{{/* Those of them that are charged as a whole. JSON. */}}
{{- define "gpu-tiers.gangsByGroup" -}}
{{- $gangs := (include "gpu-tiers.knownKinds" . | fromJson).gangs -}}
{{- range (default dict .Values.policy).kinds -}}
{{- if and .plural .gang -}}
{{- $group := default "" .group -}}
{{- $_ := set $gangs $group (append (get $gangs $group | default list) .plural | uniq) -}}
{{- end -}}
{{- end -}}
{{- toJson $gangs -}}
{{- end -}}

{{/* What they are called. JSON. */}}
{{- define "gpu-tiers.gangKinds" -}}
{{- $kinds := (include "gpu-tiers.knownKinds" . | fromJson).gangKinds -}}
{{- range (default dict .Values.policy).kinds -}}
{{- if .gang -}}
{{- $kinds = append $kinds .kind -}}
{{- end -}}
{{- end -}}
{{- $kinds | uniq | toJson -}}
{{- end -}}

{{/* The scale subresources that are reviewed. JSON. */}}
{{- define "gpu-tiers.scalesByGroup" -}}
{{- $scales := (include "gpu-tiers.knownKinds" . | fromJson).scales -}}
{{- range (default dict .Values.policy).kinds -}}
{{- if and .plural .scale -}}
{{- $group := default "" .group -}}
{{- $_ := set $scales $group (append (get $scales $group | default list) (printf "%s/scale" .plural) | uniq) -}}
{{- end -}}
{{- end -}}
{{- toJson $scales -}}
{{- end -}}

{{/* Labels by which a pod concerns the webhook: the tier's, and those of members of gangs. JSON. */}}
{{- define "gpu-tiers.markingLabels" -}}
{{- $labels := prepend (include "gpu-tiers.knownKinds" . | fromJson).gangLabels "gpu-tiers.dev/tier" -}}
{{- range (default dict .Values.policy).kinds -}}
{{- with .gangLabel -}}
{{- $labels = append $labels . -}}
{{- end -}}
{{- end -}}
{{- $labels | uniq | toJson -}}
{{- end -}}
