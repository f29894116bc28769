{{/*
Values that contradict one another, refused before anything is applied. values.schema.json knows types and ranges; here is
what one value says of another. Each check takes the root, and writes a line for each problem: the value, what is wrong,
and an example.
*/}}

{{- define "gpu-tiers.refuseValues" -}}
{{- $problems := "" -}}
{{- range list "ports" "arguments" "ownLabels" "ownNames" "strategy" "disruptions" "accounts" "dns" "users" "issuers" "families" "criticalPods" "bundle" "clients" "prometheus" "exempt" "tenants" "reports" -}}
{{- $problems = print $problems (include (printf "gpu-tiers.%sProblems" .) $) -}}
{{- end -}}
{{- $said := list -}}
{{- with $problems -}}
{{- $said = append $said (printf "These values do not fit together, and nothing was applied:\n%s\n" (trim . | indent 2)) -}}
{{- end -}}
{{- with include "gpu-tiers.contradictions" . -}}
{{- $said = append $said . -}}
{{- end -}}
{{- with $said -}}
{{- fail (printf "\n\n%s" (join "\n" .)) -}}
{{- end -}}
{{- end -}}

{{/* The names in `ports` on which a pod listens. */}}
{{- define "gpu-tiers.portsInUse" -}}
{{- $names := list "webhook" "metrics" "handOver" -}}
{{- if include "gpu-tiers.pageOnLoopback" . | eq "true" -}}
{{- $names = append $names "page" -}}
{{- end -}}
{{- if (.Values.page.authentication).enabled -}}
{{- $names = append $names "pageTLS" -}}
{{- end -}}
{{- if .Values.reports.enabled -}}
{{- $names = append $names "reports" -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{- define "gpu-tiers.portsProblems" -}}
{{- $owners := dict -}}
{{- range $name := include "gpu-tiers.portsInUse" . | fromJsonArray -}}
{{- $port := get $.Values.ports $name | int | toString -}}
{{- with get $owners $port }}
ports.{{ $name }}: {{ $port }} is ports.{{ . }} already; give each a port of its own, such as --set ports.{{ $name }}={{ add $port 1 }}
{{- end -}}
{{- $_ := set $owners $port $name -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.arguments" -}}
policy: policy
certificates: certificates.source
cert-dir: certificates.source
client-ca: webhook.clientCA
client-name: webhook.clientNames
service: fullnameOverride
secret: certificates.secretName
configuration: fullnameOverride
lease: fullnameOverride
ceilings: fullnameOverride
config-map: fullnameOverride
create-timeout: createTimeoutSeconds
host: listenAddress
port: ports.webhook
metrics-port: ports.metrics
page-port: {{ .Values.hostNetwork | ternary "page.authentication.enabled" "ports.page" }}
page-tls-port: {{ (.Values.page.authentication).enabled | ternary "ports.pageTLS" "page.authentication.enabled" }}
page-audience: page.authentication.audiences
reports-port: {{ .Values.reports.enabled | ternary "ports.reports" "reports.enabled" }}
reports-service: fullnameOverride
hand-over-port: ports.handOver
prometheus-url: page.prometheus.url
prometheus-label: page.prometheus.labels
prometheus-token-file: page.prometheus.tokenFile
prometheus-ca-file: page.prometheus.caFile
log-level: logLevel
log-format: logFormat
{{- end -}}

{{- define "gpu-tiers.argumentsProblems" -}}
{{- $values := include "gpu-tiers.arguments" . | fromYaml -}}
{{- range $index, $argument := .Values.extraArgs -}}
{{- $name := $argument | trimPrefix "--" | splitList "=" | first -}}
{{- with get $values $name }}
extraArgs[{{ $index }}]: the chart sets --{{ $name }} itself; set the value {{ . }} instead
{{- else -}}
{{- if eq $name "namespace" }}
extraArgs[{{ $index }}]: the chart sets --{{ $name }} itself; leave it out
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.ownLabelsProblems" -}}
{{- $own := keys (omit .Values "commonLabels" | dict "Values" | merge (omit . "Values") | include "gpu-tiers.labels" | fromYaml) -}}
{{- $common := keys (default dict .Values.commonLabels) -}}
{{- range $label := $common -}}
{{- if has $label $own }}
commonLabels: the chart sets {{ $label }} itself; write another, such as app.kubernetes.io/part-of
{{- end -}}
{{- end -}}
{{- range $label := keys (default dict .Values.podLabels) -}}
{{- if or (has $label $own) (has $label $common) }}
podLabels: {{ $label }} is {{ has $label $own | ternary "set by the chart" "in commonLabels" }} already; leave it out here
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.ownNamesProblems" -}}
{{- $own := dict "extraEnv" (list "POD_NAMESPACE" "POD_NAME") "extraVolumes" (list "policy" "tls" "tmp") "extraContainers" (list "webhook") "extraInitContainers" (list "webhook") -}}
{{- range $value, $names := $own -}}
{{- range $index, $each := get $.Values $value | default list -}}
{{- if has $each.name $names }}
{{ $value }}[{{ $index }}].name: {{ $each.name }} is the chart's own; write another, such as my-{{ lower $each.name }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.strategyProblems" -}}
{{- $strategy := default dict .Values.updateStrategy -}}
{{- $rolling := default dict $strategy.rollingUpdate -}}
{{- $type := default "RollingUpdate" $strategy.type -}}
{{- if and $rolling (eq $type "Recreate") }}
updateStrategy.rollingUpdate: goes with type RollingUpdate alone; write for example --set updateStrategy.type=RollingUpdate
{{- end -}}
{{- if and (hasKey $rolling "maxSurge") (hasKey $rolling "maxUnavailable") (has (toString $rolling.maxSurge) (list "0" "0%")) (has (toString $rolling.maxUnavailable) (list "0" "0%")) }}
updateStrategy.rollingUpdate: maxSurge and maxUnavailable are both 0, so no pod could ever be replaced; write for example --set updateStrategy.rollingUpdate.maxSurge=1
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.disruptionsProblems" -}}
{{- $least := toString (default "" .Values.podDisruptionBudget.minAvailable) -}}
{{- if and (regexMatch "^[0-9]+$" $least) (ge (int $least) (int .Values.replicas)) }}
podDisruptionBudget.minAvailable: {{ $least }} of {{ int .Values.replicas }} replicas lets no node be drained; write fewer, such as --set podDisruptionBudget.minAvailable={{ max 1 (sub (int .Values.replicas) 1) }}{{ if le (int .Values.replicas) 1 }} with --set replicas=2{{ end }}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.accountsProblems" -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) (include "gpu-tiers.runsHere" . | eq "true") }}
serviceAccount.name: is required without serviceAccount.create; write for example --set serviceAccount.name=gpu-tiers
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.dnsProblems" -}}
{{- if and (eq "None" (default "" .Values.dnsPolicy)) (not (dig "nameservers" "" (default dict .Values.dnsConfig))) }}
dnsConfig.nameservers: is required with dnsPolicy None; write for example --set dnsConfig.nameservers={10.0.0.2}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.usersProblems" -}}
{{- if and .Values.hostNetwork (eq "false" (toString .Values.hostUsers)) }}
hostUsers: false does not work with hostNetwork=true; leave one of them out, such as --set hostNetwork=false
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.issuersProblems" -}}
{{- $source := .Values.certificates.source -}}
{{- $issuer := default dict .Values.certificates.issuerRef -}}
{{- if and $issuer (ne $source "cert-manager") }}
certificates.issuerRef: is for certificates.source=cert-manager, and that is {{ $source }}; leave one of them out
{{- else if and $issuer (not $issuer.name) }}
certificates.issuerRef.name: is required; write for example --set certificates.issuerRef.name=internal-ca
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.familiesProblems" -}}
{{- $service := default dict .Values.service -}}
{{- if and (eq "SingleStack" (default "" $service.ipFamilyPolicy)) (gt (len (default list $service.ipFamilies)) 1) }}
service.ipFamilies: names two families, and service.ipFamilyPolicy is SingleStack; write for example --set service.ipFamilyPolicy=PreferDualStack
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.criticalPodsProblems" -}}
{{- if and .Values.resourceQuota.enabled (lt (int .Values.resourceQuota.pods) (add (int .Values.replicas) 1 | int)) }}
resourceQuota.pods: {{ int .Values.resourceQuota.pods }} is too few for {{ int .Values.replicas }} replicas and one more in an upgrade; write for example --set resourceQuota.pods=100
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.bundleProblems" -}}
{{- $source := .Values.certificates.source -}}
{{- if and .Values.certificates.caBundle (ne $source "files") }}
certificates.caBundle: is for certificates.source=files, and that is {{ $source }}; leave one of them out
{{- else if and (eq $source "files") (not (or .Values.certificates.caBundle .Values.webhook.annotations .Values.webhook.url)) }}
certificates.caBundle: is required with certificates.source=files, or the API server trusts no answer; write for example --set certificates.caBundle=$(base64 -w0 ca.crt), or webhook.annotations of an injector
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.clientsProblems" -}}
{{- if and .Values.webhook.clientNames (not .Values.webhook.clientCA) }}
webhook.clientNames: needs webhook.clientCA, the CA of the certificates that bear them; write for example --set-file webhook.clientCA=ca.crt
{{- end -}}
{{- if and .Values.webhook.user (not .Values.webhook.url) }}
webhook.user: is for a webhook outside the cluster, and the one of the chart is its ServiceAccount; name webhook.url too, or leave it out
{{- end }}
{{- if and .Values.webhook.clientCA .Values.webhook.url }}
webhook.clientCA: is for the webhook that the chart runs, and webhook.url names another; give that one --client-ca itself
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.prometheusProblems" -}}
{{- $prometheus := default dict .Values.page.prometheus -}}
{{- if and $prometheus.tokenFile (not (hasPrefix "https://" (default "" $prometheus.url))) }}
page.prometheus.tokenFile: the token would go over the network for all to read, or nowhere; write for example --set page.prometheus.url=https://prometheus.monitoring.svc:9090
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.exemptProblems" -}}
{{- if kindIs "invalid" .Values.exemptNamespaces }}
exemptNamespaces: is null, and so kube-system would not be exempt; write for example --set exemptNamespaces={kube-system}, or --set-json exemptNamespaces=[] for none
{{- end -}}
{{- end -}}

{{/* A webhook outside the cluster has no Service of this release that pods could report to. */}}
{{- define "gpu-tiers.reportsProblems" -}}
{{- if and .Values.reports.enabled .Values.webhook.url }}
reports.enabled: pods report to the Service of this release, and with webhook.url it has none; leave one of them out
{{- end }}
{{- end -}}
