module gpu-tiers.dev/localcluster/webhook-pair

go 1.26.0
