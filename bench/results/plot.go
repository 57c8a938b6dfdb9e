package results

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Measures of the picture, in pixels.
const (
	plotWidth  = 960
	labelWidth = 330
	barHeight  = 13
	groupSpace = 14
	titleSpace = 64
	valueSpace = 130
)

// colours of the sides.
var colours = map[string]string{Kafka: "#9aa5b1", Barnabas: "#2563a8"}

// Plot draws a picture in SVG: for each measure a bar a side as long as the median is to the largest of the measure, with
// a line from the smallest to the largest sample, and the ratio to Kafka. Measures in which more is better say so.
func (s *Set) Plot(out io.Writer, title string) error {
	var body strings.Builder
	y, last := titleSpace, ""
	for _, r := range s.Results {
		largest := 0.0
		for _, side := range r.Sides {
			_, high := r.Bounds(side)
			largest = max(largest, high)
		}
		if largest <= 0 {
			continue
		}
		if r.Scenario != last {
			y += 6
			fmt.Fprintf(&body, `<text x="8" y="%d" font-weight="bold">%s</text>`+"\n", y+barHeight-2, escape(r.Scenario))
			last = r.Scenario
		}
		better := "less is better"
		if r.More {
			better = "more is better"
		}
		fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s<tspan fill="#888"> (%s)</tspan></text>`+"\n",
			labelWidth-8, y+barHeight-2, escape(r.measure()), better)
		for _, side := range r.Sides {
			y = r.bar(&body, side, largest, y)
		}
		y += groupSpace
	}
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
<text x="8" y="22" font-size="16">%s</text>
<text x="8" y="42" fill="#555">%s</text>
%s</svg>
`, plotWidth, y+8, escape(title), escape(s.subtitle()), body.String())
	return err
}

// bar draws one side at y and returns where the next one goes.
func (r *Result) bar(out *strings.Builder, side string, largest float64, y int) int {
	scale := func(x float64) float64 {
		return math.Round(x/largest*(plotWidth-labelWidth-valueSpace)*10) / 10
	}
	colour := colours[side]
	if colour == "" {
		colour = "#d8b25a"
	}
	low, high := r.Bounds(side)
	median := r.Median(side)
	text := fmt.Sprintf("%s %s", side, number(median))
	if ratio := r.ratio(); side == Barnabas && ratio != "" {
		text += fmt.Sprintf(" (× %s)", ratio)
	}
	middle := float64(y) + float64(barHeight)/2
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%g" height="%d" fill="%s"/>`+"\n", labelWidth, y, scale(median), barHeight-2, colour)
	fmt.Fprintf(out, `<line x1="%g" x2="%g" y1="%g" y2="%g" stroke="#222"/>`+"\n", labelWidth+scale(low), labelWidth+scale(high), middle-1, middle-1)
	fmt.Fprintf(out, `<text x="%g" y="%d">%s</text>`+"\n", labelWidth+scale(high)+5, y+barHeight-3, escape(text))
	return y + barHeight
}

func (s *Set) subtitle() string {
	if len(s.Runs) == 0 {
		return ""
	}
	return s.Runs[0].Machine + ". Bars are medians, lines go from the smallest to the largest round."
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
