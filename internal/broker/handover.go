package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// handOver asks the controller to let others lead what this broker leads, before it stops: clients then find
// the new leaders at once, instead of waiting for the end of this one's session. What cannot be handed over is
// asked for again, as controlled.shutdown.max.retries and .retry.backoff.ms say, and left alone in the end.
//
//	answered, nothing remains       done
//	answered, partitions remain     no other replica may lead them: tried again, one of the retries is used up
//	not answered, NOT_CONTROLLER    the controller is moving: tried again soon, which uses up nothing
//	alone                           nobody to hand over to
func (b *Broker) handOver(ctx context.Context) {
	c := b.Config()
	if !b.shared() || !c.Bool("controlled.shutdown.enable") || b.view.BrokerEpoch() == protocol.NoBrokerEpoch || b.failure.Load() != nil {
		return
	}
	backoff := c.Duration("controlled.shutdown.retry.backoff.ms")
	retries := int64(max(c.Int("controlled.shutdown.max.retries"), 0))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(retries+1)*backoff)
	defer cancel()
	for !alone(b.view.Image()) {
		wait := backoff
		err := b.askToStop(ctx)
		switch _, stays := errors.AsType[*remainingError](err); {
		case err == nil:
			return
		case !stays:
			wait = min(wait, findControllerAgain) // it has moved: it may have been the last broker that stopped
		case retries == 0:
			b.logger.Warn("stopping without having handed over all leaderships", "error", err)
			return
		default:
			retries--
		}
		waiting, cancel := context.WithTimeout(ctx, wait)
		_ = b.view.Wait(waiting, alone) // the others may be stopping, too
		cancel()
		if ctx.Err() != nil {
			b.logger.Warn("stopping without having handed over all leaderships", "error", err)
			return
		}
	}
}

// findControllerAgain is how long a broker that wants to stop waits before it looks for the controller again.
const findControllerAgain = 100 * time.Millisecond

// remainingError says that a broker stays leader of partitions.
type remainingError struct {
	partitions int
	first      protocol.TopicPartition
}

// Error counts what remains and names the first, which is where an operator looks.
func (e *remainingError) Error() string {
	return fmt.Sprintf("%d partitions have no other replica that may lead, the first is %s", e.partitions, e.first)
}

// alone reports whether there is nobody to hand anything over to.
func alone(image *metadata.Image) bool { return len(image.Brokers()) < 2 }

// askToStop sends ControlledShutdown once.
func (b *Broker) askToStop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.Config().Duration("controller.socket.timeout.ms"))
	defer cancel()
	q := kmsg.NewPtrControlledShutdownRequest()
	q.Version, q.BrokerID, q.BrokerEpoch = 3, int32(b.id), int64(b.view.BrokerEpoch())
	answer, err := b.toController.do(ctx, q)
	if err != nil {
		return err
	}
	response := answer.(*kmsg.ControlledShutdownResponse) // which is what the request makes
	if code := protocol.Code(response.ErrorCode); code != protocol.None {
		return code
	}
	if n := len(response.PartitionsRemaining); n > 0 {
		first := response.PartitionsRemaining[0]
		return &remainingError{n, protocol.TopicPartition{Topic: first.Topic, Partition: first.Partition}}
	}
	return nil
}
