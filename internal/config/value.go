package config

import (
	"math"
	"strconv"
	"strings"
)

// Value is a parsed property: what kind it holds depends on the type of its key.
//
//	BOOLEAN             flag
//	INT, SHORT, LONG    number
//	DOUBLE              real
//	LIST                list; nil and empty are the same
//	others              text
//	null                any type; the other fields are zero
//
// It is immutable, and small enough to be copied.
type Value struct {
	typ    Type
	null   bool
	flag   bool
	number int64
	real   float64
	text   string
	list   []string
}

// IsNull reports whether there is no value, which is more than an empty one.
func (v Value) IsNull() bool { return v.null }

// Bool is the value of a BOOLEAN.
func (v Value) Bool() bool { return v.flag }

// Int is the value of an INT, SHORT or LONG.
func (v Value) Int() int64 { return v.number }

// Double is the value of a DOUBLE.
func (v Value) Double() float64 { return v.real }

// List is the value of a LIST; the caller must not change it.
func (v Value) List() []string { return v.list }

// String is the text that DescribeConfigs shows for the parsed value: numbers as Java prints them, lists
// joined by commas without spaces. It is empty for null.
func (v Value) String() string {
	if v.null {
		return ""
	}
	switch v.typ {
	case Boolean:
		return strconv.FormatBool(v.flag)
	case Int, Short, Long:
		return strconv.FormatInt(v.number, 10)
	case Double:
		return javaDouble(v.real)
	case List:
		return strings.Join(v.list, ",")
	default:
		return v.text
	}
}

// pointer is String for a response field that may be null.
func (v Value) pointer() *string {
	if v.null {
		return nil
	}
	return new(v.String())
}

// javaTrim cuts what Java's String.trim cuts: everything up to the space character.
func javaTrim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// read parses text by type alone; Rule comes after it.
func (k Key) read(text string) (Value, error) {
	trimmed := javaTrim(text)
	v := Value{typ: k.Type}
	var err error
	switch k.Type {
	case Boolean:
		switch strings.ToLower(trimmed) {
		case "true":
			v.flag = true
		case "false":
		default:
			return v, invalid(k.Name, text, "Expected value to be either true or false")
		}
	case Int:
		v.number, err = strconv.ParseInt(trimmed, 10, 32)
	case Short:
		v.number, err = strconv.ParseInt(trimmed, 10, 16)
	case Long:
		v.number, err = strconv.ParseInt(trimmed, 10, 64)
	case Double:
		v.real, err = parseJavaDouble(trimmed)
	case List:
		v.list = splitList(trimmed)
	default:
		v.text = trimmed
	}
	if err != nil {
		return v, invalid(k.Name, text, "Not a number of type "+k.Type.String())
	}
	return v, nil
}

// splitList cuts at commas and the space around them, and keeps empty elements for the rule to refuse.
func splitList(trimmed string) []string {
	if trimmed == "" {
		return nil
	}
	parts := strings.Split(trimmed, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// parseJavaDouble takes what Double.parseDouble takes, such as ".5f"; NaN is refused, since no bound holds it.
func parseJavaDouble(s string) (float64, error) {
	if n := len(s); n > 1 && strings.ContainsRune("dDfF", rune(s[n-1])) && !strings.HasPrefix(strings.ToLower(s), "0x") {
		s = s[:n-1]
	}
	if strings.ContainsAny(s, "_nN") && s != "Infinity" && s != "-Infinity" && s != "+Infinity" {
		return 0, strconv.ErrSyntax
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && math.IsInf(f, 0) {
		return f, nil // out of range: Java gives infinity too
	}
	return f, err
}

// javaDouble prints as Double.toString does: plain between 10^-3 and 10^7, else in computerized scientific
// notation, always with a digit behind the point.
//
// DescribeConfigs gives text, and tools compare it: 0.5 and 1.0E10, not 0.5 and 1e+10.
func javaDouble(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return mantissa + "E" + sign + strings.TrimLeft(exponent[1:], "0")
}
