package main

import (
	"context"
	"time"
)

func second(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// scenarios are all of them.
var scenarios = []scenario{
	{name: "mix", about: "leader, controller, follower killed, one stopped, all killed, leader paused, in turn", round: mix},
	{name: "leader", about: "kill -9 of a broker that leads", round: killed(leader)},
	{name: "follower", about: "kill -9 of another broker than the controller", round: killed(follower)},
	{name: "controller", about: "kill -9 of the controller", round: killed(controller)},
	{name: "controller-back", about: "kill -9 of the controller, which leads too and is back within its session", round: back},
	{name: "all", about: "kill -9 of all brokers at once", round: everybody},
	{name: "stop", about: "SIGTERM, one broker after the other", round: stopped},
	{name: "pause-leader", about: "SIGSTOP of a broker that leads for longer than the session, then SIGCONT", set: longSession, round: paused(leader)},
	{name: "pause-controller", about: "the same for the controller", set: longSession, round: paused(controller)},
	{name: "two-lost-min-1", about: "two brokers lost one after the other, min.insync.replicas=1: the last one serves", set: lowMinimum, round: twoLost},
	{name: "two-lost-min-2", about: "the same with 2: nothing is acknowledged until one is back", round: twoLost},
	{name: "last-killed", about: "the last one is killed too, and the others come back first: nobody leads until it is back", set: lowMinimum, round: lastStands(true)},
	{name: "last-stopped", about: "the same, and the last one stops in order", set: lowMinimum, round: lastStands(false)},
	{name: "minimum", about: "min.insync.replicas falls and rises while the in-sync set shrinks", round: minimumChanges},
	{name: "cold-start", about: "all killed, one loses its tails as in a power cut; started in each order", set: steadySets, round: coldStart},
	{name: "mid-election", about: "controller killed while it elects leaders of many partitions", prepare: prepareWide, round: midElection},
	{name: "mid-creation", about: "controller killed while it creates many partitions", round: midCreation},
	{name: "mid-reassignment", about: "controller killed while replicas move", prepare: prepareWandering, round: midReassignment},
	{name: "mid-deletion", about: "controller killed while it deletes a topic and one broker stands still", round: midDeletion},
	{name: "mid-orders", about: "controller killed when it has created or elected, before all brokers have been told", isolated: true,
		set: relayed, prepare: prepareWide, round: midOrders},
	{name: "between-stops", about: "controller killed between the two StopReplicas of a deletion or a move", isolated: true, set: relayed, round: betweenStops},
	{name: "zookeeper-leader", about: "kill -9 of the leader of three ZooKeepers: no election, no change of in-sync sets", set: ensemble, round: serverGone},
	{name: "zookeeper-minority", about: "two of three ZooKeepers gone for longer than the sessions, once for two minutes: the same", set: ensemble, round: storeGone(2, "ensemble without majority")},
	{name: "zookeeper-gone", about: "the only ZooKeeper gone for as long: the same", set: patient, round: storeGone(1, "ZooKeeper gone")},
	{name: "sessions-expire", about: "ZooKeeper stands still, and ends all sessions in one tick", set: longSession, round: allExpire},
	{name: "zookeeper-wiped", about: "the tree is lost, and restored: brokers do not write into the empty one", set: wipeable, round: wiped},
	{name: "zookeeper-restored", about: "the tree is set back to an old backup: a broker refuses epochs below its logs' and says so", set: restorable, round: restored},
	{name: "link-broker", about: "link between two brokers cut, both ways and one way", isolated: true, round: between},
	{name: "link-controller", about: "link between the controller and another broker cut", isolated: true,
		round: cutOff("controller-broker", false, []victim{controller}, oneOther)},
	{name: "link-brokers", about: "links of a broker to both others cut", isolated: true, round: cutOff("broker-brokers", false, heads, allOthers)},
	{name: "link-zookeeper", about: "link between a broker and ZooKeeper cut", isolated: true, round: cutOff("broker-ZooKeeper", true, heads, theStore)},
	{name: "link-client", about: "link between clients and a broker cut", isolated: true, round: cutOff("client-broker", false, heads, theClients)},
	{name: "link-all", about: "links of a broker to all but the clients cut", isolated: true, round: cutOff("all", true, heads, everything)},
	{name: "moved-meanwhile", about: "replicas move away from a broker that is cut off from ZooKeeper, and finds that out by itself", isolated: true,
		prepare: prepareWandering, round: movedMeanwhile},
	{name: "disk-full", about: "one broker's disk is full for some seconds", isolated: true, set: volumes, round: full},
	{name: "directory-failed", about: "one of two log directories fails of the last broker in sync: nobody leads what is in it until it is back",
		set: twoDirectories, round: directoryFails},
	{name: "disk-empty", about: "a broker comes back with an empty disk and its old id", round: emptied},
	{name: "same-id", about: "a second broker with the id of one that serves is refused", round: twoWithOneID},
	{name: "other-cluster", about: "a directory of another cluster is refused, and repaired by the command named", round: otherCluster},
}

func lowMinimum(s *settings) { s.minISR = 1 }

// steadySets keeps every set whole until brokers are killed: one power cut may then cost nothing.
func steadySets(s *settings) { s.lag, s.movedMinISR = 20*time.Second, 2 }

func prepareWide(ctx context.Context, t *trial) error { return t.create(ctx, wide, widePartitions, 3) }

func prepareWandering(ctx context.Context, t *trial) error {
	return t.create(ctx, wandering, wanderingPartitions, 2)
}

// patient is for scenarios in which nothing may change: a busy machine, on which ZooKeeper takes long to let everybody in
// after its start, must neither end a session nor shrink a set.
func patient(s *settings) { s.session, s.lag = 10*time.Second, 20*time.Second }

func ensemble(s *settings) { patient(s); s.servers = 3 }

func wipeable(s *settings) { patient(s); s.treeGoesBack = true }

// restorable keeps topics as the backup has them.
func restorable(s *settings) { wipeable(s); s.unchanged = true }

func relayed(s *settings) { s.relayed = true }

func twoDirectories(s *settings) { s.minISR, s.secondDirectory = 1, true }

func volumes(s *settings) { s.volume = 512 }

// longSession is for scenarios in which a session must end by the fault, and not because the machine is busy.
func longSession(s *settings) { s.session = 6 * time.Second }
