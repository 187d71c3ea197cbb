// SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
// SPDX-License-Identifier: GPL-3.0-or-later

// The firewall of kube-router, which enforces NetworkPolicy, without its router, its service proxy and its load balancer.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	config.RunFirewall, config.RunRouter, config.RunServiceProxy, config.RunLoadBalancer = true, false, false, false
	if err := run(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(config *options.KubeRouterConfig) error {
	clientConfig, err := clientcmd.BuildConfigFromFlags(config.Master, config.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", config.Kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(clientConfig)
	if err != nil {
		return fmt.Errorf("Kubernetes client: %w", err)
	}

	stop := make(chan struct{})
	var controllers sync.WaitGroup
	health, err := healthcheck.NewHealthController(config)
	if err != nil {
		return fmt.Errorf("health controller: %w", err)
	}
	heartbeats := make(chan *healthcheck.ControllerHeartbeat, 10)
	controllers.Add(1)
	go health.RunServer(stop, &controllers)

	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	health.SetAlive()
	controllers.Add(1)
	go health.RunCheck(heartbeats, stop, &controllers)

	iptables, ipsets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return fmt.Errorf("iptables and ipset: %w", err)
	}
	var ipsetMutex sync.Mutex
	firewall, err := netpol.NewNetworkPolicyController(
		client, config, pods, policies, namespaces, &ipsetMutex, iptables, ipsets)
	if err != nil {
		return fmt.Errorf("network policy controller: %w", err)
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods:       firewall.PodEventHandler,
		namespaces: firewall.NamespaceEventHandler,
		policies:   firewall.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("event handler: %w", err)
		}
	}
	controllers.Add(1)
	go firewall.Run(heartbeats, stop, &controllers)

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	close(stop)
	controllers.Wait()
	return nil
}
