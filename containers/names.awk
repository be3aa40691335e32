# Refuses names that are no settings, without Python: awk -v given="NAME NAME" -f containers/names.awk .env.example .env
# The first file has every setting as NAME=…; the second, which need not be there, is the user's; `given` are names of the command line.
function near(wrong,  name, best, least) { # the known name that takes the fewest changes; none if that is a third of it or more
  least = length(wrong) / 3
  for (name in known) if (changes(wrong, name) < least) { least = changes(wrong, name); best = name }
  return best == "" ? "" : "; did you mean " best "?"
}
function changes(a, b,  i, j, d, cost, least) { # Levenshtein's distance
  for (j = 0; j <= length(b); j++) d[0, j] = j
  for (i = 1; i <= length(a); i++) {
    d[i, 0] = i
    for (j = 1; j <= length(b); j++) {
      cost = substr(a, i, 1) != substr(b, j, 1)
      least = d[i - 1, j - 1] + cost
      if (d[i - 1, j] + 1 < least) least = d[i - 1, j] + 1
      if (d[i, j - 1] + 1 < least) least = d[i, j - 1] + 1
      d[i, j] = least
    }
  }
  return d[length(a), length(b)]
}
function check(name, where) {
  if (name in known || name ~ /^(COMPOSE_.*|DOCKER_.*|STATUS_PORT|TOXIPROXY_PORT|PYTHON_IMAGE|TOXIPROXY_IMAGE|PROMETHEUS_IMAGE|GRAFANA_.*|UI_PORT)$/) return
  print name " is not a setting (" where ")" near(toupper(name)) > "/dev/stderr"
  wrong = 1
}
function name_of(line) {
  sub(/^[ \t]*(export[ \t]+)?/, "", line)
  if (line ~ /^#/ || line !~ /=/) return ""
  sub(/[ \t]*=.*/, "", line)
  return line
}
BEGIN {
  while ((getline line < ARGV[1]) > 0) if (name = name_of(line)) known[name]
  while ((getline line < ARGV[2]) > 0) { number++; if (name = name_of(line)) check(name, ".env, line " number) }
  for (i = split(given, names, " "); i > 0; i--) check(names[i], "command line")
  exit 2 * wrong
}
