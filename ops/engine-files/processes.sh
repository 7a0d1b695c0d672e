# Functions about processes: which ones are servers of ops/engines, and which of these nobody needs any more. Sourced by ops/engines and ops/test.
#
# A process is identified by its id and its start time, so that a reused id is never taken for another process. A run is a process, written ID-START.

# How each server names its folder and, if it belongs to one, its run: as properties in its command line, where they remain when all files are deleted.
folder_property=-Dhighwater.engines.folder=
run_property=-Dhighwater.engines.run=

# Prints when a process started, in ticks since the machine did. A zombie (ended, but not yet waited for) does not count as running.
started_at() { # PID
  [ -r "/proc/$1/stat" ] && sed 's/.*) //' "/proc/$1/stat" | awk '$1 != "Z" { print $20 }'
}

# Prints the run that a process is; fails if it does not exist.
run_of() { # PID
  local start
  start=$(started_at "$1" 2> /dev/null) && [ -n "$start" ] && echo "$1-$start"
}

run_exists() { # ID-START
  [ "$(run_of "${1%%-*}")" = "$1" ]
}

# Whether a process works in a folder. The folder that is there now counts: not a deleted one that had the same path.
works_in() { # PID FOLDER
  [ "/proc/$1/cwd" -ef "$2" ]
}

# Whether the ids and paths of a process are those of this one: in a container they are others.
shares_namespaces() { # PID
  [ "$(readlink "/proc/$1/ns/pid" "/proc/$1/ns/mnt")" = "$(readlink /proc/self/ns/pid /proc/self/ns/mnt)" ]
}

# Prints why nobody needs a server; fails if somebody may need it.
reason_to_stop() { # PID START FOLDER RUN
  if [ -n "$4" ] && ! run_exists "$4"; then
    echo "the run that it belongs to has ended"
  elif ! works_in "$1" "$3"; then
    echo "its folder is gone"
  elif [ "$(cat "$3/process" 2> /dev/null)" != "$1 $2" ]; then
    echo "its folder does not name it"
  else
    return 1
  fi
}

# Stops the servers of this user that nobody needs, wherever they were started: those whose folder is gone, and those of a run that has ended, for
# example because it was killed. They would answer, for as long as they run, with data that is deleted.
stop_orphans() {
  local file pid name argument folder run start reason polls
  for file in /proc/[0-9]*/cmdline; do
    pid=${file#/proc/} pid=${pid%/cmdline} name='' folder='' run=''
    [ -O "/proc/$pid" ] || continue
    { read -r name < "/proc/$pid/comm"; } 2> /dev/null || continue
    [ "$name" = java ] || continue
    {
      while IFS= read -r -d '' argument; do
        case $argument in
          "$folder_property"/*) folder=${argument#"$folder_property"} ;;
          "$run_property"*) run=${argument#"$run_property"} ;;
        esac
      done < "$file"
    } 2> /dev/null || continue
    if [ -z "$folder" ] || ! shares_namespaces "$pid"; then continue; fi
    start=$(started_at "$pid" 2> /dev/null) && [ -n "$start" ] || continue
    reason=$(reason_to_stop "$pid" "$start" "$folder" "$run") || continue
    echo "ops/engines: stopping the server $pid of $folder: $reason" >&2
    for ((polls = 0; polls < 100; polls++)); do
      # Its data is worth nothing, and it may be paused: it is not asked.
      if [ "$(started_at "$pid" 2> /dev/null)" != "$start" ] || ! kill -KILL "$pid" 2> /dev/null; then break; fi
      sleep 0.1
    done
  done
}
