package wire

// The API keys whose headers are exceptions.
const (
	keyControlledShutdown int16 = 7
	keyApiVersions        int16 = 18
)

// never marks keys that have no flexible version. SaslHandshake is spoken before anybody knows the other's
// versions, and stays at 1: Java clients up to 2.4 take a higher maximum for one of theirs (KAFKA-9577).
const never = int16(^uint16(0) >> 1)

// flexibleFrom is the first flexible version of every API key, by key. It is constant; a test compares it
// with kmsg.
var flexibleFrom = [...]int16{
	0:  9,     // Produce
	1:  12,    // Fetch
	2:  6,     // ListOffsets
	3:  9,     // Metadata
	4:  4,     // LeaderAndISR
	5:  2,     // StopReplica
	6:  6,     // UpdateMetadata
	7:  3,     // ControlledShutdown
	8:  8,     // OffsetCommit
	9:  6,     // OffsetFetch
	10: 3,     // FindCoordinator
	11: 6,     // JoinGroup
	12: 4,     // Heartbeat
	13: 4,     // LeaveGroup
	14: 4,     // SyncGroup
	15: 5,     // DescribeGroups
	16: 3,     // ListGroups
	17: never, // SASLHandshake
	18: 3,     // ApiVersions
	19: 5,     // CreateTopics
	20: 4,     // DeleteTopics
	21: 2,     // DeleteRecords
	22: 2,     // InitProducerID
	23: 4,     // OffsetForLeaderEpoch
	24: 3,     // AddPartitionsToTxn
	25: 3,     // AddOffsetsToTxn
	26: 3,     // EndTxn
	27: 1,     // WriteTxnMarkers
	28: 3,     // TxnOffsetCommit
	29: 2,     // DescribeACLs
	30: 2,     // CreateACLs
	31: 2,     // DeleteACLs
	32: 4,     // DescribeConfigs
	33: 2,     // AlterConfigs
	34: 2,     // AlterReplicaLogDirs
	35: 2,     // DescribeLogDirs
	36: 2,     // SASLAuthenticate
	37: 2,     // CreatePartitions
	38: 2,     // CreateDelegationToken
	39: 2,     // RenewDelegationToken
	40: 2,     // ExpireDelegationToken
	41: 2,     // DescribeDelegationToken
	42: 2,     // DeleteGroups
	43: 2,     // ElectLeaders
	44: 1,     // IncrementalAlterConfigs
	45: 0,     // AlterPartitionAssignments
	46: 0,     // ListPartitionReassignments
	47: never, // OffsetDelete
	48: 1,     // DescribeClientQuotas
	49: 1,     // AlterClientQuotas
	50: 0,     // DescribeUserSCRAMCredentials
	51: 0,     // AlterUserSCRAMCredentials
	52: 0,     // Vote
	53: 1,     // BeginQuorumEpoch
	54: 1,     // EndQuorumEpoch
	55: 0,     // DescribeQuorum
	56: 0,     // AlterPartition
	57: 0,     // UpdateFeatures
	58: 0,     // Envelope
	59: 0,     // FetchSnapshot
	60: 0,     // DescribeCluster
	61: 0,     // DescribeProducers
	62: 0,     // BrokerRegistration
	63: 0,     // BrokerHeartbeat
	64: 0,     // UnregisterBroker
	65: 0,     // DescribeTransactions
	66: 0,     // ListTransactions
	67: 0,     // AllocateProducerIDs
	68: 0,     // ConsumerGroupHeartbeat
	69: 0,     // ConsumerGroupDescribe
	70: 0,     // ControllerRegistration
	71: 0,     // GetTelemetrySubscriptions
	72: 0,     // PushTelemetry
	73: 0,     // AssignReplicasToDirs
	74: 0,     // ListConfigResources
	75: 0,     // DescribeTopicPartitions
	76: 0,     // ShareGroupHeartbeat
	77: 0,     // ShareGroupDescribe
	78: 0,     // ShareFetch
	79: 0,     // ShareAcknowledge
	80: 0,     // AddRaftVoter
	81: 0,     // RemoveRaftVoter
	82: 0,     // UpdateRaftVoter
	83: 0,     // InitializeShareGroupState
	84: 0,     // ReadShareGroupState
	85: 0,     // WriteShareGroupState
	86: 0,     // DeleteShareGroupState
	87: 0,     // ReadShareGroupStateSummary
	88: 0,     // StreamsGroupHeartbeat
	89: 0,     // StreamsGroupDescribe
	90: 0,     // DescribeShareGroupOffsets
	91: 0,     // AlterShareGroupOffsets
	92: 0,     // DeleteShareGroupOffsets
	93: 0,     // StreamsGroupTopologyDescriptionUpdate
	94: 0,     // UnregisterController
}

// Keys is the number of API keys that Kafka has given out, from 0 on.
const Keys = int16(len(flexibleFrom))

// Flexible reports whether a version of an API key has compact types and tagged fields. It is false for keys
// and versions that do not exist.
func Flexible(key, version int16) bool {
	return key >= 0 && key < Keys && version >= flexibleFrom[key]
}
