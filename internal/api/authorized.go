package api

// What may be done is listed as one bit an operation, by the operations' numbers (KIP-430). Without an
// authorizer everything that makes sense for the kind of resource is allowed.
const (
	opRead            = 1 << 3
	opWrite           = 1 << 4
	opCreate          = 1 << 5
	opDelete          = 1 << 6
	opAlter           = 1 << 7
	opDescribe        = 1 << 8
	opClusterAction   = 1 << 9
	opDescribeConfigs = 1 << 10
	opAlterConfigs    = 1 << 11
	opIdempotentWrite = 1 << 12

	topicOperations   = opRead | opWrite | opCreate | opDelete | opAlter | opDescribe | opDescribeConfigs | opAlterConfigs
	clusterOperations = opCreate | opAlter | opDescribe | opClusterAction | opDescribeConfigs | opAlterConfigs | opIdempotentWrite

	groupOperations = opRead | opDelete | opDescribe | opDescribeConfigs | opAlterConfigs

	// notAsked stands where the client did not ask for the operations.
	notAsked = -1 << 31
)

// operations is all where the client asked for them.
//
// Clients before KIP-430 never ask; what stands there then is the smallest int32, which is Kafka's word for
// "not told", and must not be 0, which would mean that nothing is allowed.
func operations(asked bool, all int32) int32 {
	if asked {
		return all
	}
	return notAsked
}
