package kraft

import (
	"fmt"
	"math"
	"slices"
	"strings"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// The types of records.
const (
	registerBroker            = 0
	unregisterBroker          = 1
	topicRecord               = 2
	partitionRecord           = 3
	configRecord              = 4
	partitionChange           = 5
	removeTopic               = 9
	delegationToken           = 10
	userScramCredential       = 11
	featureLevel              = 12
	clientQuota               = 14
	producerIDs               = 15
	brokerRegistrationChange  = 17
	accessControlEntry        = 18
	removeAccessControlEntry  = 19
	removeUserScramCredential = 22
	beginTransaction          = 23
	endTransaction            = 24
	abortTransaction          = 25
	removeDelegationToken     = 26
	lastKnownType             = 29 // UnregisterController
)

// frameVersion is the only one that there is.
const frameVersion = 1

// header reads the frame of a record.
//
// The frame version stands in front so that the frame itself could change. It never has.
func header(r *wire.Reader) (kind, version int16, err error) {
	frame, k, v := r.Uvarint(), r.Uvarint(), r.Uvarint()
	switch {
	case r.Err() != nil:
		return 0, 0, r.Err()
	case frame != frameVersion:
		return 0, 0, fmt.Errorf("frame version %d is not %d", frame, frameVersion)
	case k > math.MaxInt16 || v > math.MaxInt16:
		return 0, 0, wire.ErrMalformed
	}
	return int16(k), int16(v), nil
}

// apply takes one record in that is not about transactions.
//
//	2   Topic              name, id
//	3   Partition          number, topic id, replicas, isr, removing, adding, leader, leader epoch, partition epoch,
//	                       (1+) directories, tags: recovery, eligible leaders
//	4   Config             resource type, resource, name, value or null, which deletes
//	5   PartitionChange    number, topic id; tags: only what has changed
//	15  ProducerIds        broker, its epoch, the first id of the next block
//
// Order matters and is the log's: a record of a topic comes before those of its partitions.
func (i *Image) apply(value []byte) error {
	r := wire.NewReader(value)
	kind, version, err := header(&r)
	if err != nil {
		return err
	}
	switch kind {
	case registerBroker:
		i.registerBroker(&r, version)
	case unregisterBroker:
		delete(i.Brokers, P.BrokerID(r.Int32()))
	case brokerRegistrationChange:
		i.changeBroker(&r)
	case topicRecord:
		t := &Topic{Name: r.CompactString(), ID: r.UUID(), Partitions: map[int32]*Partition{}}
		i.Topics[t.ID] = t
	case removeTopic:
		i.removeTopic(r.UUID())
	case partitionRecord:
		err = i.partition(&r, version)
	case partitionChange:
		err = i.changePartition(&r)
	case configRecord:
		i.config(&r)
	case producerIDs:
		_, _ = r.Int32(), r.Int64() // broker and its epoch
		i.NextProducerID = max(i.NextProducerID, P.ProducerID(r.Int64()))
	case featureLevel:
		i.feature(&r)
	default:
		i.applySecurity(kind, &r)
	}
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return fmt.Errorf("record of type %d version %d: %w", kind, version, err)
	}
	return nil
}

// applySecurity takes in what is about users, and counts what it does not know.
func (i *Image) applySecurity(kind int16, r *wire.Reader) {
	switch kind {
	case userScramCredential:
		user, mechanism := r.CompactString(), scramMechanism(r.Int8())
		if !slices.Contains(i.Scram[user], mechanism) {
			i.Scram[user] = append(i.Scram[user], mechanism)
		}
	case removeUserScramCredential:
		user, mechanism := r.CompactString(), scramMechanism(r.Int8())
		i.Scram[user] = slices.DeleteFunc(i.Scram[user], func(m string) bool { return m == mechanism })
		if len(i.Scram[user]) == 0 {
			delete(i.Scram, user)
		}
	case delegationToken:
		i.token(r)
	case removeDelegationToken:
		delete(i.Tokens, r.CompactString())
	case accessControlEntry:
		id := r.UUID()
		i.ACLs[id] = ACL{
			ResourceType: r.Int8(), Resource: r.CompactString(), PatternType: r.Int8(), Principal: r.CompactString(),
			Host: r.CompactString(), Operation: r.Int8(), Permission: r.Int8(),
		}
	case removeAccessControlEntry:
		delete(i.ACLs, r.UUID())
	case clientQuota:
		i.quota(r)
	default:
		if kind > lastKnownType {
			i.Unknown[kind]++
		}
	}
}

func (i *Image) registerBroker(r *wire.Reader, version int16) {
	id := P.BrokerID(r.Int32())
	if version >= 2 {
		r.Bool() // it is migrating from ZooKeeper
	}
	r.UUID() // incarnation
	b := &Broker{Epoch: P.BrokerEpoch(r.Int64())}
	for n := r.CompactArrayLen(6); n > 0; n-- { // endpoints
		_, _, _, _ = r.CompactString(), r.CompactString(), r.Int16(), r.Int16()
		r.SkipTags()
	}
	for n := r.CompactArrayLen(6); n > 0; n-- { // features
		_, _, _ = r.CompactString(), r.Int16(), r.Int16()
		r.SkipTags()
	}
	r.NullableCompactBytes() // rack
	r.Bool()                 // fenced
	if version >= 1 {
		r.Bool() // in controlled shutdown
	}
	for n := r.Uvarint(); n > 0 && r.Err() == nil; n-- {
		if tag, value := r.NextTag(); tag == 0 {
			b.Directories = directories(value)
		}
	}
	i.Brokers[id] = b
}

func (i *Image) changeBroker(r *wire.Reader) {
	b := i.Brokers[P.BrokerID(r.Int32())]
	r.Int64() // its epoch
	for n := r.Uvarint(); n > 0 && r.Err() == nil; n-- {
		if tag, value := r.NextTag(); tag == 2 && b != nil {
			b.Directories = directories(value)
		}
	}
}

func directories(value []byte) []P.TopicID {
	r := wire.NewReader(value)
	var ids []P.TopicID
	for n := r.CompactArrayLen(16); n > 0; n-- {
		ids = append(ids, r.UUID())
	}
	return ids
}

func (i *Image) removeTopic(id P.TopicID) {
	if t := i.Topics[id]; t != nil {
		delete(i.Topics, id)
		delete(i.Configs, Resource{TopicResource, t.Name})
	}
}

func (i *Image) partition(r *wire.Reader, version int16) error {
	number, id := r.Int32(), P.TopicID(r.UUID())
	p := &Partition{Replicas: brokers(r), ISR: brokers(r)}
	brokers(r) // being removed
	brokers(r) // being added
	p.Leader, p.LeaderEpoch = P.BrokerID(r.Int32()), P.LeaderEpoch(r.Int32())
	r.Int32() // partition epoch
	if version >= 1 {
		for n := r.CompactArrayLen(16); n > 0; n-- {
			r.UUID() // directory of a replica
		}
	}
	for n := r.Uvarint(); n > 0 && r.Err() == nil; n-- {
		if tag, value := r.NextTag(); tag == 1 {
			p.Eligible = brokersIn(value)
		}
	}
	t := i.Topics[id]
	if t == nil || number < 0 {
		return fmt.Errorf("partition %d of topic %s, which does not exist", number, id)
	}
	t.Partitions[number] = p
	return nil
}

// changePartition changes what has a tag. A named leader, also the same one, is in a new leader epoch.
func (i *Image) changePartition(r *wire.Reader) error {
	number, id := r.Int32(), P.TopicID(r.UUID())
	var p *Partition
	if t := i.Topics[id]; t != nil {
		p = t.Partitions[number]
	}
	if p == nil {
		return fmt.Errorf("change of partition %d of topic %s, which does not exist", number, id)
	}
	for n := r.Uvarint(); n > 0 && r.Err() == nil; n-- {
		switch tag, value := r.NextTag(); tag {
		case 0:
			p.ISR = brokersIn(value)
		case 1:
			leader := wire.NewReader(value)
			p.Leader = P.BrokerID(leader.Int32())
			p.LeaderEpoch++
		case 2:
			p.Replicas = brokersIn(value)
		case 6:
			p.Eligible = brokersIn(value)
		}
	}
	return nil
}

func brokers(r *wire.Reader) []P.BrokerID {
	var ids []P.BrokerID
	for n := r.CompactArrayLen(4); n > 0; n-- {
		ids = append(ids, P.BrokerID(r.Int32()))
	}
	return ids
}

func brokersIn(value []byte) []P.BrokerID {
	r := wire.NewReader(value)
	return brokers(&r)
}

func (i *Image) config(r *wire.Reader) {
	resource := Resource{ResourceType(r.Int8()), r.CompactString()}
	name, value := r.CompactString(), r.NullableCompactBytes()
	if value == nil {
		delete(i.Configs[resource], name)
		return
	}
	if i.Configs[resource] == nil {
		i.Configs[resource] = map[string]string{}
	}
	i.Configs[resource][name] = string(value)
}

// feature sets a level; level 0 takes the feature away.
func (i *Image) feature(r *wire.Reader) {
	name, level := r.CompactString(), r.Int16()
	i.Features[name] = level
	if level == 0 {
		delete(i.Features, name)
	}
}

func (i *Image) token(r *wire.Reader) {
	owner := r.CompactString()
	r.CompactString() // requester
	for n := r.CompactArrayLen(1); n > 0; n-- {
		r.CompactString() // renewer
	}
	_, _, _ = r.Int64(), r.Int64(), r.Int64() // issued, at most, expires
	i.Tokens[r.CompactString()] = owner
}

func (i *Image) quota(r *wire.Reader) {
	var parts []string
	for n := r.CompactArrayLen(3); n > 0; n-- {
		kind, name := r.CompactString(), r.NullableCompactBytes()
		r.SkipTags()
		text := string(name)
		if name == nil {
			text = "<default>"
		}
		parts = append(parts, kind+"="+text)
	}
	slices.Sort(parts)
	entity := strings.Join(parts, ",")
	key, value, remove := r.CompactString(), math.Float64frombits(uint64(r.Int64())), r.Bool()
	switch {
	case !remove && i.Quotas[entity] == nil:
		i.Quotas[entity] = map[string]float64{key: value}
	case !remove:
		i.Quotas[entity][key] = value
	default:
		delete(i.Quotas[entity], key)
		if len(i.Quotas[entity]) == 0 {
			delete(i.Quotas, entity)
		}
	}
}

func scramMechanism(number int8) string {
	switch number {
	case 1:
		return "SCRAM-SHA-256"
	case 2:
		return "SCRAM-SHA-512"
	}
	return fmt.Sprintf("mechanism %d", number)
}
