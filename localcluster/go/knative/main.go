// Knative Serving's controllers and its autoscaler in one process, as their own mains start them. Those would both
// listen on port 8080: for probes, and for the counts of activators and queue proxies, of which none run here.
package main

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"
	filteredpods "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/filtered"
	filteredinformers "knative.dev/pkg/client/injection/kube/informers/factory/filtered"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/signals"
	autoscaling "knative.dev/serving/pkg/apis/autoscaling/v1alpha1"
	"knative.dev/serving/pkg/apis/serving"
	"knative.dev/serving/pkg/autoscaler/metrics"
	"knative.dev/serving/pkg/autoscaler/scaling"
	"knative.dev/serving/pkg/reconciler/autoscaling/kpa"
	"knative.dev/serving/pkg/reconciler/configuration"
	"knative.dev/serving/pkg/reconciler/gc"
	"knative.dev/serving/pkg/reconciler/labeler"
	"knative.dev/serving/pkg/reconciler/metric"
	"knative.dev/serving/pkg/reconciler/revision"
	"knative.dev/serving/pkg/reconciler/route"
	"knative.dev/serving/pkg/reconciler/serverlessservice"
	"knative.dev/serving/pkg/reconciler/service"
	"knative.dev/serving/pkg/resources"
)

var collector *metrics.MetricCollector

func main() {
	ctx := filteredinformers.WithSelectors(signals.NewContext(), serving.RevisionUID)
	sharedmain.MainWithContext(sharedmain.WithHealthProbesDisabled(ctx), "controller",
		configuration.NewController, labeler.NewController, revision.NewController, route.NewController,
		serverlessservice.NewController, service.NewController, gc.NewController, newAutoscaler, newMetrics)
}

func newAutoscaler(ctx context.Context, watcher configmap.Watcher) *controller.Impl {
	pods := filteredpods.Get(ctx, serving.RevisionUID).Lister()
	collector = metrics.NewMetricCollector(asksNoPod, logging.FromContext(ctx))
	scaler := func(decider *scaling.Decider) (scaling.UniScaler, error) {
		accessor := resources.NewPodAccessor(pods, decider.Namespace, decider.Labels[serving.RevisionLabelKey])
		return scaling.New(attribute.NewSet(), otel.GetMeterProvider(), decider.Namespace, decider.Name,
			collector, accessor, &decider.Spec), nil
	}
	return kpa.NewController(ctx, watcher, scaling.NewMultiScaler(ctx.Done(), scaler, logging.FromContext(ctx)))
}

func newMetrics(ctx context.Context, watcher configmap.Watcher) *controller.Impl {
	return metric.NewController(ctx, watcher, collector)
}

// In a pod of a fake node nothing answers.
func asksNoPod(*autoscaling.Metric, *zap.SugaredLogger) (metrics.StatsScraper, error) {
	return nil, nil
}
