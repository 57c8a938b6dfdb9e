# table.awk - one line for each scenario of what test/cluster prints, however many times it was run
/^ok: [^ ]+, in / { name = $2; sub(",", "", name); if (!(name in runs)) order[++n] = name; runs[name]++ }
/^    [0-9]+ rounds: / {
  rounds[name] += $1
  sub(/^ *[0-9]+ rounds: /, "")
  count = split($0, parts, ", ")
  for (i = 1; i <= count; i++) {
    number = what = parts[i]
    sub(/ .*/, "", number); sub(/^[0-9]+ /, "", what)
    if (!((name, what) in faults)) kinds[name] = kinds[name] SUBSEP what
    faults[name, what] += number
  }
}
/ records acknowledged, .* of unknown outcome; / { acked[name] += $1; refused[name] += $4; unknown[name] += $6; read[name] += $10 }
/^    served again / { if ($7 + 0 > middle[name]) middle[name] = $7 + 0; if ($12 + 0 > most[name]) most[name] = $12 + 0 }
END {
  format = "%-18s %6s %9s %8s %8s %9s %8s %8s  %s\n"
  printf format, "scenario", "rounds", "acked", "refused", "unknown", "read", "median", "longest", "faults"
  for (i = 1; i <= n; i++) {
    name = order[i]; text = ""
    count = split(substr(kinds[name], 2), parts, SUBSEP)
    for (k = 1; k <= count; k++) text = text (k > 1 ? ", " : "") faults[name, parts[k]] " " parts[k]
    printf format, name, rounds[name], acked[name], refused[name], unknown[name], read[name], \
      sprintf("%.2f s", middle[name]), sprintf("%.2f s", most[name]), text
  }
}
