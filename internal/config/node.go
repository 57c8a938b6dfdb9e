package config

import (
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// BrokerID is the id of this broker: node.id, or broker.id where only that is set.
func (b *Broker) BrokerID() protocol.BrokerID { return protocol.BrokerID(b.Int("node.id")) }

// ClusterID is the id to format an empty directory with; empty where a new one is to be drawn.
func (b *Broker) ClusterID() string { return b.String("cluster.id") }

// LogDirs are the directories of the partitions: log.dirs, else log.dir, but a stronger layer (the command
// line over the file) wins with either of the two.
func (b *Broker) LogDirs() []string {
	dirs := b.List("log.dirs")
	if len(dirs) == 0 || b.Origin("log.dir") > b.Origin("log.dirs") {
		return b.List("log.dir")
	}
	return dirs
}

// MetadataLogDir is where the built-in store keeps its files: metadata.log.dir, else the first log directory.
func (b *Broker) MetadataLogDir() string {
	if dir := b.String("metadata.log.dir"); dir != "" {
		return dir
	}
	return b.LogDirs()[0]
}

// ConnectionsPerIP is max.connections.per.ip.overrides: how many connections some addresses or host names
// may have instead of max.connections.per.ip.
func (b *Broker) ConnectionsPerIP() (map[string]int32, error) {
	const key = "max.connections.per.ip.overrides"
	limits := map[string]int32{}
	for _, pair := range splitList(b.String(key)) {
		i := strings.LastIndexByte(pair, ':')
		if i < 0 {
			return nil, invalid(key, b.String(key), "Each entry should be in the form host:connections")
		}
		n, err := strconv.ParseInt(javaTrim(pair[i+1:]), 10, 32)
		if err != nil || n < 0 {
			return nil, invalid(key, b.String(key), "Not a number of connections: "+pair[i+1:])
		}
		limits[javaTrim(pair[:i])] = int32(n)
	}
	return limits, nil
}
