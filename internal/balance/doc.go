// Package balance says where the replicas of a cluster should lie. It plans and does nothing: who asks gives it
// brokers and partitions, and gets the moves that lead to something better, as few as possible.
//
//	Spread     even numbers of replicas and of preferred leaders on all brokers
//	Fill       the same for brokers that hold much less than their share, and nothing else
//	Evacuate   replicas away from some brokers
//	Demote     preferred leaders away from a broker
//	Resize     more or fewer replicas of a partition
//
// What they have in common:
//
//   - Spread and Fill leave a partition on no fewer racks than before. The others have to take what there is: see
//     [Cluster.LosingRacks]. Brokers that name none share one.
//   - A replica that has to move goes, among the racks that serve the partition best, to the broker that has fewest
//     replicas of its topic, then fewest of all, then fewest bytes.
//   - Replicas on brokers that are not there are left alone, unless it is they that are to be moved: a broker that
//     restarts comes back with all that it had.
//   - The same question has the same answer, and asking again when the moves have been made gives no moves.
//     So an interrupted plan is carried on by making it anew.
//
// A change of the order of replicas costs a new leader epoch and no bytes: the first one is who should lead.
package balance
