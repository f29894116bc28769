{{/*
Policies that the webhook would not start with, refused before anything is applied. values.schema.json knows types and
ranges; here is what one field says of another. The sentences are the webhook's own (webhook/config/load.py and
model.py); tests/chart/test_policy_checks.py compares them. Each check takes the effective policy, and writes a line for
each problem.
*/}}

{{- define "gpu-tiers.contradictions" -}}
{{- $policy := include "gpu-tiers.effectivePolicy" . | fromJson -}}
{{- $_ := set $policy "known" (include "gpu-tiers.knownKinds" . | fromJson).kinds -}}
{{- $_ := set $policy "webhook" (include "gpu-tiers.known" . | fromJson) -}}
{{- $problems := "" -}}
{{- range list "incomplete" "duplicates" "reservedNames" "unknownTiers" "unknownKinds" "forbiddenTiers" "demoteTo" "evictionCost" "tierAccess" "hooks" "placement" "scheduling" "nodeSignals" -}}
{{- $problems = print $problems (include (printf "gpu-tiers.%s" .) $policy) -}}
{{- end -}}
{{- with $problems -}}
{{- printf "The policy does not hold together (preset %s with the value policy), and nothing was applied. Correct these fields of the value policy:\n%s\n" $.Values.preset (trim . | indent 2) -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.incomplete" -}}
{{- if not .defaultTier }}
defaultTier: is required
{{- end -}}
{{- if not .resources }}
resources: at least one is required, or nothing counts as a GPU
{{- end -}}
{{- range $index, $resource := .resources -}}
{{- if ne 1 (len (compact (list $resource.name $resource.deviceClassName $resource.annotation))) }}
resources[{{ $index }}]: write one of name, deviceClassName and annotation
{{- else if ne (eq (default "" $resource.annotation) "gpu-memory") (hasKey $resource "memoryPerGPU") }}
resources[{{ $index }}]: memoryPerGPU goes with the annotation gpu-memory: it needs one, and nothing else has one
{{- end -}}
{{- end -}}
{{- range $index, $rule := .rules -}}
{{- if not (or $rule.match.kinds $rule.match.labels $rule.match.namespaces $rule.match.serviceAccounts) }}
rules[{{ $index }}].match: matches nothing: give kinds, labels, namespaces or serviceAccounts (namespace:name)
{{- end -}}
{{- end -}}
{{- $known := .known -}}
{{- range $index, $kind := .kinds -}}
{{- $name := include "gpu-tiers.groupKind" $kind -}}
{{- if and $kind.type $kind.usualType }}
kinds[{{ $index }}]: write either type (every such object is one) or usualType (most are)
{{- else if has $name (list "Pod" "scheduling.k8s.io/PodGroup" "scheduling.k8s.io/Workload") }}
kinds[{{ $index }}]: {{ $name }} is no workload; write the kinds that make pods
{{- else if not (or $kind.plural (has $name $known)) }}
kinds[{{ $index }}]: {{ $name }} is not in the table of workload kinds, so write its plural, as in the paths of its API
{{- else if and (or $kind.gang $kind.scale) (not $kind.plural) }}
kinds[{{ $index }}]: gang and scale need the plural of {{ $name }}, so write it, as in the paths of its API
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.duplicates" -}}
{{- $found := dict "names" list "values" list "flavors" list "kinds" list "resources" list "signals" list -}}
{{- range .tiers -}}
{{- $_ := set $found "names" (append $found.names .name) -}}
{{- $_ := set $found "values" (append $found.values (int64 .value | toString)) -}}
{{- end -}}
{{- range .resourceFlavors -}}
{{- $_ := set $found "flavors" (append $found.flavors .name) -}}
{{- end -}}
{{- range .kinds -}}
{{- $_ := set $found "kinds" (append $found.kinds (include "gpu-tiers.groupKind" .)) -}}
{{- end -}}
{{- range .resources -}}
{{- $other := .annotation | empty | ternary (printf "deviceClassName %s" .deviceClassName) (printf "annotation %s" .annotation) -}}
{{- $_ := set $found "resources" (append $found.resources (default $other .name)) -}}
{{- end -}}
{{- range .nodeSignals -}}
{{- $_ := set $found "signals" (append $found.signals .id) -}}
{{- end -}}
{{- include "gpu-tiers.twice" (dict "path" "tiers[%d].name" "values" $found.names "what" "another tier has that name") -}}
{{- include "gpu-tiers.twice" (dict "path" "tiers[%d].value" "values" $found.values "what" "another tier has that value") -}}
{{- include "gpu-tiers.twice" (dict "path" "resourceFlavors[%d].name" "values" $found.flavors "what" "listed twice") -}}
{{- include "gpu-tiers.twice" (dict "path" "kinds[%d]" "values" $found.kinds "what" "listed twice") -}}
{{- include "gpu-tiers.twice" (dict "path" "resources[%d]" "values" $found.resources "what" "listed twice") -}}
{{- include "gpu-tiers.twice" (dict "path" "nodeSignals[%d].id" "values" $found.signals "what" "listed twice") -}}
{{- end -}}

{{/* Takes {path, values: texts, what}. */}}
{{- define "gpu-tiers.twice" -}}
{{- $met := dict -}}
{{- range $index, $value := .values -}}
{{- if hasKey $met $value }}
{{ printf $.path $index }}: {{ $value }}: {{ $.what }}
{{- end -}}
{{- $_ := set $met $value true -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.reservedNames" -}}
{{- $tiers := .tiers -}}
{{- $owners := dict -}}
{{- range $tiers -}}
{{- $_ := set $owners (printf "%s-nonpreempting" .name) .name -}}
{{- end -}}
{{- range $index, $tier := $tiers -}}
{{- if hasKey $owners $tier.name }}
tiers[{{ $index }}].name: {{ $tier.name }} is the name of the non-preempting class of tier {{ get $owners $tier.name }}; write another
{{- end -}}
{{- if hasPrefix "system-" $tier.name }}
tiers[{{ $index }}].name: {{ $tier.name }}: names that begin with system- are Kubernetes' own; write another
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.unknownTiers" -}}
{{- $tiers := list -}}
{{- range .tiers -}}
{{- $tiers = append $tiers .name -}}
{{- end -}}
{{- $mentions := list -}}
{{- with .defaultTier -}}
{{- $mentions = append $mentions (list "defaultTier" .) -}}
{{- end -}}
{{- range $type, $name := .workloadTypes -}}
{{- $mentions = append $mentions (list (printf "workloadTypes.%s" $type) $name) -}}
{{- end -}}
{{- range $type, $names := .allowedTiersByType -}}
{{- range $index, $name := $names -}}
{{- $mentions = append $mentions (list (printf "allowedTiersByType.%s[%d]" $type $index) $name) -}}
{{- end -}}
{{- end -}}
{{- range $index, $name := .demoteTo -}}
{{- $mentions = append $mentions (list (printf "demoteTo[%d]" $index) $name) -}}
{{- end -}}
{{- range $index, $rule := .rules -}}
{{- $mentions = append $mentions (list (printf "rules[%d].tier" $index) $rule.tier) -}}
{{- end -}}
{{- range $name, $hook := .checkpoint.tiers -}}
{{- $mentions = append $mentions (list (printf "checkpoint.tiers.%s" $name) $name) -}}
{{- end -}}
{{- range $name, $cap := .checkpoint.maxGracePeriodSecondsByTier -}}
{{- $mentions = append $mentions (list (printf "checkpoint.maxGracePeriodSecondsByTier.%s" $name) $name) -}}
{{- end -}}
{{- range $name, $placement := .placement -}}
{{- $mentions = append $mentions (list (printf "placement.%s" $name) $name) -}}
{{- end -}}
{{- range $name, $scheduling := .scheduling -}}
{{- $mentions = append $mentions (list (printf "scheduling.%s" $name) $name) -}}
{{- end -}}
{{- range $name, $seconds := dig "maxAtRiskSeconds" dict (default dict .saves) -}}
{{- $mentions = append $mentions (list (printf "saves.maxAtRiskSeconds.%s" $name) $name) -}}
{{- end -}}
{{- range $name, $told := .autoscaler -}}
{{- $mentions = append $mentions (list (printf "autoscaler.%s" $name) $name) -}}
{{- end -}}
{{- range $mentions -}}
{{- if not (has (last .) $tiers) }}
{{ first . }}: unknown tier "{{ last . }}"; known tiers: {{ join ", " $tiers }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.unknownKinds" -}}
{{- $known := .known -}}
{{- range .kinds -}}
{{- $known = append $known (include "gpu-tiers.groupKind" .) -}}
{{- end -}}
{{- range $index, $rule := .rules -}}
{{- range $place, $kind := $rule.match.kinds -}}
{{- $name := include "gpu-tiers.groupKind" $kind -}}
{{- if not (has $name $known) }}
rules[{{ $index }}].match.kinds[{{ $place }}]: {{ $name }} is not in the table of workload kinds (docs/workloads.md), so the rule could never apply; add it under kinds
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Takes {group, kind}. */}}
{{- define "gpu-tiers.groupKind" -}}
{{- printf "%s/%s" (default "" .group) .kind | trimPrefix "/" -}}
{{- end -}}

{{- define "gpu-tiers.forbiddenTiers" -}}
{{- $all := default dict .allowedTiersByType -}}
{{- range $type, $name := .workloadTypes -}}
{{- if and (hasKey $all $type) (not (has $name (get $all $type))) }}
workloadTypes.{{ $type }}: {{ $name }}, but allowedTiersByType.{{ $type }} allows {{ with get $all $type }}only {{ join ", " . }}{{ else }}none{{ end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.demoteTo" -}}
{{- $values := list -}}
{{- range .tiers -}}
{{- $values = append $values (int64 .value) -}}
{{- end -}}
{{- $highest := "" -}}
{{- range .tiers -}}
{{- if eq (int64 .value) (include "gpu-tiers.largest" $values | int64) -}}
{{- $highest = .name -}}
{{- end -}}
{{- end -}}
{{- $met := dict -}}
{{- range $index, $name := .demoteTo -}}
{{- if hasKey $met $name }}
demoteTo[{{ $index }}]: {{ $name }} stands there twice; keep one
{{- end -}}
{{- if eq $name $highest }}
demoteTo[{{ $index }}]: {{ $name }} is the highest tier, so nothing is demoted to it; write a lower one
{{- end -}}
{{- $_ := set $met $name true -}}
{{- end -}}
{{- end -}}

{{/* Takes a list of whole numbers. */}}
{{- define "gpu-tiers.largest" -}}
{{- $largest := 0 -}}
{{- range . -}}
{{- $largest = max $largest . -}}
{{- end -}}
{{- $largest -}}
{{- end -}}

{{- define "gpu-tiers.evictionCost" -}}
{{- if and (eq (dig "kueue" "" (default dict .evictionCost) | toString) "Write") (not (dig "workloadPriorityClasses" false (default dict .kueue))) }}
evictionCost.kueue: Write needs kueue.workloadPriorityClasses: true, or Kueue may not know the tiers
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.tierAccess" -}}
{{- if and (eq (toString .tierAccess) "RBAC") (has (toString .templates) (list "Off" "false")) }}
tierAccess: RBAC needs templates: ValidateOnly or Mutate, which ask at the workload
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.placement" -}}
{{- range $tier, $placement := .placement -}}
{{- if ne (hasKey $placement "strategy") (hasKey $placement "topologyKey") }}
placement.{{ $tier }}: strategy and topologyKey go together: write both or none
{{- end -}}
{{- range $index, $toleration := $placement.tolerations -}}
{{- $where := printf "placement.%s.tolerations[%d]" $tier $index -}}
{{- $operator := default "Equal" $toleration.operator -}}
{{- if and (eq $operator "Equal") (not (hasKey $toleration "key")) }}
{{ $where }}: operator Equal needs a key; operator Exists without one is for all taints
{{- else if and (eq $operator "Exists") (hasKey $toleration "value") }}
{{ $where }}: operator Exists takes no value
{{- else if and (hasKey $toleration "tolerationSeconds") (ne (default "" $toleration.effect) "NoExecute") }}
{{ $where }}: tolerationSeconds goes with effect: NoExecute
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.scheduling" -}}
{{- $usual := .webhook.schedulers -}}
{{- range $tier, $scheduling := .scheduling -}}
{{- $name := default "" $scheduling.schedulerName -}}
{{- $theirs := get $usual $name -}}
{{- $system := dig "queue" "system" "" $scheduling -}}
{{- if eq $name "default-scheduler" }}
scheduling.{{ $tier }}: schedulerName default-scheduler is what every pod has; leave it out
{{- else if and $system $theirs (ne $theirs $system) }}
scheduling.{{ $tier }}: schedulerName {{ $name }} is {{ $theirs }}'s, which knows no queues of {{ $system }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.nodeSignals" -}}
{{- $known := .webhook.nodeSignals -}}
{{- range $index, $signal := .nodeSignals -}}
{{- $of := default "" (get $known $signal.id) -}}
{{- $where := default $of $signal.where -}}
{{- $keyed := or (hasKey $signal "key") (and $of (ne $of "Unschedulable")) -}}
{{- if and (not $of) $signal.ignore }}
nodeSignals[{{ $index }}]: "{{ $signal.id }}" is not in the table; its ids: {{ join ", " (keys $known | sortAlpha) }}
{{- else if not $where }}
nodeSignals[{{ $index }}]: a signal of your own needs where: Taint, Condition, Label or Unschedulable
{{- else if eq (eq $where "Unschedulable") (not (not $keyed)) }}
nodeSignals[{{ $index }}]: Taint, Condition and Label need a key, and Unschedulable takes none
{{- end -}}
{{- end -}}
{{- end -}}
