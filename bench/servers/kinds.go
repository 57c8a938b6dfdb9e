package servers

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// heap and the flags of the collector are those of Kafka's own start script.
const heap = "1G"

// Barnabas is one broker of ours with its own store, with its defaults but for [SingleNode]; properties are as key=value.
func (p *Place) Barnabas(name string, properties ...string) (*Server, error) {
	return p.barnabas(name, slices.Concat(SingleNode(), properties)...)
}

func (p *Place) barnabas(name string, properties ...string) (*Server, error) {
	s, err := p.server(name)
	if err != nil {
		return nil, err
	}
	version, err := exec.Command(p.Program, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("version of %s: %w", p.Program, err)
	}
	s.Version, _, _ = strings.Cut(strings.TrimSpace(string(version)), "\n")
	s.answers = answersKafka
	s.arguments = []string{p.Program, "start", "--data-dir", s.Data()}
	for _, property := range slices.Concat([]string{"listeners=PLAINTEXT://" + s.Address, "http.listener="}, properties) {
		s.arguments = append(s.arguments, "--override", property)
	}
	return s, nil
}

// Kafka is one Apache Kafka 4.4, broker and controller in one process, with Kafka's defaults but for [SingleNode].
// Properties are as key=value.
func (p *Place) Kafka(name string, properties ...string) (*Server, error) {
	s, err := p.server(name)
	if err != nil {
		return nil, err
	}
	controller, err := p.Port()
	if err != nil {
		return nil, err
	}
	own := []string{
		"process.roles=broker,controller", "node.id=1", fmt.Sprintf("controller.quorum.voters=1@127.0.0.1:%d", controller),
		fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", s.Address, controller),
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
	}
	if err := p.jvmBroker(s, kafka44, slices.Concat(own, SingleNode(), properties)); err != nil {
		return nil, err
	}
	s.format = []string{
		"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dlog4j2.configurationFile=" + p.config("log4j2-quiet.xml"), "-cp", p.jars[kafka44], "kafka.tools.StorageTool",
		"format", "-t", clusterID(), "-c", s.properties(),
	}
	return s, nil
}

// Other is any other server, which has no version: arguments are its command line, given the address and the folder of its
// data.
func (p *Place) Other(name string, arguments func(address, data string) []string) (*Server, error) {
	s, err := p.server(name)
	if err != nil {
		return nil, err
	}
	s.answers, s.arguments = answersAnything, arguments(s.Address, s.Data())
	return s, nil
}

// Tool is the command line that runs a class of Apache Kafka 4.4's tools, as its scripts do.
func (p *Place) Tool(class string, arguments ...string) ([]string, error) {
	path, err := p.classpath(kafka44)
	return append([]string{
		"java", "-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true", "-Dlog4j2.configurationFile=" + p.config("log4j2-quiet.xml"),
		"-cp", path, class,
	}, arguments...), err
}

// ZooKeeper is one ZooKeeper 3.8. Its tick is short, so that it grants sessions from 200 ms on.
func (p *Place) ZooKeeper(name string) (*Server, error) {
	s, err := p.server(name)
	if err != nil {
		return nil, err
	}
	path, err := p.classpath(zooKeeper)
	if err != nil {
		return nil, err
	}
	s.Version, s.answers = "Apache ZooKeeper "+jarVersion(path, "zookeeper"), answersZooKeeper
	s.arguments = []string{
		"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Dlogfile=" + s.log(),
		"-Dlogback.configurationFile=" + p.config("logback-zookeeper.xml"), "-cp", path,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.properties(),
	}
	return s, s.write([]string{
		"dataDir=" + s.Data(), fmt.Sprintf("clientPort=%d", s.port), "clientPortAddress=127.0.0.1", "tickTime=100",
		"admin.enableServer=false", "4lw.commands.whitelist=srvr", "maxClientCnxns=0", "minSessionTimeout=200", "maxSessionTimeout=60000",
	})
}

// kafkaOnZooKeeper is one Apache Kafka 3.9 broker of a cluster.
func (p *Place) kafkaOnZooKeeper(name string, properties ...string) (*Server, error) {
	s, err := p.server(name)
	if err != nil {
		return nil, err
	}
	own := []string{"listeners=PLAINTEXT://" + s.Address, "zookeeper.connection.timeout.ms=18000"}
	return s, p.jvmBroker(s, kafka39, slices.Concat(own, properties))
}

// SingleNode are the properties of a broker that is alone, of ours and of Kafka's alike, that are not the defaults:
// internal topics have one replica, a group's first rebalance waits for nobody, and files go as [DeleteAtOnce] says.
func SingleNode() []string {
	return append([]string{
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0",
	}, DeleteAtOnce()...)
}

// DeleteAtOnce are the properties with which the files of deleted topics go at once, not a minute later, when somebody else
// is measured. Kafka looks for such files as often as the delay tells, from the first delay of its background tasks on.
func DeleteAtOnce() []string {
	return []string{"log.segment.delete.delay.ms=500", "log.initial.task.delay.ms=500"}
}

// jvmBroker configures a broker of Kafka's.
func (p *Place) jvmBroker(s *Server, set string, properties []string) error {
	path, err := p.classpath(set)
	if err != nil {
		return err
	}
	s.Version, s.answers = "Apache Kafka "+jarVersion(path, "kafka-clients"), answersKafka
	logging := []string{"-Dlog4j2.configurationFile=" + p.config("log4j2-server.xml")}
	if set == kafka39 {
		logging = []string{"-Dlog4j.configuration=file:" + p.config("log4j-server.properties")}
	}
	s.arguments = slices.Concat([]string{
		"java", "-Xmx" + heap, "-Xms" + heap, "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
		"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-XX:-UsePerfData",
		"-Djava.awt.headless=true", "-Dlogfile=" + s.log(),
	}, logging, []string{"-cp", path, "kafka.Kafka", s.properties()})
	return s.write(append([]string{"log.dirs=" + s.Data()}, properties...))
}

// Data is the log directory.
func (s *Server) Data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) properties() string { return filepath.Join(s.Dir, "properties") }

func (s *Server) log() string { return filepath.Join(s.Dir, "log") }

// write writes the file of properties. Java takes the last of several of one name.
func (s *Server) write(properties []string) error {
	return os.WriteFile(s.properties(), []byte(strings.Join(properties, "\n")+"\n"), 0o644)
}

// jarVersion finds the version in the name of a jar, as kafka-clients-4.4.0.jar.
func jarVersion(classpath, name string) string {
	jars, _ := filepath.Glob(strings.TrimSuffix(classpath, "*") + name + "-[0-9]*.jar")
	if len(jars) == 0 {
		return "of unknown version"
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), name+"-"), ".jar")
}

// Java is the version of the java command, "none" where there is none.
func Java() string {
	command := exec.Command("java", "-version")
	command.Env = environment() // or the first line may be of JAVA_TOOL_OPTIONS
	said, err := command.CombinedOutput()
	if err != nil {
		return "none"
	}
	version, _, _ := strings.Cut(string(said), "\n")
	return version
}

// clusterID is a random one, in the form that Kafka makes them: one that begins with a dash would look like a flag.
func clusterID() string {
	for {
		var raw [16]byte
		_, _ = rand.Read(raw[:]) // never fails
		if id := base64.RawURLEncoding.EncodeToString(raw[:]); id[0] != '-' {
			return id
		}
	}
}
