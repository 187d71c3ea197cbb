// SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
// SPDX-License-Identifier: GPL-3.0-or-later

// CoreDNS with the plugins that the cluster's Corefile uses.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	coremain.Run()
}
