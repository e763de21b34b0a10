import type { Completed } from './script.ts';

/** The script for bash, 4 or later. */
export function bashScript({ bin, ask, prefix, topics }: Completed): string {
  const previous = topics
    ? `
# What completes the other commands of ${bin}.
${prefix}_others="$(complete -p ${bin} 2>/dev/null | sed -n 's/.* -F \\([^ ]*\\) .*/\\1/p')"
[[ $${prefix}_others == ${prefix} ]] && ${prefix}_others=
`
    : '';
  const others = topics
    ? `  if [[ -n "$${prefix}_others" ]] && [[ COMP_CWORD -eq 1 || ! "\${COMP_WORDS[1]}" =~ ^(${topics.join('|')})$ ]]; then
    "$${prefix}_others" "$@"
    return
  fi
`
    : '';
  return `# Completion of ${bin} for bash
${previous}
${prefix}() {
${others}  local -a reply
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
