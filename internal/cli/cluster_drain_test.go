package cli

import (
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

func TestDeadBrokersLastReplicasAreTold(t *testing.T) {
	l := &admin.Layout{Topics: []admin.Topic{{Name: "t", Partitions: []admin.Partition{
		{Number: 0, Leader: 1, Replicas: []int32{1, 3}, ISR: []int32{1}},
		{Number: 1, Leader: -1, Replicas: []int32{1, 3}, ISR: []int32{3}},
		{Number: 2, Leader: -1, Replicas: []int32{3}, ISR: []int32{3}},
	}}}}
	if said := deadNotice(l, 3); !strings.Contains(said, "copied from others; 2 partitions were in sync on it alone and cannot move, the first is t-1: start it") {
		t.Error(said)
	}
	if said := deadNotice(l, 2); said != "broker 2 is not running: its replicas are copied from others" {
		t.Error(said)
	}
}
