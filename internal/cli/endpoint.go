package cli

import (
	"log/slog"

	"github.com/barnabas-mq/barnabas/internal/broker"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/console"
)

// startEndpoint opens http.listener, with metrics and health. The default address gives way to a free port
// where another broker has it; one that was set does not.
//
// Two brokers on one machine is what people do first; the second must not fail for a port that nobody asked
// for.
func startEndpoint(c *config.Broker, b *broker.Broker, logger *slog.Logger) (*console.Console, error) {
	return console.Start(console.Options{
		Address: c.String("http.listener"), Fallback: !c.IsSet("http.listener"), Metrics: b.Metrics(), Logger: logger,
		Unready: func() []console.Reason {
			var reasons []console.Reason
			for _, r := range b.Unready() {
				reasons = append(reasons, console.Reason{Check: r[0], Message: r[1]})
			}
			for _, r := range b.Degraded() {
				reasons = append(reasons, console.Reason{Check: r[0], Message: r[1], Partly: true})
			}
			return reasons
		},
	})
}
