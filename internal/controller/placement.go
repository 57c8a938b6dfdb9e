package controller

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// site is a broker that replicas can be placed on, and what it would have to do.
type site struct {
	id   P.BrokerID
	rack string // "" is the common rack of brokers that name none
	turn int    // its place in the random order that breaks ties

	leads, holds       int // of the partitions being placed
	leadsAll, holdsAll int // in the cluster
	follows            map[P.BrokerID]int
}

// place chooses replicas for new partitions, the leader first. It spreads leaders evenly over the brokers,
// then replicas over racks as far as there are racks, then replicas evenly over brokers; among brokers that
// are equal within the topic the one that does less in the cluster comes first, and a random order breaks
// what ties remain. existing are the topic's partitions that are there already.
//
// It fails with INVALID_REPLICATION_FACTOR where there are fewer brokers than replicas.
func place(image *metadata.Image, l loads, existing []*metadata.Partition, partitions, factor int, random *rand.Rand) ([][]P.BrokerID, error) {
	brokers := l.open(image)
	if factor > len(brokers) {
		return nil, P.Errorf(P.InvalidReplicationFactor, "Unable to replicate the partition %d time(s): The target "+
			"replication factor of %d cannot be reached because only %d broker(s) are registered or some brokers "+
			"have all their log directories cordoned.", factor, factor, len(brokers))
	}
	sites := make([]*site, len(brokers))
	for i, turn := range random.Perm(len(brokers)) {
		b := brokers[i]
		sites[i] = &site{
			id: b.ID, turn: turn, leadsAll: l.leaders[b.ID], holdsAll: l.replicas[b.ID],
			follows: map[P.BrokerID]int{},
		}
		if b.Rack != nil {
			sites[i].rack = *b.Rack
		}
	}
	for _, p := range existing {
		countExisting(sites, p.Replicas)
	}
	assignment := make([][]P.BrokerID, partitions)
	for i := range assignment {
		assignment[i] = placeOne(sites, factor)
	}
	return assignment, nil
}

func countExisting(sites []*site, replicas []P.BrokerID) {
	for _, s := range sites {
		if i := slices.Index(replicas, s.id); i == 0 {
			s.leads++
			s.holds++
		} else if i > 0 {
			s.holds++
			s.follows[replicas[0]]++
		}
	}
}

// placeOne chooses the replicas of one partition.
func placeOne(sites []*site, factor int) []P.BrokerID {
	leader := slices.MinFunc(sites, func(a, b *site) int {
		return cmp.Or(
			cmp.Compare(a.leads, b.leads), cmp.Compare(a.leadsAll, b.leadsAll),
			cmp.Compare(a.holds, b.holds), cmp.Compare(a.holdsAll, b.holdsAll), cmp.Compare(a.turn, b.turn))
	})
	leader.leads++
	leader.leadsAll++
	chosen := []*site{leader}
	used := map[string]int{leader.rack: 1}
	for len(chosen) < factor {
		var best *site
		for _, s := range sites {
			if !slices.Contains(chosen, s) && (best == nil || closer(s, best, leader.id, used) < 0) {
				best = s
			}
		}
		best.follows[leader.id]++
		used[best.rack]++
		chosen = append(chosen, best)
	}
	ids := make([]P.BrokerID, len(chosen))
	for i, s := range chosen {
		s.holds++
		s.holdsAll++
		ids[i] = s.id
	}
	return ids
}

// closer orders two candidates for the next follower. That one broker does not follow the same leader all
// the time matters when that leader dies: its partitions then go to many.
func closer(a, b *site, leader P.BrokerID, racks map[string]int) int {
	return cmp.Or(
		cmp.Compare(racks[a.rack], racks[b.rack]), cmp.Compare(a.holds, b.holds),
		cmp.Compare(a.follows[leader], b.follows[leader]), cmp.Compare(a.holdsAll, b.holdsAll),
		cmp.Compare(a.turn, b.turn))
}
