{{/* The part of the policy's checks that is about checkpoint hooks: as in _policy_checks.tpl. */}}

{{- define "gpu-tiers.hooks" -}}
{{- $ofAll := int .checkpoint.maxGracePeriodSeconds -}}
{{- $margin := int .checkpoint.marginSeconds -}}
{{- $late := "" -}}
{{- if ge $margin $ofAll -}}
{{- $late = "marginSeconds must be below maxGracePeriodSeconds, or no time is left to save" -}}
{{- end -}}
{{- range $tier, $cap := .checkpoint.maxGracePeriodSecondsByTier -}}
{{- if and (not $late) (ge $margin (int $cap)) -}}
{{- $late = printf "marginSeconds must be below maxGracePeriodSecondsByTier.%s, or no time is left to save" $tier -}}
{{- else if and (not $late) (gt (int $cap) $ofAll) -}}
{{- $late = printf "maxGracePeriodSecondsByTier.%s is %d, which is above maxGracePeriodSeconds, %d" $tier (int $cap) $ofAll -}}
{{- end -}}
{{- end -}}
{{- $hooks := dict -}}
{{- range list "training" "serving" "batch" "interactive" -}}
{{- if hasKey $.checkpoint . -}}
{{- $_ := set $hooks . (get $.checkpoint .) -}}
{{- end -}}
{{- end -}}
{{- range $tier, $hook := .checkpoint.tiers -}}
{{- $_ := set $hooks (printf "tiers.%s" $tier) $hook -}}
{{- end -}}
{{- range $name, $hook := $hooks -}}
{{- if not $hook.kind }}
checkpoint.{{ $name }}.kind: is required
{{- else -}}
{{- include "gpu-tiers.hookFields" (dict "where" (printf "checkpoint.%s" $name) "hook" $hook "row" (get $.webhook.hooks $hook.kind)) -}}
{{- end -}}
{{- $limit := "maxGracePeriodSeconds" -}}
{{- $cap := $ofAll -}}
{{- $tier := trimPrefix "tiers." $name -}}
{{- if and (hasPrefix "tiers." $name) (hasKey (default dict $.checkpoint.maxGracePeriodSecondsByTier) $tier) -}}
{{- $limit = printf "maxGracePeriodSecondsByTier.%s" $tier -}}
{{- $cap = int (get $.checkpoint.maxGracePeriodSecondsByTier $tier) -}}
{{- end -}}
{{- if and (not $late) (gt (int $hook.seconds) (sub $cap $margin | int)) -}}
{{- $late = printf "%s.seconds is %d, but %s less marginSeconds leaves %d" $name (int $hook.seconds) $limit (sub $cap $margin) -}}
{{- end -}}
{{- end -}}
{{- with $late }}
checkpoint: {{ . }}
{{- end -}}
{{- end -}}

{{/* Takes {where, hook, row: what its kind takes and needs}. */}}
{{- define "gpu-tiers.hookFields" -}}
{{- $where := .where -}}
{{- $hook := .hook -}}
{{- $takes := .row.takes -}}
{{- $wrong := list -}}
{{- range list "path" "port" "command" "signal" "doneFile" "pythonPath" "reports" -}}
{{- if and (hasKey $hook .) (not (has . $takes)) -}}
{{- $wrong = append $wrong . -}}
{{- end -}}
{{- end -}}
{{- $missing := list -}}
{{- range .row.needs -}}
{{- if not (hasKey $hook .) -}}
{{- $missing = append $missing . -}}
{{- end -}}
{{- end -}}
{{- if $wrong }}
{{ $where }}: a hook of kind {{ $hook.kind }} takes no {{ first $wrong }}
{{- else if $missing }}
{{ $where }}: a hook of kind {{ $hook.kind }} needs a {{ first $missing }}
{{- end -}}
{{- range list "path" "doneFile" -}}
{{- if and (hasKey $hook .) (has . $takes) -}}
{{- $path := get $hook . -}}
{{- if eq $hook.kind "http" -}}
{{- if not (regexMatch "^/[!-~]*$" $path) }}
{{ $where }}.{{ . }}: must be a URL's path: / and printable ASCII without blanks
{{- end -}}
{{- else if or (not (regexMatch "^/[A-Za-z0-9/._-]*$" $path)) (has ".." (splitList "/" $path)) (not (trimAll "/" $path)) }}
{{ $where }}.{{ . }}: must be an absolute path below / of letters, digits and . _ - /
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
