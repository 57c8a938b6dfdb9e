package barnabas_test

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas"
)

// A broker in memory, for as long as a test or a program needs one.
func ExampleStart() {
	ctx := context.Background()
	b, err := barnabas.Start(ctx, barnabas.Options{}) // DataDir keeps what is written
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = b.Stop(ctx) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.DefaultProduceTopic("greetings"), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("greetings"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, kgo.StringRecord("hello")).FirstErr(); err != nil {
		fmt.Println(err)
		return
	}
	client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { fmt.Println(string(r.Value)) })
	// Output: hello
}
