//go:build tools

package main

import _ "knative.dev/serving/cmd/webhook"
