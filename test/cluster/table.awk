# table.awk - one line for each scenario of what test/cluster prints
BEGIN { printf "%-20s %6s %12s %12s %10s %10s  %s\n", "scenario", "rounds", "acknowledged", "read", "served, p50", "at most", "faults" }
/^ok: / { name = $2; sub(",", "", name) }
/ rounds: / { rounds = $1; faults = $0; sub(/.* rounds: /, "", faults) }
/ records acknowledged, .* read, / { acked = $1; for (i = 1; i < NF; i++) if ($(i + 1) ~ /^read/) read = $i }
/ changes of topics acknowledged/ { middle = most = "" }
/ served again in every partition after / { middle = $7; most = $11 }
/^    / { last[name] = sprintf("%-20s %6d %12d %12d %10s %10s  %s", name, rounds, acked, read, middle, most, faults); if (!(name in seen)) { seen[name] = 1; order[++n] = name } }
END { for (i = 1; i <= n; i++) print last[order[i]] }
