// Runs the parts of Argo CD that deploy: its application-controller and its repo-server, as they are, and in place of Redis what
// Argo CD itself starts where it has none.
//
// The first argument says which one: application-controller, repo-server or redis ADDRESS. The others are those of the part itself.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "argocd", SilenceUsage: true}
	parts := map[string]*cobra.Command{
		"application-controller": controller.NewCommand(),
		"repo-server":            reposerver.NewCommand(),
		"redis":                  redis(),
	}
	for name, part := range parts {
		part.Use = name
		root.AddCommand(part)
	}
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}

func redis() *cobra.Command {
	return &cobra.Command{Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, arguments []string) error {
		server := miniredis.NewMiniRedis()
		if err := server.StartAddr(arguments[0]); err != nil {
			return fmt.Errorf("redis: %w", err)
		}
		defer server.Close()
		stopped := make(chan os.Signal, 1)
		signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
		<-stopped
		return nil
	}}
}
