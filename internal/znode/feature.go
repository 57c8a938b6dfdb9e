package znode

// FeaturePath holds the finalised features as Kafka's controller knows them in ZooKeeper mode: none. A 3.9
// broker ends its process where an entry is in it that it does not support, so Barnabas writes the znode
// as Kafka does and never adds to it:
//
//	{"features":{},"version":2,"status":1}
const FeaturePath = "/feature"

// EncodeFeature writes the znode.
func EncodeFeature() []byte { return []byte(`{"features":{},"version":2,"status":1}`) }
