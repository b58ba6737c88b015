# shellcheck shell=bash
# What all knobs share. A knob is a script of its own that defines
#
#   explain   prints what the knob does, why, and the source for it
#   wants     calls `want PATH RULE VALUE` for each value that it would set
#
# and may define
#
#   reason      why there is nothing to set on this machine (printed where nothing is wanted)
#   suffices    answers yes, with words, where the knob is met by other means than its values
#   notes       further lines of `check`
#   announce    tells the system of changed files, after `apply` and `undo`
#
# and ends with `run "$@"`. Rules: `is` (this value), `least` (this number or more), `file` (a file
# of ours with this text, `\n` for a line's end).
#
# `apply` notes what it found in /var/lib/coreline-tuning/KNOB before it changes anything, and makes
# values last over a restart of the machine by a file in /etc/sysctl.d or /etc/tmpfiles.d. `undo`
# puts back what was noted and needs that file. TUNING_ROOT stands before every path: tests set it.
set -euo pipefail

ROOT=${TUNING_ROOT:-}
KNOB=$(basename "$0")
STATE=$ROOT/var/lib/coreline-tuning/$KNOB
WANTED=()

die() { echo "$KNOB: $*" >&2; exit 2; }

is_defined() { declare -F "$1" >/dev/null; }

want() { WANTED+=("$1"$'\t'"$2"$'\t'"$3"); }

# The value in force; of a choice such as `always [madvise] never` the one in brackets.
current() {
  local text
  text=$(cat "$ROOT$1" 2>/dev/null) || return 1
  if [[ $text =~ \[([^]]+)\] ]]; then text=${BASH_REMATCH[1]}; fi
  tr -s '\t ' ' ' <<<"$text"
}

is_met() { # PATH RULE VALUE
  local now
  case $2 in
  file) [ "$(cat "$ROOT$1" 2>/dev/null)" = "$(printf '%b' "$3")" ] ;;
  is) now=$(current "$1") && [ "$now" = "$3" ] ;;
  least) now=$(current "$1") && [ "$now" -ge "$3" ] ;;
  *) die "no rule $2" ;;
  esac
}

row() { # STATE WHAT IS WANTED
  printf '%-18s %-8s %-60s %-11s %s\n' "$KNOB" "$1" "$2" "$3" "$4"
}

# The numbers of a list such as `0-2,5`, one a line.
numbers() {
  local part
  for part in ${1//,/ }; do seq "${part%-*}" "${part#*-}"; done
}

do_check() {
  local one path rule value now met differs=0
  if is_defined suffices && met=$(suffices); then
    row ok "$met" "" ""
    return 0
  fi
  [ ${#WANTED[@]} -gt 0 ] || row - "${REASON:-nothing to set on this machine}" "" ""
  for one in "${WANTED[@]}"; do
    IFS=$'\t' read -r path rule value <<<"$one"
    case $rule in
    file) if [ -e "$ROOT$path" ]; then now=present; else now=absent; fi ;;
    *) now=$(current "$path") || now=unreadable ;;
    esac
    if is_met "$path" "$rule" "$value"; then
      row ok "$path" "$now" ""
      continue
    fi
    differs=1
    case $rule in
    file) row differs "$path" "$now" "ours" ;;
    least) row differs "$path" "$now" ">= $value" ;;
    *) row differs "$path" "$now" "$value" ;;
    esac
  done
  ! is_defined notes || notes
  return "$differs"
}

is_noted() { [ -f "$STATE" ] && cut -f1 "$STATE" | grep -qxF -- "$1"; }

note() { # PATH KIND WHAT: before the change, so that a broken-off apply can be undone
  mkdir -p "$(dirname "$STATE")"
  is_noted "$1" || printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$STATE"
}

note_folders() { # the folders that must be made for PATH, or that another knob made; outermost first
  local folder=${1%/*}
  [ -n "$folder" ] || return 0
  if [ -d "$ROOT$folder" ] && ! grep -qsxF "$folder"$'\t'folder$'\t'- "${STATE%/*}"/*; then return 0; fi
  note_folders "$folder"
  note "$folder" folder -
}

put_file() { # PATH TEXT
  note_folders "$1"
  if [ -e "$ROOT$1" ]; then note "$1" file "$(base64 -w0 "$ROOT$1")"; else note "$1" nothing -; fi
  mkdir -p "$(dirname "$ROOT$1")"
  printf '%b' "$2" >"$ROOT$1"
}

put_value() { # PATH VALUE
  { printf '%s\n' "$2" >"$ROOT$1"; } 2>/dev/null
}

do_apply() {
  local one path rule value met failed=0
  may_change
  if is_defined suffices && met=$(suffices); then
    echo "$KNOB: $met"
    return 0
  fi
  [ ${#WANTED[@]} -gt 0 ] || { echo "$KNOB: ${REASON:-nothing to set on this machine}"; return 0; }
  for one in "${WANTED[@]}"; do
    IFS=$'\t' read -r path rule value <<<"$one"
    if is_met "$path" "$rule" "$value"; then continue; fi
    if [ "$rule" = file ]; then
      put_file "$path" "$value"
      echo "$KNOB: wrote $path"
      continue
    fi
    note "$path" value "$(current "$path")"
    if put_value "$path" "$value" && is_met "$path" "$rule" "$value"; then
      echo "$KNOB: $path is $value"
    else
      echo "$KNOB: the kernel does not take $value for $path" >&2
      failed=1
    fi
  done
  make_lasting
  ! is_defined announce || announce
  return "$failed"
}

# Values that this knob has set are set again at each start of the machine.
make_lasting() {
  local one path rule value sysctl='' tmpfiles=''
  for one in "${WANTED[@]}"; do
    IFS=$'\t' read -r path rule value <<<"$one"
    if [ "$rule" = file ] || ! is_noted "$path"; then continue; fi
    case $path in
    /proc/sys/*) path=${path#/proc/sys/}; sysctl+="${path//\//.} = $value\n" ;;
    /sys/*) tmpfiles+="w $path - - - - $value\n" ;;
    esac
  done
  [ -z "$sysctl" ] || put_file "/etc/sysctl.d/90-coreline-$KNOB.conf" "$sysctl"
  [ -z "$tmpfiles" ] || put_file "/etc/tmpfiles.d/coreline-$KNOB.conf" "$tmpfiles"
}

do_undo() {
  local path kind found failed=0
  may_change
  [ -f "$STATE" ] || die "nothing to undo: there is no $STATE"
  while IFS=$'\t' read -r path kind found; do
    case $kind in
    nothing) rm -f "$ROOT$path" ;;
    file) base64 -d <<<"$found" >"$ROOT$path" ;;
    folder) rmdir --ignore-fail-on-non-empty "$ROOT$path" 2>/dev/null || true ;;
    value)
      # What is gone meanwhile (a device that was taken out) has nothing to be put back.
      if [ ! -e "$ROOT$path" ] || [ "$(current "$path")" = "$found" ]; then continue; fi
      if put_value "$path" "$found"; then
        echo "$KNOB: $path is $found again"
      else
        echo "$KNOB: the kernel does not take $found for $path" >&2
        failed=1
      fi
      ;;
    esac
  done < <(tac "$STATE")
  [ "$failed" = 0 ] || die "kept $STATE: undo again when the cause is gone"
  rm "$STATE"
  rmdir --ignore-fail-on-non-empty "$(dirname "$STATE")"
  ! is_defined announce || announce
}

may_change() {
  [ -n "$ROOT" ] || [ "$(id -u)" = 0 ] || die "run this as root"
}

run() {
  case ${1:-} in
  explain) explain ;;
  check) wants; do_check ;;
  apply) wants; do_apply ;;
  undo) do_undo ;;
  *) echo "usage: tuning/$KNOB check|explain|apply|undo" >&2; exit 2 ;;
  esac
}
