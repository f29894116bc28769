{{/*
A value is missing where somebody set it to null, and where `--reuse-values` brought the values of an older chart. Every
template begins with this, so that nobody reads of a nil pointer in its place.
*/}}

{{- define "gpu-tiers.refuseMissing" -}}
{{- $missing := list -}}
{{- range $path, $example := .Files.Get "files/needed_values.yaml" | fromYaml -}}
{{- if eq "false" (include "gpu-tiers.isThere" (dict "values" $.Values "path" (splitList "." $path))) -}}
{{- $missing = append $missing (printf "%s: is missing or null; write for example --set %s=%v" $path $path $example) -}}
{{- end -}}
{{- end -}}
{{- with $missing -}}
{{- fail (printf "\n\nThe chart needs these values, and nothing was applied. If you upgraded with --reuse-values, use --reset-then-reuse-values: it takes what is new from the chart.\n%s\n" (join "\n" . | indent 2)) -}}
{{- end -}}
{{- end -}}

{{/* Takes {values, path: its keys}. */}}
{{- define "gpu-tiers.isThere" -}}
{{- $values := default dict .values -}}
{{- $value := hasKey $values (first .path) | ternary (get $values (first .path)) nil -}}
{{- if kindIs "invalid" $value -}}
false
{{- else if rest .path -}}
{{- include "gpu-tiers.isThere" (dict "values" $value "path" (rest .path)) -}}
{{- end -}}
{{- end -}}
