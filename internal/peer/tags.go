package peer

// FullMetadataTag marks an UpdateMetadata of ours that holds all partitions there are: what is not in it
// does not exist any more. Without it a broker that did not hear of a deletion, since the controller died,
// would show the topic for ever, as Kafka's brokers do. They skip tags that they do not know.
const FullMetadataTag = 0x6261726e // "barn"
