package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	seed := os.Args[1]
	cl, err := kgo.NewClient(kgo.SeedBrokers(seed), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil { panic(err) }
	adm := kadm.NewClient(cl)
	ctx := context.Background()
	switch os.Args[2] {
	case "create":
		n, _ := strconv.Atoi(os.Args[4])
		t := time.Now()
		r, err := adm.CreateTopic(ctx, int32(n), 3, nil, os.Args[3])
		fmt.Println(r.Err, err, time.Since(t))
	case "shutdown":
		id, _ := strconv.Atoi(os.Args[3])
		q := kmsg.NewPtrControlledShutdownRequest()
		q.BrokerID, q.BrokerEpoch = int32(id), -1
		q.Version = 1
		t := time.Now()
		md, _ := adm.BrokerMetadata(ctx)
		r, err := cl.Broker(int(md.Controller)).RetriableRequest(ctx, q)
		fmt.Println(err, time.Since(t))
		if err == nil { s := r.(*kmsg.ControlledShutdownResponse); fmt.Println(s.ErrorCode, len(s.PartitionsRemaining)) }
	case "watch":
		// until no partition of the topic is led by id
		id, _ := strconv.Atoi(os.Args[4])
		t := time.Now()
		for {
			q := kmsg.NewPtrMetadataRequest()
			q.Topics = []kmsg.MetadataRequestTopic{{Topic: &os.Args[3]}}
			q.Version = 9
			r, err := cl.SeedBrokers()[0].Request(ctx, q)
			if err != nil { fmt.Println(err); time.Sleep(50*time.Millisecond); continue }
			led, isr := 0, 0
			for _, p := range r.(*kmsg.MetadataResponse).Topics[0].Partitions {
				if p.Leader == int32(id) || p.Leader < 0 { led++ }
				for _, i := range p.ISR { if i == int32(id) { isr++ } }
			}
			fmt.Printf("%v %s led %d isr %d\n", time.Since(t).Round(time.Millisecond), time.Now().UTC().Format("15:04:05.000"), led, isr)
			if led == 0 && isr == 0 { return }
			time.Sleep(20 * time.Millisecond)
		}
	}
}
