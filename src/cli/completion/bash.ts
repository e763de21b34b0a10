import type { Completed } from './completed.ts';

/** The script for bash, 4 or later. */
export function bashScript(completed: Completed): string {
  const { bin, ask, prefix } = completed;
  return `# Completion of ${bin} for bash
${previousOf(completed)}
${prefix}() {
${othersOf(completed)}  local -a reply
  mapfile -t reply < <(
    COMP_LINE="\${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" ${ask} 2>/dev/null </dev/null
  )
  COMPREPLY=()
  case "\${reply[0]}" in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
    open) compopt -o nospace ;;
  esac
  COMPREPLY=("\${reply[@]:1}")
}

complete -F ${prefix} ${bin}
`;
}

function previousOf({ bin, prefix, topics }: Completed): string {
  if (!topics) return '';
  return `
# What completes the other commands of ${bin}.
${prefix}_others="$(complete -p ${bin} 2>/dev/null | sed -n 's/.* -F \\([^ ]*\\) .*/\\1/p')"
[[ $${prefix}_others == ${prefix} ]] && ${prefix}_others=
`;
}

function othersOf({ prefix, topics }: Completed): string {
  if (!topics) return '';
  return `  local topic="\${COMP_WORDS[1]}"
  (( COMP_CWORD > 1 )) || topic=
  if [[ -n "$${prefix}_others" && ! "$topic" =~ ^(${topics.join('|')})(:|$) ]]; then
    "$${prefix}_others" "$@"
    return
  fi
`;
}
