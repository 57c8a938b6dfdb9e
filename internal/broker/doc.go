// Package broker puts the parts together: options in, running broker out. It holds no logic of its own
// beyond the order in which parts start and stop, and which change reaches which part first.
//
// Start: directories are locked and identified → the store opens (its session ends the sessions of this
// broker's earlier life) → logs are opened → listeners are bound, so that ports are known → the broker
// registers → the controller runs for election and pushes to this broker → clients are let in.
//
// Stop: in a cluster, others take over what this broker leads → the coordinators resign, since members of
// groups may wait for minutes → no new connections and requests, those in flight are answered, long polls with
// what they have → the controller resigns and the session closes, so that the registration goes at once → logs
// are synced and closed.
package broker
