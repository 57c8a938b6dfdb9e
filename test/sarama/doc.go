// Package sarama pins Sarama's own test suite, and toxiproxy between it and the brokers; test/proof aims it at a cluster.
package sarama

import _ "github.com/IBM/sarama"
