package config

import "io"

// LoadOptions says where a broker's configuration comes from.
type LoadOptions struct {
	// File is the path of a server.properties; empty for none.
	File string
	// Reader is read instead of File where it is not nil.
	Reader io.Reader
	// Environ are the variables, as os.Environ gives them.
	Environ []string
	// Overrides are key=value, as the command line gives them; the last of a key wins.
	Overrides []string
}

// Warning is something that does not stop the start.
type Warning struct {
	// Key is the property that it is about.
	Key string
	// Message is the sentence.
	Message string
}

// Load reads the configuration.
func Load(o LoadOptions) (*Broker, []Warning, error) {
	b, err := newBroker(map[string]setting{}, nil)
	return b, nil, err
}
