package results

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// Measures of the picture, in pixels.
const (
	plotWidth  = 1080
	margin     = 8
	labelWidth = 330
	valueSpace = 220 // for the text behind the longest bar
	rowHeight  = 13
	groupSpace = 12
)

// columns are about how many characters of the picture's font fit into a line.
const columns = 165

const (
	black = "#222222"
	grey  = "#666666"
	green = "#2e7d32"
	red   = "#b3261e"
)

// referenceColours are those of references, in the order of their names.
var referenceColours = []string{"#e5c468", "#b5651d", "#79a97c", "#a58bc4"}

// plot is a picture that grows downwards.
type plot struct {
	set     *Set
	body    strings.Builder
	y       int
	colours map[string]string
}

// Plot draws a picture in SVG. Its head says how the runs were made. For each measure it has a bar a side as long as the
// median is to the largest of the measure, with a line from the smallest to the largest sample, the ratio to Kafka,
// and the goals: what became of them, and where they are.
func (s *Set) Plot(out io.Writer, title string) error {
	p := &plot{set: s, y: 10, colours: s.colours()}
	p.y += 14
	fmt.Fprintf(&p.body, `<text x="%d" y="%d" font-size="16">%s</text>`+"\n", margin, p.y, escape(title))
	p.head()
	p.legend()
	last := ""
	for _, r := range s.Results {
		if r.Scenario != last {
			p.scenario(r)
			last = r.Scenario
		}
		p.measure(r)
	}
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, plotWidth, p.y+margin, p.body.String())
	return err
}

// colours gives every side one of its own.
func (s *Set) colours() map[string]string {
	all := map[string]string{}
	for _, r := range s.Results {
		for _, side := range r.Sides {
			all[side] = ""
		}
	}
	references := 0
	for _, side := range slices.Sorted(maps.Keys(all)) {
		if side != Kafka && side != Barnabas {
			all[side] = referenceColours[references%len(referenceColours)]
			references++
		}
	}
	all[Kafka], all[Barnabas] = "#9aa5b1", "#2563a8"
	return all
}

// text writes at y; anchor is start or end.
func (p *plot) text(x float64, y int, anchor, colour, text string) {
	fmt.Fprintf(&p.body, `<text x="%g" y="%d" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, colour, escape(text))
}

// paragraph writes lines from the left.
func (p *plot) paragraph(colour, text string) {
	for _, line := range wrap(text, columns) {
		p.y += rowHeight + 1
		p.text(margin, p.y, "start", colour, line)
	}
}

// head is what the table has above it.
func (p *plot) head() {
	p.y += 4
	for line := range strings.Lines(p.set.head()) {
		if line = strings.TrimSpace(line); line != "" {
			p.paragraph(grey, line)
		}
	}
}

// legend tells the sides by their colours, and what the marks mean.
func (p *plot) legend() {
	p.y += 26
	x := margin
	for _, side := range slices.SortedFunc(maps.Keys(p.colours), compareSides) {
		fmt.Fprintf(&p.body, `<rect x="%d" y="%d" width="22" height="%d" fill="%s"/>`+"\n", x, p.y-9, rowHeight-2, p.colours[side])
		p.text(float64(x+27), p.y, "start", black, side)
		x += 27 + 8*len(side) + 20
	}
	p.paragraph(grey, "Bars are medians, black lines go from the smallest to the largest round, red marks are goals of Barnabas. × is the ratio to Kafka. "+
		"~ may be chance. Less is better where nothing else is said.")
}

// scenario begins one.
func (p *plot) scenario(r *Result) {
	p.y += 22
	fmt.Fprintf(&p.body, `<path d="M0 %d H%d" stroke="#dddddd"/>`+"\n", p.y-14, plotWidth)
	fmt.Fprintf(&p.body, `<text x="%d" y="%d" font-weight="bold" font-size="13">%s</text>`+"\n", margin, p.y+2, escape(r.Scenario))
	p.paragraph(grey, p.set.about(r))
	p.y += 8
}

// measure draws the bars of one: on the left what it is and its goals, on the right a bar a side.
func (p *plot) measure(r *Result) {
	largest, top := 0.0, p.y
	for _, side := range r.Sides {
		_, high := r.Bounds(side)
		largest = max(largest, high)
	}
	name := r.measure()
	if r.More {
		name += " (more is better)"
	}
	p.text(labelWidth-8, top+rowHeight-3, "end", black, name)
	left := top + rowHeight
	for _, g := range r.Goals {
		if verdict := g.verdict(r); verdict != "" {
			p.text(labelWidth-8, left+rowHeight-3, "end", verdictColour(verdict), verdict)
			left += rowHeight
		}
	}
	for _, side := range r.Sides {
		p.bar(r, side, largest)
	}
	p.y = max(p.y, left) + groupSpace
}

func verdictColour(verdict string) string {
	switch {
	case strings.HasSuffix(verdict, ": met"):
		return green
	case strings.HasSuffix(verdict, ": missed"):
		return red
	}
	return grey
}

// bar draws one side.
func (p *plot) bar(r *Result, side string, largest float64) {
	scale := func(x float64) float64 { // to a tenth of a pixel
		if largest == 0 {
			return 0
		}
		return math.Round(x/largest*(plotWidth-labelWidth-valueSpace)*10) / 10
	}
	low, high := r.Bounds(side)
	median := r.Median(side)
	text := fmt.Sprintf("%s %s", side, number(median))
	if ratio := r.ratio(); side == Barnabas && ratio != "" {
		text += fmt.Sprintf(" (× %s)", ratio)
	}
	middle := float64(p.y) + float64(rowHeight-2)/2
	fmt.Fprintf(&p.body, `<rect x="%d" y="%d" width="%g" height="%d" fill="%s"/>`+"\n", labelWidth, p.y, scale(median), rowHeight-2, p.colours[side])
	fmt.Fprintf(&p.body, `<line x1="%g" x2="%g" y1="%g" y2="%g" stroke="%s"/>`+"\n", labelWidth+scale(low), labelWidth+scale(high), middle, middle, black)
	end := scale(high)
	if side == Barnabas {
		for _, g := range r.Goals {
			if at, ok := g.target(r); ok && at >= 0 && at <= largest*1.1 {
				fmt.Fprintf(&p.body, `<path d="M%g %d v%d" stroke="%s" stroke-width="2"/>`+"\n", labelWidth+scale(at), p.y-1, rowHeight, red)
				if x := scale(at); x > end && x < end+170 { // it would stand in the text
					end = x
				}
			}
		}
	}
	p.text(labelWidth+end+6, p.y+rowHeight-3, "start", black, text)
	p.y += rowHeight
}

// target is the value that Barnabas should have at most, or at least, by a goal.
func (g Goal) target(r *Result) (float64, bool) {
	x, ok := g.ratio(r)
	if !ok || math.IsInf(x.median, 1) {
		return 0, false
	}
	bound := max(g.AtMost, g.AtLeast)
	if g.To == "" {
		return bound, true
	}
	above := r.Median(g.Above)
	return above + bound*(r.Median(g.To)-above), true
}

// wrap breaks a text into lines at spaces.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > columns:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
