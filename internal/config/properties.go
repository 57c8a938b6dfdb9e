package config

import (
	"unicode/utf8"

	"github.com/magiconair/properties"
)

// parseProperties reads Java's property format: escapes, continued lines, three separators, the last of a
// repeated key. Values keep ${…} as it stands. Java reads the bytes as Latin-1; where they are valid UTF-8
// they are taken as that, since nobody means Latin-1 by them.
func parseProperties(data []byte) (map[string]string, error) {
	encoding := properties.UTF8
	if !utf8.Valid(data) {
		encoding = properties.ISO_8859_1
	}
	loader := properties.Loader{Encoding: encoding, DisableExpansion: true}
	p, err := loader.LoadBytes(data)
	if err != nil {
		return nil, err
	}
	return p.Map(), nil
}
